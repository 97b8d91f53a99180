"""What happens in real clusters without a fault on the wire: leaders and coordinators move, producers are fenced, and
members of groups lose their sessions. Each is done by requests that any client may send, and is done on return."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from odradek.broker.coordinator.key_partition import partition_of
from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.groups import CONSUMER, MemberDescription
from odradek.client.admin.topics import PartitionDescription
from odradek.client.admin.transactions import FencedProducer
from odradek.client.errors.client_errors import broker_error
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.testing.waiting import TIMEOUT_S, wait_until

__all__ = ["NoSuchMember", "expire_group_member", "fence", "move_coordinator", "move_leader"]

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
LEAVES: Final = -1
"""The epoch with which a member of a consumer group says goodbye (KIP-848)."""


class NoSuchMember(LookupError):
    """A group has no such member; the text names those that it has."""


async def move_leader(admin: Admin, topic: str, partition: int, to: int, timeout_s: float = TIMEOUT_S) -> None:
    """Broker `to` leads the partition. One that is no replica becomes one in the place of the last replica.

    Raises UnknownTopic; ItemsFailed for a broker that there is not; WaitedInVain, for one that does not catch up.
    """
    moved = TopicPartition(topic, partition)
    now = await _described(admin, moved)
    replicas = [to, *(each for each in now.replicas if each != to)][: len(now.replicas)]
    if tuple(replicas) != now.replicas:
        await admin.alter_partition_reassignments({moved: replicas})

    async def leads() -> bool:
        seen = await _described(admin, moved)
        if seen.leader == to:
            return True
        with suppress(ItemsFailed):  # it is not in sync yet
            await admin.elect_leaders([moved])
        raise AssertionError(f"broker {seen.leader} leads it, in sync are {list(seen.isr)}")

    await wait_until(leads, f"broker {to} leads {moved}", timeout_s)


async def _described(admin: Admin, partition: TopicPartition) -> PartitionDescription:
    """Raises UnknownTopic, LookupError."""
    described = await admin.describe_topic(partition.topic)
    for each in described.partitions:
        if each.partition == partition.partition:
            return each
    raise LookupError(f"{partition.topic} has {len(described.partitions)} partitions, and no {partition.partition}")


async def move_coordinator(admin: Admin, group: str | None, transactional_id: str | None, to: int) -> None:
    """Broker `to` coordinates the group, or the transactional id, and all others whose state is in the same partition
    of the brokers' own topic. Raises ValueError unless one of both is named, and what `move_leader` raises."""
    if group is not None and transactional_id is None:
        topic, key = OFFSETS_TOPIC, group
        await admin.group_offsets(group)  # has the topic made, if nobody has asked for a coordinator before
    elif transactional_id is not None and group is None:
        topic, key = TRANSACTIONS_TOPIC, transactional_id
        with suppress(ItemsFailed):
            await admin.describe_transactions([transactional_id])
    else:
        raise ValueError("name either group=… or transactional_id=…: whose coordinator is to move?")
    described = await admin.describe_topic(topic)
    await move_leader(admin, topic, partition_of(key, len(described.partitions)), to)


async def fence(admin: Admin, transactional_id: str) -> FencedProducer:
    """The producer with this transactional id is fenced, and its open transaction aborted: what it sends next fails, as
    when another one has begun with the same id. Raises ItemsFailed."""
    fenced = await admin.fence_producers([transactional_id])
    return fenced[transactional_id]


async def expire_group_member(admin: Admin, group: str, member: str | None) -> list[str]:
    """As if the session of a member had ended: the group goes on without it, and it hears of that with its next request
    (UNKNOWN_MEMBER_ID), upon which clients join again. `member`: its member id, group instance id or client id; None:
    all members. Returns the member ids. Raises NoSuchMember, BrokerError GROUP_ID_NOT_FOUND."""
    described = await admin.describe_group(group)
    gone = [each for each in described.members if member in (None, each.member_id, each.instance_id, each.client_id)]
    if not gone:
        has = ", ".join(f"{each.member_id} (client {each.client_id})" for each in described.members) or "none"
        raise NoSuchMember(f"group {group!r} has no member{f' {member!r}' if member else 's'}; it has: {has}")
    if described.group_type == CONSUMER:
        await _say_goodbye(admin, group, described.coordinator_id, gone)
    else:
        await admin.remove_group_members(group, gone, reason="the test lets its session end")
    return [each.member_id for each in gone]


async def _say_goodbye(admin: Admin, group: str, coordinator: int, members: Sequence[MemberDescription]) -> None:
    """In the name of members of a group of KIP-848, which LeaveGroup does not remove. Raises ClientError."""
    deadline_ms = asyncio.get_running_loop().time() * 1000.0 + TIMEOUT_S * 1000.0
    connection = await admin.cluster.connection_to(coordinator, deadline_ms)
    for each in members:
        goodbye = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=each.member_id, member_epoch=LEAVES, instance_id=each.instance_id
        )
        response = await connection.ask(goodbye)
        if response.error_code:
            raise broker_error(response.error_code, response.error_message, f"the end of {each.member_id}")
