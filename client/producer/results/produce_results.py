"""The ends of batches: `ProduceResult` is the common end of a batch's records, `Results` keeps what failed unseen.

All records of a batch end together, so whatever is known of the end of a record is a `ProduceResult` and an index in
it. Who waits for one record has a future of its own there; who waits for many at once (`all_ended`) has one for all of
them, which counts the results left. A batch that the broker found too large is split, and its result with it: those who
wait wake, find the part that now holds their record, and wait on.

A record that failed must not be forgotten. `Results`, one a producer, keeps the results that failed until `flush()` or
`close()` reports the records in them that nobody has looked at, by an await, `result()`, `exception()` or a callback.
(Source: Java's ProduceRequestResult, whose latch the futures of a batch share likewise.)
"""

import asyncio
import logging
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextvars import Context
from itertools import islice
from typing import Any, Final, NamedTuple, NoReturn

from odradek.client.errors.client_errors import ClientError, UndeliveredRecords, WrongLoop
from odradek.client.metrics.metrics import NO_METRICS, UNOBSERVED_ERROR_TOTAL, Metrics

__all__ = ["Ack", "ProduceResult", "Results", "all_ended"]

logger = logging.getLogger(__name__)

FAILED_RESULTS_MAX: Final = 1024
"""Of failed batches whose records nobody has looked at, so many are kept; of older ones only the number of records."""
SAMPLE_MAX: Final = 10
"""So many failed records are named one by one in UndeliveredRecords."""
LOG_INTERVAL_MS: Final = 10_000.0
"""Failures that nobody waits for are logged at most so often."""


class Ack(NamedTuple):
    """Where a record is. `offset` is -1 where the broker does not tell (acks=0, or a duplicate that it has forgotten).

    `timestamp_ms` is the record's own, or the time of the append where the topic says LogAppendTime.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


_new: Callable[[type[Ack], tuple[str, int, int, int]], Ack] = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
"""As Ack(...), without a Python call that costs as much as all else of an await."""


class _Callback(NamedTuple):
    """What to call when a record ends. `is_look`: a failure that it is told of counts as looked at."""

    record_index: int
    function: Callable[[Any], object]
    argument: object
    context: Context
    is_look: bool


class ProduceResult:
    """The common end of a batch's records. It ends once: `complete`, `fail` or `split`, whichever comes first."""

    __slots__ = (
        "_callbacks",
        "_groups",
        "_observed",
        "_waiters",
        "base_offset",
        "count",
        "error",
        "is_done",
        "log_append_time_ms",
        "owner",
        "partition",
        "parts",
        "record_errors",
        "timestamps",
        "topic",
    )

    def __init__(self, owner: "Results", topic: str, partition: int) -> None:
        self.owner = owner
        self.topic = topic
        self.partition = partition
        self.count = 0
        """How many records it is for; set when the batch is closed."""
        self.timestamps: array[int] | None = None
        self.is_done = False
        """It ended, but not by a split."""
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.error: ClientError | None = None
        self.record_errors: dict[int, ClientError] | None = None
        self.parts: list[tuple[int, ProduceResult]] | None = None
        """After a split: the results in place of this one, each with the index of its first record."""
        self._waiters: dict[asyncio.Future[None], int] | None = None
        self._groups: dict[_Group, list[Sequence[int]]] | None = None
        self._callbacks: list[_Callback] | None = None
        self._observed: set[int] | None = None

    # ------------------------------------------------------------------------------------------- how it ends
    def complete(self, base_offset: int, log_append_time_ms: int) -> None:
        """Every record is acknowledged; `base_offset` -1: nobody knows where."""
        assert not self.is_done
        assert self.parts is None
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self._end()

    def fail(self, error: ClientError, record_errors: dict[int, ClientError] | None = None) -> None:
        """No record is acknowledged: each has failed by `error`, or by its own in `record_errors`."""
        assert not self.is_done
        assert self.parts is None
        self.error = error
        self.record_errors = record_errors
        self.timestamps = None
        # Who gave up waiting, a moment ago perhaps, will not look.
        self.observe([index for waiter, index in (self._waiters or {}).items() if not waiter.done()])
        for group, joined in (self._groups or {}).items():
            if not group.future.done():
                for indexes in joined:
                    self.observe(indexes)
        self.observe([callback.record_index for callback in self._callbacks or () if callback.is_look])
        self._end()
        self.owner.failed(self)

    def split(self, counts: Sequence[int]) -> "list[ProduceResult]":
        """Divides the records, in order, among new results, which end in place of this one."""
        assert not self.is_done
        assert self.parts is None
        assert sum(counts) == self.count
        parts: list[tuple[int, ProduceResult]] = []
        start = 0
        for count in counts:
            part = ProduceResult(self.owner, self.topic, self.partition)
            part.count = count
            parts.append((start, part))
            start += count
        self.parts = parts
        self.timestamps = None
        for callback in self._callbacks or ():
            part, index = self.locate(callback.record_index)
            part.add_callback(index, *callback[1:])
        self._callbacks = None
        for group, joined in (self._groups or {}).items():
            for indexes in joined:
                self.join(group, indexes)
        self._wake()
        return [part for _, part in parts]

    def _end(self) -> None:
        self.is_done = True
        self._wake()
        callbacks, self._callbacks = self._callbacks, None
        if callbacks is not None:
            for callback in callbacks:
                self._call(callback)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, None
        if waiters is not None:
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
        groups, self._groups = self._groups, None
        if groups is not None:
            for group in groups:
                group.one_ended()

    def _call(self, callback: _Callback) -> None:
        try:
            callback.context.run(callback.function, callback.argument)
        except (Exception, asyncio.CancelledError):
            # The latter comes from another future that a callback looked at: nobody cancels the one who calls it.
            logger.exception("the delivery callback %r of a record for %s failed", callback.function, self.topic)

    # ------------------------------------------------------------------------------------------- how it ended
    def locate(self, index: int) -> "tuple[ProduceResult, int]":
        """The result that holds the record now, and its index there."""
        result = self
        while result.parts is not None:
            start, part = result.parts[bisect_right(result.parts, index, key=_start_of) - 1]
            result, index = part, index - start
        return result, index

    def ack(self, index: int) -> Ack:
        """Of a result that is done. Raises the record's error."""
        if self.error is None:
            timestamp_ms = self.log_append_time_ms
            if timestamp_ms < 0 and self.timestamps is not None:
                timestamp_ms = self.timestamps[index]
            base_offset = self.base_offset
            offset = base_offset + index if base_offset >= 0 else -1
            return _new(Ack, (self.topic, self.partition, offset, timestamp_ms))
        self._raise(index)

    def _raise(self, index: int) -> NoReturn:
        error = self.error_of(index)
        assert error is not None
        raise error.fresh()

    def error_of(self, index: int) -> ClientError | None:
        """The error of one record, which counts as looked at from now on. None: acknowledged."""
        if self.error is not None:
            self.observe((index,))
        return self.peek(index)

    def peek(self, index: int) -> ClientError | None:
        """The same without a look that counts."""
        if self.error is not None and self.record_errors is not None:
            return self.record_errors.get(index, self.error)
        return self.error

    # -------------------------------------------------------------------------------------------- who looks at it
    def observe(self, indexes: Iterable[int]) -> None:
        """Says that somebody knows, or will know, how these records ended."""
        if self._observed is None:
            self._observed = set()
        self._observed.update(indexes)

    @property
    def unobserved_count(self) -> int:
        return self.count - len(self._observed or ())

    def unobserved(self) -> Iterator[ClientError]:
        """The errors of the failed records that nobody has looked at."""
        assert self.error is not None
        observed = self._observed or ()
        errors = self.record_errors or {}
        for index in range(self.count):
            if index not in observed:
                yield errors.get(index, self.error)

    def waiter(self, index: int) -> asyncio.Future[None]:
        """A future for one record, which ends when this result does, or when it is split."""
        waiter: asyncio.Future[None] = self.owner.running_loop().create_future()
        if self._waiters is None:
            self._waiters = {}
        self._waiters[waiter] = index
        return waiter

    def forget(self, waiter: asyncio.Future[None]) -> None:
        """Nobody waits for this future any more."""
        if self._waiters is not None:
            self._waiters.pop(waiter, None)

    def join(self, group: "_Group", indexes: Sequence[int]) -> None:
        """Has a group wait until the records with these indexes, which it will look at, have ended; none: until all."""
        if self.parts is not None:
            for start, part in self.parts:
                within = [index - start for index in indexes if 0 <= index - start < part.count]
                if within or not indexes:
                    part.join(group, within)
        elif not self.is_done:
            if self._groups is None:
                self._groups = {}
            if group not in self._groups:
                self._groups[group] = []
                group.left += 1
            self._groups[group].append(indexes)
        elif self.error is not None:
            self.observe(indexes)

    def leave(self, group: "_Group") -> None:
        """The group waits no more."""
        if self.parts is not None:
            for _, part in self.parts:
                part.leave(group)
        elif self._groups is not None:
            self._groups.pop(group, None)

    async def ended(self) -> None:
        """Returns when every record has ended."""
        await all_ended(self.owner, [(self, ())])

    def add_callback(
        self, index: int, function: Callable[[Any], object], argument: object, context: Context, is_look: bool
    ) -> None:
        """Has `function(argument)` called when a record ends, of a result that has not."""
        if self._callbacks is None:
            self._callbacks = []
        self._callbacks.append(_Callback(index, function, argument, context, is_look))

    def remove_callback(self, index: int, function: Callable[[Any], object]) -> int:
        """Removes what equals `function` from a record's callbacks, and returns how many."""
        before = self._callbacks or []
        kept = [callback for callback in before if callback[:2] != (index, function)]
        self._callbacks = kept or None
        return len(before) - len(kept)


def _start_of(part: tuple[int, ProduceResult]) -> int:
    return part[0]


class _Group:
    """One wait for the records of several results: `left` of them have not ended."""

    __slots__ = ("future", "left")

    def __init__(self, future: asyncio.Future[None]) -> None:
        self.future = future
        self.left = 0

    def one_ended(self) -> None:
        """One of the results has ended, or its parts have joined in its place."""
        self.left -= 1
        if not self.left and not self.future.done():
            self.future.set_result(None)


async def all_ended(owner: "Results", waited_for: Collection[tuple[ProduceResult, Sequence[int]]]) -> None:
    """Returns when records have ended: of each result those with these indexes, which somebody looks at; none: all.

    Cancelled, it leaves nothing behind in the results, which may be far from their end.
    """
    group = _Group(owner.running_loop().create_future())
    for result, indexes in waited_for:
        result.join(group, indexes)
    if not group.left:
        return
    try:
        await group.future
    except BaseException:
        for result, _ in waited_for:
            result.leave(group)
        raise


class Results:
    """What a producer knows of the ends of its batches: who may wait where, and failures that nobody has seen."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic_ms: Callable[[], float],
        metrics: Metrics = NO_METRICS,
        client_id: str = "",
    ) -> None:
        self.loop = loop
        self._monotonic_ms = monotonic_ms
        self._metrics = metrics
        self._client_id = client_id
        self._failed: deque[ProduceResult] = deque()
        self._forgotten = 0
        self._unlogged = 0
        self._log_after_ms = float("-inf")

    def begin(self, topic: str, partition: int) -> ProduceResult:
        """The result of a new batch."""
        return ProduceResult(self, topic, partition)

    def running_loop(self) -> asyncio.AbstractEventLoop:
        """The producer's loop. Raises WrongLoop in any other, and without one, as in other threads."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise WrongLoop("delivery", "without an event loop") from None
        if loop is not self.loop:
            raise WrongLoop("delivery")
        return loop

    def failed(self, result: ProduceResult) -> None:
        """Keeps a result that failed, until `report`, if there are records in it that nobody looks at."""
        count = result.unobserved_count
        if not count:
            return
        self._metrics.count(UNOBSERVED_ERROR_TOTAL, count)
        if len(self._failed) == FAILED_RESULTS_MAX:
            self._forgotten += self._failed.popleft().unobserved_count
        self._failed.append(result)
        self._unlogged += count
        now_ms = self._monotonic_ms()
        if now_ms >= self._log_after_ms:
            self._log_after_ms = now_ms + LOG_INTERVAL_MS
            logger.error(
                "%s: %d record(s) that nobody waits for were not delivered, lately to %s-%d: %s",
                self._client_id,
                self._unlogged,
                result.topic,
                result.partition,
                result.error,
            )
            self._unlogged = 0

    def report(self) -> None:
        """Raises UndeliveredRecords if records failed since the last report and nobody has looked at them."""
        count, self._forgotten = self._forgotten, 0
        sample: list[tuple[str, int, ClientError]] = []
        while self._failed:
            result = self._failed.popleft()
            count += result.unobserved_count
            errors = islice(result.unobserved(), SAMPLE_MAX - len(sample))
            sample.extend((result.topic, result.partition, error) for error in errors)
        if count:
            raise UndeliveredRecords(count, sample)
