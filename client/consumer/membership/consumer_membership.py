"""`ConsumerMembership`: a member of a KIP-848 group, without I/O. The interface is `membership`, the states
`consumer_states`.

The broker assigns, and everything goes through one request, ConsumerGroupHeartbeat, one at a time:

    epoch 0 (joins) → target assignment → give up what is not in it → take what is new → tell what is owned → …

- What the broker decides (interval, epoch, assignment) is obeyed. What is owned is told when a target has been reached,
  since the broker gives to others what is told to be free; and in every full heartbeat (`consumer_heartbeats`).
- Nothing is taken while a heartbeat that told what is owned has no answer. The broker may read from it that a partition
  of the target is free, and give it to another. (Java takes it, and both read it for a moment.)
- FENCED_MEMBER_EPOCH and UNKNOWN_MEMBER_ID make all partitions lost; once they are given up, the member joins again by
  the same id.

(Source: AbstractMembershipManager.java, ConsumerMembershipManager.java; KIP-848, 1092.)
"""

from collections.abc import Collection, Mapping
from math import inf
from typing import Final

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.membership.actions import Assigned, Failed, Send
from odradek.client.consumer.membership.consumer_heartbeats import JOIN_EPOCH, ConsumerHeartbeats
from odradek.client.consumer.membership.consumer_states import MOVES, State
from odradek.client.consumer.membership.group_member import Ending, GroupMember
from odradek.client.consumer.membership.membership import CLOSING, POLL_OVERDUE, Identity
from odradek.client.consumer.membership.reactions import MemberReaction, reaction_to
from odradek.client.consumer.membership.requests import (
    Answer,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    DescribeTopics,
    FindCoordinator,
    NoAnswer,
    Refused,
    Request,
    TopicsDescribed,
)
from odradek.client.consumer.membership.settings import MembershipSettings
from odradek.client.consumer.membership.target import Target
from odradek.client.network.backoff import Backoff
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.primitives import ZERO_UUID

__all__ = ["ConsumerMembership"]

BEATING: Final = frozenset((State.JOINING, State.RECONCILING, State.STABLE, State.REVOKING))
RECONCILABLE: Final = frozenset((State.RECONCILING, State.STABLE))
ASK_AT_ONCE: Final = frozenset(
    (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
)
"""A commit was refused with it: the next heartbeat tells how the member stands."""


class ConsumerMembership(GroupMember):
    """See the module. `member_id`: a UUID as text, which the member keeps (heartbeat version 1)."""

    def __init__(self, settings: MembershipSettings, member_id: str, backoff: Backoff) -> None:
        super().__init__(settings, backoff)
        self.state = State.IDLE
        self._member_id = member_id
        self._epoch = JOIN_EPOCH
        self._target = Target()
        self._heartbeats = ConsumerHeartbeats(settings)
        self._told_topics: frozenset[str] = frozenset()
        """The last that were any: a broker is told of no others, since a member without topics leaves."""
        self._pending: ConsumerHeartbeat | None = None
        self._sent_ms = -inf
        self._next_beat_ms = -inf
        self._owes_acknowledgement = False
        """The target has changed, or something was taken or given up, since what is owned was told."""
        self._is_confirmed = True
        """The last heartbeat that told what is owned was answered."""
        self._warned_of: ErrorCode | None = None
        self._describing: DescribeTopics | None = None
        self._describe_ms = -inf
        self._describe_failures = 0

    # ------------------------------------------------------------------------------------------------------ what is so
    @property
    def identity(self) -> Identity:
        return Identity(self.settings.group_id, self._member_id, self._epoch, self.settings.group_instance_id)

    @property
    def settled(self) -> Identity:
        return self.identity

    @property
    def is_stable(self) -> bool:
        return self.state is State.STABLE

    @property
    def has_ended(self) -> bool:
        return not MOVES[self.state]

    @property
    def watched_topics(self) -> frozenset[str]:
        return self._topics.union(partition.topic for partition in self.owned)

    @property
    def next_deadline_ms(self) -> float:
        if self.has_ended:
            return inf
        return min(self._poll_deadline_ms, self._beat_due_ms, self._describe_due_ms)

    @property
    def _beat_due_ms(self) -> float:
        if self.state not in BEATING or self._pending is not None:
            return inf
        if self._search.node_id is None:
            return self._search.due_ms
        if self.state is State.JOINING or self._heartbeats.is_full_next or self._has_news:
            return self._retry_ms
        return max(self._next_beat_ms, self._retry_ms)

    @property
    def _has_news(self) -> bool:
        return self._acknowledges or self._heartbeats.has_news(self._told_topics)

    @property
    def _acknowledges(self) -> bool:
        """Whether the next heartbeat tells what is owned: once nothing of the target is left to be done."""
        if not self._owes_acknowledgement or self.state not in RECONCILABLE or self._holdings.being_given_up:
            return False
        return not self._target.has_more_than(self.owned)

    @property
    def _describe_due_ms(self) -> float:
        if self.state not in RECONCILABLE or self._describing is not None or not self._target.unnamed:
            return inf
        return self._describe_ms

    # ------------------------------------------------------------------------------------------------- what is told it
    def _topics_chosen(self) -> None:
        self._told_topics = self._topics
        if self.state is State.REVOKING:
            self._move(State.RECONCILING)

    def topics_changed(self, topics: Mapping[str, TopicLayout], now_ms: float) -> None:
        self._name(topics)
        self.advance(now_ms)

    def revoked(self, partitions: Collection[TopicPartition], now_ms: float) -> None:
        self._holdings.give_up(partitions)
        self._owes_acknowledgement = True
        if not self._holdings.being_given_up:
            if self.state is State.REVOKING:
                self._depart()
            elif self.state is State.LOSING:
                self._after_loss()
        self.advance(now_ms)

    def rejoin(self, reason: str, now_ms: float) -> None:
        self.advance(now_ms)

    def commit_refused(self, identity: Identity, code: ErrorCode, now_ms: float) -> None:
        if self.state not in BEATING or identity != self.identity:
            return
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self._fail(self._failure(Refused(code), "a commit was refused"))
        elif code in ASK_AT_ONCE:
            self._next_beat_ms = now_ms
        self.advance(now_ms)

    def answered(self, request: Request, answer: Answer, now_ms: float) -> None:
        if isinstance(request, FindCoordinator):
            if failure := self._coordinator_answered(request, answer, now_ms):
                self._fail(failure)
        elif isinstance(request, DescribeTopics):
            if request is self._describing:
                self._describing = None
                self._described(answer, now_ms)
        elif isinstance(request, ConsumerHeartbeat) and request is self._pending:
            self._pending = None
            if self.state is State.LEAVING:
                self._gone()
            else:
                self._heartbeat_answered(request, answer, now_ms)
        self.advance(now_ms)

    # ------------------------------------------------------------------------------------------------ what becomes due
    def advance(self, now_ms: float) -> None:
        if self.has_ended:
            return
        if self._poll_deadline_ms <= now_ms:
            self._go_away()
        if self.state is State.IDLE and self._topics and not self._is_away and self._ending is None:
            self._move(State.JOINING)
        if self.state in RECONCILABLE:
            self._reconcile(now_ms)
        if self._beat_due_ms <= now_ms:
            if self._search.node_id is None:
                self._find_if_due(now_ms)
            else:
                self._beat(now_ms)
        if self._describe_due_ms <= now_ms:
            self._describing = DescribeTopics(topic_ids=self._target.unnamed)
            self._say(Send(self._describing, None))

    def _reconcile(self, now_ms: float) -> None:
        """One step from what is owned to what is assigned: first give up, then take."""
        if self._holdings.being_given_up:
            return
        if gone := self._target.gone(self.owned):
            self._move(State.RECONCILING)
            self._say_revoke(gone, now_ms, "they are assigned to others")
            return
        if self._target.has_more_than(self.owned):
            if not self._is_confirmed:
                self._move(State.RECONCILING)
                return
            added = self._target.take(self.owned)
            self._holdings.add(added)
            self._owes_acknowledgement = True
            self._say(Assigned(added, self._epoch))
        self._move(State.RECONCILING if self._target.unnamed else State.STABLE)

    def _beat(self, now_ms: float) -> None:
        owned = self._target.by_id(self.owned)
        self._pending = self._heartbeats.next(self.identity, self._told_topics, owned, acknowledges=self._acknowledges)
        if self._pending.owned is not None:
            self._is_confirmed = False
            self._owes_acknowledgement = False
        self._sent_ms = now_ms
        self._send(self._pending)

    # --------------------------------------------------------------------------------------------------------- answers
    def _heartbeat_answered(self, request: ConsumerHeartbeat, answer: Answer, now_ms: float) -> None:
        match answer:
            case ConsumerHeartbeatAnswer():
                self._accepted(request, answer)
            case NoAnswer():
                self._search.lost(now_ms)
                self._failed_once(now_ms)
            case Refused():
                self._refused(answer, now_ms)
            case _:
                raise AssertionError(f"{answer} is no answer to ConsumerGroupHeartbeat")

    def _accepted(self, request: ConsumerHeartbeat, answer: ConsumerHeartbeatAnswer) -> None:
        self._succeeded()
        self._warned_of = None
        self._next_beat_ms = self._sent_ms + answer.heartbeat_interval_ms
        self._member_id = answer.member_id or self._member_id
        self._epoch = answer.member_epoch
        if request.owned is not None:
            self._is_confirmed = True
        if answer.assignment is not None and self._target.set(answer.assignment):
            self._owes_acknowledgement = True
        if self.state is State.JOINING:
            self._move(State.RECONCILING)

    def _refused(self, answer: Refused, now_ms: float) -> None:
        match reaction_to(answer.code):
            case MemberReaction.LOSE_GENERATION | MemberReaction.LOSE_MEMBERSHIP:
                self._try_again_soon(now_ms)
                self._lose(f"{answer.code.name}: {answer.message or answer.code.text}")
            case MemberReaction.FIND:
                self._search.lost(now_ms)
                self._failed_once(now_ms)
            case MemberReaction.WARN:
                if self._warned_of is not answer.code:
                    self._note(answer.message or answer.code.text, answer.code)
                self._warned_of = answer.code
                self._failed_once(now_ms)
            case MemberReaction.RETRY | MemberReaction.REJOIN:
                self._failed_once(now_ms)
            case MemberReaction.FAIL | MemberReaction.NAMED:
                self._fail(self._failure(answer, "ConsumerGroupHeartbeat was refused"))

    def _failed_once(self, now_ms: float) -> None:
        self._heartbeats.forget()
        self._back_off(now_ms)

    def _described(self, answer: Answer, now_ms: float) -> None:
        if isinstance(answer, TopicsDescribed):
            self._name(answer.topics)
        if self._target.unnamed:
            self._describe_ms = now_ms + self._backoff.after_ms(self._describe_failures)
            self._describe_failures += 1
        else:
            self._describe_failures = 0

    def _name(self, topics: Mapping[str, TopicLayout]) -> None:
        self._target.name({layout.topic_id: name for name, layout in topics.items() if layout.topic_id != ZERO_UUID})

    # ----------------------------------------------------------------------------------- losing, giving up and leaving
    def _lose(self, why: str) -> None:
        self._become_nobody(why)
        if self._holdings.being_given_up:
            self._move(State.LOSING)
        else:
            self._after_loss()

    def _after_loss(self) -> None:
        if self._ending is not None:
            self._gone()
        else:
            self._move(State.IDLE if self._is_away else State.JOINING)

    def _become_nobody(self, why: str) -> None:
        self._pending = self._describing = None
        self._epoch = JOIN_EPOCH
        self._target.set({})
        self._heartbeats.forget()
        self._owes_acknowledgement = False
        self._is_confirmed = True
        self._say_lost(why)

    def _fail(self, failure: Failed) -> None:
        if self.has_ended:
            return
        self._become_nobody(failure.text)
        self._move(State.FAILED)
        self._say(failure)

    def _go_away(self) -> None:
        """Nobody has polled for too long. A static member leaves for a while: its place is kept for its session."""
        self._is_away = True
        if self.state not in BEATING:
            return
        self._note_away()
        if self._may_be_known and self._search.node_id is not None:
            self._send(self._heartbeats.leave(self.identity, for_a_while=self.settings.is_static))
        self._lose(POLL_OVERDUE)

    @property
    def _may_be_known(self) -> bool:
        """Whether the coordinator may have this member in the group."""
        return self._epoch > JOIN_EPOCH or self._pending is not None

    def _begin_leaving(self, ending: Ending, now_ms: float) -> None:
        self._ending = ending
        if self.state in (State.LEAVING, State.LOSING):
            return
        self._say_revoke(self.owned, now_ms, ending.reason)
        if self._holdings.being_given_up:
            self._move(State.REVOKING)
        else:
            self._depart()

    def _depart(self) -> None:
        """Nothing is owned any more. Who has no coordinator does not look for one in order to leave."""
        wish = None if self._ending is None else self._ending.leaves_group
        is_told = self.settings.is_static or wish is not False
        if is_told and self._may_be_known and self._search.node_id is not None:
            for_a_while = self.settings.is_static and wish is not True
            self._pending = self._heartbeats.leave(self.identity, for_a_while=for_a_while)
            self._move(State.LEAVING)
            self._send(self._pending)
        else:
            self._gone()

    def _gone(self) -> None:
        is_for_good = self._ending is not None and self._ending.is_for_good
        self._become_nobody(CLOSING)
        self._ending = None
        self._move(State.CLOSED if is_for_good else State.IDLE)

    def _move(self, to: State) -> None:
        if to is not self.state:
            assert to in MOVES[self.state], (self.state, to)
            self.state = to
