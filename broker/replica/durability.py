"""When what was appended counts: at once, as in Kafka's default, or after a sync (`flush.messages`, `flush.ms`).

`flush.messages=N` syncs the log whenever N records are not on the device: with 1, each acknowledgement follows a sync,
and no consumer reads what a power failure could take back. `flush.ms=T` syncs T milliseconds after an append.

While one sync is under way the appends that come wait together for the next one: however many requests there are, they
share it. Kafka syncs within each append (UnifiedLog.append), and ours would do so in the event loop.

    durable <= log_end_offset      what counts towards acknowledgements and the high watermark
"""

import asyncio
import logging
from asyncio import Future, Task, TimerHandle
from collections.abc import Callable
from functools import partial

from odradek.broker.config.broker_config import TopicConfig
from odradek.broker.config.option import LONG_MAX
from odradek.broker.log.flush import DataNotSynced, Flush
from odradek.broker.log.log import Log
from odradek.broker.replica.syncs import Syncs
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.progress import Progress
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)


class Durability:
    """The syncs of one log."""

    __slots__ = (
        "_environment",
        "_flights",
        "_flush_messages",
        "_flush_ms",
        "_is_closed",
        "_is_configured",
        "_is_syncing",
        "_log",
        "_moved",
        "_rested",
        "_syncs",
        "_tasks",
        "_timer",
        "durable",
        "waits",
    )

    def __init__(
        self, log: Log, environment: Environment, tasks: Tasks, syncs: Syncs, moved: Callable[[], None]
    ) -> None:
        """`moved` is called whenever a sync moved `durable`."""
        self._log = log
        self._environment = environment
        self._tasks = tasks
        self._syncs = syncs
        self._moved = moved
        self._flush_messages = self._flush_ms = LONG_MAX
        self._is_configured = False
        self._is_closed = False
        self._is_syncing = False
        self._rested: Future[None] | None = None  # whom `syncs_ended` waits for
        self._flights: dict[Task[OSError | None], None] = {}
        self._timer: TimerHandle | None = None
        self.durable = Progress(log.durable_offset)
        self.waits = False
        """Whether anything may have to wait at all. If not, `durable` stands still, and all of the log counts."""

    @property
    def end_offset(self) -> int:
        """Everything before it counts."""
        return self.durable.value if self.waits else self._log.end.log_end_offset

    def configure(self, config: TopicConfig) -> None:
        """Takes the topic's options over: those that it has when it is opened, and later ones.

        What was acknowledged under other options counts. What a killed process left in the page cache does not: a
        producer that got no answer asks again, and the answer is a promise.
        """
        self._flush_messages, self._flush_ms = config.flush_messages, config.flush_ms
        waited, self.waits = self.waits, min(self._flush_messages, self._flush_ms) < LONG_MAX
        if not self.waits or (self._is_configured and not waited):
            self.durable.advance(self._log.log_end_offset)
        self._is_configured = True
        if self.waits and self.durable.value < self._log.log_end_offset:
            self._start()

    def appended(self) -> None:
        """Something was appended, while `waits`."""
        if self._is_durable:
            self.durable.advance(self._log.log_end_offset)
            self._set_timer()
        else:
            self._start()

    def want(self, end_offset: int) -> None:
        """Somebody waits until everything before `end_offset` counts. If nothing is under way (a sync has failed, or
        the broker was killed before one), there must be one."""
        if self.durable.value < end_offset:
            self._start()

    def truncated(self, error: KafkaError) -> None:
        """The log was cut at its end: what counted behind that counts no more. Whoever waits gets `error`, since what
        he waits for may be gone."""
        value = min(self.durable.value, self._log.log_end_offset)
        self.durable.fail(error)
        if not self._log.is_distrusted:
            self.durable.restart(value)

    def close(self, error: KafkaError) -> None:
        """The log goes, and perhaps its directory: whoever waits gets `error`, and nothing more is synced."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.durable.fail(error)

    async def sync_closed_segments(self) -> None:
        """Syncs what takes no more appends, and moves the recovery point to its end. A failure is logged."""
        await self._sync(with_active=False)

    async def sync_all(self) -> None:
        """Syncs everything, and moves the recovery point to the end. A failure is logged."""
        await self._sync(with_active=True)

    async def _sync(self, *, with_active: bool) -> None:
        if self._is_closed or (flush := self._log.begin_flush(settle=True, with_active=with_active)) is None:
            return
        if (error := await self._flown(flush)) is not None and not self._is_closed:
            logger.warning("%s: could not be synced: %s", self._log.directory, error)

    async def settle(self) -> None:
        """Has everything synced, for a log that takes no more appends and is closed next, and returns when no sync is
        under way. A failure is logged."""
        await self.syncs_ended()  # of one that fails the device may say nothing to the next
        try:
            self._log.complete()
            await self.sync_all()
        except KafkaError as error:
            logger.warning("%s: could not be synced: %s", self._log.directory, error)
        await self.syncs_ended()

    async def syncs_ended(self) -> None:
        """Returns when no sync is under way: what the device says to one must not be missed, whoever is cancelled."""
        while self._flights or self._is_syncing:
            await asyncio.gather(*self._flights, return_exceptions=True)
            if self._is_syncing:
                self._rested = self._rested or self._environment.loop.create_future()
                await self._rested

    async def _flown(self, flush: Flush) -> OSError | None:
        """Runs the flush in a helper thread, and returns what it failed with.

        Whoever waits here may be cancelled; the log learns of the end all the same.
        """
        flight = self._tasks.start(self._fly(flush), f"sync {self._log.directory}")
        self._flights[flight] = None
        flight.add_done_callback(lambda flight: self._flights.pop(flight, None))
        return await asyncio.shield(flight)

    async def _fly(self, flush: Flush) -> OSError | None:
        try:
            await self._environment.run_blocking(flush.run)
        except OSError as error:
            self._log.end_flush(flush, error)
            return error
        self._log.end_flush(flush)
        return None

    @property
    def _is_durable(self) -> bool:
        return self._log.log_end_offset - self._log.durable_offset < self._flush_messages

    def _set_timer(self) -> None:
        if self._flush_ms < LONG_MAX and self._timer is None and self._log.durable_offset < self._log.log_end_offset:
            self._timer = self._environment.loop.call_later(self._flush_ms / 1000, self._is_time)

    def _is_time(self) -> None:
        self._timer = None
        self._start()

    def _start(self) -> None:
        if not self._is_syncing:
            self._is_syncing = True
            self._environment.loop.call_soon(self._begin)  # what else comes in this turn of the loop shares it

    def _begin(self) -> None:
        is_under_way = False
        try:
            is_under_way = self._has_begun()
        finally:
            if not is_under_way:
                self._rest()

    def _has_begun(self) -> bool:
        """Whether a sync is under way now. If not, there was nothing to do, or it failed."""
        if self._is_closed:
            return False
        try:
            flush = self._log.begin_flush(settle=False)
        except KafkaError as error:
            self._fail(error)
            return False
        if flush is None:
            self._advance()  # somebody else has synced
            return False
        self._syncs.add(flush.run, partial(self._ended, flush))
        return True

    def _ended(self, flush: Flush, error: OSError | None) -> None:
        is_under_way = False
        try:
            self._log.end_flush(flush, error)
            if error is None:
                self._advance()
                is_under_way = not self._is_durable and self._has_begun()
            else:
                self._fail(_not_synced(error))
        finally:
            if not is_under_way:
                self._rest()

    def _rest(self) -> None:
        """Nothing is under way any more."""
        self._is_syncing = False
        if self._rested is not None:
            self._rested.set_result(None)
            self._rested = None

    def _advance(self) -> None:
        if self.durable.advance(self._log.log_end_offset if self._is_durable else self._log.durable_offset):
            self._moved()
        self._set_timer()

    def _fail(self, error: KafkaError) -> None:
        settled = self.durable
        value = settled.value
        settled.fail(error)
        if not self._log.is_distrusted:
            settled.restart(value)  # the next who asks has it tried again


def _not_synced(error: OSError) -> KafkaError:
    kept = "" if isinstance(error, DataNotSynced) else "; the records stay, and are synced with the next append"
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log could not be synced: {error}{kept}")
