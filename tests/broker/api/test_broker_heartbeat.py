"""BrokerHeartbeat: who may say that it is there, and what the controller answers and remembers."""

import pytest

from odradek.broker.cluster.keys import broker_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Caller, Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from tests.broker.api.controlling import OTHERS, controller
from tests.broker.support import LISTENER, ask, make_topic

ONE = OTHERS[0].broker_id


async def beat(
    context: Context,
    *,
    epoch: int | None = None,
    revision: int = 0,
    stops: bool = False,
    version: int = 1,
    caller: Caller | None = None,
    cordoned: list[bytes] | None = None,
) -> BrokerHeartbeatResponse:
    request = BrokerHeartbeatRequest(
        broker_id=ONE,
        broker_epoch=context.metadata.image.brokers[ONE].epoch if epoch is None else epoch,
        current_metadata_offset=revision,
        want_shut_down=stops,
        cordoned_log_dirs=cordoned,
    )
    return await ask(context, request, version, caller=caller)


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_broker_that_is_there(version: int) -> None:
    async with controller() as context:
        answer = await beat(context, version=version)
        assert (answer.error_code, answer.is_fenced, answer.is_caught_up) == (ErrorCode.NONE, False, False)
        assert (await beat(context, revision=context.metadata.image.revision)).is_caught_up


@pytest.mark.parametrize(
    ("cordoned", "code"), [(None, ErrorCode.NONE), ([], ErrorCode.NONE), ([b"d" * 16], ErrorCode.INVALID_REQUEST)]
)
async def test_no_directory_can_be_kept_from_new_partitions(cordoned: list[bytes] | None, code: ErrorCode) -> None:
    async with controller() as context:
        assert (await beat(context, version=2, cordoned=cordoned)).error_code == code


async def test_only_on_the_listener_of_brokers() -> None:
    async with controller() as context:
        answer = await beat(context, caller=Caller("PUBLIC"))
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_only_the_controller_hears() -> None:
    async with controller(is_elected=False) as context:
        caller = Caller(LISTENER)
        assert (await beat(context, caller=caller)).error_code == ErrorCode.NOT_CONTROLLER
        assert caller.on_close is None


async def test_only_of_the_present_registration() -> None:
    async with controller() as context:
        epoch = context.metadata.image.brokers[ONE].epoch
        for other in (epoch - 1, epoch + 1, -1):
            assert (await beat(context, epoch=other)).error_code == ErrorCode.STALE_BROKER_EPOCH
        revision = await context.metadata.store.commit(Txn(put={broker_key(ONE): OTHERS[0].encode()}))
        await context.metadata.applied(revision)
        assert (await beat(context, epoch=epoch)).error_code == ErrorCode.STALE_BROKER_EPOCH
        assert (await beat(context)).error_code == ErrorCode.NONE


async def test_a_broker_may_stop_when_it_leads_nothing_any_more() -> None:
    async with controller() as context:
        assert (await beat(context, stops=True)).should_shut_down
        assert not (await beat(context)).should_shut_down
        await make_topic(context, "orders", replicas=(0, ONE), leader=ONE)
        assert not (await beat(context, stops=True)).should_shut_down


async def test_the_end_of_its_connection_is_told() -> None:
    async with controller() as context:
        lost: list[tuple[int, int]] = []

        def note(broker_id: int, broker_epoch: int) -> None:
            lost.append((broker_id, broker_epoch))

        context.member.fencing.connection_lost = note  # type: ignore[method-assign]
        caller = Caller(LISTENER)
        await beat(context, caller=caller)
        assert caller.on_close is not None
        assert not lost
        caller.on_close()
        assert lost == [(ONE, context.metadata.image.brokers[ONE].epoch)]
