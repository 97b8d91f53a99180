"""What a producer counts and observes while it sends, on a scripted cluster in virtual time: each record that fails
once, each new epoch once, and what brokers say of quotas."""

import asyncio
from typing import Any

import pytest

from odradek.client.errors.client_errors import ClientError, UndeliveredRecords
from odradek.client.metrics.metrics import (
    PRODUCE_THROTTLE_TIME,
    PRODUCER_EPOCH_BUMP_TOTAL,
    RECORD_ERROR_TOTAL,
    RECORD_SEND_TOTAL,
    REQUESTS_IN_FLIGHT,
)
from odradek.client.producer.producer import Producer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import disconnect_after, edited, error, late, throttled
from tests.client.recorded_metrics import RecordedMetrics
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

QUICK: dict[str, Any] = {"request_timeout_ms": 1_000, "delivery_timeout_ms": 2_000, "linger_ms": 0}


def made(cluster: ScriptedCluster, metrics: RecordedMetrics, **settings: Any) -> Producer:
    cluster.create_topic("orders")
    settings = QUICK | {"client_id": "me", "metrics": metrics} | settings
    return Producer(cluster.bootstrap, environment=lambda: cluster.environment, **settings)


async def failures_of(producer: Producer, count: int) -> None:
    for delivery in [await producer.send("orders", b"lost") for _ in range(count)]:
        with pytest.raises(ClientError):
            await delivery


async def test_records_that_a_broker_refuses_are_counted_once() -> None:
    metrics = RecordedMetrics()
    with scripted_cluster() as cluster:
        cluster.on(ProduceRequest, error(ErrorCode.INVALID_RECORD), times=None)
        async with made(cluster, metrics) as producer:
            await failures_of(producer, 3)
    assert metrics.counts["record-error-total", ("me", "orders")] == 3


async def test_records_that_expire_are_counted_once() -> None:
    metrics = RecordedMetrics()
    with scripted_cluster() as cluster:
        cluster.on(ProduceRequest, disconnect_after(), times=None)
        async with made(cluster, metrics) as producer:
            await failures_of(producer, 3)
    assert metrics.counts["record-error-total", ("me", "orders")] == 3


async def test_records_acknowledged_after_they_expired_are_counted_as_failed_only() -> None:
    metrics = RecordedMetrics()
    with scripted_cluster() as cluster:
        cluster.on(ProduceRequest, error(ErrorCode.NOT_ENOUGH_REPLICAS), late(500))
        cluster.on(ProduceRequest, late(1_700), nth=2)
        async with made(cluster, metrics, request_timeout_ms=2_000) as producer:
            await failures_of(producer, 1)
            assert cluster.values("orders") == [b"lost"]
            await asyncio.sleep(1)
    assert metrics.total(RECORD_ERROR_TOTAL) == 1
    assert metrics.total(RECORD_SEND_TOTAL) == 0


async def test_records_that_a_close_ends_are_counted_once() -> None:
    metrics = RecordedMetrics()
    with scripted_cluster() as cluster:
        cluster.on(ProduceRequest, late(1_000), times=None)
        producer = made(cluster, metrics, close_timeout_ms=100)
        await producer.start()
        for _ in range(3):
            await producer.send("orders", b"lost")
        with pytest.raises(UndeliveredRecords):
            await producer.close()
    assert metrics.total(RECORD_ERROR_TOTAL) == 3


def take_last_epoch(response: InitProducerIdResponse) -> None:
    response.producer_epoch = 2**15 - 1


@pytest.mark.parametrize("is_last", [False, True])
async def test_a_new_epoch_is_counted_also_where_it_comes_with_a_new_id(is_last: bool) -> None:
    metrics = RecordedMetrics()
    with scripted_cluster() as cluster:
        if is_last:
            cluster.on(InitProducerIdRequest, edited(take_last_epoch))
        async with made(cluster, metrics) as producer:
            await (await producer.send("orders"))
            cluster.on(ProduceRequest, error(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER))
            await (await producer.send("orders"))
            await (await producer.send("orders"))
        assert cluster.count(InitProducerIdRequest) == 1 + is_last
    assert metrics.total(PRODUCER_EPOCH_BUMP_TOTAL) == 1


async def test_what_a_quota_says_to_a_produce_is_observed_of_each_answer() -> None:
    metrics = RecordedMetrics()
    with scripted_cluster() as cluster:
        cluster.on(InitProducerIdRequest, throttled(1_000))
        cluster.on(ProduceRequest, throttled(3_000), nth=2)
        async with made(cluster, metrics, delivery_timeout_ms=10_000) as producer:
            for _ in range(3):
                await (await producer.send("orders"))
    assert metrics.values[PRODUCE_THROTTLE_TIME.name, ("me", "0")] == [0, 3_000, 0]


async def test_requests_in_flight_can_be_watched_over_all_brokers() -> None:
    metrics = RecordedMetrics()
    key = REQUESTS_IN_FLIGHT.name, ("me",)
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic("payments", 2)
        cluster.on(ProduceRequest, late(500), times=2)
        async with made(cluster, metrics) as producer:
            await asyncio.sleep(1)
            assert metrics.gauges()[key] == 0
            sent = [await producer.send("payments", partition=partition) for partition in (0, 1)]
            await asyncio.sleep(0.25)
            assert metrics.gauges()[key] == 2
            for delivery in sent:
                await delivery
            assert metrics.gauges()[key] == 0
    assert metrics.gauges() == {}
