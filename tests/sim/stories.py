"""Histories made by hand, a line an event, for the checker's tests. A millisecond passes with each.

    story = Story().sent(1).acked(1, offset=0).polled(0, (0, 1)).end()
    verdict = story.check()

Records go to partition 0 of topic `t` by the idempotent producer `p`, with acks=all, unless said otherwise.
"""

from dataclasses import replace
from typing import Any, Literal, Self

from odradek.testing.sim.checking.checker import check
from odradek.testing.sim.checking.cluster_history import (
    NO_LEADER,
    ClusterRecord,
    NodesStored,
    OptionsStored,
    PartitionStored,
    RecordsDeleted,
    TopicStored,
    UncleanElection,
)
from odradek.testing.sim.checking.expectations import Rules, TopicRules
from odradek.testing.sim.checking.finding import Verdict
from odradek.testing.sim.checking.group_history import (
    NO_GENERATION,
    Assigned,
    CommitAnswered,
    CommitAsked,
    MemberGone,
    OffsetsRead,
    Revoked,
)
from odradek.testing.sim.checking.history import (
    Acknowledged,
    Answered,
    Asked,
    Failed,
    FaultKind,
    Happened,
    History,
    OperatorAction,
    Phase,
    Placed,
    Polled,
    ReplicaSeen,
    Sent,
)
from odradek.testing.sim.checking.transaction_history import Ended, Ending, InTransaction

TOPIC = "t"
START_MS = 1_000.0
UNCLEAN = Rules(default=TopicRules(may_elect_uncleanly=True))
SYNCED = Rules(default=TopicRules(is_synced=True))
KEEPING = Rules(default=TopicRules(keeps_records=True))
COMPACTED = Rules(default=TopicRules(is_compacted=True))


class Story:
    """A history in the making, and what the metadata store held meanwhile. `rules` may be replaced."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.history = History()
        self.cluster: list[ClusterRecord] = []
        self.rules = rules if rules is not None else Rules()
        self.at_ms = START_MS
        self._partition_epoch = 0

    def check(self) -> Verdict:
        return check(self.history, self.cluster, self.rules)

    def now(self) -> float:
        self.at_ms += 1.0
        return self.at_ms

    def passes(self, ms: float) -> Self:
        self.at_ms += ms
        return self

    # -- clients --------------------------------------------------------------------------------------------------

    def sent(
        self,
        *values: int,
        acks: int = -1,
        producer: str = "p",
        is_idempotent: bool = True,
        topic: str = TOPIC,
        partition: int | None = 0,
        key: int | None = None,
    ) -> Self:
        for value in values:
            self.history.add(Sent(self.now(), "c", producer, value, topic, partition, acks, is_idempotent, key))
        return self

    def acked(self, value: int, offset: int, topic: str = TOPIC, partition: int = 0) -> Self:
        self.history.add(Acknowledged(self.now(), value, topic, partition, offset))
        return self

    def failed(self, value: int, *, is_definite: bool) -> Self:
        self.history.add(Failed(self.now(), value, "NOT_ENOUGH_REPLICAS" if is_definite else "timeout", is_definite))
        return self

    def polled(
        self,
        position: int,
        *records: tuple[int, int],
        client: str = "r",
        partition: int = 0,
        took_ms: float = 0.5,
        topic: str = TOPIC,
    ) -> Self:
        at_ms = self.now()
        self.history.add(Polled(at_ms, at_ms - took_ms, client, topic, partition, position, list(records)))
        return self

    def placed(
        self, offset: int, why: Literal["start", "out of range"] = "start", client: str = "r", topic: str = TOPIC
    ) -> Self:
        self.history.add(Placed(self.now(), client, topic, 0, offset, why))
        return self

    def wrote(self, *values: int, first_offset: int = 0, **more: Any) -> Self:
        """Sent and acknowledged, one after the other."""
        for offset, value in enumerate(values, first_offset):
            self.sent(value, **more).acked(value, offset)
        return self

    def read_to(self, *records: tuple[int, int], client: str = "r", position: int = 0) -> Self:
        """One poll of all of it, and the end."""
        return self.polled(position, *records, client=client).end()

    def repaired(self) -> Self:
        self.history.add(Phase(self.now(), "liveness"))
        return self

    def end(self) -> Self:
        self.history.add(Phase(self.now(), "end"))
        return self

    # -- members of groups ----------------------------------------------------------------------------------------

    def assigned(
        self, member: str = "m", *partitions: int, generation: int = NO_GENERATION, instance_id: str = ""
    ) -> Self:
        """Partition 0, unless others are named."""
        self.history.add(Assigned(self.now(), member, TOPIC, list(partitions or (0,)), generation, instance_id))
        return self

    def revoked(self, member: str = "m", *partitions: int) -> Self:
        self.history.add(Revoked(self.now(), member, TOPIC, list(partitions or (0,))))
        return self

    def processed(self, *records: tuple[int, int], member: str = "m") -> Self:
        """The first of an ownership."""
        return self.placed(records[0][0], client=member).polled(records[0][0], *records, client=member)

    def asked_to_commit(self, offset: int, member: str = "m", commit: int = 0, generation: int = NO_GENERATION) -> Self:
        self.history.add(CommitAsked(self.now(), member, commit, TOPIC, [(0, offset)], generation))
        return self

    def told_of_commit(
        self, member: str = "m", commit: int = 0, error: str = "", generation: int = NO_GENERATION
    ) -> Self:
        self.history.add(CommitAnswered(self.now(), member, commit, error, generation))
        return self

    def committed(self, offset: int, member: str = "m", commit: int = 0, generation: int = NO_GENERATION) -> Self:
        self.asked_to_commit(offset, member, commit, generation)
        return self.told_of_commit(member, commit, generation=generation)

    def offset_told(self, offset: int, took_ms: float = 0.5) -> Self:
        at_ms = self.now()
        self.history.add(OffsetsRead(at_ms, at_ms - took_ms, "b", TOPIC, [(0, offset)]))
        return self

    def member_gone(self, member: str, why: Literal["left", "killed"] = "killed") -> Self:
        self.history.add(MemberGone(self.now(), member, why))
        return self

    # -- transactions -----------------------------------------------------------------------------------------------

    def sends(self, transaction: str, *values: int, source: int = 0, partition: int = 0, topic: str = TOPIC) -> Self:
        """In a transaction, whose name tells its producer. `source`: whose copy it is."""
        for value in values:
            self.sent(value, producer=transaction.partition(".")[0], partition=partition, topic=topic)
            self.history.add(InTransaction(self.at_ms, transaction, value, source))
        return self

    def ending(self, transaction: str, wanted: Literal["commit", "abort"] = "commit") -> Self:
        self.history.add(Ending(self.now(), transaction, wanted))
        return self

    def ended(self, transaction: str, outcome: Literal["committed", "aborted"] = "committed") -> Self:
        self.history.add(Ended(self.now(), transaction, outcome))
        return self

    def commits(self, transaction: str) -> Self:
        return self.ending(transaction).ended(transaction)

    def aborts(self, transaction: str) -> Self:
        return self.ending(transaction, "abort").ended(transaction, "aborted")

    def last_read(self, *records: tuple[int, int], topic: str = TOPIC, client: str = "final") -> Self:
        """All of partition 0 when everything is repaired; `end` is to follow."""
        self.placed(0, client=client, topic=topic)
        return self.polled(0, *records, client=client, topic=topic) if records else self

    # -- operators ------------------------------------------------------------------------------------------------

    def asked(
        self,
        action: OperatorAction,
        *numbers: int,
        operator: str = "o",
        topic: str = TOPIC,
        partition: int = 0,
        options: dict[str, str] | None = None,
    ) -> Self:
        self.history.add(Asked(self.now(), operator, action, topic, partition, list(numbers), options or {}))
        return self

    def done(self, *numbers: int, operator: str = "o", topic: str = TOPIC) -> Self:
        self.history.add(Answered(self.now(), operator, True, topic, list(numbers)))
        return self

    def refused(self, error: str, *, operator: str = "o") -> Self:
        self.history.add(Answered(self.now(), operator, False, error=error))
        return self

    def created(self, partition_count: int = 1, topic: str = TOPIC) -> Self:
        """Or enlarged; with 0 deleted."""
        self.cluster.append(TopicStored(self.now(), topic, partition_count))
        return self

    def gone(self, topic: str = TOPIC) -> Self:
        return self.created(0, topic)

    def options(self, options: dict[str, str], topic: str = TOPIC) -> Self:
        self.cluster.append(OptionsStored(self.now(), topic, options))
        return self

    def nodes(self, *nodes: int) -> Self:
        self.cluster.append(NodesStored(self.now(), nodes))
        return self

    # -- the world ------------------------------------------------------------------------------------------------

    def happened(self, kind: FaultKind, machine: str) -> Self:
        self.history.add(Happened(self.now(), kind, machine))
        return self

    def seen(self, machine: str = "broker-1", **more: Any) -> Self:
        """A look into a leader whose log ends at 10, and is readable up to there."""
        fields: dict[str, Any] = {
            "incarnation": 1,
            "topic": TOPIC,
            "partition": 0,
            "leader_epoch": 1,
            "is_leader": True,
            "log_start_offset": 0,
            "log_end_offset": 10,
            "high_watermark": 10,
            "in_sync": [1, 2, 3],
            "maximal_in_sync": [1, 2, 3],
        }
        self.history.add(ReplicaSeen(self.now(), machine, **(fields | more)))
        return self

    def stored(
        self,
        leader: int,
        isr: tuple[int, ...],
        leader_epoch: int,
        *,
        replicas: tuple[int, ...] = (1, 2, 3),
        elr: tuple[int, ...] = (),
        partition_epoch: int | None = None,
        writer: int | None = None,
        controller: int | None = None,
        adding: tuple[int, ...] = (),
        removing: tuple[int, ...] = (),
        live: tuple[int, ...] | None = None,
        topic: str = TOPIC,
    ) -> Self:
        self._partition_epoch = self._partition_epoch + 1 if partition_epoch is None else partition_epoch
        epochs = leader_epoch, self._partition_epoch
        state = PartitionStored(self.now(), topic, 0, replicas, isr, leader, *epochs, elr, writer, controller)
        self.cluster.append(replace(state, adding=adding, removing=removing, live=live))
        return self

    def leaderless(self, leader_epoch: int) -> Self:
        return self.stored(NO_LEADER, (), leader_epoch)

    def unclean(self, leader: int, leader_epoch: int) -> Self:
        """Logged."""
        self.cluster.append(UncleanElection(self.now(), TOPIC, 0, leader, leader_epoch, "nobody else was left"))
        return self

    def deleted(self, before_offset: int) -> Self:
        self.cluster.append(RecordsDeleted(self.now(), TOPIC, 0, before_offset))
        return self
