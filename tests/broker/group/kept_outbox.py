"""An outbox that keeps what a machine gives it, and a world around a machine of groups: a clock, a log, topics.

world = World()
world.commit("billing", {("orders", 0): 7})     the answer; the records are in the log
world.outbox.refuses = True                     from here on the log takes nothing, and what it stands for is undone
world.replayed()                                a machine that was loaded from the log
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.coordinator.machine import Now, StoredRecord, TransactionBatch, Waiting
from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.classic.requests import Join, Leave, Leaving, OfferedProtocol, Sync, Synced
from odradek.broker.group.group_counts import GroupCounts
from odradek.broker.group.machine import NO_PRODUCER_ID, GroupMachine, MachineOptions
from odradek.broker.group.offset_requests import (
    CommitInTransaction,
    CommitOffsets,
    DeleteOffsets,
    EndTransaction,
    FetchedOffset,
    FetchOffsets,
    OffsetToCommit,
)
from odradek.broker.group.offsets import Committed, Position
from odradek.broker.group.topics_view import ViewedTopic
from odradek.broker.log.markers import marker_of
from odradek.broker.log.verifications import Proof
from odradek.protocol.consumer_protocol import Subscription, encode_subscription
from odradek.protocol.errors import ErrorCode, KafkaError

R = TypeVar("R")

DAY_MS = 24 * 3600 * 1000
START_MS = 1_700_000_000_000
TOPIC_IDS: Mapping[str, bytes] = {name: bytes(15) + name[:1].encode() for name in ("orders", "bills")}


class Asked(Waiting[R], Generic[R]):
    """Keeps its answers: one, where nothing is wrong."""

    __slots__ = ("answers",)

    def __init__(self) -> None:
        self.answers: list[R | KafkaError] = []

    @property
    def answer(self) -> R:
        """Raises the KafkaError that it is."""
        [answer] = self.answers
        if isinstance(answer, KafkaError):
            raise answer
        return answer


class KeptOutbox:
    """Accepts each batch at once, or refuses it at once."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, Sequence[StoredRecord]]] = []
        """Those accepted, with whose they are."""
        self.transactions: list[TransactionBatch | None] = []
        """Of each of them, whose."""
        self.entities: list[list[str]] = []
        """Of each of them, all whose it is."""
        self.refuses = False
        self._refused: list[Callable[[], None]] = []
        self._last: list[str] = []

    def append(
        self,
        entity_id: str,
        records: Sequence[StoredRecord],
        undo: Callable[[], None],
        transaction: TransactionBatch | None = None,
    ) -> None:
        assert records, "nothing to write"
        self._last = [entity_id]
        if self.refuses:
            self._refused.append(undo)
        else:
            self.batches.append((entity_id, records))
            self.transactions.append(transaction)
            self.entities.append(self._last)

    def also_of(self, entity_id: str) -> None:
        self._last.append(entity_id)

    def when_committed(self, entity_id: str, then: Callable[[], None]) -> None:
        assert entity_id in self._last, "it follows what was given last"
        if not self.refuses:
            then()

    def reply(self, entity_id: str | None, waiting: Waiting[R], answer: R | KafkaError) -> None:
        del entity_id
        assert isinstance(waiting, Asked)
        asked: Asked[R] = waiting
        asked.answers.append(answer)

    def undo(self) -> None:
        """What was refused, as a shard does after its turn."""
        while self._refused:
            self._refused.pop()()

    @property
    def log(self) -> list[StoredRecord]:
        return [record for _, records in self.batches for record in records]


class _Topics:
    """Topics with so many partitions each, by their ids (`TopicsView`)."""

    def __init__(self, ids: Mapping[str, bytes], partition_count: int) -> None:
        self._ids = ids
        self._partition_count = partition_count

    def by_name(self, name: str) -> ViewedTopic | None:
        topic_id = self._ids.get(name)
        return None if topic_id is None else ViewedTopic(name, topic_id, self._partition_count)

    def by_id(self, topic_id: bytes) -> ViewedTopic | None:
        return next((self.by_name(name) for name, each in self._ids.items() if each == topic_id), None)

    def names(self) -> Iterable[str]:
        return self._ids


def replay(machine: GroupMachine, record: StoredRecord, transaction: TransactionBatch | None) -> None:
    """As the loader does."""
    if transaction is None:
        machine.replay(*record, NO_PRODUCER_ID)
    elif transaction.is_marker:
        marker = marker_of(*record, 0)
        assert marker is not None
        machine.replay_marker(transaction.producer_id, is_commit=not marker.is_abort)
    else:
        machine.replay(*record, transaction.producer_id)


class World:
    """One machine, and what it is told."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        partition_count: int = 1,
        outbox: KeptOutbox | None = None,
    ) -> None:
        self.outbox = outbox or KeptOutbox()
        self.counts = GroupCounts()
        defaults = {"group.initial.rebalance.delay.ms": "0"}
        self.config = BrokerConfig({**defaults, **(settings or {})}, {}, {})
        self.topic_ids = dict(TOPIC_IDS)
        self.partition_count = partition_count
        self.passed_ms = 0
        self._ids = 0
        self.machine = self.new_machine(self.outbox)
        self.machine.loaded(self.now)

    def new_machine(self, outbox: KeptOutbox) -> GroupMachine:
        options: MachineOptions = self.config  # pyright: ignore[reportAssignmentType]
        topics = _Topics(self.topic_ids, self.partition_count)
        return GroupMachine(outbox, options, self._random_uuid, topics, counts=self.counts)

    def _random_uuid(self) -> bytes:
        self._ids += 1
        return self._ids.to_bytes(16, "big")

    @property
    def now(self) -> Now:
        return Now(self.passed_ms, START_MS + self.passed_ms)

    def replayed(self) -> GroupMachine:
        """A machine that has loaded the log, and says nothing by that."""
        outbox = KeptOutbox()
        machine = self.new_machine(outbox)
        for (_, records), transaction in zip(self.outbox.batches, self.outbox.transactions, strict=True):
            for record in records:
                replay(machine, record, transaction)
        machine.loaded(self.now)
        assert outbox.batches == []
        return machine

    # -- time -------------------------------------------------------------------------------------------------------

    def settle(self) -> int:
        """All that is due is done; returns in how many steps."""
        steps = 0
        while (deadline_ms := self.machine.next_deadline_ms) is not None and deadline_ms <= self.passed_ms:
            self.machine.tick(self.now)
            steps += 1
            assert steps < 10_000, "it is never done"
        return steps

    def wait(self, duration_ms: int) -> None:
        """Time passes, and deadlines are kept on the way."""
        end_ms = self.passed_ms + duration_ms
        while (deadline_ms := self.machine.next_deadline_ms) is not None and deadline_ms <= end_ms:
            self.passed_ms = max(self.passed_ms, deadline_ms)
            self.settle()
        self.passed_ms = end_ms

    # -- requests ---------------------------------------------------------------------------------------------------

    def send(self, operation: Callable[[GroupMachine, Waiting[Any], Now], None]) -> Asked[Any]:
        """Raises KafkaError where it is refused at once."""
        asked = Asked[Any]()
        operation(self.machine, asked, self.now)
        return asked

    def ask(self, operation: Callable[[GroupMachine, Waiting[Any], Now], None]) -> Any:
        """The answer. Raises KafkaError."""
        return self.send(operation).answer

    def commit(
        self,
        group_id: str,
        offsets: Mapping[Position, int],
        *,
        member_id: str = "",
        generation: int = -1,
        retention_ms: int = -1,
        metadata: str = "",
        topic_id: bytes | None = None,
    ) -> list[ErrorCode]:
        request = self.commit_request(
            group_id, offsets, member_id, generation, retention_ms=retention_ms, metadata=metadata, topic_id=topic_id
        )
        errors: list[ErrorCode] = self.ask(lambda machine, waiting, now: machine.commit(request, waiting, now))
        return errors

    def commit_request(
        self,
        group_id: str,
        offsets: Mapping[Position, int],
        member_id: str = "",
        generation: int = -1,
        *,
        retention_ms: int = -1,
        metadata: str = "",
        topic_id: bytes | None = None,
    ) -> CommitOffsets:
        wanted = [
            OffsetToCommit(position, topic_id or self.topic_ids[position[0]], offset, -1, metadata)
            for position, offset in offsets.items()
        ]
        return CommitOffsets(group_id, member_id, None, generation, retention_ms, wanted, 9)

    def commit_in_transaction(
        self,
        group_id: str,
        offsets: Mapping[Position, int],
        *,
        producer_id: int = 1,
        member: tuple[str, str | None, int] = ("", None, -1),
        metadata: str = "",
        version: int = 5,
    ) -> list[ErrorCode]:
        """`member`: its id, instance id and generation."""
        request = in_transaction(group_id, offsets, producer_id, member, metadata, version)
        errors: list[ErrorCode] = self.ask(
            lambda machine, waiting, now: machine.commit_in_transaction(request, waiting, now)
        )
        return errors

    def end_transaction(self, producer_id: int = 1, *, is_commit: bool = True) -> None:
        request = EndTransaction(producer_id, 0, 3, is_commit, 1)
        self.ask(lambda machine, waiting, now: machine.end_transaction(request, waiting, now))

    def pending(self, group_id: str) -> dict[tuple[int, Position], int]:
        """What producers have committed in open transactions."""
        found = self.machine.offsets.offsets.pending_of(group_id)
        return {(producer_id, position): committed.offset for producer_id, position, committed in found}

    def fetch(
        self, group_id: str, positions: Sequence[Position] | None = None, *, require_stable: bool = False
    ) -> dict[Position, Committed | ErrorCode | None]:
        request = FetchOffsets(group_id, "", -1, positions, require_stable)
        found: list[FetchedOffset] = self.ask(
            lambda machine, waiting, now: machine.fetch_offsets(request, waiting, now)
        )
        return {each.position: each.error or each.committed for each in found}

    def offsets(self, group_id: str) -> dict[Position, int]:
        """What the group has committed, whatever the topics are now."""
        return {position: committed.offset for position, committed in self.machine.offsets.offsets.of(group_id).items()}

    def delete_offsets(self, group_id: str, *positions: Position) -> list[ErrorCode]:
        request = DeleteOffsets(group_id, positions)
        errors: list[ErrorCode] = self.ask(lambda machine, waiting, now: machine.delete_offsets(request, waiting, now))
        return errors

    def delete(self, group_id: str) -> None:
        self.ask(lambda machine, waiting, now: machine.delete(group_id, waiting, now))

    def enter(
        self,
        group_id: str,
        topics: Sequence[str] = ("orders",),
        protocol_type: str = "consumer",
        *,
        session_timeout_ms: int = 10_000,
        complete: bool = True,
    ) -> tuple[str, int]:
        """One member makes the empty group stable; not `complete`: it has not asked for its assignment yet. Returns its
        id and the generation."""
        metadata = encode_subscription(Subscription(topics)) if protocol_type == "consumer" else b"\xff"
        protocols = (OfferedProtocol("range", metadata),)
        join = Join("", "client", "/host", protocol_type, protocols, session_timeout_ms, session_timeout_ms)
        asked = Asked[Any]()
        self.machine.join(group_id, join, asked, self.now)
        self.settle()
        joined = asked.answer
        if not complete:
            return joined.member_id, joined.generation
        sync = Sync(joined.member_id, joined.generation)
        synced: Synced = self.ask(lambda machine, waiting, now: machine.sync(group_id, sync, waiting, now))
        assert synced.assignment == b""
        return joined.member_id, joined.generation

    def leave(self, group_id: str, member_id: str) -> None:
        request = Leave((Leaving(member_id),))
        self.ask(lambda machine, waiting, now: machine.leave(group_id, request, waiting, now))


def in_transaction(
    group_id: str,
    offsets: Mapping[Position, int],
    producer_id: int = 1,
    member: tuple[str, str | None, int] = ("", None, -1),
    metadata: str = "",
    version: int = 5,
) -> CommitInTransaction:
    """`member`: its id, instance id and generation."""
    wanted = [
        OffsetToCommit(position, TOPIC_IDS[position[0]], offset, -1, metadata) for position, offset in offsets.items()
    ]
    return CommitInTransaction(group_id, *member, producer_id, 0, Proof(is_coordinators=True), wanted, version)


def seen(machine: GroupMachine) -> dict[str, tuple[Any, ...]]:
    """What records say: of each group, and of its offsets, those of open transactions apart. A simple group without
    offsets has no records."""
    found: dict[str, tuple[Any, ...]] = {}
    for group_id, group in sorted(machine.groups.items()):
        offsets = dict(machine.offsets.offsets.of(group_id))
        pending = {
            (each, position): committed for each, position, committed in machine.offsets.offsets.pending_of(group_id)
        }
        if offsets or pending or not group.is_vacant:
            generation = group.generation if isinstance(group, ClassicGroup) else 0
            found[group_id] = (group.kind, group.state_name, group.protocol_type, generation, offsets, pending)
    return found
