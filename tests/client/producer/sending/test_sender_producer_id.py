"""A producer that is refused a producer id, on a scripted cluster in virtual time: how often it asks again is counted
in requests and in rounds of the loop, and its records end by what the broker said."""

import asyncio
import logging
from typing import Any

import pytest

from odradek.client.errors.client_errors import AuthorizationError, ClientError, UnsupportedVersion
from odradek.client.producer.producer import Producer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import edited, error, late
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time(iterations_per_second_max=5_000)

CURABLE = (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
FATAL = (ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNKNOWN_SERVER_ERROR)


def take_last_epoch(response: InitProducerIdResponse) -> None:
    response.producer_epoch = 2**15 - 1


def made(cluster: ScriptedCluster, **settings: Any) -> Producer:
    cluster.create_topic("orders")
    return Producer(cluster.bootstrap, environment=lambda: cluster.environment, **settings)


async def failure_of_one(producer: Producer) -> ClientError:
    with pytest.raises(ClientError) as caught:
        await (await producer.send("orders", b"refused"))
    return caught.value


@pytest.mark.parametrize("code", CURABLE, ids=lambda code: code.name)
async def test_an_unauthorized_producer_asks_again_per_record_and_gets_its_id_once_allowed(
    code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    with scripted_cluster() as cluster, caplog.at_level(logging.WARNING, "odradek.client"):
        rule = cluster.on(InitProducerIdRequest, error(code), times=None)
        async with made(cluster) as producer:
            await asyncio.sleep(600)
            assert cluster.count(InitProducerIdRequest) == 1
            for count in (2, 3, 4):
                failure = await failure_of_one(producer)
                assert isinstance(failure, AuthorizationError)
                assert failure.code is code
                assert cluster.count(InitProducerIdRequest) == count
                await asyncio.sleep(600)
                assert cluster.count(InitProducerIdRequest) == count
            assert [code.name in record.message for record in caplog.records] == [True], "it is said once"
            rule.cancel()
            await (await producer.send("orders", b"allowed"))
    assert cluster.values("orders") == [b"allowed"]


async def test_without_rights_a_stream_of_records_asks_at_the_pace_of_the_backoff() -> None:
    failures: list[BaseException | None] = []
    with scripted_cluster() as cluster:
        cluster.on(InitProducerIdRequest, error(CURABLE[0]), times=None)
        async with made(cluster) as producer:
            for _ in range(3_000):
                delivery = await producer.send("orders", b"refused")
                delivery.add_done_callback(lambda ended: failures.append(ended.exception()))
                await asyncio.sleep(0.01)
            await asyncio.sleep(1.5)
            assert len(failures) == 3_000
            assert all(isinstance(failure, AuthorizationError) for failure in failures)
        assert 25 < cluster.count(InitProducerIdRequest) < 45, "100, 200, 400, 800, 1000, 1000 … ms"
        assert cluster.count(ProduceRequest) == 0


async def test_it_is_said_again_when_the_rights_were_there_and_are_gone(caplog: pytest.LogCaptureFixture) -> None:
    """An id is asked for again where the epochs of the last one are used up."""
    with scripted_cluster() as cluster, caplog.at_level(logging.ERROR, "odradek.client"):
        cluster.on(InitProducerIdRequest, error(CURABLE[0]))
        cluster.on(InitProducerIdRequest, edited(take_last_epoch), nth=2)
        cluster.on(InitProducerIdRequest, error(CURABLE[0]), nth=3, times=2)
        async with made(cluster) as producer:
            await asyncio.sleep(1)
            await (await producer.send("orders", b"allowed"))
            assert len(caplog.records) == 1
            cluster.on(ProduceRequest, error(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
            await failure_of_one(producer)
            await failure_of_one(producer)
            assert len(caplog.records) == 2
            await (await producer.send("orders", b"allowed again"))
    assert cluster.values("orders") == [b"allowed", b"allowed again"]


@pytest.mark.parametrize("code", FATAL, ids=lambda code: code.name)
async def test_any_other_refusal_is_the_end(code: ErrorCode, caplog: pytest.LogCaptureFixture) -> None:
    with scripted_cluster() as cluster, caplog.at_level(logging.ERROR, "odradek.client"):
        cluster.on(InitProducerIdRequest, late(1_000), error(code), times=None)
        async with made(cluster) as producer:
            waiting = await producer.send("orders", b"refused")
            with pytest.raises(ClientError) as caught:
                await waiting
            assert caught.value.code is code
            with pytest.raises(ClientError) as caught:
                await producer.send("orders", b"not even accepted")
            assert caught.value.code is code
            await asyncio.sleep(600)
            assert len(caplog.records) == 1
        assert cluster.count(InitProducerIdRequest) == 1


async def test_brokers_that_do_not_know_the_api_are_the_end_too() -> None:
    """They are older than 0.11. Nothing is even sent, so that asking again and again would not wait for anything."""
    with scripted_cluster() as cluster:
        for broker in cluster.brokers.values():
            del broker.versions[InitProducerIdRequest]
        async with made(cluster) as producer:
            await asyncio.sleep(60)
            with pytest.raises(UnsupportedVersion, match="InitProducerId"):
                await producer.send("orders", b"not even accepted")
