"""The producer as its users see it, on a scripted cluster in memory and virtual time: what each call promises."""

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from odradek.client.errors.client_errors import (
    BatchError,
    BufferExhausted,
    BufferFull,
    ClientError,
    DeliveryTimeout,
    InvalidPartition,
    InvalidTopic,
    MetadataMissing,
    MetadataTimeout,
    PartitionerFailed,
    RecordTooLarge,
    SerializationError,
    UndeliveredRecords,
)
from odradek.client.producer.hooks.interceptors import Interceptor
from odradek.client.producer.hooks.serialization import serialize_json, serialize_str
from odradek.client.producer.producer import Producer
from odradek.client.producer.record import ProducerRecord
from odradek.client.producer.results.bulk_acks import BulkAcks
from odradek.client.producer.results.delivery import Ack, Delivery
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.murmur2 import partition_for_key
from tests.client.broker_faults import error, late, never
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

TOPIC = "orders"


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        yield cluster


@asynccontextmanager
async def producing(cluster: ScriptedCluster, **settings: Any) -> AsyncGenerator[Producer]:
    async with Producer(cluster.bootstrap, environment=lambda: cluster.environment, **settings) as producer:
        yield producer


# ------------------------------------------------------------------------------------------------------ sending
async def test_an_ack_says_where_the_record_is(cluster: ScriptedCluster) -> None:
    async with producing(cluster) as producer:
        first = await (await producer.send(TOPIC, b"a", partition=1, timestamp_ms=1234))
        second = await (await producer.send(TOPIC, b"b", partition=1, timestamp_ms=1235))
    assert (first, second) == (Ack(TOPIC, 1, 0, 1234), Ack(TOPIC, 1, 1, 1235))
    assert cluster.values(TOPIC, 1) == [b"a", b"b"]


async def test_keys_decide_by_murmur2_over_all_partitions_and_an_empty_key_is_one(cluster: ScriptedCluster) -> None:
    keys = [b"", b"k", b"customer-7", bytes(range(200, 217))]
    async with producing(cluster) as producer:
        acks = [await (await producer.send(TOPIC, b"v", key=key)) for key in keys]
    assert [ack.partition for ack in acks] == [partition_for_key(key, 3) for key in keys]


async def test_everything_of_a_record_arrives(cluster: ScriptedCluster) -> None:
    headers = (("trace", b"1"), ("empty", None), ("trace", b"2"))
    async with producing(cluster) as producer:
        await (await producer.send(TOPIC, None, key=b"k", partition=0, headers=headers, timestamp_ms=7))
        await (await producer.send(TOPIC, bytearray(b"value"), partition=0))
    first, second = [record for batch in cluster.batches(TOPIC, 0) for record in batch.records]
    assert (first.value, first.key, first.headers, first.timestamp_ms) == (None, b"k", headers, 7)
    assert (second.value, second.key, second.headers) == (b"value", None, ())
    assert second.timestamp_ms == pytest.approx(cluster.environment.now_ms(), abs=1000)


async def test_the_three_ways_to_send_keep_the_order_of_one_task(cluster: ScriptedCluster) -> None:
    async with producing(cluster, linger_ms=50, batch_size=300) as producer:
        await producer.prepare(TOPIC)
        expected: list[bytes] = []
        for number in range(30):
            values = [b"%d-%d" % (number, each) for each in range(3)]
            expected += values
            await producer.send(TOPIC, values[0], partition=0)
            producer.send_nowait(TOPIC, values[1], partition=0)
            await producer.send_batch(TOPIC, values[2:], partition=0)
    assert cluster.values(TOPIC, 0) == expected


async def test_records_linger_and_a_full_batch_does_not(cluster: ScriptedCluster) -> None:
    environment = cluster.environment
    async with producing(cluster, linger_ms=500, batch_size=1000) as producer:
        began_ms = environment.monotonic_ms()
        await (await producer.send(TOPIC, b"alone", partition=0))
        lingered_ms = environment.monotonic_ms() - began_ms
        began_ms = environment.monotonic_ms()
        deliveries = [await producer.send(TOPIC, bytes(400), partition=0) for _ in range(4)]
        await deliveries[0]
        full_ms = environment.monotonic_ms() - began_ms
    assert 500 <= lingered_ms < 600
    assert full_ms < 100


async def test_a_record_too_large_is_refused_with_both_figures(cluster: ScriptedCluster) -> None:
    async with producing(cluster, max_request_size=1000) as producer:
        with pytest.raises(RecordTooLarge, match=r"\d+ bytes.*max_request_size of 1000 bytes"):
            await producer.send(TOPIC, bytes(1000))
    async with producing(cluster, buffer_memory=10_000) as producer:
        with pytest.raises(RecordTooLarge, match=r"\d+ bytes.*buffer_memory of 10000 bytes"):
            await producer.send(TOPIC, bytes(10_000))


@pytest.mark.parametrize("partition", [-1, 3])
async def test_a_partition_that_does_not_exist_fails_at_once(cluster: ScriptedCluster, partition: int) -> None:
    async with producing(cluster) as producer:
        with pytest.raises(InvalidPartition):
            await producer.send(TOPIC, b"v", partition=partition)


async def test_a_value_that_is_no_bytes_names_topic_and_setting(cluster: ScriptedCluster) -> None:
    async with producing(cluster) as producer:
        with pytest.raises(SerializationError, match=r"orders.*value_serializer"):
            await producer.send(TOPIC, "text")
        with pytest.raises(SerializationError, match="key_serializer"):
            await producer.send(TOPIC, b"v", key=1)


@pytest.mark.parametrize("timestamp_ms", [-1, 1 << 63, 1.5, "now"])
async def test_a_timestamp_that_kafka_does_not_take_is_refused(cluster: ScriptedCluster, timestamp_ms: Any) -> None:
    async with producing(cluster) as producer:
        with pytest.raises(SerializationError, match="timestamp_ms"):
            await producer.send(TOPIC, b"v", timestamp_ms=timestamp_ms)
        with pytest.raises(BatchError):
            await producer.send_batch(TOPIC, [b"v"], timestamps_ms=[timestamp_ms])
        assert (await (await producer.send(TOPIC, b"v", partition=0))).offset == 0


async def test_a_claim_that_is_not_used_does_not_lock_others_out(cluster: ScriptedCluster) -> None:
    """A record waits for room, and when it gets it, the partitioner has become one that errs."""
    cluster.on(ProduceRequest, late(1000))
    partitioner = Fixed(0)
    async with producing(cluster, buffer_memory=10_000, batch_size=1000, partitioner=partitioner) as producer:
        first = await producer.send(TOPIC, bytes(7000))
        waiting = asyncio.get_running_loop().create_task(producer.send(TOPIC, bytes(7000)))
        await asyncio.sleep(0.01)
        partitioner.answer = 9
        with pytest.raises(InvalidPartition):
            await waiting
        await first
        await producer.send_nowait(TOPIC, b"small", partition=0)


async def test_acks_0_is_done_when_it_is_written(cluster: ScriptedCluster) -> None:
    async with producing(cluster, acks=0) as producer:
        ack = await (await producer.send(TOPIC, b"v", partition=2, timestamp_ms=5))
    assert ack == Ack(TOPIC, 2, -1, 5)
    await asyncio.sleep(1)
    assert cluster.values(TOPIC, 2) == [b"v"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_large_batches_are_compressed_in_a_thread_and_stay_in_order(cluster: ScriptedCluster, codec: str) -> None:
    values = [b"%06d" % number * 50 for number in range(3000)]
    async with producing(cluster, compression_type=codec, batch_size=200_000) as producer:
        deliveries = [await producer.send(TOPIC, value, partition=0) for value in values]
        await producer.gather(deliveries)
    assert cluster.values(TOPIC, 0) == values


# -------------------------------------------------------------------------------------------------- send_nowait
async def test_send_nowait_needs_metadata_and_asks_for_it(cluster: ScriptedCluster) -> None:
    async with producing(cluster) as producer:
        with pytest.raises(MetadataMissing):
            producer.send_nowait(TOPIC, b"v")
        await producer.prepare(TOPIC)
        assert (await producer.send_nowait(TOPIC, b"v")).offset == 0


async def test_send_nowait_never_overtakes_a_send_that_waits(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, late(1000))
    async with producing(cluster, buffer_memory=10_000, batch_size=1000) as producer:
        await producer.prepare(TOPIC)
        await producer.send(TOPIC, bytes(7000), partition=0)
        waiting = asyncio.get_running_loop().create_task(producer.send(TOPIC, bytes(7000), partition=0))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        with pytest.raises(BufferFull, match="1 other"):
            producer.send_nowait(TOPIC, b"small", partition=0)
        await (await waiting)
        await producer.send_nowait(TOPIC, b"small", partition=0)
    assert [len(value or b"") for value in cluster.values(TOPIC, 0)] == [7000, 7000, 5]


# --------------------------------------------------------------------------------------------------- send_batch
async def test_a_bulk_comes_back_in_the_order_in_which_it_was_given(cluster: ScriptedCluster) -> None:
    values = [b"%d" % number for number in range(5000)]
    keys = [b"key %d" % (number % 37) for number in range(5000)]
    async with producing(cluster, batch_size=2000) as producer:
        acks = await producer.send_batch(TOPIC, iter(values), iter(keys))
        assert isinstance(acks, BulkAcks)
        logs = {partition: cluster.values(TOPIC, partition) for partition in range(3)}
        assert len(acks) == 5000
        for value, key, ack in zip(values, keys, acks, strict=True):
            assert ack.partition == partition_for_key(key, 3)
            assert logs[ack.partition][ack.offset] == value
        sticky = await producer.send_batch(TOPIC, values)
        assert {ack.partition for ack in sticky} == {0, 1, 2}
        assert [cluster.values(TOPIC, ack.partition)[ack.offset] for ack in sticky] == values


async def test_a_bulk_fits_through_a_small_memory(cluster: ScriptedCluster) -> None:
    values = [b"%d" % number * 20 for number in range(5000)]
    async with producing(cluster, buffer_memory=30_000, batch_size=1000) as producer:
        await producer.send_batch(TOPIC, values, partition=1)
    assert cluster.values(TOPIC, 1) == values


async def test_a_bulk_tells_of_each_record_what_became_of_it(cluster: ScriptedCluster) -> None:
    async with producing(cluster, max_request_size=1000) as producer:
        with pytest.raises(BatchError) as raised:
            await producer.send_batch(TOPIC, [b"a", bytes(2000), b"c"], partition=0)
    assert list(raised.value.errors) == [1]
    assert isinstance(raised.value.errors[1], RecordTooLarge)
    assert [raised.value.acks[index].offset for index in (0, 2)] == [0, 1]
    with pytest.raises(RecordTooLarge):
        raised.value.acks[1]


# ----------------------------------------------------------------------------------------------- waits and ends
async def test_waiting_for_metadata_ends_with_max_block_ms(cluster: ScriptedCluster) -> None:
    async with producing(cluster, max_block_ms=3000) as producer:
        began_ms = cluster.environment.monotonic_ms()
        with pytest.raises(MetadataTimeout, match="nowhere"):
            await producer.send("nowhere", b"v")
        assert 2900 <= cluster.environment.monotonic_ms() - began_ms <= 3100


async def test_an_invalid_topic_is_refused_at_once(cluster: ScriptedCluster) -> None:
    async with producing(cluster) as producer:
        with pytest.raises(InvalidTopic):
            await producer.send("no spaces allowed", b"v")


async def test_waiting_for_room_ends_with_max_block_ms_and_leaves_nothing(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, late(5000))
    async with producing(cluster, buffer_memory=10_000, max_block_ms=1000, batch_size=1000) as producer:
        first = await producer.send(TOPIC, bytes(7000), partition=0)
        with pytest.raises(BufferExhausted):
            await producer.send(TOPIC, bytes(7000), partition=0)
        cancelled = asyncio.get_running_loop().create_task(producer.send(TOPIC, bytes(7000), partition=0))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await first
        await (await producer.send(TOPIC, bytes(7000), partition=0))
        assert producer.buffer_available_bytes == 10_000
    assert len(cluster.values(TOPIC, 0)) == 2


async def test_a_delivery_ends_with_its_timeout_though_nobody_answers(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, never(), times=1000)
    async with producing(cluster, delivery_timeout_ms=5000, request_timeout_ms=1000, linger_ms=0) as producer:
        began_ms = cluster.environment.monotonic_ms()
        delivery = await producer.send(TOPIC, b"v")
        with pytest.raises(DeliveryTimeout, match="was sent"):
            await delivery
        assert 5000 <= cluster.environment.monotonic_ms() - began_ms <= 5100


async def test_a_jump_of_the_wall_clock_ends_nothing_and_stops_nothing(cluster: ScriptedCluster) -> None:
    async with producing(cluster, linger_ms=100) as producer:
        delivery = await producer.send(TOPIC, b"v", partition=0)
        cluster.environment.jump_ms(-10_000_000)
        began_ms = cluster.environment.monotonic_ms()
        await delivery
        assert cluster.environment.monotonic_ms() - began_ms < 200


async def test_flush_does_not_linger_and_waits_for_all(cluster: ScriptedCluster) -> None:
    async with producing(cluster, linger_ms=10_000) as producer:
        deliveries = [await producer.send(TOPIC, b"v") for _ in range(10)]
        began_ms = cluster.environment.monotonic_ms()
        await producer.flush()
        assert all(delivery.done() for delivery in deliveries)
        assert cluster.environment.monotonic_ms() - began_ms < 1000


async def test_gather_gives_acks_in_order_or_the_first_error(cluster: ScriptedCluster) -> None:
    async with producing(cluster) as producer:
        cluster.on(ProduceRequest, error(ErrorCode.INVALID_RECORD, topic=TOPIC, partition=1), times=3)
        deliveries = [await producer.send(TOPIC, b"v", partition=partition) for partition in (0, 1, 2)]
        outcomes = await producer.gather(deliveries, return_exceptions=True)
        assert [getattr(each, "partition", each) for each in outcomes][::2] == [0, 2]
        assert isinstance(outcomes[1], ClientError)
        with pytest.raises(ClientError, match="INVALID_RECORD"):
            await producer.gather(deliveries)


# --------------------------------------------------------------------------------------------- nothing is silent
async def test_a_failure_that_nobody_saw_is_reported_by_flush_once(cluster: ScriptedCluster) -> None:
    async with producing(cluster) as producer:
        cluster.on(ProduceRequest, error(ErrorCode.INVALID_RECORD))
        for _ in range(5):
            await producer.send(TOPIC, b"v", partition=0)
        with pytest.raises(UndeliveredRecords) as raised:
            await producer.flush()
        assert raised.value.count == 5
        await producer.flush()


async def test_a_failure_that_nobody_saw_is_reported_by_close(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, error(ErrorCode.INVALID_RECORD))
    with pytest.raises(UndeliveredRecords):
        async with producing(cluster) as producer:
            await producer.send(TOPIC, b"v", partition=0)


async def test_a_failure_that_was_awaited_or_called_back_is_not_reported(cluster: ScriptedCluster) -> None:
    seen: list[ClientError | None] = []
    cluster.on(ProduceRequest, error(ErrorCode.INVALID_RECORD), times=3)
    async with producing(cluster) as producer:
        with pytest.raises(ClientError):
            await (await producer.send(TOPIC, b"v", partition=0))
        await producer.send(TOPIC, b"v", partition=0, on_delivery=lambda delivery: seen.append(delivery.exception()))
        await producer.flush()
    assert len(seen) == 1
    assert seen[0] is not None


async def test_callbacks_run_in_the_senders_context(cluster: ScriptedCluster) -> None:
    request = contextvars.ContextVar("request", default="none")
    seen: list[tuple[str, int]] = []

    def note(delivery: Delivery) -> None:
        seen.append((request.get(), delivery.result().offset))

    async with producing(cluster, on_delivery=note) as producer:
        request.set("first")
        await producer.send(TOPIC, b"v", partition=0)
        request.set("second")
        await producer.send(TOPIC, b"v", partition=0, on_delivery=note)
        request.set("third")
    assert seen == [("first", 0), ("second", 1), ("second", 1)]


# ------------------------------------------------------------------------------- interceptors, serializers, choice
async def test_interceptors_replace_records_and_learn_how_they_ended(cluster: ScriptedCluster) -> None:
    ended: list[tuple[str, int, int, type[ClientError] | None]] = []

    class Shout(Interceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(value=record.value.upper())

        def on_acknowledgement(self, ack: Ack, error: ClientError | None) -> None:
            ended.append((ack.topic, ack.partition, ack.offset, None if error is None else type(error)))

    async with producing(cluster, interceptors=[Shout()], value_serializer=serialize_str) as producer:
        await (await producer.send(TOPIC, "quiet", partition=0))
        with pytest.raises(InvalidPartition):
            await producer.send(TOPIC, "quiet", partition=9)
        acks = await producer.send_batch(TOPIC, ["one", "two"], partition=0)
        assert [ack.offset for ack in acks] == [1, 2]
    assert cluster.values(TOPIC, 0) == [b"QUIET", b"ONE", b"TWO"]
    assert ended == [(TOPIC, 0, 0, None), (TOPIC, 9, -1, InvalidPartition), (TOPIC, 0, 1, None), (TOPIC, 0, 2, None)]


async def test_a_failure_told_to_an_interceptor_alone_is_still_reported(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, error(ErrorCode.INVALID_RECORD))
    async with producing(cluster, interceptors=[Interceptor()]) as producer:
        await producer.send(TOPIC, b"v", partition=0)
        with pytest.raises(UndeliveredRecords):
            await producer.flush()


async def test_serializers_make_bytes(cluster: ScriptedCluster) -> None:
    async with producing(cluster, key_serializer=serialize_str, value_serializer=serialize_json) as producer:
        ack = await (await producer.send(TOPIC, {"a": 1}, key="k"))
    assert ack.partition == partition_for_key(b"k", 3)
    assert cluster.values(TOPIC, ack.partition) == [b'{"a":1}']


class Fixed:
    """A partitioner that gives what it is told and notes new batches."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.new_batches: list[tuple[str, int]] = []

    def partition(self, *arguments: Any) -> int:
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: int = self.answer
        return answer

    def on_new_batch(self, topic: str, partition: int) -> None:
        self.new_batches.append((topic, partition))


async def test_a_users_partitioner_chooses_and_hears_of_new_batches(cluster: ScriptedCluster) -> None:
    partitioner = Fixed(2)
    async with producing(cluster, partitioner=partitioner, linger_ms=100) as producer:
        acks = [await producer.send(TOPIC, b"v", key=b"k") for _ in range(3)]
        assert {(await ack).partition for ack in acks} == {2}
    assert partitioner.new_batches == [(TOPIC, 2)]


@pytest.mark.parametrize("answer", [7, -1, "one", ValueError("no idea")])
async def test_a_bad_answer_of_a_partitioner_fails_that_record_only(cluster: ScriptedCluster, answer: Any) -> None:
    partitioner = Fixed(answer)
    async with producing(cluster, partitioner=partitioner) as producer:
        with pytest.raises((InvalidPartition, PartitionerFailed)):
            await producer.send(TOPIC, b"bad")
        partitioner.answer = 0
        await (await producer.send(TOPIC, b"good"))
    assert cluster.values(TOPIC, 0) == [b"good"]
