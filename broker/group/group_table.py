"""The groups of one shard by their names, and how one comes to be, goes, or becomes one of the other kind. Pure.

A group comes to be with its first member, or with a commit from outside of any group (a *simple* group: classic, empty,
without a protocol type, and nothing of it in the log but offsets). One without members becomes the other kind with the
first member of that kind, and keeps its offsets. A classic group with members becomes a consumer group, and a consumer
group with classic members a classic one, by the rules of `migration/`.
"""

from typing import cast

from odradek.broker.coordinator.machine import Now
from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.classic.stored_group import record as group_record
from odradek.broker.group.consumer.group import ConsumerGroup
from odradek.broker.group.consumer.member_checks import check_request
from odradek.broker.group.consumer.requests import JOIN_EPOCH, ConsumerHeartbeat
from odradek.broker.group.consumer.stored_records import ConsumerGroupKey
from odradek.broker.group.consumer.subscriptions import CompilePattern
from odradek.broker.group.group_host import GroupHost
from odradek.broker.group.migration.downgrade import downgraded, may_downgrade
from odradek.broker.group.migration.upgrade import check_upgrade, upgraded
from odradek.broker.group.rebalance import Rebalances
from odradek.broker.group.topics_view import TopicsView
from odradek.broker.group.whole_outbox import Whole
from odradek.protocol.codec.schema import Message
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.stored.consumer_group import ConsumerGroupMetadataKey
from odradek.protocol.stored.group_metadata import GroupMetadataKey
from odradek.protocol.stored.group_records import UnknownValue, decode_value
from odradek.protocol.stored.record_key import RecordKey

AnyGroup = ClassicGroup | ConsumerGroup


class GroupTable:
    """Of one shard."""

    __slots__ = ("_compile_pattern", "_host", "_topics", "by_id")

    def __init__(self, host: GroupHost, topics: TopicsView, compile_pattern: CompilePattern) -> None:
        self._host = host
        self._topics = topics
        self._compile_pattern = compile_pattern
        self.by_id: dict[str, AnyGroup] = {}

    # -- finding ----------------------------------------------------------------------------------------------------

    def find(self, group_id: str) -> AnyGroup:
        """Raises KafkaError GROUP_ID_NOT_FOUND."""
        group = self.by_id.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id!r}")
        return group

    def joined(self, group_id: str) -> AnyGroup:
        """For what members ask. Raises KafkaError: UNKNOWN_MEMBER_ID where there is no group, and so no such member."""
        group = self.by_id.get(group_id)
        if group is None:
            raise _unknown_member(group_id)
        return group

    # -- coming to be -----------------------------------------------------------------------------------------------

    def simple(self, group_id: str) -> ClassicGroup:
        """A new one, for offsets that are committed from outside of any group."""
        group = self.by_id[group_id] = ClassicGroup(group_id, self._host)
        return group

    def keep_offsets_of(self, group_id: str) -> None:
        """The group has an offset: it is there, if only for that."""
        if group_id not in self.by_id:
            self.simple(group_id)

    def classic_to_join(self, group_id: str, member_id: str, whole: Whole) -> AnyGroup:
        """For a JoinGroup; a member that has an id already does not begin a group. A consumer group with members takes
        classic ones, too (migration/classic_members.py). Raises KafkaError UNKNOWN_MEMBER_ID."""
        group = self.by_id.get(group_id)
        if group is not None and (isinstance(group, ClassicGroup) or not group.is_empty):
            return group
        if member_id:
            raise _unknown_member(group_id)
        classic = ClassicGroup(group_id, self._host, group.rebalances if group is not None else ())
        self._become(group, classic, whole)
        return classic

    def consumer_to_join(self, group_id: str, request: ConsumerHeartbeat, whole: Whole, now: Now) -> ConsumerGroup:
        """For a ConsumerGroupHeartbeat. A classic group with members becomes a consumer group if it may. Raises
        KafkaError: GROUP_ID_NOT_FOUND, INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION,
        GROUP_MAX_SIZE_REACHED."""
        group = self.by_id.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        check_request(group_id, request, self._host.options.group_consumer_assignors)
        if request.topic_regex:
            self._compile_pattern(request.topic_regex)
        if request.member_epoch != JOIN_EPOCH:
            what = "is a classic group" if group is not None else "is not there"
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id!r} {what}")
        if group is not None and not group.is_empty:
            return self._upgrade(group, request.instance_id, whole, now)
        consumer = self._new_consumer(group_id, group.rebalances if group is not None else ())
        self._become(group, consumer, whole)
        return consumer

    def _new_consumer(self, group_id: str, rebalances: Rebalances = ()) -> ConsumerGroup:
        return ConsumerGroup(group_id, self._host, self._topics, self._compile_pattern, rebalances)

    def _become(self, former: AnyGroup | None, group: AnyGroup, whole: Whole) -> None:
        """Takes the place of a group of the other kind, which has no members; its deadlines mean nothing any more."""
        group_id = group.group_id
        self.by_id[group_id] = group
        if former is None:
            return

        def undo() -> None:
            self.by_id[group_id] = former

        whole.also(undo)
        whole.records += former.tombstones()

    # -- migration ----------------------------------------------------------------------------------------------------

    def _upgrade(self, classic: ClassicGroup, instance_id: str | None, whole: Whole, now: Now) -> ConsumerGroup:
        """Raises KafkaError: GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED."""
        check_upgrade(classic, instance_id, self._host.options)
        values = upgraded(classic, self._topics)
        group_id = classic.group_id
        consumer = self.by_id[group_id] = self._new_consumer(group_id, classic.rebalances)

        def undo() -> None:
            consumer.suspend()
            self.by_id[group_id] = classic
            classic.resume(now)

        whole.also(undo)
        classic.suspend()
        whole.records += [*classic.tombstones(), *consumer.begin(values, now)]
        return consumer

    def downgrade_if_all_classic(self, consumer: ConsumerGroup, whole: Whole, now: Now) -> None:
        """The last member of KIP-848 may have gone."""
        if not may_downgrade(consumer, self._host.options):
            return
        found = downgraded(consumer, self._topics)
        if found is None:
            return
        group_id = consumer.group_id
        classic = self.by_id[group_id] = ClassicGroup(group_id, self._host, consumer.rebalances)

        def undo() -> None:
            classic.suspend()
            self.by_id[group_id] = consumer
            consumer.resume(now)

        whole.also(undo)
        whole.records += [*consumer.tombstones(), group_record(group_id, found.value)]
        consumer.suspend()
        classic.begin(found.value, found.offers, now)

    # -- going --------------------------------------------------------------------------------------------------------

    def drop(self, group_id: str) -> AnyGroup | None:
        """Its tombstones are given. Returns it."""
        return self.by_id.pop(group_id, None)

    def put_back(self, group: AnyGroup) -> None:
        """Its tombstones were refused."""
        self.by_id.setdefault(group.group_id, group)

    # -- the log ----------------------------------------------------------------------------------------------------

    def replay_classic(self, key: GroupMetadataKey, value: bytes | None) -> None:
        """A tombstone after the group has become one of the other kind is the former group's. Raises
        MalformedMessage."""
        group = self.by_id.get(key.group)
        if value is None:
            if isinstance(group, ClassicGroup):
                del self.by_id[key.group]
            return
        found = decode_value(key, value)
        if isinstance(found, UnknownValue):
            raise later_version(key.group, found)
        classic = self.by_id[key.group] = ClassicGroup(key.group, self._host)
        classic.replay(found)

    def replay_consumer(self, key: ConsumerGroupKey, value: bytes | None) -> None:
        """Raises MalformedMessage."""
        group_id = key.group_id
        group = self.by_id.get(group_id)
        if value is None:
            if isinstance(group, ConsumerGroup):
                group.replay(key, None)
                if isinstance(key, ConsumerGroupMetadataKey):  # the last of a group that goes
                    del self.by_id[group_id]
            return
        found: Message | UnknownValue = decode_value(cast("RecordKey[Message]", key), value)
        if isinstance(found, UnknownValue):
            raise later_version(group_id, found)
        if not isinstance(group, ConsumerGroup):
            group = self.by_id[group_id] = self._new_consumer(group_id)
        group.replay(key, found)


def _unknown_member(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id!r} has no such member")


def later_version(group_id: str, found: UnknownValue) -> MalformedMessage:
    """For a record that cannot be understood, and must not be passed over."""
    return MalformedMessage(
        f"group {group_id!r}: a record of type {found.type} in version {found.version}, which a later release has "
        "written: start that release again"
    )
