"""Members of groups for the broker's tests: each joins, syncs, commits and leaves as a client does, at any version.

    async with running_groups() as context:
        alice, bob = Member(context), Member(context)
        await generation(alice, bob)            # both have joined and synced; alice, who came first, leads
        await bob.leave()

`commit`, `fetch` and `describe` ask for what they name, and answer by partition or by group.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

from odradek.broker.access.access import Access
from odradek.broker.cluster.keys import FEATURES_KEY, encode_features
from odradek.broker.cluster.store import Txn
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.group.classic.group import ClassicGroup
from odradek.broker.group.consumer.requests import ConsumerHeartbeat, ConsumerHeartbeatAnswer
from odradek.broker.group.machine import GroupMachine
from odradek.broker.group.offset_requests import CommitOffsets, OffsetToCommit
from odradek.broker.group.offsets import Position
from odradek.broker.handling.context import Context
from odradek.broker.handling.coordinator_topics import OF_GROUPS, ensure_coordinator_topic
from odradek.protocol.consumer_protocol import Subscription, encode_subscription
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.broker.support import NO_SETTINGS, ask, id_of, make_topic, running_broker

GROUP = "billing"
SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1",
}
TOPIC_IDS_SINCE = 10
"""OffsetCommit and OffsetFetch."""
NO_OFFSET = -1
NOWHERE = (NO_OFFSET, -1, "", ErrorCode.NONE)
"""What `fetch` says of a partition without an offset."""

Fetched = tuple[int, int, str, ErrorCode]
"""Offset, leader epoch, metadata, error."""


@asynccontextmanager
async def running_groups(
    settings: Mapping[str, str] = NO_SETTINGS, *, topics: Sequence[str] = ("orders",), access: Access | None = None
) -> AsyncGenerator[Context]:
    """A broker that coordinates groups, with these topics of three partitions."""
    async with running_broker({**SETTINGS, **settings}, access=access) as context:
        for topic in topics:
            await make_topic(context, topic, 3)
        await ensure_coordinator_topic(context, OF_GROUPS)
        await loaded(context)
        yield context


async def loaded(context: Context) -> None:
    """When no shard is being loaded any more."""

    async def is_loading() -> bool:
        return any(shard.state is ShardState.LOADING for shard in context.groups.all)

    await eventually(is_loading, False)


async def eventually(ask: Callable[[], Awaitable[object]], expected: object, *, every_ms: float = 0) -> None:
    """Asks until this is the answer, which it is within seconds."""
    async with asyncio.timeout(5):
        while await ask() != expected:  # noqa: ASYNC110 - a broker tells nobody when it has done by itself what is due
            await asyncio.sleep(every_ms / 1000)


async def finalize(context: Context, features: Mapping[str, int]) -> None:
    """These are what all registered brokers can do."""
    revision = await context.metadata.store.commit(Txn(put={FEATURES_KEY: encode_features(features)}))
    await asyncio.wait_for(context.metadata.applied(revision), 5)


def machine(context: Context, group_id: str = GROUP) -> GroupMachine:
    """That of the group's shard."""
    return context.groups.of(group_id).machine


def classic_group(context: Context, group_id: str = GROUP) -> ClassicGroup:
    group = machine(context, group_id).groups[group_id]
    assert isinstance(group, ClassicGroup)
    return group


async def make_consumer_group(context: Context, group_id: str, topic: str = "orders") -> ConsumerHeartbeatAnswer:
    """Creates a group with a member that has all of the topic, behind the handlers' back (KIP-848)."""
    await ensure_coordinator_topic(context, OF_GROUPS)
    await loaded(context)
    join = ConsumerHeartbeat("member", 0, rebalance_timeout_ms=1000, topic_names=frozenset((topic,)), owned={})
    return await context.groups.of(group_id).ask(
        lambda machine, waiting, now: machine.consumer_heartbeat(group_id, join, waiting, now)
    )


async def make_group(context: Context, group_id: str, position: Position = ("orders", 0), offset: int = 0) -> None:
    """Creates a group that has committed this, behind the handlers' back."""
    await ensure_coordinator_topic(context, OF_GROUPS)
    await loaded(context)
    committed = OffsetToCommit(position, context.metadata.image.topics[position[0]].topic_id, offset, -1, "")
    request = CommitOffsets(group_id, "", None, -1, -1, [committed], 9)
    errors: list[ErrorCode] = await context.groups.of(group_id).ask(
        lambda machine, waiting, now: machine.commit(request, waiting, now)
    )
    assert errors == [ErrorCode.NONE]


class Member:
    """One client in a group."""

    def __init__(
        self,
        context: Context,
        group_id: str = GROUP,
        *,
        instance_id: str | None = None,
        topics: Sequence[str] = ("orders",),
        protocol_type: str = "consumer",
        protocols: Sequence[str] = ("range",),
        session_timeout_ms: int = 30_000,
        rebalance_timeout_ms: int = 30_000,
    ) -> None:
        self.context = context
        self.group_id = group_id
        self.instance_id = instance_id
        self.metadata = encode_subscription(Subscription(topics))
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = ""
        self.generation = -1
        self.is_leader = False
        self.reason: str | None = None

    async def ask_to_join(self, version: int = 9) -> JoinGroupResponse:
        """One JoinGroup, and nothing made of the answer."""
        protocols = [JoinGroupRequestProtocol(name=name, metadata=self.metadata) for name in self.protocols]
        request = JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms if version >= 1 else -1,
            member_id=self.member_id,
            group_instance_id=self.instance_id if version >= 5 else None,
            protocol_type=self.protocol_type,
            protocols=protocols,
            reason=self.reason if version >= 8 else None,
        )
        return await ask(self.context, request, version)

    async def join(self, version: int = 9) -> JoinGroupResponse:
        """Comes back with its id where that is required (KIP-394), and goes by the answer."""
        answer = await self.ask_to_join(version)
        if ErrorCode(answer.error_code) is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            answer = await self.ask_to_join(version)
        if ErrorCode(answer.error_code) is ErrorCode.NONE:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.is_leader = answer.leader == answer.member_id
        return answer

    async def sync(
        self, assignments: Mapping[str, bytes] | None = None, version: int = 5, *, protocol: str | None = None
    ) -> SyncGroupResponse:
        """`assignments`: by member id, of the leader."""
        request = SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id if version >= 3 else None,
            protocol_type=self.protocol_type if version >= 5 else None,
            protocol_name=(protocol or self.protocols[0]) if version >= 5 else None,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
        )
        return await ask(self.context, request, version)

    async def heartbeat(self, version: int = 4) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id if version >= 3 else None,
        )
        return ErrorCode((await ask(self.context, request, version)).error_code)

    async def leave(self, version: int = 5) -> LeaveGroupResponse:
        request = LeaveGroupRequest(group_id=self.group_id, member_id=self.member_id)
        if version >= 3:
            own = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
            own.reason = self.reason if version >= 5 else None
            request = LeaveGroupRequest(group_id=self.group_id, members=[own])
        return await ask(self.context, request, version)

    async def commit(self, offsets: Mapping[Position, int], version: int = 9) -> dict[Position, ErrorCode]:
        """As a member of its generation."""
        return await commit(self.context, offsets, version, group_id=self.group_id, member=self)


async def generation(*members: Member) -> None:
    """All of them have joined and synced; each is assigned its own member id, as bytes. The first one leads a group
    that was empty."""
    joins: list[asyncio.Task[JoinGroupResponse]] = []
    for member in members:  # in this order, also where an id is required first
        answer = await member.ask_to_join() if not member.member_id and member.instance_id is None else None
        if answer is not None:
            member.member_id = answer.member_id
    for member in members:
        joins.append(asyncio.ensure_future(member.join()))
        await asyncio.sleep(0)
    for answer in await asyncio.wait_for(asyncio.gather(*joins), 5):
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code)
    assignments = {member.member_id: member.member_id.encode() for member in members}
    syncs = [member.sync(assignments if member.is_leader else None) for member in members]
    for synced, member in zip(await asyncio.wait_for(asyncio.gather(*syncs), 5), members, strict=True):
        assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, member.member_id.encode())


# -- offsets ---------------------------------------------------------------------------------------------------------


async def commit(
    context: Context,
    offsets: Mapping[Position, int],
    version: int = 9,
    *,
    group_id: str = GROUP,
    member: Member | None = None,
    member_id: str = "",
    generation_id: int = -1,
    metadata: str | None = "",
    leader_epoch: int = -1,
    retention_ms: int = -1,
) -> dict[Position, ErrorCode]:
    """Without a member: from outside of the group's protocol. Retention up to version 4, epochs since 6, topics by
    their ids since 10."""
    names = {id_of(context, name): name for name, _ in offsets}
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id if member is None else member.generation,
        member_id=member_id if member is None else member.member_id,
        group_instance_id=None if member is None or version < 7 else member.instance_id,
        retention_time_ms=retention_ms,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=id_of(context, topic),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=leader_epoch if version >= 6 else -1,
                        committed_metadata=metadata,
                    )
                    for (name, index), offset in offsets.items()
                    if name == topic
                ],
            )
            for topic in dict.fromkeys(name for name, _ in offsets)
        ],
    )
    answer = await ask(context, request, version)
    return {
        (topic.name or names[topic.topic_id], partition.partition_index): ErrorCode(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }


def _by_topic(positions: Iterable[Position]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = {}
    for topic, index in positions:
        indexes.setdefault(topic, []).append(index)
    return indexes


async def fetch(
    context: Context, positions: Iterable[Position] | None, version: int = 9, *, group_id: str = GROUP
) -> dict[Position, Fetched]:
    """None: all that the group has, since version 2. The answer as a whole has no error."""
    if version >= 8:
        [group] = await fetch_groups(context, {group_id: positions}, version)
        assert (group.group_id, group.error_code) == (group_id, ErrorCode.NONE)
        return fetched(group)
    topics = None
    if positions is not None:
        topics = [
            OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in _by_topic(positions).items()
        ]
    answer = await ask(context, OffsetFetchRequest(group_id=group_id, topics=topics), version)
    assert answer.error_code == ErrorCode.NONE
    return fetched(answer)


async def fetch_groups(
    context: Context, wanted: Mapping[str, Iterable[Position] | None], version: int = 9, *, require_stable: bool = False
) -> list[OffsetFetchResponseGroup]:
    """Of several groups at once, since version 8; topics by their ids since 10, with their names put in here."""
    groups = [
        OffsetFetchRequestGroup(
            group_id=group_id,
            topics=None
            if positions is None
            else [
                OffsetFetchRequestTopics(name=topic, topic_id=id_of(context, topic), partition_indexes=indexes)
                for topic, indexes in _by_topic(positions).items()
            ],
        )
        for group_id, positions in wanted.items()
    ]
    answer = await ask(context, OffsetFetchRequest(groups=groups, require_stable=require_stable), version)
    names = {topic.topic_id: topic.name for group in groups for topic in group.topics or ()}
    names.update(context.metadata.image.names)
    for group in answer.groups if version >= TOPIC_IDS_SINCE else ():
        for topic in group.topics:
            topic.name = names[topic.topic_id]
    return answer.groups


def fetched(group: OffsetFetchResponseGroup | OffsetFetchResponse) -> dict[Position, Fetched]:
    """Up to version 7 the answer as a whole is about one group."""
    return {
        (topic.name, each.partition_index): (
            each.committed_offset,
            each.committed_leader_epoch,
            each.metadata or "",
            ErrorCode(each.error_code),
        )
        for topic in group.topics
        for each in topic.partitions
    }


# -- groups ----------------------------------------------------------------------------------------------------------


async def describe(context: Context, group_id: str = GROUP, version: int = 6) -> DescribedGroup:
    [group] = (await ask(context, DescribeGroupsRequest(groups=[group_id]), version)).groups
    return group
