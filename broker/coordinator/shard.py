"""One partition of an internal topic that this broker leads, with its machine, for one leader epoch.

| state | requests are told |
|---|---|
| LOADING | COORDINATOR_LOAD_IN_PROGRESS: the log is being read (loading.py) |
| ACTIVE | the machine's answer, once what it depends on is committed |
| FAILED | COORDINATOR_NOT_AVAILABLE, with why: the log cannot be read |
| ENDED | NOT_COORDINATOR: another broker leads, or nobody does |

Requests, timers and changes of the metadata are given to the machine as they come. What they want written is appended
together, at the end of the loop's turn or after `append_linger_ms`. A batch that the log refuses is undone, with all
that the turn has written after it of the same entities, and its answers fail; one that is in the log stays, whatever
its answers are told (commits.py).

A machine that fails in a way that nobody foresaw may be half changed: the shard loads its log again.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, Generic, Protocol, TypeVar

from odradek.broker.coordinator.commits import Commits
from odradek.broker.coordinator.machine import Now, Outbox, StoredRecord, TransactionBatch, Waiting
from odradek.broker.coordinator.shard_errors import as_bystander, as_coordinator
from odradek.broker.coordinator.turn import Part, Reply, Turn
from odradek.broker.log.validation import Origin
from odradek.broker.log.verifications import NO_PROOF
from odradek.broker.replica.acknowledgements import ACKS_ALL
from odradek.broker.replica.partition import Partition
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

R = TypeVar("R")


class Machine(Protocol):
    """What a shard runs."""

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` is due, by `Now.monotonic_ms`; None: never."""
        ...

    def tick(self, now: Now) -> None:
        """Does some of what is due: as much as fits in a millisecond or two; the rest is due at once."""
        ...

    def replay(self, key: bytes, value: bytes | None, producer_id: int) -> str | None:
        """Takes one record of the log. `producer_id`: of its transaction, NO_PRODUCER_ID outside of one. Returns the
        entity that it is about, None for none that is known. Raises MalformedMessage."""
        ...

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> Sequence[str]:
        """The transaction of this producer ends here. Returns the entities that it is about."""
        ...

    def loaded(self, now: Now) -> None:
        """All of the log was replayed; deadlines start."""
        ...


M = TypeVar("M", bound=Machine)


class ShardState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    ENDED = "ended"


class ShardOptions(Protocol):
    """What of the broker's options a shard goes by; read when it is needed."""

    @property
    def append_linger_ms(self) -> int:
        """How long records wait for others. Below 0: to the end of the loop's turn."""
        ...

    @property
    def commit_timeout_ms(self) -> int: ...
    @property
    def compression(self) -> Codec: ...


class _Asked(Waiting[R]):
    """Who waits, with the future of its answer."""

    __slots__ = ("future",)

    def __init__(self, future: "asyncio.Future[R]") -> None:
        self.future = future


class Shard(Generic[M]):
    """Runs one machine; the machine's `Outbox` is this shard."""

    def __init__(
        self,
        partition: Partition,
        leader_epoch: int,
        make_machine: Callable[[Outbox], M],
        options: ShardOptions,
        tasks: Tasks,
        reload: "Callable[[Shard[M]], None]",
    ) -> None:
        """`reload` has the shard loaded (again)."""
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state = ShardState.LOADING
        self.failure = ""
        """Why it is FAILED."""
        self.load_s = 0.0
        """How long its last load took."""
        self._make_machine = make_machine
        self._options = options
        self._environment: Environment = partition.host.environment
        self._tasks = tasks
        self._reload = reload
        self._asked: dict[_Asked[Any], None] = {}
        self._turn = Turn()
        self._flush_handle: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self.machine: M
        self.commits: Commits
        self._begin()

    def _begin(self) -> None:
        self.machine = self._make_machine(self)
        self.commits = Commits(self.partition, self._tasks, lambda: self._options.commit_timeout_ms, self._answer)
        self._turn = Turn()

    @property
    def name(self) -> str:
        return self.partition.name

    def now(self) -> Now:
        return Now(int(self._environment.monotonic_ms()), self._environment.now_ms())

    # -- state ----------------------------------------------------------------------------------------------------

    def loaded(self) -> None:
        """The machine has everything: requests are answered from here on."""
        assert self.state is ShardState.LOADING, self.state
        self.state = ShardState.ACTIVE
        self.do(lambda machine, now: machine.loaded(now))

    def failed(self, why: str) -> None:
        """The log cannot be read."""
        self._stop(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, why))
        self.state, self.failure = ShardState.FAILED, why

    def end(self) -> None:
        """This broker does not lead any more, in this epoch."""
        self._stop(self._not_coordinator())
        self.state = ShardState.ENDED

    def _stop(self, error: KafkaError) -> None:
        for handle in (self._flush_handle, self._timer):
            if handle is not None:
                handle.cancel()
        self._flush_handle = self._timer = None
        self.commits.end()
        for asked in tuple(self._asked):
            self._answer(asked, error)

    def _not_coordinator(self) -> KafkaError:
        return KafkaError(ErrorCode.NOT_COORDINATOR, f"this broker does not lead {self.name}; find the coordinator")

    def require_active(self) -> None:
        """Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""
        if self.state is ShardState.ACTIVE:
            return
        if self.state is ShardState.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.name} is being loaded; try again")
        if self.state is ShardState.FAILED:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, self.failure)
        raise self._not_coordinator()

    # -- what happens ---------------------------------------------------------------------------------------------

    async def ask(self, operation: Callable[[M, Waiting[R], Now], None]) -> R:
        """The answer of the machine to a request: `operation` gives it to the machine, at once.

        Raises KafkaError: as `require_active`, what the machine raises or answers, and what `as_coordinator` says of an
        append that was refused or is not committed in time.
        """
        self.require_active()
        asked: _Asked[R] = _Asked(self._environment.loop.create_future())
        self._asked[asked] = None
        try:
            try:
                self.do(lambda machine, now: operation(machine, asked, now))
            except KafkaError:
                self._require_lease()  # else the refusal may be out of date
                raise
            return await asked.future
        finally:
            self._asked.pop(asked, None)

    def require_unfenced(self) -> None:
        """For an answer that takes something back if it is out of date: no controller can have given the shard to
        another broker, which happens before the lease ends. Raises KafkaError NOT_COORDINATOR."""
        try:
            self.partition.host.require_unfenced()
        except KafkaError as error:
            raise as_coordinator(error) from error

    def _require_lease(self) -> None:
        """Raises KafkaError NOT_COORDINATOR."""
        try:
            self.partition.host.require_lease()
        except KafkaError as error:
            raise as_coordinator(error) from error

    def do(self, operation: Callable[[M, Now], None]) -> None:
        """Something happens, at once, if the shard is active. Raises KafkaError, as the machine does, and
        UNKNOWN_SERVER_ERROR where nobody foresaw it."""
        if self.state is not ShardState.ACTIVE:
            return
        try:
            operation(self.machine, self.now())
        except KafkaError:
            raise
        except Exception as error:
            logger.exception("%s: the coordinator failed, and loads its log again", self.name)
            self._start_again()
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}") from error
        finally:
            self._set_timer()
        if self._turn and self._flush_handle is None:
            self._flush_later()

    def _start_again(self) -> None:
        """What is not appended yet, nobody has been told of."""
        self._stop(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.name} is loaded again; try again"))
        self.state = ShardState.LOADING
        self._begin()
        self._reload(self)

    def _set_timer(self) -> None:
        deadline_ms = self.machine.next_deadline_ms if self.state is ShardState.ACTIVE else None
        if deadline_ms is None or (self._timer is not None and self._timer_ms <= deadline_ms):
            return  # it is asked again when its time comes
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_s = max(0.0, deadline_ms - self._environment.monotonic_ms()) / 1000
        self._timer = self._environment.loop.call_later(delay_s, self._time_has_come)

    def _time_has_come(self) -> None:
        self._timer = None
        try:
            self.do(lambda machine, now: machine.tick(now))
        except KafkaError as error:
            logger.warning("%s: what was due has not been done: %s", self.name, error)

    # -- what the machine says (`Outbox`) ---------------------------------------------------------------------------

    def append(
        self,
        entity_id: str,
        records: Sequence[StoredRecord],
        undo: Callable[[], None],
        transaction: TransactionBatch | None = None,
    ) -> None:
        assert records, "nothing to write"
        self._turn.append(entity_id, records, undo, transaction)

    def also_of(self, entity_id: str) -> None:
        self._turn.also_of(entity_id)

    def when_committed(self, entity_id: str, then: Callable[[], None]) -> None:
        if not self._turn.when_committed(entity_id, then):
            self.commits.when_committed(entity_id, then)

    def reply(self, entity_id: str | None, waiting: Waiting[R], answer: R | KafkaError) -> None:
        if entity_id is None:
            self._answer(waiting, answer)
        elif not self._turn.reply(entity_id, waiting, answer):
            self.commits.reply(entity_id, Reply(waiting, answer))

    def _answer(self, waiting: Waiting[Any], answer: Any) -> None:
        assert isinstance(waiting, _Asked)
        future: asyncio.Future[Any] = waiting.future
        if future.done():  # who asked has gone away, or the shard has ended
            return
        if isinstance(answer, KafkaError):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    # -- appending --------------------------------------------------------------------------------------------------

    def _flush_later(self) -> None:
        linger_ms, loop = self._options.append_linger_ms, self._environment.loop
        if linger_ms > 0:
            self._flush_handle = loop.call_later(linger_ms / 1000, self._flush)
        else:
            self._flush_handle = loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Appends what there is. What undoing it gives is appended in the next turn."""
        if self._flush_handle is not None:
            self._flush_handle.cancel()
            self._flush_handle = None
        turn, self._turn = self._turn, Turn()
        refused: list[tuple[Part, KafkaError]] = []
        now = self.now()
        for part in turn.parts(self.partition.config.max_message_bytes):
            if part.left_by is not None:
                refused.append((part, part.left_by))
                continue
            try:
                ticket = self.partition.append(
                    _batch(part, now.unix_ms, self._options.compression),
                    ACKS_ALL,
                    now.unix_ms,
                    origin=Origin.COORDINATOR,
                    proof=NO_PROOF if part.transaction is None else part.transaction.proof,
                )
            except KafkaError as error:
                refused.append((part, error))
                turn.refuse(part, error)
            else:
                self.commits.appended(ticket, part)
        for part, why in reversed(refused):
            if self.state is ShardState.ACTIVE:
                self._undo(part, why)
        if refused and self.state is ShardState.ACTIVE:
            if self._turn and self._flush_handle is None:
                self._flush_later()
            self._set_timer()

    def _undo(self, part: Part, error: KafkaError) -> None:
        for reply in part.replies:
            is_its_own = reply.is_of_transaction and part.left_by is None
            self._answer(reply.waiting, as_coordinator(error) if is_its_own else as_bystander(error))
        try:
            for undo in reversed(part.undos):
                undo()
        except Exception:
            logger.exception("%s: a refused append could not be undone; the log is loaded again", self.name)
            self._start_again()


def _batch(part: Part, now_ms: int, codec: Codec) -> bytes:
    numbered = [Record(index, now_ms, key, value) for index, (key, value) in enumerate(part.records)]
    transaction = part.transaction
    if transaction is None:
        return build_batch(numbered, codec=codec)
    return build_batch(
        numbered,
        codec=Codec.NONE if transaction.is_marker else codec,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        is_transactional=True,
        is_control=transaction.is_marker,
    )


NO_PRODUCER_ID: Final = -1
"""A record that belongs to no transaction."""
