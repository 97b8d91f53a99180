"""One classic group without a shard: requests by hand, time by hand, a log that commits or refuses what it is given.

A `Stage` is a shard with one group. Unless it is told to hold what it is given, it commits at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from odradek.broker.coordinator.machine import Now, StoredRecord, TransactionBatch, Waiting
from odradek.broker.coordinator.timers import Timers
from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.classic.requests import (
    AssignedMember,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Leaving,
    Left,
    OfferedProtocol,
    Sync,
    Synced,
)
from odradek.broker.group.group_host import GroupHost, TimerKey
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored.group_metadata import GroupMetadataKey, GroupMetadataValue
from odradek.protocol.stored.group_records import decode_key, decode_value
from tests.broker.coordinator.plain_outbox import PlainOutbox

R = TypeVar("R")

GROUP_ID = "billing"
START = Now(monotonic_ms=1_000, unix_ms=1_700_000_000_000)
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000
RANGE = (OfferedProtocol("range", b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"),)
UNANSWERED: Any = object()


def offers(*names: str, metadata: bytes = b"") -> tuple[OfferedProtocol, ...]:
    return tuple(OfferedProtocol(name, metadata) for name in names)


@dataclass
class Options:
    """What GroupOptions asks for, with Kafka's defaults."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = DELAY_MS
    group_max_size: int = 2**31 - 1
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")
    group_consumer_migration_policy: str = "bidirectional"


class Asked(Waiting[R], Generic[R]):
    """Who asked, and what came of it."""

    __slots__ = ("_answer",)

    def __init__(self) -> None:
        self._answer: R | KafkaError = UNANSWERED

    def give(self, answer: R | KafkaError) -> None:
        assert not self.is_answered, f"{self._answer}, and now {answer}"
        self._answer = answer

    @property
    def is_answered(self) -> bool:
        return self._answer is not UNANSWERED

    @property
    def answer(self) -> R:
        assert self.is_answered, "not answered"
        assert not isinstance(self._answer, KafkaError), self._answer
        return self._answer

    @property
    def error(self) -> ErrorCode | None:
        """NONE for an answer without an error; None: not answered."""
        if not self.is_answered:
            return None
        return self._answer.code if isinstance(self._answer, KafkaError) else ErrorCode.NONE


class Given(NamedTuple):
    """Records or an answer, and what has to be done when they are committed or not."""

    act: Callable[[bool], None]
    is_append: bool


@dataclass
class LogOutbox(PlainOutbox):
    """Commits in the order of what was given, or refuses what is not committed, as one batch or all but the last."""

    is_holding: bool = False
    log: list[StoredRecord] = field(default_factory=list[StoredRecord])
    given: list[Given] = field(default_factory=list[Given])
    record_count: int = 0

    def append(
        self,
        entity_id: str,
        records: Sequence[StoredRecord],
        undo: Callable[[], None],
        transaction: TransactionBatch | None = None,
    ) -> None:
        assert entity_id == GROUP_ID
        self.record_count += len(records)
        self._give(lambda is_committed: self.log.extend(records) if is_committed else undo(), is_append=True)

    def reply(self, entity_id: str | None, waiting: Waiting[R], answer: R | KafkaError) -> None:
        assert entity_id == GROUP_ID
        assert isinstance(waiting, Asked)
        asked: Asked[R] = waiting
        failure = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "refused")
        self._give(lambda is_committed: asked.give(answer if is_committed else failure), is_append=False)

    def _give(self, act: Callable[[bool], None], *, is_append: bool) -> None:
        if self.is_holding and (is_append or self.given):
            self.given.append(Given(act, is_append))
        else:
            act(True)

    def commit(self) -> None:
        given, self.given = self.given, []
        for each in given:
            each.act(True)

    def refuse(self) -> None:
        """The last undo comes first; what was replied meanwhile fails."""
        given, self.given = self.given, []
        for each in reversed(given):
            each.act(False)

    def refuse_older(self) -> None:
        """All records but the last ones are refused, one after the other; the last ones are committed."""
        given, self.given = self.given, []
        last = max((position for position, each in enumerate(given) if each.is_append), default=-1)
        for position, each in enumerate(given):
            if position != last:
                each.act(False)
        if last >= 0:
            given[last].act(True)


class Stage:
    """A group, its host and its clients."""

    def __init__(self, **options: Any) -> None:
        self.options = Options(**options)
        self.now = START
        self.outbox = LogOutbox()
        self._uuids = 0
        self.timers: Timers[TimerKey] = Timers()
        self.group = self.new_group()

    def new_group(self) -> ClassicGroup:
        """One that knows nothing yet, of this host."""
        return ClassicGroup(GROUP_ID, GroupHost(self.outbox, self.timers, self.options, self._uuid))

    def _uuid(self) -> bytes:
        self._uuids += 1
        return self._uuids.to_bytes(16, "big")

    # -- requests ---------------------------------------------------------------------------------------------------

    def join(self, member_id: str = "", instance_id: str | None = None, **fields: Any) -> Asked[Joined]:
        asked: Asked[Joined] = Asked()
        request = Join(
            member_id=member_id,
            client_id="app",
            client_host="/10.0.0.1",
            protocol_type="consumer",
            protocols=RANGE,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            instance_id=instance_id,
        )
        self.group.join(request._replace(**fields), asked, self.now)
        return asked

    def sync(
        self, member_id: str, generation: int | None = None, assignments: dict[str, bytes] | None = None, **fields: Any
    ) -> Asked[Synced]:
        asked: Asked[Synced] = Asked()
        given = tuple(AssignedMember(*pair) for pair in (assignments or {}).items())
        request = Sync(member_id, self.group.generation if generation is None else generation, assignments=given)
        self.group.sync(request._replace(**fields), asked, self.now)
        return asked

    def heartbeat(self, member_id: str, generation: int | None = None, instance_id: str | None = None) -> ErrorCode:
        asked = self.ask_heartbeat(member_id, generation, instance_id)
        assert asked.error is not None
        return asked.error

    def ask_heartbeat(
        self, member_id: str, generation: int | None = None, instance_id: str | None = None
    ) -> Asked[None]:
        asked: Asked[None] = Asked()
        at = self.group.generation if generation is None else generation
        self.group.heartbeat(Heartbeat(member_id, at, instance_id), asked, self.now)
        return asked

    def leave(self, *leaving: Leaving | str) -> Asked[Left]:
        asked: Asked[Left] = Asked()
        members = tuple(Leaving(each) if isinstance(each, str) else each for each in leaving)
        self.group.leave(Leave(members), asked, self.now)
        return asked

    # -- time and the log -------------------------------------------------------------------------------------------

    def wait(self, duration_ms: int) -> None:
        """Time passes, and every deadline is met at its time."""
        until = self.now.monotonic_ms + duration_ms
        while (due := self.timers.next_deadline_ms) is not None and due <= until:
            self._advance(max(due, self.now.monotonic_ms))
            key = self.timers.pop_due(self.now.monotonic_ms)
            assert key is not None
            self.group.timed_out(key, self.now)
        self._advance(until)

    def _advance(self, monotonic_ms: int) -> None:
        passed_ms = monotonic_ms - self.now.monotonic_ms
        self.now = Now(monotonic_ms, self.now.unix_ms + passed_ms)

    def hold(self) -> None:
        self.outbox.is_holding = True

    def commit(self) -> None:
        self.outbox.is_holding = False
        self.outbox.commit()

    def refuse(self) -> None:
        self.outbox.is_holding = False
        self.outbox.refuse()

    def refuse_older(self) -> None:
        self.outbox.is_holding = False
        self.outbox.refuse_older()

    def stored(self) -> GroupMetadataValue | None:
        """What the newest record says; None: there is none."""
        return value_of(self.outbox.log[-1]) if self.outbox.log else None

    def reload(self) -> None:
        """Another broker leads, and knows what is in the log. Whoever waited is gone."""
        self.outbox.given.clear()
        self.timers = Timers()
        self.group = self.new_group()
        for record in self.outbox.log:
            self.group.replay(value_of(record))
        self.group.loaded(self.now)

    # -- longer ways ------------------------------------------------------------------------------------------------

    def stabilize(self, count: int = 1, **fields: Any) -> list[str]:
        """Brings a new group of so many dynamic members to STABLE; their ids, the leader's first."""
        return self.complete([self.join(**fields) for _ in range(count)])

    def complete(self, joins: list[Asked[Joined]]) -> list[str]:
        """Ends an initial rebalance, and gives each member an assignment that names it. The leader's id comes first."""
        self.wait(2 * DELAY_MS)
        return self.assign(joins)

    def assign(self, joins: list[Asked[Joined]]) -> list[str]:
        """The members sync, the leader last; their ids, the leader's first."""
        leader_id = joins[0].answer.leader_id
        ids = [each.answer.member_id for each in joins if each.answer.member_id != leader_id]
        syncs = [self.sync(member_id) for member_id in ids]
        syncs.append(self.sync(leader_id, assignments={each: f"of {each}".encode() for each in [leader_id, *ids]}))
        assert all(each.error is ErrorCode.NONE for each in syncs)
        return [leader_id, *ids]


def value_of(record: StoredRecord) -> GroupMetadataValue | None:
    key = decode_key(record.key)
    assert isinstance(key, GroupMetadataKey)
    assert key.group == GROUP_ID
    if record.value is None:
        return None
    value = decode_value(key, record.value)
    assert isinstance(value, GroupMetadataValue)
    return value
