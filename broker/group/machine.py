"""The machine of one shard of `__consumer_offsets`: its groups and their offsets (Kafka's GroupCoordinatorShard). Pure.

A group goes when it is deleted, or when it is empty and its last offset has expired (group_table.py: how it comes, and
how it becomes one of the other kind).

| from the log | here |
|---|---|
| OffsetCommit, LegacyOffsetCommit | `offsets`, at once or with the marker of its transaction |
| GroupMetadata | a classic group |
| ConsumerGroup… | a consumer group (KIP-848) |
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Protocol

from odradek.broker.coordinator.machine import Now, Outbox, Waiting
from odradek.broker.coordinator.timers import Timers
from odradek.broker.group.classic.description import GroupDescription
from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.classic.requests import Heartbeat, Join, Joined, Leave, Left, Sync, Synced
from odradek.broker.group.consumer.group import ConsumerGroup
from odradek.broker.group.consumer.requests import (
    JOIN_EPOCH,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    DescribedGroup,
)
from odradek.broker.group.consumer.subscriptions import CompilePattern, refuse_patterns
from odradek.broker.group.group import Group
from odradek.broker.group.group_counts import NOT_COUNTED, GroupCounts
from odradek.broker.group.group_host import ConsumerOptions, GroupHost, GroupOptions, TimerKey
from odradek.broker.group.group_table import GroupTable, later_version
from odradek.broker.group.migration import classic_members
from odradek.broker.group.offset_coordinator import Allowed, OffsetCoordinator, OffsetOptions
from odradek.broker.group.offset_records import committed_of
from odradek.broker.group.offset_requests import (
    CommitInTransaction,
    CommitOffsets,
    DeleteOffsets,
    EndTransaction,
    FetchedOffset,
    FetchOffsets,
)
from odradek.broker.group.offsets import NO_EXPIRY, Committed, shared
from odradek.broker.group.topics_view import TopicsView
from odradek.broker.group.transactional_offsets import Check, TransactionalOffsets
from odradek.broker.group.whole_outbox import WholeOutbox
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored.group_metadata import GroupMetadataKey
from odradek.protocol.stored.group_records import UnknownKey, UnknownValue, decode_key, decode_value
from odradek.protocol.stored.offset_commit import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.protocol.stored.plain_offset_commit import read_plain_offset_commit

GROUP_ID_NOT_FOUND_SINCE: Final = 9
"""OffsetCommit's version in which a client knows that error."""
NO_PRODUCER_ID: Final = -1
GROUP_ID_NOT_FOUND_SINCE_IN_TRANSACTION: Final = 6
"""TxnOffsetCommit's (KIP-1319)."""
DUE_TOGETHER_MAX: Final = 50
"""So many deadlines, or groups that are looked at, make one step of `tick`: the loop belongs to others, too."""


class MachineOptions(GroupOptions, OffsetOptions, Protocol):
    """Of the broker; read when they are needed."""

    @property
    def offsets_retention_check_interval_ms(self) -> int: ...


class GroupMachine:
    """Of one shard."""

    __slots__ = (
        "_cleanup_ms",
        "_host",
        "_options",
        "_outbox",
        "_sweep",
        "_table",
        "_topics",
        "_transactional",
        "groups",
        "offsets",
    )

    def __init__(
        self,
        outbox: Outbox,
        options: MachineOptions,
        random_uuid: Callable[[], bytes],
        topics: TopicsView,
        compile_pattern: CompilePattern = refuse_patterns,
        counts: GroupCounts = NOT_COUNTED,
        own_options: Callable[[str], ConsumerOptions] | None = None,
    ) -> None:
        self._outbox = WholeOutbox(outbox)
        self._host = GroupHost(self._outbox, Timers[TimerKey](), options, random_uuid, counts, own_options)
        self._options = options
        self._topics = topics
        self._table = GroupTable(self._host, topics, compile_pattern)
        self.groups = self._table.by_id
        """To be looked at; they come and go by the table."""
        self.offsets = OffsetCoordinator(self._outbox, options, self._restored, counts)
        self._transactional = TransactionalOffsets(self._outbox, options, self.offsets.offsets, counts)
        self._cleanup_ms: int | None = None
        """When expired offsets are looked for next."""
        self._sweep: deque[tuple[Callable[[Group, Now], None], list[str]]] = deque()
        """What all groups are looked at for, and the ids of those that are left."""

    # -- members ------------------------------------------------------------------------------------------------------

    def join(self, group_id: str, request: Join, waiting: Waiting[Joined], now: Now) -> None:
        group = self.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            group.join(request, waiting, now)
        else:
            with self._outbox.whole(group_id) as whole:
                group = self._table.classic_to_join(group_id, request.member_id, whole)
                if isinstance(group, ClassicGroup):
                    group.join(request, waiting, now)
                else:
                    joined = classic_members.join(group, request, self._host, self._topics, now)
                    self._table.downgrade_if_all_classic(group, whole, now)
                    self._outbox.reply(group_id, waiting, joined)
        self._forget_if_vacant(group_id)

    def sync(self, group_id: str, request: Sync, waiting: Waiting[Synced], now: Now) -> None:
        group = self._table.joined(group_id)
        if isinstance(group, ClassicGroup):
            group.sync(request, waiting, now)
        else:
            self._outbox.reply(group_id, waiting, classic_members.sync(group, request, self._topics, now))

    def heartbeat(self, group_id: str, request: Heartbeat, waiting: Waiting[None], now: Now) -> None:
        group = self._table.joined(group_id)
        if isinstance(group, ClassicGroup):
            group.heartbeat(request, waiting, now)
        else:
            classic_members.heartbeat(group, request, now)
            self._outbox.reply(group_id, waiting, None)

    def leave(self, group_id: str, request: Leave, waiting: Waiting[Left], now: Now) -> None:
        group = self._table.joined(group_id)
        if isinstance(group, ClassicGroup):
            group.leave(request, waiting, now)
        else:
            self._outbox.reply(group_id, waiting, classic_members.leave(group, request, now))

    def consumer_heartbeat(
        self, group_id: str, request: ConsumerHeartbeat, waiting: Waiting[ConsumerHeartbeatAnswer], now: Now
    ) -> None:
        """KIP-848."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup) and request.member_epoch >= JOIN_EPOCH:
            group.heartbeat(request, waiting, now)
        else:
            self._join_or_leave(group_id, request, waiting, now)
        self._forget_if_vacant(group_id)

    def _join_or_leave(
        self, group_id: str, request: ConsumerHeartbeat, waiting: Waiting[ConsumerHeartbeatAnswer], now: Now
    ) -> None:
        """The group may become one of the other kind by that: in one batch with what the member does, or not at all."""
        is_there = isinstance(self.groups.get(group_id), ConsumerGroup)
        with self._outbox.whole(group_id) as whole:
            group = self._table.consumer_to_join(group_id, request, whole, now)
            group.heartbeat(request, waiting, now)
            if is_there:
                self._table.downgrade_if_all_classic(group, whole, now)
            elif group.is_empty or group.is_all_classic:  # the member was refused
                whole.drop()

    # -- offsets ------------------------------------------------------------------------------------------------------

    def commit(self, request: CommitOffsets, waiting: Waiting[list[ErrorCode]], now: Now) -> None:
        group = self.groups.get(request.group_id)
        if group is None:
            if request.generation >= 0:
                knows = request.version >= GROUP_ID_NOT_FOUND_SINCE
                code = ErrorCode.GROUP_ID_NOT_FOUND if knows else ErrorCode.ILLEGAL_GENERATION
                raise KafkaError(code, f"there is no group {request.group_id!r}")
            group = self._table.simple(request.group_id)
        allowed: Allowed | None = None
        if isinstance(group, ClassicGroup):
            group.validate_commit(request.member_id, request.instance_id, request.generation)
            group.refresh_session(request.member_id, now)
        else:
            check = group.validate_commit(
                request.member_id,
                request.instance_id,
                request.generation,
                is_transactional=False,
                version=request.version,
            )
            allowed = check.code
        errors = self.offsets.commit(request, allowed, now, lambda: self._forget_if_vacant(request.group_id))
        self._forget_if_vacant(request.group_id)
        self._outbox.reply(request.group_id, waiting, errors)

    def commit_in_transaction(self, request: CommitInTransaction, waiting: Waiting[list[ErrorCode]], now: Now) -> None:
        """Keeps no session alive, as in Kafka: the producer commits, and not the member. Raises KafkaError (KIP-447):
        COORDINATOR_NOT_AVAILABLE, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION; GROUP_ID_NOT_FOUND and
        STALE_MEMBER_EPOCH to those who know them."""
        group_id, member = request.group_id, (request.member_id, request.instance_id, request.generation)
        group = self.groups.get(group_id)
        if group is None:
            if request.generation >= 0:
                knows = request.version >= GROUP_ID_NOT_FOUND_SINCE_IN_TRANSACTION
                code = ErrorCode.GROUP_ID_NOT_FOUND if knows else ErrorCode.ILLEGAL_GENERATION
                raise KafkaError(code, f"there is no group {group_id!r}")
            group = self._table.simple(group_id)
        check: Check | None = None
        if isinstance(group, ClassicGroup):
            group.validate_commit(*member, is_transactional=True)
        else:
            check = group.validate_commit(*member, is_transactional=True, version=request.version).check
        errors = self._transactional.commit(request, check, now, lambda: self._forget_if_vacant(group_id))
        self._forget_if_vacant(group_id)
        self._outbox.reply(group_id, waiting, errors)

    def end_transaction(self, request: EndTransaction, waiting: Waiting[None], now: Now) -> None:
        """A group that has nothing after an abort goes when expired offsets are looked for next."""
        del now
        self._transactional.end(request, waiting, self._restored)

    def _restored(self, group_id: str) -> None:
        """The group has its former offsets again, and may have gone without them."""
        if self.offsets.offsets.holds(group_id):
            self._table.keep_offsets_of(group_id)

    def fetch_offsets(self, request: FetchOffsets, waiting: Waiting[Iterator[FetchedOffset]], now: Now) -> None:
        del now
        group = self.groups.get(request.group_id)
        if isinstance(group, ClassicGroup):
            group.validate_fetch()
        elif group is not None:
            group.validate_fetch(request.member_id, request.member_epoch)
        self._outbox.reply(request.group_id, waiting, self.offsets.fetch(request, self._topic_id))

    def _topic_id(self, name: str) -> bytes | None:
        topic = self._topics.by_name(name)
        return None if topic is None else topic.topic_id

    def delete_offsets(self, request: DeleteOffsets, waiting: Waiting[list[ErrorCode]], now: Now) -> None:
        del now
        group = self._table.find(request.group_id)
        group.validate_offset_delete()
        self._outbox.reply(request.group_id, waiting, self.offsets.delete(request, group))

    # -- operators ----------------------------------------------------------------------------------------------------

    def describe(self, group_id: str, waiting: Waiting[GroupDescription], now: Now) -> None:
        """A classic group. Raises KafkaError GROUP_ID_NOT_FOUND."""
        del now
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no classic group {group_id!r}")
        self._outbox.reply(group_id, waiting, group.describe())

    def describe_consumer(self, group_id: str, waiting: Waiting[DescribedGroup], now: Now) -> None:
        """A consumer group. Raises KafkaError GROUP_ID_NOT_FOUND."""
        del now
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no consumer group {group_id!r} (KIP-848)")
        self._outbox.reply(group_id, waiting, group.description())

    def delete(self, group_id: str, waiting: Waiting[None], now: Now) -> None:
        """Removes the group and its offsets."""
        del now
        group = self._table.find(group_id)
        group.validate_delete()
        self._delete(group)
        self._outbox.reply(group_id, waiting, None)

    def _delete(self, group: Group) -> None:
        group_id = group.group_id
        records, undos = self.offsets.remove_all(group_id)
        records += group.tombstones()
        kept = self._table.drop(group_id)

        def undo() -> None:
            if kept is not None:
                self._table.put_back(kept)
            for each in reversed(undos):
                each()

        if records:
            self._outbox.append(group_id, records, undo)

    def _forget_if_vacant(self, group_id: str) -> None:
        """A group of which there is nothing, neither in the log nor here: its first request was refused, or who was
        given a member id has not come back."""
        group = self.groups.get(group_id)
        if group is not None and group.is_vacant and not self.offsets.offsets.holds(group_id):
            self._table.drop(group_id)

    # -- time -------------------------------------------------------------------------------------------------------

    @property
    def next_deadline_ms(self) -> int | None:
        if self._sweep:
            return 0
        timers_ms, cleanup_ms = self._host.timers.next_deadline_ms, self._cleanup_ms
        if timers_ms is None or cleanup_ms is None:
            return cleanup_ms if timers_ms is None else timers_ms
        return min(timers_ms, cleanup_ms)

    def tick(self, now: Now) -> None:
        for _ in range(DUE_TOGETHER_MAX):
            key = self._host.timers.pop_due(now.monotonic_ms)
            if key is None:
                break
            if (group := self.groups.get(key.group_id)) is not None:
                self._timed_out(group, key, now)
                self._forget_if_vacant(key.group_id)
        if self._cleanup_ms is not None and self._cleanup_ms <= now.monotonic_ms:
            self._cleanup_ms = now.monotonic_ms + self._options.offsets_retention_check_interval_ms
            self._look_at_all(self._expire)
        if self._sweep:
            look, group_ids = self._sweep[0]
            for group_id in group_ids[-DUE_TOGETHER_MAX:]:
                if (group := self.groups.get(group_id)) is not None:
                    look(group, now)
            del group_ids[-DUE_TOGETHER_MAX:]
            if not group_ids:
                self._sweep.popleft()

    def clock_moved(self, now: Now) -> None:
        """The time of day is another one: what has expired by it goes with the next `tick`."""
        self._cleanup_ms = now.monotonic_ms

    def _timed_out(self, group: ClassicGroup | ConsumerGroup, key: TimerKey, now: Now) -> None:
        if isinstance(group, ClassicGroup):
            group.timed_out(key, now)
            return
        with self._outbox.whole(group.group_id) as whole:
            group.timed_out(key, now)
            self._table.downgrade_if_all_classic(group, whole, now)

    def _look_at_all(self, look: Callable[[Group, Now], None]) -> None:
        """At every group that there is now, a few in each step of `tick`."""
        if self.groups:
            self._sweep.append((look, list(self.groups)))

    def _expire(self, group: Group, now: Now) -> None:
        """Offsets whose time is up, and the group if it has nothing left (`cleanupExpiredOffsets`,
        `maybeDeleteGroup`)."""
        if self.offsets.expire(group, now) and group.is_empty:
            self._delete(group)

    def topics_deleted(self, topics: Mapping[str, bytes], now: Now) -> None:
        """Their offsets go, of every group. `topics`: their ids by name, which others may have by now."""
        del now
        self._look_at_all(lambda group, _: self.offsets.remove_topics(group.group_id, topics))

    def metadata_changed(self, topics: Collection[str], now: Now) -> None:
        """These have other partitions or racks now, are new, or gone: consumer groups may have to assign anew."""
        for group in tuple(self.groups.values()):
            if isinstance(group, ConsumerGroup):
                group.metadata_changed(topics, now)

    # -- the log ------------------------------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None, producer_id: int) -> str | None:
        """One record of the log, in its order. Returns whose it is; None for a type that is not known here.

        Raises MalformedMessage, also for a value in a version that only a later release knows.
        """
        if value is not None and producer_id == NO_PRODUCER_ID:
            plain = read_plain_offset_commit(key, value)
            if plain is not None:
                group_id, position, offset, leader_epoch, timestamp_ms, topic_id = plain
                committed = Committed(offset, leader_epoch, "", timestamp_ms, NO_EXPIRY, topic_id)
                if group_id not in self.groups:
                    self._table.simple(group_id)
                self.offsets.offsets.restore(group_id, position, committed)
                return group_id
        return self._replay_any(key, value, producer_id)

    def _replay_any(self, key_bytes: bytes, value: bytes | None, producer_id: int) -> str | None:
        key = decode_key(key_bytes)
        match key:
            case UnknownKey():
                return None
            case OffsetCommitKey() | LegacyOffsetCommitKey():
                self._replay_offset(key, value, producer_id)
                return key.group
            case GroupMetadataKey():
                self._table.replay_classic(key, value)
                return key.group
            case _:
                self._table.replay_consumer(key, value)
                return key.group_id

    def _replay_offset(
        self, key: OffsetCommitKey | LegacyOffsetCommitKey, value: bytes | None, producer_id: int
    ) -> None:
        position = (key.topic, key.partition)
        if value is None:
            self.offsets.offsets.remove(key.group, position)
            return
        found: OffsetCommitValue | LegacyOffsetCommitValue | UnknownValue
        match key:  # the types of the two are told apart for the checkers alone
            case OffsetCommitKey():
                found = decode_value(key, value)
            case LegacyOffsetCommitKey():
                found = decode_value(key, value)
        if isinstance(found, UnknownValue):
            raise later_version(key.group, found)
        self._table.keep_offsets_of(key.group)
        committed = committed_of(found)
        if producer_id == NO_PRODUCER_ID:
            self.offsets.offsets.restore(key.group, shared(*position), committed)
        else:
            self.offsets.offsets.commit_pending(producer_id, key.group, position, committed)

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> Sequence[str]:
        """Returns the groups of which offsets count by it, or are pending no more."""
        group_ids = self.offsets.offsets.groups_of(producer_id)
        self.offsets.offsets.end_transaction(producer_id, is_commit=is_commit)
        return group_ids

    def loaded(self, now: Now) -> None:
        """Sessions start anew; offsets that have expired meanwhile are looked for soon."""
        offsets = self.offsets.offsets
        for group_id in (*offsets.group_ids, *filter(offsets.has_pending, offsets.pending_group_ids)):
            self._table.keep_offsets_of(group_id)  # its own record is gone, and its offsets are not
        for group in tuple(self.groups.values()):
            group.loaded(now)
            self._forget_if_vacant(group.group_id)
        self._cleanup_ms = now.monotonic_ms + self._options.offsets_retention_check_interval_ms
