"""`Cluster.ask` on scripted brokers and virtual time: whom it asks, how often, until when, and what it raises."""

import asyncio

import pytest

from odradek.client.cluster.cluster import CONTROLLER
from odradek.client.errors.client_errors import ConnectionFailed, RequestTimedOut, UnsupportedVersion
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.client.broker_faults import Fault, disconnect_after, disconnect_before, garbage, late, never
from tests.client.running_cluster import INIT, begun, opened, running
from tests.client.scripted_broker import scripted_cluster
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time


async def test_ask_without_a_node_asks_the_one_that_is_connected() -> None:
    with scripted_cluster(brokers=3) as scripted:
        async with running(scripted) as client:
            await opened(client, 2)
            for _ in range(5):
                await client.cluster.ask(INIT)
            assert [each.node_id for each in scripted.exchanges_of(InitProducerIdRequest)] == [2] * 5


async def test_ask_asks_a_broker_and_the_controller() -> None:
    with scripted_cluster(brokers=3) as scripted:
        scripted.controller_id = 2
        async with running(scripted) as client:
            await client.cluster.ask(INIT, node=1)
            await client.cluster.ask(INIT, node=CONTROLLER, version=3)
            assert [(each.node_id, each.version) for each in scripted.exchanges_of(InitProducerIdRequest)] == [
                (1, 6),
                (2, 3),
            ]


@pytest.mark.parametrize("fault", [disconnect_before(), disconnect_after(), garbage(b"\0\0\0\1x")])
async def test_ask_asks_again_after_a_lost_connection(fault: Fault) -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            scripted.on(InitProducerIdRequest, fault, times=3)
            answer = await client.cluster.ask(INIT)
            assert isinstance(answer, InitProducerIdResponse)
            assert scripted.count(InitProducerIdRequest) == 4


async def test_ask_asks_again_as_often_as_retries_says() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted, retries=2) as client:
            scripted.on(InitProducerIdRequest, disconnect_before(), times=None)
            with pytest.raises(ConnectionFailed):
                await client.cluster.ask(INIT)
            assert scripted.count(InitProducerIdRequest) == 3


async def test_ask_goes_on_with_a_broker_that_was_gone() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            await opened(client, 0)
            scripted.brokers[0].stop()
            virtual_loop().call_later(5, scripted.brokers[0].start)
            await client.cluster.ask(INIT, timeout_ms=10_000)
            assert 5_000 < client.now_ms() - 1_000_000 < 7_000


async def test_ask_ends_at_its_deadline_without_a_broker() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            scripted.brokers[0].stop()
            began_ms = client.now_ms()
            with pytest.raises(ConnectionFailed, match="Connection refused"):
                await client.cluster.ask(INIT, node=0, timeout_ms=3_000)
            assert client.now_ms() - began_ms <= 3_001


async def test_ask_ends_at_its_deadline_without_an_answer_and_keeps_the_connection_open() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            scripted.on(InitProducerIdRequest, late(5_000))
            began_ms = client.now_ms()
            with pytest.raises(RequestTimedOut, match=r"broker 0 .*InitProducerId within 1000 ms"):
                await client.cluster.ask(INIT, timeout_ms=1_000)
            assert client.now_ms() - began_ms == pytest.approx(1_000)
            connection = client.cluster.connection(0)
            assert connection is not None
            await client.cluster.ask(INIT)
            assert client.cluster.connection(0) is connection


async def test_a_broker_that_never_answers_is_left_after_the_request_timeout() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted, request_timeout_ms=2_000) as client:
            scripted.on(InitProducerIdRequest, never())
            await client.cluster.ask(INIT, timeout_ms=5_000)
            assert scripted.count(InitProducerIdRequest) == 2


async def test_ask_follows_the_controller() -> None:
    with scripted_cluster(brokers=2) as scripted:
        async with running(scripted) as client:
            await client.cluster.connection_to(CONTROLLER, client.in_ms(10_000))
            scripted.controller_id = 1
            scripted.on(InitProducerIdRequest, disconnect_before(), node=0, times=None)
            await client.cluster.ask(INIT, node=CONTROLLER)
            assert [each.node_id for each in scripted.exchanges_of(InitProducerIdRequest)] == [0, 1]


async def test_what_the_broker_does_not_know_is_raised_at_once() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            began_ms = client.now_ms()
            with pytest.raises(UnsupportedVersion):
                await client.cluster.ask(DeleteTopicsRequest(topics=[], topic_names=[], timeout_ms=1))
            assert client.now_ms() - began_ms < 100


async def test_cancelled_questions_leave_nothing() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            scripted.on(InitProducerIdRequest, late(1_000), times=None)
            asking = begun(client.cluster.ask(INIT))
            await asyncio.sleep(0.5)
            asking.cancel()
            await asyncio.sleep(1)
            assert asking.cancelled()


# --------------------------------------------------------------------------------------------------------- ask_once
async def test_ask_once_does_not_ask_again() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            scripted.on(InitProducerIdRequest, disconnect_before())
            with pytest.raises(ConnectionFailed):
                await client.cluster.ask_once(INIT, client.in_ms(10_000))
            assert scripted.count(InitProducerIdRequest) == 1


async def test_ask_once_takes_the_highest_version_within_bounds() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            await client.cluster.ask_once(INIT, client.in_ms(10_000), node=0, at_least=2, at_most=3)
            assert [each.version for each in scripted.exchanges_of(InitProducerIdRequest)] == [3]
        scripted.brokers[0].versions[InitProducerIdRequest] = (0, 1)
        async with running(scripted) as client:
            with pytest.raises(UnsupportedVersion, match="needs one of 2 to 6"):
                await client.cluster.ask_once(INIT, client.in_ms(10_000), at_least=2)


async def test_ask_once_ends_at_its_deadline() -> None:
    with scripted_cluster() as scripted:
        async with running(scripted) as client:
            scripted.on(InitProducerIdRequest, late(5_000))
            began_ms = client.now_ms()
            with pytest.raises(RequestTimedOut):
                await client.cluster.ask_once(INIT, client.in_ms(1_000))
            assert client.now_ms() - began_ms == pytest.approx(1_000, abs=10)
