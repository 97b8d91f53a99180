"""FindCoordinator answers COORDINATOR_NOT_AVAILABLE to every key and type, in both shapes, as long as there is none."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest
from tests.broker.support import ask, running_broker


@pytest.mark.parametrize("version", range(4))
async def test_one_key_gets_node_minus_one(version: int) -> None:
    async with running_broker() as context:
        answer = await ask(context, FindCoordinatorRequest(key="group", key_type=0), version)
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (answer.node_id, answer.host, answer.port) == (-1, "", -1)
    assert answer.coordinators == []
    assert (answer.error_message is not None) == (version >= 1)


@pytest.mark.parametrize("version", range(4, 7))
@pytest.mark.parametrize("key_type", [0, 1, 2, 9])
async def test_each_of_several_keys_gets_its_own_error_in_order(version: int, key_type: int) -> None:
    async with running_broker() as context:
        answer = await ask(
            context, FindCoordinatorRequest(coordinator_keys=["b", "a", "b"], key_type=key_type), version
        )
    message = answer.coordinators[0].error_message
    assert message
    assert answer.coordinators == [
        Coordinator(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
            error_message=message,
        )
        for key in ("b", "a", "b")
    ]


async def test_every_failed_key_is_counted() -> None:
    async with running_broker() as context:
        await ask(context, FindCoordinatorRequest(coordinator_keys=["a", "b"]), 6)
        counted = context.metrics.apis["FindCoordinator"].errors
    assert counted == {ErrorCode.COORDINATOR_NOT_AVAILABLE: 2}
