"""How a member of a classic group gets into a generation, and out of one: JoinGroup, assignment, SyncGroup, LeaveGroup.

What begins a round, and what happens between two of them, is in `classic`. The answers of this module end in one of
three ways: the member is STABLE with its assignment (or REVOKING first), it is UNJOINED and tries again, or it has lost
what it owned. (Source: AbstractCoordinator.java: JoinGroupResponseHandler, SyncGroupResponseHandler.)
"""

from collections.abc import Iterable, Sequence

from odradek.client.consumer.assignment.assignor import NO_GENERATION, Assignor, RebalanceProtocol, rebalance_protocol
from odradek.client.consumer.assignment.user_data import flat
from odradek.client.consumer.membership.actions import Assigned, Failed, Send
from odradek.client.consumer.membership.classic_requests import ClassicRequests
from odradek.client.consumer.membership.classic_states import MOVES, State
from odradek.client.consumer.membership.group_member import GroupMember
from odradek.client.consumer.membership.heartbeats import Heartbeats
from odradek.client.consumer.membership.leading import Leading
from odradek.client.consumer.membership.membership import CLOSING, Identity
from odradek.client.consumer.membership.reactions import MemberReaction, reaction_to
from odradek.client.consumer.membership.requests import (
    Answer,
    DescribeTopics,
    Join,
    Joined,
    Leave,
    NoAnswer,
    Refused,
    Sync,
    Synced,
    TopicsDescribed,
)
from odradek.client.consumer.membership.settings import MembershipSettings
from odradek.client.network.backoff import Backoff
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from odradek.protocol.errors import ErrorCode, MalformedMessage

__all__ = ["SUBSCRIPTION_CHANGED", "ClassicRound"]

SUBSCRIPTION_CHANGED = "subscription has changed"


class ClassicRound(GroupMember):
    """The base of ClassicMembership."""

    def __init__(self, settings: MembershipSettings, assignors: Sequence[Assignor], backoff: Backoff) -> None:
        super().__init__(settings, backoff)
        self.state = State.IDLE
        self.protocol = rebalance_protocol(assignors)
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._member_id = ""
        self._generation = NO_GENERATION
        self._owned_generation = NO_GENERATION
        """The one in which the member got what it owns."""
        self._protocol_name = ""
        self._joined_topics: frozenset[str] = frozenset()
        self._rejoin_reason: str | None = None
        """Why to join again; None: no need to."""
        self._rest: frozenset[TopicPartition] | None = None
        """What is assigned, and taken as soon as the rest is revoked."""
        self._leading: Leading | None = None
        self._pending: Join | DescribeTopics | Sync | Leave | None = None
        self._requests = ClassicRequests(settings, self._assignors)
        self._heartbeats = Heartbeats(settings.heartbeat_interval_ms, backoff)

    @property
    def identity(self) -> Identity:
        return Identity(self.settings.group_id, self._member_id, self._generation, self.settings.group_instance_id)

    @property
    def settled(self) -> Identity:
        is_member = self._generation != NO_GENERATION
        return self.identity._replace(generation=self._owned_generation if is_member else NO_GENERATION)

    @property
    def has_ended(self) -> bool:
        return not MOVES[self.state]

    # -------------------------------------------------------------------------------------------------------- requests
    def _join(self) -> None:
        assert self._search.node_id is not None
        assert not self._holdings.being_given_up
        assert self.protocol is RebalanceProtocol.COOPERATIVE or not self.owned
        self._joined_topics = self._topics
        self._leading = None
        self._heartbeats.forget()
        self._pending = self._requests.join(
            self._member_id, self._topics, self.owned, self._owned_generation, self._rejoin_reason or ""
        )
        self._rejoin_reason = None
        self._move(State.JOINING)
        self._send(self._pending)

    def _describe(self) -> None:
        assert self._leading is not None
        self._pending = DescribeTopics(names=self._leading.topics)
        self._say(Send(self._pending, None))

    # --------------------------------------------------------------------------------------------------------- answers
    def _request_answered(self, request: Join | DescribeTopics | Sync | Leave, answer: Answer, now_ms: float) -> None:
        if isinstance(request, Leave):
            self._gone()
        elif isinstance(request, DescribeTopics):
            if isinstance(answer, TopicsDescribed):
                self._assign(answer)
            else:
                self._back_off(now_ms)
        elif isinstance(answer, NoAnswer):
            self._search.lost(now_ms)
            self._back_off(now_ms)
            self._join_again("rebalance failed due to DisconnectException")
        elif isinstance(answer, Refused):
            self._refused(request, answer, now_ms)
        elif isinstance(answer, Joined):
            self._joined(answer, now_ms)
        else:
            assert isinstance(answer, Synced)
            self._synced(answer, now_ms)

    def _joined(self, answer: Joined, now_ms: float) -> None:
        assert self.state is State.JOINING
        if answer.protocol_type not in (None, PROTOCOL_TYPE) or answer.protocol_name not in self._assignors:
            self._fail_inconsistent(f"its protocol is {answer.protocol_type} with {answer.protocol_name!r}")
            return
        self._search.proved()
        self._member_id = answer.member_id
        self._generation = answer.generation
        self._protocol_name = answer.protocol_name
        self._heartbeats.restart(now_ms)
        if answer.leader != answer.member_id:
            self._sync(())
            return
        self._leading = Leading(answer.members, watches_racks=self.settings.rack is not None)
        for member_id in self._leading.not_understood:
            self._note(f"the subscription of {member_id} is not understood, so it gets no partitions")
        if answer.skip_assignment:
            self._sync(())
        else:
            self._move(State.ASSIGNING)
            self._describe()

    def _assign(self, answer: TopicsDescribed) -> None:
        assert self.state is State.ASSIGNING and self._leading is not None
        self._sync(self._leading.assignments(self._assignors[self._protocol_name], answer.topics))

    def _sync(self, assignments: tuple[tuple[str, bytes], ...]) -> None:
        if self._search.node_id is None:  # lost while the topics were described
            self._join_again("the coordinator was lost before SyncGroup")
            return
        self._heartbeats.forget()
        self._pending = self._requests.sync(self.identity, self._protocol_name, assignments)
        self._move(State.SYNCING)
        self._send(self._pending)

    def _synced(self, answer: Synced, now_ms: float) -> None:
        assert self.state is State.SYNCING
        if answer.protocol_type not in (None, PROTOCOL_TYPE) or answer.protocol_name not in (None, self._protocol_name):
            self._fail_inconsistent(f"its protocol is {answer.protocol_type} with {answer.protocol_name!r}")
            return
        try:
            # Some leaders send nothing at all to a member for which they have nothing.
            assigned = flat(decode_assignment(answer.assignment).partitions) if answer.assignment else ()
        except MalformedMessage as why:
            self._fail_inconsistent(f"the assignment of the leader is not understood: {why}")
            return
        self._succeeded()
        self._heartbeats.restart(now_ms)
        self._owned_generation = self._generation
        self._assignors[self._protocol_name].on_assignment(assigned, self._generation)
        target = self._subscribed(assigned)
        if gone := self.owned - target:
            self._rest = target
            self._want_rejoin("need to revoke partitions and re-join")
            self._say_revoke(gone, now_ms, "they are assigned to others")
            self._move(State.REVOKING)
        else:
            self._take(target)

    def _subscribed(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """The subscription may have changed since JoinGroup: then the member joins again, and takes what it reads."""
        return frozenset(partition for partition in partitions if partition.topic in self._topics)

    def _take(self, target: frozenset[TopicPartition]) -> None:
        added = self._subscribed(target) - self.owned
        self._holdings.add(added)
        self._move(State.STABLE)
        self._say(Assigned(added, self._generation))
        if self._topics != self._joined_topics:
            self._want_rejoin(SUBSCRIPTION_CHANGED)

    # ---------------------------------------------------------------------------------------------------------- errors
    def _refused(self, request: Join | Sync | None, answer: Refused, now_ms: float) -> None:
        """None: a heartbeat was refused, and goes on unless the membership changes."""
        what = "Heartbeat" if request is None else type(request).__name__ + "Group"
        match reaction_to(answer.code):
            case MemberReaction.FAIL:
                self._fail(self._failure(answer, f"{what} was refused"))
                return
            case MemberReaction.LOSE_GENERATION | MemberReaction.LOSE_MEMBERSHIP:
                self._try_again_soon(now_ms)
                self._lose(answer.code, now_ms)
                return
            case MemberReaction.NAMED:
                self._named(answer.member_id, now_ms)
            case MemberReaction.REJOIN if not isinstance(request, Join):
                self._heartbeats.succeeded()  # the coordinator has heard it, and the others wait for this member
            case MemberReaction.FIND:
                self._search.lost(now_ms)
                self._failed_once(request, now_ms)
            case MemberReaction.WARN:
                self._note(answer.message or answer.code.text, answer.code)
                self._failed_once(request, now_ms)
            case MemberReaction.RETRY | MemberReaction.REJOIN:
                self._failed_once(request, now_ms)
        if request is not None:
            self._join_again(f"rebalance failed due to {answer.code.name}")
        elif answer.code is ErrorCode.REBALANCE_IN_PROGRESS:
            if self.state is State.ASSIGNING:
                self._pending = None
                self._join_again("group is already rebalancing")
            elif self.state is State.STABLE:
                self._want_rejoin("group is already rebalancing")

    def _failed_once(self, request: Join | Sync | None, now_ms: float) -> None:
        if request is None:
            self._heartbeats.failed(now_ms)
        else:
            self._back_off(now_ms)

    def _named(self, member_id: str, now_ms: float) -> None:
        """MEMBER_ID_REQUIRED (KIP-394): who has an id already is not asked to use one."""
        if self._member_id or not member_id:
            self._back_off(now_ms)
        self._member_id = member_id

    def _join_again(self, reason: str) -> None:
        self._want_rejoin(reason)
        self._move(State.UNJOINED)

    def _want_rejoin(self, reason: str) -> None:
        if self._rejoin_reason is None:
            self._rejoin_reason = reason

    def _lose(self, code: ErrorCode, now_ms: float) -> None:
        """The coordinator does not know the member, or has gone on without it."""
        if reaction_to(code) is MemberReaction.LOSE_MEMBERSHIP:
            self._member_id = ""
        self._become_nobody(f"{code.name}: {code.text}")
        self._want_rejoin(f"encountered {code.name}")
        if self._holdings.being_given_up:
            self._move(State.LOSING)
        elif self._ending is not None:
            self._depart(now_ms)
        else:
            self._move(State.UNJOINED)

    def _become_nobody(self, why: str) -> None:
        self._pending = None
        self._heartbeats.forget()
        self._leading = None
        self._rest = None
        self._generation = NO_GENERATION
        self._say_lost(why)

    def _fail_inconsistent(self, text: str) -> None:
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        self._fail(Failed(code, f"group {self.settings.group_id}: {text}"))

    def _fail(self, failure: Failed) -> None:
        if self.has_ended:
            return
        self._become_nobody(failure.text)
        self._move(State.FAILED)
        self._say(failure)

    # --------------------------------------------------------------------------------------------------------- leaving
    def _depart(self, now_ms: float) -> None:
        """Nothing is owned any more. Who has no coordinator does not look for one in order to leave."""
        self._heartbeats.forget()
        if self._leaves_group() and self._member_id and self._search.node_id is not None:
            self._pending = self._requests.leave(
                self.identity, CLOSING if self._ending is None else self._ending.reason
            )
            self._move(State.LEAVING)
            self._send(self._pending)
        else:
            self._gone()

    def _gone(self) -> None:
        is_for_good = self._ending is not None and self._ending.is_for_good
        self._become_nobody(CLOSING)
        self._member_id = ""
        self._rejoin_reason = None
        self._ending = None
        if is_for_good:
            self._move(State.CLOSED)
        elif self.state is not State.IDLE:
            self._move(State.IDLE)

    def _move(self, to: State) -> None:
        if to is not self.state:
            assert to in MOVES[self.state], (self.state, to)
            self.state = to
