"""`ClassicMembership`: a member of a classic group, without I/O. Its interface is `membership`.

    find coordinator → JoinGroup → (as leader: describe topics, assign) → SyncGroup → heartbeats
         ↑                 ↑                                                              │
         └─ NOT_COORDINATOR └──────── eager: revoke all; cooperative: keep (KIP-429) ──────┘ REBALANCE_IN_PROGRESS

- A member that owns partitions tells of them in JoinGroup with the generation in which it got them, which is not always
  the last that it joined: it may have missed what that assigned.
- Cooperative: what was not assigned again is revoked before anything new is taken; then the member joins again, so that
  others get it.
- An error that voids the generation makes all partitions lost. The member joins again once they are given up, so never
  is there work on what was lost beside work on what was assigned.
- While JoinGroup or SyncGroup is held by the broker no heartbeats are sent: it counts these as life, and the connection
  would not answer them.

(Source: AbstractCoordinator.java, ConsumerCoordinator.java; KIP-394, 429, 345, 800, 814.)
"""

from collections.abc import Collection, Mapping
from math import inf
from typing import Final

from odradek.client.consumer.assignment.assignor import NO_GENERATION, RebalanceProtocol, TopicLayout
from odradek.client.consumer.membership.classic_round import SUBSCRIPTION_CHANGED, ClassicRound
from odradek.client.consumer.membership.classic_states import State
from odradek.client.consumer.membership.group_member import Ending
from odradek.client.consumer.membership.membership import POLL_OVERDUE, Identity
from odradek.client.consumer.membership.reactions import MemberReaction, reaction_to
from odradek.client.consumer.membership.requests import (
    Answer,
    FindCoordinator,
    Heartbeat,
    HeartbeatTaken,
    NoAnswer,
    Refused,
    Request,
)
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

__all__ = ["ClassicMembership"]

BEATING: Final = frozenset((State.STABLE, State.REVOKING, State.ASSIGNING))
"""Member, with nothing held by the broker."""


class ClassicMembership(ClassicRound):
    """See the module. `assignors`: best first, and not shared with another member. Raises ValueError where they have no
    rebalance protocol in common."""

    @property
    def is_stable(self) -> bool:
        return self.state is State.STABLE and self._rejoin_reason is None

    @property
    def is_leader(self) -> bool:
        return self._leading is not None

    @property
    def watched_topics(self) -> frozenset[str]:
        return self._topics if self._leading is None else self._topics | self._leading.topics

    @property
    def next_deadline_ms(self) -> float:
        if self.has_ended:
            return inf
        return min(self._poll_deadline_ms, self._request_due_ms, self._beat_due_ms)

    @property
    def _request_due_ms(self) -> float:
        if self.state is State.UNJOINED:
            return self._search.due_ms if self._search.node_id is None else self._retry_ms
        if self.state is State.ASSIGNING and self._pending is None:
            return self._retry_ms
        return inf

    @property
    def _beat_due_ms(self) -> float:
        if self.state not in BEATING or self._heartbeats.is_under_way:
            return inf
        return self._search.due_ms if self._search.node_id is None else self._heartbeats.due_ms

    # ------------------------------------------------------------------------------------------------- what is told it
    def _topics_chosen(self) -> None:
        if self.state is State.STABLE and self._topics != self._joined_topics:
            self._want_rejoin(SUBSCRIPTION_CHANGED)

    def topics_changed(self, topics: Mapping[str, TopicLayout], now_ms: float) -> None:
        # In every other state the group is about to be assigned anyway, or this member has no say in it.
        if self.state in (State.SYNCING, State.STABLE, State.REVOKING) and self._leading is not None:
            if self._leading.is_outdated(topics):
                self._want_rejoin("cached metadata has changed")
            self.advance(now_ms)

    def revoked(self, partitions: Collection[TopicPartition], now_ms: float) -> None:
        self._holdings.give_up(partitions)
        if not self._holdings.being_given_up:
            self._after_giving_up(now_ms)
        self.advance(now_ms)

    def rejoin(self, reason: str, now_ms: float) -> None:
        if self.state not in (State.IDLE, State.UNJOINED):
            self._want_rejoin(reason)
        self.advance(now_ms)

    def commit_refused(self, identity: Identity, code: ErrorCode, now_ms: float) -> None:
        # In the other states JoinGroup or SyncGroup is about to tell how the member stands.
        if self.state not in BEATING or identity != self.identity:
            return
        reaction = reaction_to(code)
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self._fail(self._failure(Refused(code), "a commit was refused"))
        elif reaction is MemberReaction.REJOIN:
            if self.state is State.STABLE:
                self._want_rejoin("group is already rebalancing")
        elif reaction in (MemberReaction.LOSE_GENERATION, MemberReaction.LOSE_MEMBERSHIP):
            self._lose(code, now_ms)
        self.advance(now_ms)

    def answered(self, request: Request, answer: Answer, now_ms: float) -> None:
        if isinstance(request, FindCoordinator):
            if failure := self._coordinator_answered(request, answer, now_ms):
                self._fail(failure)
        elif isinstance(request, Heartbeat):
            if self._heartbeats.answered(request):
                self._heartbeat_answered(answer, now_ms)
        elif (pending := self._pending) is not None and request is pending:
            self._pending = None
            self._request_answered(pending, answer, now_ms)
        self.advance(now_ms)

    # ------------------------------------------------------------------------------------------------ what becomes due
    def advance(self, now_ms: float) -> None:
        if self.has_ended:
            return
        if self._poll_deadline_ms <= now_ms:
            self._go_away(now_ms)
        if self.state is State.IDLE and self._topics and not self._is_away and self._ending is None:
            self._move(State.UNJOINED)
        if self.state is State.STABLE and self._rejoin_reason is not None:
            # What is to be given up need not wait for a coordinator that has been lost.
            self._move(State.UNJOINED)
            self._revoke_before_joining(now_ms)
        if self.state is State.UNJOINED:
            self._find_if_due(now_ms)
            if self._request_due_ms <= now_ms:
                self._revoke_or_join(now_ms)
        elif self.state is State.ASSIGNING and self._request_due_ms <= now_ms:
            self._describe()
        if self._beat_due_ms <= now_ms:
            self._beat(now_ms)

    def _revoke_or_join(self, now_ms: float) -> None:
        self._revoke_before_joining(now_ms)
        if self.state is State.UNJOINED:
            self._join()

    def _revoke_before_joining(self, now_ms: float) -> None:
        """Everything, or what is not subscribed to any more, as the protocol says."""
        to_revoke = self.owned
        if self.protocol is RebalanceProtocol.COOPERATIVE:
            to_revoke = frozenset(each for each in self.owned if each.topic not in self._topics)
        if to_revoke:
            self._say_revoke(to_revoke, now_ms, self._rejoin_reason or SUBSCRIPTION_CHANGED)
            self._move(State.REVOKING)

    def _beat(self, now_ms: float) -> None:
        if self._search.node_id is None:
            self._find_if_due(now_ms)
            return
        heartbeat = self._requests.heartbeat(self.identity)
        self._heartbeats.sent(heartbeat, now_ms)
        self._send(heartbeat)

    def _heartbeat_answered(self, answer: Answer, now_ms: float) -> None:
        match answer:
            case HeartbeatTaken():
                self._search.proved()
                self._heartbeats.succeeded()
            case NoAnswer():
                self._search.lost(now_ms)
                self._heartbeats.failed(now_ms)
            case Refused():
                self._refused(None, answer, now_ms)
            case _:
                raise AssertionError(f"{answer} is no answer to Heartbeat")

    # ------------------------------------------------------------------------------------------- giving up and leaving
    def _after_giving_up(self, now_ms: float) -> None:
        if self.state not in (State.REVOKING, State.LOSING):
            return
        if self._ending is not None:
            self._depart(now_ms)
        elif self.state is State.REVOKING and self._rest is not None:
            rest, self._rest = self._rest, None
            self._take(rest)
        else:
            self._move(State.IDLE if self._is_away else State.UNJOINED)

    def _go_away(self, now_ms: float) -> None:
        """Nobody has polled for too long. A static member is missed after its session (KIP-345)."""
        if self.state not in (State.IDLE, State.LEAVING):
            if self.owned or self._member_id:
                self._note_away()
            if not self.settings.is_static and self._member_id and self._search.node_id is not None:
                self._send(self._requests.leave(self.identity, POLL_OVERDUE))
            self._member_id = ""
            self._become_nobody(POLL_OVERDUE)
            self._want_rejoin(POLL_OVERDUE)
            self._move(State.LOSING if self._holdings.being_given_up else State.IDLE)
        self._is_away = True

    def _begin_leaving(self, ending: Ending, now_ms: float) -> None:
        self._ending = ending
        if self.state is State.LEAVING:
            return
        self._pending = None
        self._rest = None
        if self._generation == NO_GENERATION:
            self._say_lost(ending.reason)
        else:
            self._say_revoke(self.owned, now_ms, ending.reason)
        if not self._holdings.being_given_up:
            self._depart(now_ms)
        elif self.state is not State.LOSING:
            self._move(State.REVOKING if self._generation != NO_GENERATION else State.LOSING)
