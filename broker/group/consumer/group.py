"""A consumer group (KIP-848). Pure. Rules: Kafka's GroupMetadataManager (`consumerGroupHeartbeat`) and ConsumerGroup.

A heartbeat does three things. It takes what the member tells, and raises the group epoch if that changes what the
group has subscribed to. It works out the target assignment, if there is none for the group epoch. It takes the member
one step towards the target. A heartbeat that changes nothing writes nothing.

State is changed by `Edits` alone: values by key, which are records. No record holds deadlines, the causes of
rebalances, and the names of topics that have changed since the last heartbeat. When the group is loaded, deadlines
start from the beginning, all topics are looked at again, and causes are lost.

A target assignment is worked out by the first heartbeat that needs it, or by a timer, but no sooner than
`group.consumer.assignment.interval.ms` after the last one (KIP-1263). Until then members go by the last one. (Kafka
has no such timer: there a group waits for the next heartbeat.)
"""

from base64 import urlsafe_b64encode
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial

from odradek.broker.coordinator.machine import Now, StoredRecord, Waiting
from odradek.broker.group.assignors.spec import NO_PARTITIONS
from odradek.broker.group.consumer.assigning import assign, preferred_assignor, put_targets
from odradek.broker.group.consumer.commit_checks import ALL_GOOD, NO_MEMBER, CommitCheck, check_commit, check_fetch
from odradek.broker.group.consumer.description import describe
from odradek.broker.group.consumer.edits import Edits, Newest
from odradek.broker.group.consumer.group_state import GroupPhase, GroupState
from odradek.broker.group.consumer.group_timers import GroupTimers
from odradek.broker.group.consumer.group_values import (
    AssignedPartitions,
    ClassicMember,
    GroupEpoch,
    Key,
    Kind,
    Member,
    MemberState,
    Value,
)
from odradek.broker.group.consumer.member_checks import check_request
from odradek.broker.group.consumer.membership import (
    UNSEEN,
    admit,
    check_identity,
    check_member,
    put_static_leave,
    remove,
    updated,
)
from odradek.broker.group.consumer.raising import Speaker, Why, speaker, subscribed, topics_changed
from odradek.broker.group.consumer.reconciliation import Aim, next_step
from odradek.broker.group.consumer.requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    NOT_GIVEN,
    STATIC_LEAVE_EPOCH,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    DescribedGroup,
    Sight,
)
from odradek.broker.group.consumer.stored_records import ConsumerGroupKey, key_of, stored_record, value_of
from odradek.broker.group.consumer.subscriptions import CompilePattern, Rematched, Subscriptions, refuse_patterns
from odradek.broker.group.group import GroupKind
from odradek.broker.group.group_host import GroupHost, TimerKey, TimerKind
from odradek.broker.group.offsets import Committed
from odradek.broker.group.rebalance import RebalanceCause, Rebalances, forgotten, named, remembered
from odradek.broker.group.topics_view import TopicsView
from odradek.protocol.codec.schema import Message
from odradek.protocol.consumer_protocol import PROTOCOL_TYPE
from odradek.protocol.errors import ErrorCode, KafkaError


class ConsumerGroup:
    """One group of one shard. `rebalances`: of the classic group that it was."""

    __slots__ = (
        "_changed_names",
        "_host",
        "_is_stale",
        "_newest",
        "_rebalances",
        "_sight",
        "_state",
        "_subscriptions",
        "_timers",
        "_topics",
        "group_id",
    )

    def __init__(
        self,
        group_id: str,
        host: GroupHost,
        topics: TopicsView,
        compile_pattern: CompilePattern = refuse_patterns,
        rebalances: Rebalances = (),
    ) -> None:
        self.group_id = group_id
        self._host = host
        self._topics = topics
        self._state = GroupState()
        self._newest = Newest()
        self._subscriptions = Subscriptions(self._state, topics, compile_pattern)
        self._timers = GroupTimers(group_id, host, self._state)
        self._rebalances = rebalances
        self._is_stale = False
        self._changed_names: set[str] | None = set()
        """Topics that have changed since the group last looked; None: any may have."""
        self._sight: Sight | None = None
        """Of the member that was heard of last; None: of none, since the group was loaded."""

    # ------------------------------------------------------------------------------------------------------- requests
    def heartbeat(self, request: ConsumerHeartbeat, waiting: Waiting[ConsumerHeartbeatAnswer], now: Now) -> None:
        """Answers through the outbox, with a ConsumerHeartbeatAnswer or one of these errors: INVALID_REQUEST,
        UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID,
        FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID."""
        answer: ConsumerHeartbeatAnswer | KafkaError
        self._see(request.sight)
        if self._changes_nothing(request):
            self._timers.heard(request.member_id, now.monotonic_ms)
            answer = self._answer(request.member_id, request.member_epoch)
        else:
            try:
                answer = self._handle(request, now)
            except KafkaError as error:
                answer = error
        self._host.outbox.reply(self.group_id, waiting, answer)

    def _see(self, sight: Sight) -> None:
        """Rights may be others than when expressions were resolved last."""
        before, self._sight = self._sight, sight
        if self._state.regexes and (before is None or before.generation != sight.generation):
            self._is_stale, self._changed_names = True, None

    def metadata_changed(self, names: Collection[str], now: Now) -> None:
        """These topics were created, deleted, enlarged, or have moved to other racks.

        The next heartbeat of any member looks at them. So a change costs nothing in groups that have no members, and
        the groups of a topic do not look all at once.
        """
        if not self._state.members:
            return
        self._is_stale = True
        if self._changed_names is not None:
            self._changed_names.update(names)

    def timed_out(self, key: TimerKey, now: Now) -> None:
        """A deadline of this group has passed. One that has lost its meaning since does nothing."""
        if key.kind is TimerKind.ASSIGNMENT:
            with self._editing(now) as edits:
                self._assign_if_due(edits, now)
        elif key.member_id not in self._state.members:
            return
        elif key.kind is TimerKind.SESSION:
            self.expel((key.member_id,), RebalanceCause.SESSION_EXPIRED, "was not heard of in time", now)
        elif key.kind is TimerKind.JOIN:
            self.expel((key.member_id,), RebalanceCause.JOIN_EXPIRED, "did not join again in time", now)
        elif key.kind is TimerKind.SYNC:
            self.expel((key.member_id,), RebalanceCause.SYNC_EXPIRED, "did not sync in time", now)
        elif self._state.current(key.member_id).revoking:
            self.expel((key.member_id,), RebalanceCause.REVOCATION_EXPIRED, "did not give up partitions in time", now)

    # --------------------------------------------------------------------------------------------------------- loading
    def replay(self, key: ConsumerGroupKey, value: Message | None) -> None:
        """A record of this group, in the order of the log; None: a tombstone."""
        self._state.apply(key_of(key), None if value is None else value_of(value))

    def loaded(self, now: Now) -> None:
        """The log is read. All members have just been heard of; metadata may have changed since."""
        self._timers.load(now)
        self._look_again()

    # -------------------------------------------------------- members of the classic protocol (broker/group/migration)
    def begin(self, values: Iterable[tuple[Key, Value]], now: Now) -> list[StoredRecord]:
        """The group, which has nothing, begins with this. Returns its records, for the caller to write."""
        records: list[StoredRecord] = []
        for key, value in values:
            self._state.apply(key, value)
            records.append(stored_record(self.group_id, key, value))
        self.loaded(now)
        return records

    def suspend(self) -> None:
        """The group is one of another kind, or never was: it has no deadlines."""
        self._timers.forget_all()

    def resume(self, now: Now) -> None:
        """That it is one of another kind could not be stored: deadlines start from the beginning."""
        self.loaded(now)

    def join_classic(self, told: ConsumerHeartbeat, classic: ClassicMember, now: Now) -> int:
        """A classic member joins, for the first time or again. Returns its epoch. Raises KafkaError:
        GROUP_MAX_SIZE_REACHED."""
        with self._editing(now) as edits:
            answer = self._step(told, edits, now, classic)
        self._timers.heard(answer.member_id, now.monotonic_ms)
        self._timers.joined(answer.member_id, now.monotonic_ms)
        return answer.member_epoch

    def look_at_topics(self, member_id: str, now: Now) -> None:
        """If they have changed: what a heartbeat of KIP-848 does by itself."""
        if self._is_stale:
            with self._editing(now) as edits:
                self._look_at_topics(speaker(self._state, self._timers, member_id, now), None, edits, now)
                self._assign_if_due(edits, now)

    @property
    def state(self) -> GroupState:
        """To be read."""
        return self._state

    @property
    def timers(self) -> GroupTimers:
        return self._timers

    @property
    def rebalances(self) -> Rebalances:
        """Why the group epoch was raised, since the group was loaded."""
        return self._rebalances

    @property
    def is_all_classic(self) -> bool:
        """Whether it has members, and none of the consumer protocol."""
        return 0 < self._state.classic_count == len(self._state.members)

    # ---------------------------------------------------------------------------------------------------------- checks
    def validate_commit(
        self, member_id: str, instance_id: str | None, member_epoch: int, *, is_transactional: bool, version: int
    ) -> CommitCheck:
        """Raises KafkaError for the commit as a whole; the check that it gives is for each partition (KIP-1251)."""
        if is_transactional and (member_id, instance_id, member_epoch) == NO_MEMBER:
            return ALL_GOOD
        return check_commit(
            self._state, self.group_id, member_id, member_epoch, is_transactional=is_transactional, version=version
        )

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raises KafkaError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION."""
        check_fetch(self._state, self.group_id, member_id, member_epoch)

    def validate_delete(self) -> None:
        """Raises KafkaError: NON_EMPTY_GROUP."""
        if self._state.members:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} has {len(self._state.members)} members."
            )

    def validate_offset_delete(self) -> None:
        """Offsets of topics that no member has subscribed to may always be deleted (`is_subscribed`)."""

    # ----------------------------------------------------------------------------------------------------------- looks
    @property
    def is_vacant(self) -> bool:
        """Nothing of it is stored: it was made for a heartbeat that was refused."""
        return self._state.is_blank

    @property
    def kind(self) -> GroupKind:
        return GroupKind.CONSUMER

    @property
    def state_name(self) -> str:
        return self._state.phase.value

    @property
    def protocol_type(self) -> str:
        return PROTOCOL_TYPE

    def is_subscribed(self, topic: str) -> bool:
        return topic in self._subscriptions.names()

    def retained_since_ms(self, committed: Committed) -> int:
        """From the commit on (ConsumerGroup.offsetExpirationCondition): topics with subscribers are left out before."""
        return committed.commit_timestamp_ms

    def tombstones(self) -> Sequence[StoredRecord]:
        return [stored_record(self.group_id, key, None) for key in self._state.all_keys()]

    @property
    def phase(self) -> GroupPhase:
        return self._state.phase

    @property
    def is_empty(self) -> bool:
        """Has no members: its offsets may expire, and it may become a classic group."""
        return not self._state.members

    @property
    def member_count(self) -> int:
        return len(self._state.members)

    def subscribed_topics(self) -> set[str]:
        """By name, whether they exist or not."""
        return self._subscriptions.names()

    def description(self) -> DescribedGroup:
        offered = self._host.options.group_consumer_assignors
        return describe(self.group_id, self._state, self._topics, offered, self._rebalances)

    # ------------------------------------------------------------------------------------------------------ heartbeats
    def _changes_nothing(self, request: ConsumerHeartbeat) -> bool:
        """The usual heartbeat: of a member that has all it is to have, and tells nothing new."""
        state = self._state
        member, current = state.members.get(request.member_id), state.currents.get(request.member_id)
        return (
            member is not None
            and current is not None
            and not self._is_stale
            and request.member_epoch == current.member_epoch == state.assignment_epoch == state.group_epoch
            and current.state is MemberState.STABLE
            and request.topic_names is None
            and request.topic_regex is None
            and request.rebalance_timeout_ms == NOT_GIVEN
            and request.member_epoch > JOIN_EPOCH
            and request.server_assignor in (None, member.server_assignor)
            and request.instance_id in (None, member.instance_id)
            and request.rack_id in (None, member.rack_id)
            and request.client_id == member.client_id
            and request.client_host == member.client_host
            and member.classic is None
        )

    def _handle(self, request: ConsumerHeartbeat, now: Now) -> ConsumerHeartbeatAnswer:
        check_request(self.group_id, request, self._host.options.group_consumer_assignors)
        if self._state.is_dead and request.member_epoch != JOIN_EPOCH:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no consumer group {self.group_id}.")
        if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            return self._leave(request, now)
        with self._editing(now) as edits:
            answer = self._step(request, edits, now)
        self._timers.heard(answer.member_id, now.monotonic_ms)
        return answer

    def _step(
        self, request: ConsumerHeartbeat, edits: Edits, now: Now, classic: ClassicMember | None = None
    ) -> ConsumerHeartbeatAnswer:
        state = self._state
        member_id = request.member_id or _uuid_text(self._host.random_uuid())
        by = speaker(state, self._timers, member_id, now, request.instance_id)
        if request.member_epoch == JOIN_EPOCH:
            size = self._host.options.group_consumer_max_size
            admit(state, self.group_id, member_id, request, edits, size, is_classic=classic is not None)
        else:
            check_member(state, self.group_id, request)
        held = state.current(member_id).assigned
        former = state.members.get(member_id, UNSEEN)
        member = updated(former, request)
        if classic is not None:
            member = member._replace(classic=classic, topic_regex=None)
        edits.put(Key(Kind.MEMBER, member_id), member)
        changed = (member.topic_names, member.topic_regex or None) != (former.topic_names, former.topic_regex or None)
        self._look_at_topics(by, member if changed else None, edits, now)
        self._assign_if_due(edits, now)
        self._reconcile(member_id, request, changed, edits, now)
        current = state.current(member_id)
        if by.replaced_id is not None:
            self._timers.forget(by.replaced_id)
        told = request.is_full or not _same_partitions(held, current.assigned)
        return self._answer(member_id, current.member_epoch, current.assigned if told else None)

    def _look_at_topics(self, by: Speaker, subscriber: Member | None, edits: Edits, now: Now) -> None:
        """Raises the group epoch where what the group has subscribed to is not what it was: because this member has
        changed its subscription (`subscriber`), because the topics have changed, or because the group is new."""
        rematched: dict[str, Rematched] = {}
        if self._is_stale and self._sight is not None:
            rematched = self._subscriptions.refresh(self._changed_names, self._sight, edits, now.unix_ms)
        if subscriber is not None:
            if subscriber.topic_regex and self._sight is not None:
                self._subscriptions.resolve(subscriber.topic_regex, self._sight, edits, now.unix_ms)
            self._subscriptions.drop_unused(edits)
        elif not self._is_stale and self._state.group is not None:
            return
        metadata_hash = self._subscriptions.metadata_hash()
        group = self._state.group
        if subscriber is not None or group is None:
            member = subscriber if subscriber is not None else self._state.members[by.member_id]
            self._raise_epoch(metadata_hash, subscribed(by, member), edits, now)
        elif metadata_hash != group.metadata_hash:
            why = topics_changed(self._changed_names, self._subscriptions.names(), rematched)
            self._raise_epoch(metadata_hash, why, edits, now)
        self._is_stale = False
        self._changed_names = set()

    def _raise_epoch(self, metadata_hash: int, why: Why, edits: Edits, now: Now) -> None:
        assert edits.rebalance is None, "an operation raises the epoch once"
        epoch = self._state.group_epoch
        edits.put(Key(Kind.PARTITION_METADATA), None)
        edits.put(Key(Kind.GROUP), GroupEpoch(epoch + 1, metadata_hash))
        edits.rebalance = why.rebalance(epoch, now)
        self._rebalances = remembered(self._rebalances, edits.rebalance)
        self._host.counts.rebalances[why.cause.value] += 1

    def _assign_if_due(self, edits: Edits, now: Now) -> None:
        """Works out the target assignment of the group epoch, or puts that off until it may be."""
        state = self._state
        if not state.members or state.group_epoch <= state.assignment_epoch:
            return
        if not self._timers.may_assign(now.monotonic_ms):
            self._timers.plan_assignment(now.monotonic_ms)
            return
        assignor = preferred_assignor(state, self._host.options.group_consumer_assignors)
        targets = assign(state, self._subscriptions, self._topics, assignor)
        put_targets(targets, state.group_epoch, now.unix_ms, edits)
        self._timers.assigned(now.monotonic_ms)

    def _reconcile(self, member_id: str, request: ConsumerHeartbeat, changed: bool, edits: Edits, now: Now) -> None:
        state = self._state
        current, target, member = state.current(member_id), state.targets.get(member_id), state.members[member_id]
        if current.is_reconciled_to(state.assignment_epoch) and not changed:
            return
        aim = Aim(
            target_epoch=state.assignment_epoch,
            target=target.partitions if target is not None else NO_PARTITIONS,
            subscribed=partial(self._subscriptions.has_topic, member),
            free=partial(state.is_free_for, member_id),
            owned=request.owned,
            subscription_changed=changed,
        )
        step = next_step(current, aim)
        if step is not current:
            edits.put(Key(Kind.CURRENT, member_id), step)
            self._timers.follow(member_id, now.monotonic_ms)

    def _answer(
        self, member_id: str, member_epoch: int, assigned: AssignedPartitions | None = None
    ) -> ConsumerHeartbeatAnswer:
        told = None if assigned is None else {topic_id: tuple(sorted(held)) for topic_id, held in assigned.items()}
        interval_ms = self._host.consumer_options(self.group_id).consumer_heartbeat_interval_ms
        return ConsumerHeartbeatAnswer(member_id, member_epoch, interval_ms, told)

    # --------------------------------------------------------------------------------------------------------- leaving
    def _leave(self, request: ConsumerHeartbeat, now: Now) -> ConsumerHeartbeatAnswer:
        check_identity(self._state, self.group_id, request)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            with self._editing(now) as edits:
                put_static_leave(self._state, request.member_id, edits)
            self._timers.leave(request.member_id)
        else:
            self.expel((request.member_id,), RebalanceCause.MEMBER_LEFT, "left", now)
        return ConsumerHeartbeatAnswer(request.member_id, request.member_epoch)

    def expel(self, member_ids: Sequence[str], cause: RebalanceCause, what: str, now: Now) -> None:
        """The target is worked out without the members by the next heartbeat or by the timer. `what` they did."""
        by = speaker(self._state, self._timers, member_ids[0], now)
        why = Why(cause, f"{named(list(member_ids))} {what}", by)
        with self._editing(now) as edits:
            for member_id in member_ids:
                remove(member_id, edits)
            self._subscriptions.drop_unused(edits)
            self._raise_epoch(self._subscriptions.metadata_hash(), why, edits, now)
        for member_id in member_ids:
            self._timers.forget(member_id)
        self._timers.plan_assignment(now.monotonic_ms)

    # --------------------------------------------------------------------------------------------------------- writing
    @contextmanager
    def _editing(self, now: Now) -> Generator[Edits, None, None]:
        """What is put inside is written together; if it fails in the middle, nothing has happened."""
        edits = Edits(self._state, self._newest)
        seen = (self._is_stale, self._changed_names)
        is_whole = False
        try:
            yield edits
            records = [stored_record(self.group_id, key, value) for key, value in edits.settle()]
            is_whole = True
        finally:
            if not is_whole:
                self._take_back(edits, now)
                self._is_stale, self._changed_names = seen
        if records:
            self._host.outbox.append(self.group_id, records, partial(self._refused, edits, now))

    def _refused(self, edits: Edits, now: Now) -> None:
        """Nobody knows any more which changes of topics these edits had followed."""
        self._take_back(edits, now)
        self._look_again()

    def _take_back(self, edits: Edits, now: Now) -> None:
        keys = edits.keys
        edits.undo()
        if edits.rebalance is not None:
            self._rebalances = forgotten(self._rebalances, edits.rebalance)
        self._timers.resume(keys, now.monotonic_ms)

    def _look_again(self) -> None:
        """All topics may have changed."""
        self._is_stale = bool(self._state.members)
        self._changed_names = None


def _same_partitions(one: AssignedPartitions, other: AssignedPartitions) -> bool:
    """Whatever their epochs."""
    return one is other or (
        one.keys() == other.keys() and all(one[topic_id].keys() == other[topic_id].keys() for topic_id in one)
    )


def _uuid_text(uuid: bytes) -> str:
    """As Kafka's Uuid.toString has it."""
    return urlsafe_b64encode(uuid).decode().rstrip("=")
