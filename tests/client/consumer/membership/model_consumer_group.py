"""A coordinator's KIP-848 group, for tests of members: target assignments, reconciliation, sessions, failover. Pure.

What a member is given, and when, is worked out as by Kafka's CurrentAssignmentBuilder: a partition is free when its
former owner has told what it owns, and it was not among that. All of it survives a failover, but for sessions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from odradek.client.consumer.assignment.assignor import Member, TopicLayout
from odradek.client.consumer.assignment.claims import Claims
from odradek.client.consumer.assignment.sticky_assignor import divide
from odradek.client.consumer.membership.requests import (
    Answer,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    Refused,
    Request,
)
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

INTERVAL_MS = 3_000
SESSION_MS = 10_000
Parts = frozenset[tuple[bytes, int]]
NOTHING: Parts = frozenset()


class Reconciling(Enum):
    DONE = "stable"
    UNREVOKED = "unrevoked partitions"
    UNRELEASED = "unreleased partitions"


@dataclass
class ModelMember:
    topics: frozenset[str]
    deadline_ms: float
    rebalance_timeout_ms: float
    instance_id: str | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: Reconciling = Reconciling.DONE
    assigned: Parts = NOTHING
    to_revoke: Parts = NOTHING
    revoke_by_ms: float | None = None
    has_left_for_a_while: bool = False


@dataclass
class ModelConsumerGroup:
    topics: Mapping[str, TopicLayout]
    node_id: int = 1
    epoch: int = 0
    members: dict[str, ModelMember] = field(default_factory=dict[str, ModelMember])
    target: dict[str, Parts] = field(default_factory=dict[str, Parts])
    answers: list[tuple[Request, Answer]] = field(default_factory=list[tuple[Request, Answer]])

    @property
    def member_ids(self) -> frozenset[str]:
        return frozenset(key for key, member in self.members.items() if not member.has_left_for_a_while)

    # -------------------------------------------------------------------------------------------------------- requests
    def handle(self, request: Request, node_id: int | None, now_ms: float) -> None:
        assert isinstance(request, ConsumerHeartbeat)
        answer = Refused(ErrorCode.NOT_COORDINATOR) if node_id != self.node_id else self._answer(request, now_ms)
        self.answers.append((request, answer))

    def _answer(self, request: ConsumerHeartbeat, now_ms: float) -> Answer:
        if request.member_epoch < 0:
            return self._left(request)
        if (error := self._admit(request, now_ms)) is not None:
            return Refused(error)
        member = self.members[request.member_id]
        member.deadline_ms = now_ms + SESSION_MS
        if request.subscribed_topics is not None and frozenset(request.subscribed_topics) != member.topics:
            member.topics = frozenset(request.subscribed_topics)
            self._assign()
        owned = None if request.owned is None else parts_of(request.owned)
        before = member.assigned
        self._reconcile(request.member_id, member, owned, now_ms)
        is_full = request.rebalance_timeout_ms >= 0 and request.subscribed_topics is not None and owned is not None
        shown = by_id(member.assigned) if is_full or member.assigned != before else None
        return ConsumerHeartbeatAnswer(member.epoch, INTERVAL_MS, request.member_id, shown)

    def _left(self, request: ConsumerHeartbeat) -> Answer:
        if request.member_id not in self.members:
            return Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if request.member_epoch == -2:
            self.members[request.member_id].has_left_for_a_while = True
        else:
            self._remove(request.member_id)
        return ConsumerHeartbeatAnswer(request.member_epoch, INTERVAL_MS)

    def _admit(self, request: ConsumerHeartbeat, now_ms: float) -> ErrorCode | None:
        member = self.members.get(request.member_id)
        if request.member_epoch == 0:
            # All of it has to be said, and nothing can be owned.
            assert request.owned == {} and request.subscribed_topics and request.rebalance_timeout_ms > 0
            if member is None:
                former = [
                    key for key, each in self.members.items() if request.instance_id == each.instance_id is not None
                ]
                if former and not self.members[former[0]].has_left_for_a_while:
                    return ErrorCode.UNRELEASED_INSTANCE_ID
                for key in former:
                    self._remove(key)
                self.members[request.member_id] = ModelMember(
                    frozenset(request.subscribed_topics), 0, request.rebalance_timeout_ms, request.instance_id
                )
                self._assign()
            else:
                member.has_left_for_a_while = False
            return None
        if member is None or member.has_left_for_a_while:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if request.member_epoch == member.epoch:
            return None
        is_lost_answer = request.member_epoch == member.previous_epoch and request.owned is not None
        if is_lost_answer and parts_of(request.owned or {}) <= member.assigned:
            return None
        return ErrorCode.FENCED_MEMBER_EPOCH

    # -------------------------------------------------------------------------------------------------- reconciliation
    def _reconcile(self, member_id: str, member: ModelMember, owned: Parts | None, now_ms: float) -> None:
        if member.state is Reconciling.UNREVOKED and may_own(owned, member.to_revoke):
            return
        target = self.target[member_id]
        if member.state is Reconciling.DONE and member.epoch == self.epoch:
            return
        kept, to_revoke = member.assigned & target, member.assigned - target
        if to_revoke and may_own(owned, to_revoke):
            if member.state is not Reconciling.UNREVOKED:
                member.revoke_by_ms = now_ms + member.rebalance_timeout_ms
            member.state, member.assigned, member.to_revoke = Reconciling.UNREVOKED, kept, to_revoke
            return
        taken = {
            part for key, each in self.members.items() if key != member_id for part in each.assigned | each.to_revoke
        }
        free = target - kept - taken
        member.assigned, member.to_revoke, member.revoke_by_ms = kept | free, NOTHING, None
        member.state = Reconciling.DONE if member.assigned == target else Reconciling.UNRELEASED
        if member.epoch != self.epoch:
            member.previous_epoch, member.epoch = member.epoch, self.epoch

    def _assign(self) -> None:
        self.epoch += 1
        ids = {topic: layout.topic_id for topic, layout in self.topics.items()}
        names = {topic_id: topic for topic, topic_id in ids.items()}
        owners = {
            TopicPartition(names[topic_id], number): key
            for key, parts in self.target.items()
            if key in self.members
            for topic_id, number in parts
            if names[topic_id] in self.members[key].topics
        }
        divided = divide(
            [Member(key, each.topics) for key, each in self.members.items()], self.topics, Claims(owners, {})
        )
        self.target = {key: frozenset((ids[topic], number) for topic, number in mine) for key, mine in divided.items()}

    def _remove(self, member_id: str) -> None:
        del self.members[member_id]
        self._assign()

    # ------------------------------------------------------------------------------------------------------------ time
    def tick(self, now_ms: float) -> None:
        for member_id, member in list(self.members.items()):
            is_late = member.revoke_by_ms is not None and member.revoke_by_ms <= now_ms
            if member.deadline_ms <= now_ms or is_late:
                self._remove(member_id)

    def expel(self, member_id: str) -> None:
        if member_id in self.members:
            self._remove(member_id)

    def fail_over(self, now_ms: float) -> list[Request]:
        self.node_id += 1
        for member in self.members.values():
            member.deadline_ms = now_ms + SESSION_MS
        return []


def may_own(owned: Parts | None, parts: Parts) -> bool:
    """Who does not say what it owns may own anything."""
    return owned is None or bool(owned & parts)


def parts_of(assignment: Mapping[bytes, frozenset[int]]) -> Parts:
    return frozenset((topic_id, number) for topic_id, numbers in assignment.items() for number in numbers)


def by_id(parts: Parts) -> dict[bytes, frozenset[int]]:
    found: dict[bytes, set[int]] = {}
    for topic_id, number in parts:
        found.setdefault(topic_id, set()).add(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}
