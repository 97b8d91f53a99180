"""The state of one classic group, on which the operations beside this module work (Kafka's ClassicGroup). Pure.

What its newest record holds survives a change of leaders: generation, protocol, leader, members, assignments. A
generation is in no record until its assignments are; the joins, syncs and deadlines under way are in none at all.
"""

from typing import NamedTuple, TypeVar

from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.group.classic.member import Member
from odradek.broker.group.classic.roster import Roster
from odradek.broker.group.classic.states import MOVES, ClassicState
from odradek.broker.group.classic.subscriptions import CONSUMER_PROTOCOL_TYPE, topics_of
from odradek.broker.group.classic.written import Written
from odradek.broker.group.group_host import GroupHost, TimerKey, TimerKind
from odradek.broker.group.rebalance import Rebalance, Rebalances, remembered
from odradek.protocol.errors import ErrorCode, KafkaError

R = TypeVar("R")


class InitialDelay(NamedTuple):
    """How the first joins of an empty group wait for others (KIP-134)."""

    delay_ms: int
    """What is being waited now."""
    remaining_ms: int
    """What may still be added, while members come."""
    has_grown: bool = False
    """A member has come since the delay began."""


class GroupState:
    """State without rules: the operations decide what may happen to it."""

    __slots__ = (
        "_roster",
        "generation",
        "group_id",
        "host",
        "initial_delay",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "rebalances",
        "state",
        "state_timestamp_ms",
        "subscribed_topics",
        "written",
    )

    def __init__(self, group_id: str, host: GroupHost, rebalances: Rebalances = ()) -> None:
        self.group_id = group_id
        self.host = host
        self.state = ClassicState.EMPTY
        self.previous_state = ClassicState.DEAD
        self.state_timestamp_ms: int | None = None
        """Unix time of the last move; None: there was none, or the record does not say."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.subscribed_topics: frozenset[str] | None = None
        """None: not known, for the protocol is not `consumer`'s or a subscription does not parse."""
        self._roster: Roster | None = None
        self.initial_delay: InitialDelay | None = None
        self.rebalances = rebalances
        self.written: Written | None = None
        """The newest record that was given and not refused."""

    @property
    def roster(self) -> Roster:
        """Made when it is needed: thousands of groups are idle, and have no members."""
        if self._roster is None:
            self._roster = Roster()
        return self._roster

    @property
    def has_anybody(self) -> bool:
        """There are members, or one is expected."""
        return self._roster is not None and bool(self._roster.members or self._roster.pending_joins)

    def forget_members(self) -> None:
        """The group is empty, or is restored."""
        self._roster = None

    # -- moves ------------------------------------------------------------------------------------------------------

    def move(self, state: ClassicState, now: Now) -> None:
        assert state in MOVES[self.state], (self.state, state)
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now.unix_ms

    def begin_generation(self, now: Now) -> None:
        """With the members that there are; without any, the group is empty."""
        self.generation += 1
        self.roster.pending_syncs.clear()
        has_members = bool(self.roster.members)
        self.protocol_name = self.roster.choose_protocol() if has_members else None
        self.learn_topics()
        self.move(ClassicState.COMPLETING_REBALANCE if has_members else ClassicState.EMPTY, now)

    def learn_topics(self) -> None:
        """Reads the subscriptions of all members for the protocol that was chosen."""
        members = () if self._roster is None else self._roster.members.values()
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE or (members and self.protocol_name is None):
            self.subscribed_topics = None
            return
        name = self.protocol_name or ""
        self.subscribed_topics = topics_of(member.metadata(name) for member in members)

    def remember(self, rebalance: Rebalance) -> None:
        self.host.counts.rebalances[rebalance.cause.value] += 1
        self.rebalances = remembered(self.rebalances, rebalance.bounded())

    @property
    def is_initial_rebalance(self) -> bool:
        return self.state is ClassicState.PREPARING_REBALANCE and self.previous_state is ClassicState.EMPTY

    # -- what is looked up ------------------------------------------------------------------------------------------

    def refuse_dead(self) -> None:
        """Raises KafkaError: COORDINATOR_NOT_AVAILABLE."""
        if self.state is ClassicState.DEAD:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE, f"the group {self.group_id} is not kept here any more"
            )

    def check_generation(self, generation: int) -> None:
        """Raises KafkaError: ILLEGAL_GENERATION."""
        if generation != self.generation:
            text = f"generation {generation} is not the group's, which is {self.generation}"
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, text)

    # -- deadlines and answers --------------------------------------------------------------------------------------

    def key(self, kind: TimerKind, member_id: str = "") -> TimerKey:
        return TimerKey(self.group_id, kind, member_id)

    def set_timer(self, kind: TimerKind, delay_ms: int, now: Now) -> None:
        self.host.timers.set(self.key(kind), now.monotonic_ms + delay_ms)

    def cancel_timer(self, kind: TimerKind) -> None:
        self.host.timers.cancel(self.key(kind))

    def keep_alive(self, member: Member, now: Now, timeout_ms: int | None = None) -> None:
        """Its session begins again; it lasts as long as the member asked for, unless told otherwise."""
        duration_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self.host.timers.set(member.session_key, now.monotonic_ms + duration_ms)

    def end_session(self, member_id: str) -> None:
        """Of a member, or of one that is expected to join."""
        self.host.timers.cancel(self.key(TimerKind.SESSION, member_id))

    def reply(self, waiting: Waiting[R], answer: R | KafkaError) -> None:
        """Once all that was said of this group before is committed."""
        self.host.outbox.reply(self.group_id, waiting, answer)

    def answer_held(self, member: Member, error: KafkaError) -> None:
        """Whatever request of the member is held ends with this."""
        held_join = self.roster.take_join(member)
        if held_join is not None:
            self.reply(held_join, error)
        if member.held_sync is not None:
            held_sync, member.held_sync = member.held_sync, None
            self.reply(held_sync, error)

    def dismiss(self, member_id: str) -> None:
        """Takes a member, or one that is expected, out of the group; its held requests end with UNKNOWN_MEMBER_ID."""
        member = self.roster.members.get(member_id)
        if member is not None:
            text = f"member {member_id} is no longer in the group"
            self.answer_held(member, KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, text))
        self.end_session(member_id)
        self.roster.remove(member_id)
