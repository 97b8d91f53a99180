"""The consumer on a scripted cluster: reading in both ways, what is done, moving about, and errors."""

import asyncio
from typing import Any

import pytest

from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.deserialization import DeserializationError
from odradek.client.consumer.done_offsets import Committable
from odradek.client.consumer.errors import NotAssigned, PositionMissing
from odradek.client.consumer.records import ConsumerRecord
from odradek.client.errors.client_errors import BrokerError
from odradek.client.fetching.position import OffsetOutOfRange
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode
from tests.client.consuming import consuming, read, read_batches
from tests.client.producing import begun, turns
from tests.client.reading_handlers import fill
from tests.client.running_fetcher import P0, P1, P2, TOPIC, reading_cluster, values

pytestmark = pytest.mark.virtual_time


def committable(consumer: Consumer) -> dict[TopicPartition, Committable]:
    return consumer._core.committable()  # pyright: ignore[reportPrivateUsage]  (committing comes with groups)


def done_up_to(consumer: Consumer, partition: TopicPartition = P0) -> int:
    return committable(consumer)[partition].offset


# ----------------------------------------------------------------------------------------------------------- reading
async def test_records_come_one_by_one_in_order_with_all_they_hold() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        log = cluster.log(TOPIC)
        log.append(build_batch([Record(0, 5, b"k", b"v", (("h", b"1"),)), Record(1, 6, None, None)]), 0)
        consumer.assign([P0])
        first, second = await read(consumer, 2)
        assert first == (TOPIC, 0, 0, 5, b"k", b"v", (("h", b"1"),))
        assert (second.offset, second.timestamp_ms, second.key, second.value, second.headers) == (1, 6, None, None, ())


async def test_batches_hold_what_has_come_up_to_their_limit() -> None:
    async with reading_cluster() as (cluster, _), consuming(cluster) as consumer:
        for index in range(3):
            fill(cluster, TOPIC, index, values(30), values(30))
        consumer.assign([P0, P1, P2])
        found: list[ConsumerRecord] = []
        while len(found) < 180:
            batch = await consumer.get_batch(7, 1_000)
            assert 0 < len(batch) <= 7
            found += batch.records
        for index in range(3):
            assert [record.offset for record in found if record.partition == index] == list(range(60))


async def test_without_records_a_batch_is_empty_when_the_time_is_up() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        consumer.assign([P0])
        began = asyncio.get_running_loop().time()
        batch = await consumer.get_batch(timeout_ms=700)
        assert not batch
        assert 0.699 < asyncio.get_running_loop().time() - began < 0.8


async def test_records_are_put_out_while_the_loop_has_its_turns() -> None:
    """No turn of the loop a record, one a run; others are not kept waiting for ever."""
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, *[values(100) for _ in range(50)])
        consumer.assign([P0])
        await consumer.get_batch(1)
        turned: list[int] = []
        found = 1

        async def count() -> None:
            while True:
                turned.append(found)
                await asyncio.sleep(0)

        counting = begun(count())
        async for _ in consumer:
            found += 1
            if found == 5_000:
                break
        counting.cancel()
        assert 4 <= len(set(turned)) <= 30


async def test_bytes_fetched_ahead_are_bounded_over_all_partitions() -> None:
    async with reading_cluster() as (cluster, _):
        for index in range(3):
            fill(cluster, TOPIC, index, *[[bytes(1_000)] for _ in range(50)])
        async with consuming(cluster, prefetch_bytes=10_000, max_partition_fetch_bytes=4_000) as consumer:
            consumer.assign([P0, P1, P2])
            await asyncio.sleep(5)
            buffered = consumer._fetcher._positions.buffered_bytes  # pyright: ignore[reportPrivateUsage]
            assert 6_000 < buffered < 10_000 + 3 * 1_200
            found = await read_batches(consumer, 150, 5)
            assert len(found) == 150
            firsts = {record.partition for record in found[:30]}
            assert firsts == {0, 1, 2}, "each has its turn"


# ------------------------------------------------------------------------------------------------------ what is done
async def test_asking_for_the_next_record_marks_the_last_one_done_and_break_does_not() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, values(5))
        consumer.assign([P0])
        async for record in consumer:
            assert done_up_to(consumer) == record.offset
            if record.offset == 2:
                break
        assert done_up_to(consumer) == 2
        assert [record.offset for record in await read(consumer, 2)] == [3, 4], "nothing is lost by a break"
        assert done_up_to(consumer) == 4


async def test_an_error_in_the_loop_leaves_its_record_undone() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, values(5))
        consumer.assign([P0])
        with pytest.raises(ZeroDivisionError):
            async for record in consumer:
                assert 1 / (2 - record.offset)
        assert done_up_to(consumer) == 2
        consumer.seek(P0, 2)
        assert [record.offset for record in await read(consumer, 3)] == [2, 3, 4]


async def test_asking_for_the_next_batch_marks_the_last_one_done() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, values(10))
        consumer.assign([P0])
        await consumer.get_batch(4)
        assert done_up_to(consumer) == 0
        await consumer.get_batch(4)
        assert done_up_to(consumer) == 4
        async for record in consumer:
            assert (record.offset, done_up_to(consumer)) == (8, 8)
            break
        assert len(await consumer.get_batch(4)) == 1
        assert done_up_to(consumer) == 9
        assert not await consumer.get_batch(timeout_ms=100)
        assert done_up_to(consumer) == 10


async def test_with_manual_done_only_what_the_program_says_counts() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster, manual_done=True) as consumer:
        fill(cluster, TOPIC, 0, values(6))
        consumer.assign([P0])
        records = await read(consumer, 3)
        batch = await consumer.get_batch()
        assert done_up_to(consumer) == 0
        consumer.done(records[1])
        consumer.done(batch)
        assert done_up_to(consumer) == 0
        consumer.done(records[0])
        assert done_up_to(consumer) == 2
        consumer.done(records[2])
        assert done_up_to(consumer) == 6


# ---------------------------------------------------------------------------------------------------------- cancelling
async def test_who_is_cancelled_loses_and_skips_nothing() -> None:
    """Cancelled at each of many moments while records come, in both ways of reading."""
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        consumer.assign([P0])
        found: list[int] = []

        async def one_by_one() -> None:
            async for record in consumer:
                found.append(record.offset)

        async def in_batches() -> None:
            while True:
                found.extend(record.offset for record in await consumer.get_batch(5))

        for step in range(60):
            fill(cluster, TOPIC, 0, values(3))
            task = begun(in_batches() if step % 2 else one_by_one())
            await turns(step % 7)
            await asyncio.sleep(step * 0.001)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        found += [record.offset for record in await read_batches(consumer, 180 - len(found))]
        assert found == list(range(180))


# ---------------------------------------------------------------------------------------------------------- moving
async def test_a_seek_drops_what_is_at_hand_and_goes_on_there() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, values(10))
        consumer.assign({P0: 4})
        offsets: list[int] = []
        async for record in consumer:
            offsets.append(record.offset)
            if record.offset == 6 and len(offsets) < 5:
                consumer.seek(P0, 1)
                assert done_up_to(consumer) == 1
            if len(offsets) == 6:
                break
        assert offsets == [4, 5, 6, 1, 2, 3]
        consumer.seek_to_beginning()
        assert (await read(consumer, 1))[0].offset == 0
        consumer.seek_to_end(P0)
        assert await consumer.position(P0) == 10


async def test_a_paused_partition_keeps_its_place_and_gives_nothing() -> None:
    async with reading_cluster() as (cluster, _), consuming(cluster) as consumer:
        for index in range(2):
            fill(cluster, TOPIC, index, values(10))
        consumer.assign([P0, P1])
        seen: dict[int, list[int]] = {0: [], 1: []}
        async for record in consumer:
            seen[record.partition].append(record.offset)
            if record[1:3] == (0, 3):
                consumer.pause(P0)
                assert consumer.paused() == {P0}
                assert await consumer.position(P0) == 4
            if len(seen[1]) == 10 and 3 in seen[0]:
                break
        assert (seen[0], seen[1]) == (list(range(4)), list(range(10)))
        assert not await consumer.get_batch(timeout_ms=200)
        consumer.resume()
        assert [record.offset for record in await read_batches(consumer, 6)] == [4, 5, 6, 7, 8, 9]


async def test_paused_partitions_give_their_room_to_the_others() -> None:
    async with reading_cluster(1, 2) as (cluster, _):
        fill(cluster, TOPIC, 0, *[[bytes(1_000)] for _ in range(10)])
        async with consuming(cluster, prefetch_bytes=3_000) as consumer:
            consumer.assign([P0, P1])
            first = await read(consumer, 1)
            await asyncio.sleep(1)  # the buffer is full
            consumer.pause(P0)
            fill(cluster, TOPIC, 1, values(5))
            assert len(await read_batches(consumer, 5)) == 5
            consumer.resume(P0)
            found = first + await read_batches(consumer, 9)
            assert [record.offset for record in found] == list(range(10))


async def test_assigning_again_keeps_those_that_stay_and_drops_the_others() -> None:
    async with reading_cluster() as (cluster, _), consuming(cluster) as consumer:
        for index in range(3):
            fill(cluster, TOPIC, index, values(6))
        consumer.assign([P0, P1])
        first = await read_batches(consumer, 12, 3)
        assert len(first) == 12
        consumer.assign({P1: 4})
        consumer.assign([P1, P2])
        assert consumer.assignment() == {P1, P2}
        rest = await read_batches(consumer, 8)
        assert sorted(record[1:3] for record in rest) == [(1, 4), (1, 5), *[(2, offset) for offset in range(6)]]
        assert P0 not in committable(consumer)
        with pytest.raises(NotAssigned):
            consumer.pause(P0)


async def test_markers_and_gaps_count_as_done_when_nothing_else_is_there() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, values(3))
        consumer.assign([P0])
        await consumer.get_batch()
        await consumer.get_batch(timeout_ms=10)
        assert committable(consumer) == {P0: Committable(3, 0)}


# ---------------------------------------------------------------------------------------------------------- errors
async def test_without_a_policy_a_position_has_to_be_given() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster, auto_offset_reset="none") as consumer:
        fill(cluster, TOPIC, 0, values(3))
        consumer.assign([P0])
        for _ in range(2):
            with pytest.raises(PositionMissing):
                await consumer.get_batch()
        consumer.seek(P0, 1)
        assert [record.offset for record in await consumer.get_batch()] == [1, 2]
        consumer.seek(P0, 50)
        with pytest.raises(OffsetOutOfRange):
            await consumer.get_batch()
        consumer.seek(P0, 0)
        assert len(await consumer.get_batch()) == 3


async def test_an_error_of_one_partition_comes_behind_what_was_there_and_once() -> None:
    async with reading_cluster() as (cluster, reading), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, values(3))
        reading.errors[TOPIC, 1] = [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        consumer.assign([P0, P1])
        found = 0
        with pytest.raises(BrokerError) as raised:
            while True:
                found += len(await consumer.get_batch())
        assert raised.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
        fill(cluster, TOPIC, 0, values(3))
        assert found + len(await read_batches(consumer, 6 - found)) == 6


def number(topic: str, data: bytes | None) -> Any:
    assert data is not None
    return int(data)


async def test_a_record_that_cannot_be_read_stops_its_partition_until_a_seek() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster, value_deserializer=number) as consumer:
        fill(cluster, TOPIC, 0, [b"1", b"2", b"x", b"4"])
        consumer.assign([P0])
        assert [record.value for record in await consumer.get_batch()] == [1, 2]
        for _ in range(2):
            with pytest.raises(DeserializationError) as raised:
                await consumer.get_batch()
            assert await consumer.position(P0) == raised.value.offset == 2
        assert done_up_to(consumer) == 2
        consumer.seek(P0, 3)
        assert [record.value for record in await read(consumer, 1)] == [4]


async def test_records_that_cannot_be_read_are_skipped_on_wish() -> None:
    settings: dict[str, Any] = {"value_deserializer": number, "skip_bad_records": True}
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster, **settings) as consumer:
        fill(cluster, TOPIC, 0, [b"1", b"x"], [b"y"], [b"4", b"z"])
        consumer.assign([P0])
        assert [record.value for record in await read_batches(consumer, 2)] == [1, 4]
        await consumer.get_batch(timeout_ms=10)
        assert done_up_to(consumer) == 5


async def test_a_topic_that_is_not_there_is_awaited_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        later = TopicPartition("later", 0)
        consumer.assign([later])
        assert not await consumer.get_batch(timeout_ms=20_000)
        assert caplog.text.count("topic later does not exist") == 1
        cluster.create_topic("later", 1)
        fill(cluster, "later", 0, values(2))
        assert len(await read_batches(consumer, 2)) == 2


async def test_a_topic_created_again_is_read_from_its_beginning(caplog: pytest.LogCaptureFixture) -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster, auto_offset_reset="latest") as consumer:
        fill(cluster, TOPIC, 0, values(5))
        consumer.assign({P0: 3})
        assert len(await consumer.get_batch()) == 2
        cluster.delete_topic(TOPIC)
        cluster.create_topic(TOPIC, 1)
        fill(cluster, TOPIC, 0, values(8, "new"))
        found = await read_batches(consumer, 8)
        assert [record.value for record in found] == values(8, "new")
        assert "orders-0 belongs to a topic that was created again" in caplog.text
        await consumer.get_batch(timeout_ms=10)
        assert done_up_to(consumer) == 8
