"""UnregisterBroker: a broker that is gone for good is forgotten, with what it was in sync for."""

from odradek.broker.cluster.keys import broker_key, node_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from tests.broker.api.controlling import controller, stored
from tests.broker.support import ask, make_topic


async def unregistered(context: Context, broker_id: int) -> UnregisterBrokerResponse:
    return await ask(context, UnregisterBrokerRequest(broker_id=broker_id), 0)


async def gone(context: Context, broker_id: int) -> None:
    await context.metadata.applied(await context.metadata.store.commit(Txn(delete=(broker_key(broker_id),))))


async def test_one_that_is_gone_is_forgotten() -> None:
    async with controller() as context:
        await make_topic(context, "orders", replicas=(0, 1, 2))
        await gone(context, 2)
        response = await unregistered(context, 2)
        assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
        assert 2 not in context.metadata.image.nodes
        assert not (await context.metadata.store.read(node_key(2))).entries
        state = await stored(context)
        assert (state.replicas, state.isr, state.elr) == ((0, 1, 2), (0, 1), ())
        again = await unregistered(context, 2)
        assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


async def test_one_that_is_there_would_come_back() -> None:
    async with controller() as context:
        await make_topic(context, "orders", replicas=(0, 1, 2))
        response = await unregistered(context, 2)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert "stop it first" in (response.error_message or "")
        assert 2 in context.metadata.image.nodes
        assert (await stored(context)).isr == (0, 1, 2)


async def test_one_that_was_never_there() -> None:
    async with controller() as context:
        assert (await unregistered(context, 7)).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
