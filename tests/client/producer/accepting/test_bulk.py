"""A bulk that goes wrong, on a scripted cluster: what was accepted ends, and BatchError tells of every record taken."""

import asyncio
import pickle
from collections.abc import AsyncIterator, Iterator
from itertools import accumulate, repeat
from typing import Any, cast

import pytest

from odradek.client.errors.client_errors import (
    BatchError,
    BufferExhausted,
    ClientError,
    DeliveryTimeout,
    InvalidPartition,
    ProducerClosed,
    UndeliveredRecords,
)
from odradek.client.producer.accepting.bulk import SLICE, SLICE_BYTES, SLICE_FIRST, TURN_BYTES, Bulk, Columns, feed_all
from odradek.client.producer.producer import Producer
from odradek.client.taking import RUN_MAX
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import never
from tests.client.producing import TOPIC, begun, made, producing, turns
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

MANY = 3 * SLICE + 100
SLICE_ENDS = tuple(accumulate([SLICE_FIRST, 4 * SLICE_FIRST, 16 * SLICE_FIRST, SLICE, SLICE]))
"""Where a bulk of small records is cut."""


@pytest.fixture
async def cluster() -> AsyncIterator[ScriptedCluster]:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        yield cluster


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def failing(count: int, why: Exception) -> Iterator[bytes]:
    """So many values, and then an error."""
    yield from numbers(count)
    raise why


def bulk_of(producer: Producer, partition: int | None = None) -> Bulk:
    return Bulk(cast(Any, producer)._acceptance, TOPIC, partition, None, None)


async def stopped(cluster: ScriptedCluster, *columns: Any, **more: Any) -> BatchError:
    """The error of a bulk that stops, whose memory is free again and of which nothing is left to report."""
    async with producing(cluster) as producer:
        with pytest.raises(BatchError) as raised:
            await producer.send_batch(TOPIC, *columns, **more)
        await producer.flush()
    return raised.value


# ---------------------------------------------------------------------------------------- what the caller hands over
@pytest.mark.parametrize("count", [0, 1, SLICE_FIRST, SLICE_ENDS[2] - 1, SLICE_ENDS[2], MANY])
@pytest.mark.parametrize("has_headers", [False, True])
async def test_values_that_end_by_an_error_are_sent_up_to_there(
    cluster: ScriptedCluster, count: int, has_headers: bool
) -> None:
    headers = ([("n", b"v")] for _ in range(MANY)) if has_headers else None
    error = await stopped(cluster, failing(count, KeyError("no such row")), partition=1, headers=headers)
    assert isinstance(error.__cause__, KeyError)
    assert cluster.values(TOPIC, 1) == numbers(count)
    assert [ack.offset for ack in error.acks] == list(range(count))
    assert (error.errors, error.unsent) == ({}, [])
    assert "KeyError: 'no such row'" in str(error)
    assert not error.retriable


class Taking:
    """In place of a Bulk: how many records it was fed at a time."""

    def __init__(self) -> None:
        self.fed_bytes = 0
        self.slices: list[int] = []

    async def feed(self, columns: Columns) -> None:
        self.slices.append(len(columns.values))
        self.fed_bytes += sum(len(value or b"") for value in columns.values)


@pytest.mark.parametrize(
    ("size", "slices"),
    [
        (100, [64, 256, 1024, SLICE, SLICE]),
        (0, [64, 256, 1024, SLICE, SLICE]),
        (1024, [64, 256, 1024, 1024, 1024]),
        (SLICE_BYTES // 8, [64, 8, 8, 8, 8]),
        (3 * SLICE_BYTES // 2, [64, 1, 1, 1, 1]),
    ],
)
async def test_no_more_is_taken_at_a_time_than_a_mebibyte(size: int, slices: list[int]) -> None:
    """Or what the caller gives, an iterator over a file perhaps, would lie in memory beside `buffer_memory`."""
    taking = Taking()
    await feed_all(cast(Bulk, taking), {"values": repeat(bytes(size), sum(slices) + 1)})
    assert taking.slices == [*slices, 1]


@pytest.mark.parametrize("headers", [None, [()] * 300])
async def test_the_size_of_what_was_taken_is_known(cluster: ScriptedCluster, headers: list[Any] | None) -> None:
    async with producing(cluster) as producer:
        await producer.prepare(TOPIC)
        bulk = bulk_of(producer, partition=0)
        await bulk.feed(Columns([bytes(1000)] * 300, [bytes(16)] * 300, None, headers))
    assert 300 * 1016 <= bulk.fed_bytes <= 300 * 1100


@pytest.mark.parametrize(
    ("keys", "headers"), [(None, None), (numbers(1000), None), (None, [()] * 1000), (numbers(1000), [()] * 1000)]
)
async def test_the_loop_has_turns_while_a_slice_is_fed(
    cluster: ScriptedCluster, keys: list[bytes] | None, headers: list[Any] | None
) -> None:
    """Its broker would run out of work, and others on the loop would wait."""
    async with producing(cluster, linger_ms=1_000) as producer:
        await producer.prepare(TOPIC)
        feeding = begun(bulk_of(producer).feed(Columns([bytes(1000)] * 1000, keys, None, headers)))
        count = 0
        while not feeding.done():
            await turns(1)
            count += 1
        await feeding
    assert 1_000_000 // (TURN_BYTES + 1000) <= count <= 1_050_000 // TURN_BYTES + 2


async def test_a_producer_that_is_closed_while_a_slice_is_fed_takes_no_more(cluster: ScriptedCluster) -> None:
    producer = await made(cluster, linger_ms=0).start()
    await producer.prepare(TOPIC)
    bulk = bulk_of(producer, partition=1)
    feeding = begun(bulk.feed(Columns(numbers(50_000))))
    await turns(1)
    await producer.close()
    with pytest.raises(ProducerClosed):
        await feeding
    accepted = len(cluster.values(TOPIC, 1))
    assert TURN_BYTES // 30 < accepted < 50_000
    assert bulk.unsent == list(range(accepted, 50_000))
    assert producer.buffer_available_bytes == producer.config.buffer_memory


async def test_keys_that_end_by_an_error_leave_values_unsent(cluster: ScriptedCluster) -> None:
    error = await stopped(cluster, iter(numbers(MANY)), failing(SLICE + 10, OSError("gone")))
    assert isinstance(error.__cause__, OSError)
    assert error.unsent == list(range(SLICE + 10, SLICE + 10 + len(error.unsent)))
    assert len(error.unsent) < RUN_MAX, "no more values were taken than the run had in which the keys ended"
    assert sorted(cluster.values(TOPIC), key=str) == sorted(numbers(SLICE + 10), key=str)
    with pytest.raises(ClientError, match="gone"):
        error.acks[SLICE + 10]


@pytest.mark.parametrize(
    ("value_count", "key_count"), [(MANY, MANY - 10), (MANY - 10, MANY), (SLICE_ENDS[3], MANY), (1, 0)]
)
async def test_columns_that_turn_out_unequal_are_sent_up_to_there(
    cluster: ScriptedCluster, value_count: int, key_count: int
) -> None:
    error = await stopped(cluster, iter(numbers(value_count)), iter(numbers(key_count)))
    assert isinstance(error.__cause__, ValueError)
    common = min(value_count, key_count)
    assert sorted(cluster.values(TOPIC), key=str) == sorted(numbers(common), key=str)
    assert error.unsent == list(range(common, value_count))
    assert len(error.acks) == value_count
    assert "equally many" in str(error)


@pytest.mark.parametrize(
    ("count", "more", "lingers"),
    [
        (SLICE_FIRST, {}, True),
        (SLICE_FIRST + 1, {}, False),
        (SLICE_FIRST + 1, {"keys": numbers(SLICE_FIRST + 1)}, False),
        (SLICE_FIRST + 1, {"partition": 2}, False),
    ],
)
async def test_the_end_of_a_large_bulk_does_not_linger_and_that_of_a_small_one_does(
    cluster: ScriptedCluster, count: int, more: dict[str, Any], lingers: bool
) -> None:
    async with producing(cluster, linger_ms=1_000) as producer:
        await producer.prepare(TOPIC)
        began = asyncio.get_running_loop().time()
        await producer.send_batch(TOPIC, numbers(count), **more)
        assert (asyncio.get_running_loop().time() - began >= 1.0) == lingers


async def test_columns_that_are_known_to_be_unequal_are_refused_before_anything_is_sent(
    cluster: ScriptedCluster,
) -> None:
    async with producing(cluster) as producer:
        with pytest.raises(ValueError, match="equally many"):
            await producer.send_batch(TOPIC, numbers(MANY), numbers(MANY - 1))
        with pytest.raises(ValueError, match="equally many"):
            await producer.send_batch(TOPIC, iter(numbers(MANY)), numbers(MANY), timestamps_ms=range(MANY - 1))
    assert cluster.values(TOPIC) == []


@pytest.mark.parametrize("headers", [None, [()] * 5])
@pytest.mark.parametrize("partition", [3, -1])
async def test_a_partition_that_is_not_there_refuses_each_record(
    cluster: ScriptedCluster, partition: int, headers: Any
) -> None:
    async with producing(cluster) as producer:
        with pytest.raises(BatchError) as raised:
            await producer.send_batch(TOPIC, numbers(5), partition=partition, headers=headers)
        with pytest.raises(InvalidPartition):
            raised.value.acks[2]
    assert list(raised.value.errors) == list(range(5))
    assert {type(each) for each in raised.value.errors.values()} == {InvalidPartition}
    assert raised.value.unsent == []
    assert raised.value.stopped_by is None


# ---------------------------------------------------------------------------------------------- what the error says
async def test_a_bulk_that_had_to_stop_says_why_and_can_be_pickled(cluster: ScriptedCluster) -> None:
    cluster.on(ProduceRequest, never(), times=None)
    settings: dict[str, Any] = {"buffer_memory": 10_000, "max_block_ms": 500, "delivery_timeout_ms": 2_000}
    async with producing(cluster, **settings, request_timeout_ms=1_000, linger_ms=0) as producer:
        with pytest.raises(BatchError) as raised:
            await producer.send_batch(TOPIC, [bytes(3_000) for _ in range(10)], partition=0)
    error = raised.value
    assert isinstance(error.__cause__, BufferExhausted)
    assert isinstance(error.stopped_by, BufferExhausted)
    assert error.unsent == list(range(len(error.errors), 10))
    failed, unsent = len(error.errors), len(error.unsent)
    assert 0 < failed < unsent < 10
    assert {type(each) for each in error.errors.values()} == {DeliveryTimeout}
    for part in ("buffer_memory", f"{unsent} were not accepted", f"{failed} failed", "Of 10 records"):
        assert part in str(error)
    assert error.retriable, "both reasons are"
    twin = pickle.loads(pickle.dumps(error))  # noqa: S301  (our own bytes)
    assert str(twin) == str(error)
    assert twin.acks == (None,) * 10
    assert twin.unsent == error.unsent
    assert str(twin.stopped_by) == str(error.stopped_by)


async def test_a_bulk_that_is_cancelled_leaves_failures_to_be_reported(cluster: ScriptedCluster) -> None:
    """Nobody looks at its records any more."""
    cluster.on(ProduceRequest, never(), times=None)
    async with producing(cluster, delivery_timeout_ms=2_000, request_timeout_ms=1_000, linger_ms=0) as producer:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(producer.send_batch(TOPIC, numbers(10), partition=0), 0.5)
        with pytest.raises(UndeliveredRecords) as raised:
            await producer.flush()
        assert raised.value.count == 10
