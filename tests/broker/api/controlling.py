"""A controller for the tests of what is asked of one: broker 0, with brokers 1 and 2 registered beside it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from odradek.broker.cluster.features import SUPPORTED
from odradek.broker.cluster.keys import BrokerState, NodeState, PartitionState, node_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from tests.broker.support import HERE, NO_SETTINGS, running_broker, stored_partition

OTHERS = tuple(
    BrokerState(node_id, {"PLAINTEXT": ("127.0.0.1", 9092 + node_id), "PUBLIC": ("127.0.0.1", 9192 + node_id)})
    for node_id in (1, 2)
)


@asynccontextmanager
async def controller(
    settings: Mapping[str, str] = NO_SETTINGS,
    *,
    is_elected: bool = True,
    nodes: Sequence[int] = (0, 1, 2),
    brokers: Sequence[BrokerState] = (HERE, *OTHERS),
) -> AsyncGenerator[Context]:
    async with running_broker(settings, brokers=brokers) as context:
        states = {node_id: NodeState((bytes([node_id]) * 16,), features=SUPPORTED) for node_id in nodes}
        put = {node_key(node_id): state.encode() for node_id, state in states.items()}
        await context.metadata.applied(await context.metadata.store.commit(Txn(put=put)))
        context.member.fencing.connection_lost = _ask_nobody  # type: ignore[method-assign]
        if is_elected:
            await context.member.controller.work()
            assert context.member.controller.is_active
        yield context


def _ask_nobody(broker_id: int, broker_epoch: int) -> None:
    """Nobody listens at the addresses of the others, which a controller takes for their end."""
    del broker_id, broker_epoch


async def stored(context: Context, topic: str = "orders", index: int = 0) -> PartitionState:
    return await stored_partition(context.metadata.store, topic, index)
