"""One classic group: what a shard of the group coordinator tells it, and asks of it. Pure.

    join, sync, heartbeat, leave, timed_out      change the state at once; answers and records go to the outbox
    replay, … loaded                             while its partition is loaded
    validate_…                                   before offsets are committed, read or deleted

What its newest record holds survives a change of leaders: generation, protocol, leader, members, assignments. These are
in no record: a generation before its assignments are stored, joins and syncs that are held, members that were given an
id and have not joined, deadlines (sessions start again after a load), and why the group rebalanced.
"""

from collections.abc import Collection, Mapping, Sequence

from odradek.broker.coordinator.machine import Now, StoredRecord, Waiting
from odradek.broker.group.classic import checks, stored_group
from odradek.broker.group.classic.description import GroupDescription, describe
from odradek.broker.group.classic.group_state import GroupState
from odradek.broker.group.classic.heartbeats import heartbeat, refresh_session
from odradek.broker.group.classic.joining import join
from odradek.broker.group.classic.leaving import leave
from odradek.broker.group.classic.member import Member
from odradek.broker.group.classic.rebalancing import Why, join_timed_out, prepare, session_timed_out, sync_timed_out
from odradek.broker.group.classic.requests import Heartbeat, Join, Joined, Leave, Left, OfferedProtocol, Sync, Synced
from odradek.broker.group.classic.states import ClassicState
from odradek.broker.group.classic.storing import store
from odradek.broker.group.classic.syncing import sync
from odradek.broker.group.classic.written import Written
from odradek.broker.group.group import GroupKind
from odradek.broker.group.group_host import GroupHost, TimerKey, TimerKind
from odradek.broker.group.offsets import Committed
from odradek.broker.group.rebalance import RebalanceCause, Rebalances
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored.group_metadata import GroupMetadataValue


class ClassicGroup:
    """One group of one shard. It is empty at first. `rebalances`: of the consumer group that it was."""

    __slots__ = ("_group",)

    def __init__(self, group_id: str, host: GroupHost, rebalances: Rebalances = ()) -> None:
        self._group = GroupState(group_id, host, rebalances)

    # -- what members ask -------------------------------------------------------------------------------------------

    def join(self, request: Join, waiting: Waiting[Joined], now: Now) -> None:
        """Answered at once, or when all members have joined. A group that comes into being is stored.

        Errors: INVALID_SESSION_TIMEOUT, GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID,
        FENCED_INSTANCE_ID, COORDINATOR_NOT_AVAILABLE; REBALANCE_IN_PROGRESS to a held join whose member joins again.
        """
        group = self._group
        try:
            answer = join(group, request, waiting, now)
        except KafkaError as error:
            group.reply(waiting, error)
            return
        if group.written is None:
            self._create(waiting, now)
        if answer is not None:
            group.reply(waiting, answer)

    def _create(self, waiting: Waiting[Joined], now: Now) -> None:
        """So that the group is known after a change of leaders, too: a member may have been given an id."""
        group = self._group
        if group.state_timestamp_ms is None:
            group.state_timestamp_ms = now.unix_ms
        store(group, lambda: self._drop_join(waiting))

    def _drop_join(self, waiting: Waiting[Joined]) -> None:
        """The group could not be stored for this join. One that was only given an id expires."""
        group = self._group
        for member in list(group.roster.members.values()):
            if member.held_join is waiting:
                text = f"the group {group.group_id} could not be stored"
                group.answer_held(member, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, text))
                group.dismiss(member.member_id)

    def sync(self, request: Sync, waiting: Waiting[Synced], now: Now) -> None:
        """Answered at once, or when the leader has assigned.

        Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL,
        REBALANCE_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
        """
        group = self._group
        try:
            answer = sync(group, request, waiting, now)
        except KafkaError as error:
            group.reply(waiting, error)
            return
        if answer is not None:
            group.reply(waiting, answer)

    def heartbeat(self, request: Heartbeat, waiting: Waiting[None], now: Now) -> None:
        """Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS,
        COORDINATOR_NOT_AVAILABLE."""
        group = self._group
        try:
            heartbeat(group, request, now)
        except KafkaError as error:
            group.reply(waiting, error)
        else:
            group.reply(waiting, None)

    def leave(self, request: Leave, waiting: Waiting[Left], now: Now) -> None:
        """Errors of single members stand in the answer; of all of them: COORDINATOR_NOT_AVAILABLE."""
        group = self._group
        try:
            answer = leave(group, request, now)
        except KafkaError as error:
            group.reply(waiting, error)
        else:
            group.reply(waiting, answer)

    def timed_out(self, key: TimerKey, now: Now) -> None:
        """A deadline of this group has passed; it is no longer among the timers.

        Those of consumer groups are left from one of the same name, and mean nothing.
        """
        match key.kind:
            case TimerKind.SESSION:
                session_timed_out(self._group, key.member_id, now)
            case TimerKind.JOIN:
                join_timed_out(self._group, now)
            case TimerKind.SYNC:
                sync_timed_out(self._group, now)
            case TimerKind.REBALANCE | TimerKind.ASSIGNMENT:
                return

    # -- while the partition is loaded, and when it goes ------------------------------------------------------------

    def replay(self, value: GroupMetadataValue | None) -> None:
        """Takes the state from a record. None, a tombstone: the group is gone, and is as a new one is."""
        group = self._group
        if value is None:
            self._group = GroupState(group.group_id, group.host)
            return
        group.written = Written(value)
        stored_group.restore(group, value)

    def loaded(self, now: Now) -> None:
        """Sessions start now. A group over `group.max.size` rebalances, and the last to join are left out."""
        group = self._group
        if not group.has_anybody:
            return
        for member in group.roster.members.values():
            group.keep_alive(member, now)
        count, count_max = len(group.roster.members), group.host.options.group_max_size
        if count > count_max:
            text = f"{count} members were loaded, and {count_max} may be in a group"
            prepare(group, Why(RebalanceCause.OVER_CAPACITY, text), now)

    def begin(self, value: GroupMetadataValue, offers: Mapping[str, tuple[OfferedProtocol, ...]], now: Now) -> None:
        """The group was a consumer group, of which these members are left: they are to join again (migration/).

        `offers`: what each member offers, of which the record has only what was chosen. The caller writes the record.
        """
        self.replay(value)
        roster = self._group.roster
        for member in roster.members.values():
            protocols = offers[member.member_id]
            roster.update(member, protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        self.loaded(now)
        if self._group.state is ClassicState.STABLE:
            text = "no member of KIP-848 is left"
            prepare(self._group, Why(RebalanceCause.LEFT_TO_CLASSIC, text), now)

    def suspend(self) -> None:
        """The group becomes one of another kind: who waits has to join that one, and no deadline is left."""
        group = self._group
        for kind in (TimerKind.JOIN, TimerKind.SYNC):
            group.cancel_timer(kind)
        for member_id in (*group.roster.members, *group.roster.pending_joins):
            group.end_session(member_id)
        for member in group.roster.members.values():
            group.answer_held(member, KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, "the group becomes one of KIP-848"))

    def resume(self, now: Now) -> None:
        """It has not become one, for that could not be stored: all members are to join again."""
        group = self._group
        if not group.has_anybody:
            return
        group.roster.pending_joins.clear()
        for member in group.roster.members.values():
            group.keep_alive(member, now)
        if group.state is ClassicState.PREPARING_REBALANCE:
            group.set_timer(TimerKind.JOIN, group.roster.rebalance_timeout_ms, now)
        elif group.state in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE):
            text = "that it becomes a group of KIP-848 could not be stored"
            prepare(group, Why(RebalanceCause.NOT_STORED, text), now)

    def dissolve(self, error: KafkaError, now: Now) -> None:
        """The group is no longer kept here, or becomes one of another kind: whoever waits is answered with `error`."""
        group = self._group
        for kind in (TimerKind.JOIN, TimerKind.SYNC):
            group.cancel_timer(kind)
        for member_id in (*group.roster.members, *group.roster.pending_joins):
            group.end_session(member_id)
        for member in group.roster.members.values():
            group.answer_held(member, error)
        group.move(ClassicState.DEAD, now)

    def tombstones(self) -> Sequence[StoredRecord]:
        """By which the group is deleted; none where nothing of it is stored."""
        return [stored_group.record(self._group.group_id, None)] if self.is_stored else []

    # -- offsets and deletion ---------------------------------------------------------------------------------------

    def validate_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, is_transactional: bool = False
    ) -> None:
        """Whether offsets may be committed (ClassicGroup.validateOffsetCommit).

        Raises KafkaError: COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
        REBALANCE_IN_PROGRESS.
        """
        checks.validate_commit(self._group, member_id, instance_id, generation, is_transactional=is_transactional)

    def validate_fetch(self) -> None:
        """Whether offsets may be read. Raises KafkaError: GROUP_ID_NOT_FOUND."""
        checks.validate_fetch(self._group)

    def validate_offset_delete(self) -> None:
        """Whether offsets may be deleted, but for topics that are subscribed to (`is_subscribed`).

        Raises KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        checks.validate_offset_delete(self._group)

    def validate_delete(self) -> None:
        """Whether the group may be deleted. Raises KafkaError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        checks.validate_delete(self._group)

    def refresh_session(self, member_id: str, now: Now) -> None:
        """A commit of this member was accepted."""
        refresh_session(self._group, member_id, now)

    def retained_since_ms(self, committed: Committed) -> int | None:
        """From when on the retention of this offset counts; None: not while it is so (`offsetExpirationCondition`).

        An empty group's from when it became so, where that is known; a simple group's, and that of a topic which the
        members do not read any more, from the commit.
        """
        group = self._group
        if group.protocol_type is None:
            return committed.commit_timestamp_ms
        if group.state is ClassicState.EMPTY:
            since_ms = group.state_timestamp_ms
            return committed.commit_timestamp_ms if since_ms is None else since_ms
        if group.state is ClassicState.STABLE and group.subscribed_topics is not None:
            return committed.commit_timestamp_ms
        return None

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member reads this topic, or may do so where subscriptions do not parse."""
        return checks.is_subscribed(self._group, topic)

    # -- what is looked at ------------------------------------------------------------------------------------------

    @property
    def group_id(self) -> str:
        return self._group.group_id

    @property
    def kind(self) -> GroupKind:
        return GroupKind.CLASSIC

    @property
    def state(self) -> ClassicState:
        return self._group.state

    @property
    def state_name(self) -> str:
        return self._group.state.value

    @property
    def is_empty(self) -> bool:
        return self._group.state is ClassicState.EMPTY

    @property
    def is_vacant(self) -> bool:
        """Nothing is stored of it, and nobody is in it or expected: a group without offsets may be forgotten."""
        group = self._group
        return group.written is None and not group.has_anybody

    @property
    def is_stored(self) -> bool:
        """A record of it was given, so that deleting it takes a tombstone."""
        return self._group.written is not None

    @property
    def protocol_type(self) -> str | None:
        """None: no member has ever joined, so that it only keeps offsets."""
        return self._group.protocol_type

    @property
    def members(self) -> Collection[Member]:
        return self._group.roster.members.values()

    @property
    def protocol_name(self) -> str | None:
        return self._group.protocol_name

    @property
    def generation(self) -> int:
        return self._group.generation

    @property
    def state_timestamp_ms(self) -> int | None:
        """Unix time since which the group is in its state; None: not known.

        From this the retention of the offsets of an empty group that had members counts (KIP-211).
        """
        return self._group.state_timestamp_ms

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """None: not known, for the protocol is not `consumer`'s or a subscription does not parse."""
        return self._group.subscribed_topics

    @property
    def rebalances(self) -> Rebalances:
        """Since the group was loaded."""
        return self._group.rebalances

    def describe(self) -> GroupDescription:
        return describe(self._group)
