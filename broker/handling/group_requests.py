"""How handlers ask the coordinator of a group on this broker."""

from collections.abc import Callable
from typing import TypeVar

from odradek.broker.access.resource import of_group
from odradek.broker.cluster.features import GROUP_VERSION
from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.group.machine import GroupMachine
from odradek.broker.group.rebalance import Rebalances
from odradek.broker.handling.context import Call, Context
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.group_rebalances import GroupRebalance

R = TypeVar("R")

Asking = Callable[[GroupMachine, Waiting[R], Now], None]
"""Gives a request to the machine of the group's shard."""


async def ask_group(context: Context, call: Call, group_id: str, asking: Asking[R]) -> R:
    """The machine's answer, once everything that it depends on is committed.

    Raises KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, and what the machine
    answers.
    """
    shard = context.groups.of(group_id)
    with context.waiting(call):
        return await shard.ask(asking)


async def tell_group(context: Context, call: Call, group_id: str, asking: Asking[None]) -> None:
    """As `ask_group`, where all there is to answer is that it is done."""
    await ask_group(context, call, group_id, asking)


def require_group_id(group_id: str) -> None:
    """For what members ask. Raises KafkaError INVALID_GROUP_ID."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group's id is not empty")


def require_consumer_groups(context: Context) -> None:
    """Raises KafkaError UNSUPPORTED_VERSION while not all registered brokers can coordinate consumer groups."""
    if not context.metadata.image.features.get(GROUP_VERSION):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, "a registered broker cannot coordinate consumer groups (KIP-848) yet"
        )


def permitted_operations(context: Context, call: Call, group_id: str) -> int:
    """Those that who asks may do with the group, as a bit field (KIP-430)."""
    return context.access.authorized_operations(call, of_group(group_id))


def told_rebalances(rebalances: Rebalances) -> list[GroupRebalance]:
    """As the messages that describe groups have them."""
    return [
        GroupRebalance(
            started_ms=each.started_ms,
            generation=each.generation,
            cause=each.cause.value,
            reason=each.reason,
            member_id=each.member_id,
            instance_id=each.instance_id,
            last_heard_ms=-1 if each.last_heard_ms is None else each.last_heard_ms,
        )
        for each in rebalances
    ]


def client_host(call: Call) -> str:
    """As Kafka stores it with a member (`InetAddress.toString`)."""
    return f"/{call.host}"
