"""Interceptors on records that wait, are split and fail, on a scripted cluster: each learns how every record ended."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from odradek.client.errors.client_errors import BatchError, ClientError, RecordTooLarge, UndeliveredRecords
from odradek.client.producer.hooks.interceptors import Interceptor
from odradek.client.producer.producer import Producer
from odradek.client.producer.record import ProducerRecord
from odradek.client.producer.results.delivery import Ack
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import late
from tests.client.producing import TOPIC, begun, producing
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

HEADERS = [("trace", b"1"), ("empty", None)]


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster() as cluster:
        cluster.create_topic(TOPIC)
        yield cluster


class Auditor(Interceptor):
    """Reads the headers of every record, and notes how each one ended."""

    def __init__(self) -> None:
        self.seen: list[list[tuple[str, bytes | None]]] = []
        self.ended: list[tuple[int, type[ClientError] | None]] = []

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        self.seen.append(list(record.headers))
        return record

    def on_acknowledgement(self, ack: Ack, error: ClientError | None) -> None:
        self.ended.append((ack.offset, None if error is None else type(error)))


async def test_a_failure_after_a_split_is_told_to_interceptors_and_reported(
    cluster: ScriptedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.topics[TOPIC].max_message_bytes = 2_000
    auditor = Auditor()
    async with producing(cluster, interceptors=[auditor], batch_size=10_000, linger_ms=50) as producer:
        for size in (100, 3_000, 101, 102):
            await producer.send(TOPIC, bytes(size))
        with pytest.raises(UndeliveredRecords) as raised, caplog.at_level(logging.ERROR, "odradek.client"):
            await producer.flush()
        assert raised.value.count == 1
        assert isinstance(raised.value.errors[0][2], RecordTooLarge)
    assert sorted(auditor.ended, key=str) == [(-1, RecordTooLarge), (0, None), (1, None), (2, None)]
    assert not any(record.exc_info for record in caplog.records), caplog.text
    assert [len(value or b"") for value in cluster.values(TOPIC)] == [100, 101, 102]


# ---------------------------------------------------------------------------------------- headers that are read once
def headers_in_log(cluster: ScriptedCluster) -> list[Any]:
    return [list(record.headers) for batch in cluster.batches(TOPIC) for record in batch.records]


@pytest.mark.parametrize("way", ["send", "send_nowait", "send_batch"])
async def test_interceptors_that_read_the_headers_leave_them_to_the_record(cluster: ScriptedCluster, way: str) -> None:
    first, second = Auditor(), Auditor()
    async with producing(cluster, interceptors=[first, second]) as producer:
        await producer.prepare(TOPIC)
        if way == "send_batch":
            await producer.send_batch(TOPIC, [b"a", b"b"], headers=(iter(HEADERS) for _ in range(2)))
        elif way == "send":
            await producer.send(TOPIC, b"a", headers=iter(HEADERS))
            await producer.send(TOPIC, b"b", headers=iter(HEADERS))
        else:
            producer.send_nowait(TOPIC, b"a", headers=iter(HEADERS))
            producer.send_nowait(TOPIC, b"b", headers=iter(HEADERS))
    assert first.seen == second.seen == headers_in_log(cluster) == [HEADERS] * 2


async def test_headers_that_an_interceptor_makes_are_read_by_the_next_one(cluster: ScriptedCluster) -> None:
    class Marker(Interceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(headers=iter(HEADERS))

    auditor = Auditor()
    async with producing(cluster, interceptors=[Marker(), auditor]) as producer:
        await producer.send(TOPIC, b"v")
    assert auditor.seen == headers_in_log(cluster) == [HEADERS]


@pytest.mark.parametrize("in_bulk", [False, True])
async def test_headers_are_there_after_a_wait_for_room(cluster: ScriptedCluster, in_bulk: bool) -> None:
    async def send_again(producer: Producer) -> None:
        if in_bulk:
            await producer.send_batch(TOPIC, [bytes(7_000)], headers=[iter(HEADERS)])
        else:
            await producer.send(TOPIC, bytes(7_000), headers=iter(HEADERS))

    cluster.on(ProduceRequest, late(500))
    async with producing(cluster, buffer_memory=10_000, batch_size=1_000, linger_ms=0) as producer:
        await producer.send(TOPIC, bytes(7_000), headers=iter(HEADERS))
        waiting = begun(send_again(producer))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await waiting
    assert headers_in_log(cluster) == [HEADERS] * 2


@pytest.mark.parametrize("headers", [5, {"name": b"value"}, [("name", 1)], ["x"]])
async def test_headers_that_are_none_are_named_as_they_were_given(cluster: ScriptedCluster, headers: Any) -> None:
    async with producing(cluster) as producer:
        with pytest.raises(ClientError, match=f"the headers of a record for orders, a {type(headers).__name__}"):
            await producer.send(TOPIC, b"v", headers=headers)
        with pytest.raises(BatchError, match="the headers of a record for orders"):
            await producer.send_batch(TOPIC, [b"v"], headers=[headers])
