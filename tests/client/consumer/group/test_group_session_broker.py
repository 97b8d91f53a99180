"""What a member does when things go wrong or slowly, on our own broker in this process, with both protocols."""

import asyncio
import logging
import time
from typing import Any

import pytest

from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.group.offsets import CommitOutcome
from odradek.client.topic_partition import TopicPartition
from odradek.runtime import stall_watch
from tests.broker.wire import running_broker
from tests.client.consuming import read, read_batches
from tests.client.group_readers import FAST, PROTOCOLS, Reader, member, orders, send, until

P0 = TopicPartition("orders", 0)
P1 = TopicPartition("orders", 1)

both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


@both_protocols
async def test_the_partitions_of_a_member_that_dies_go_to_others(protocol: str) -> None:
    async with orders(2) as servers:
        first = Reader(await member(servers, protocol).start())
        await until(lambda: len(first.values) == 100)
        second = Reader(await member(servers, protocol).start())
        await until(lambda: len(first.partitions) == len(second.partitions) == 1)
        await first.kill()
        await until(lambda: len(second.partitions) == 2)
        await send(servers, range(100, 120))
        await until(lambda: {b"%d" % number for number in range(100, 120)} <= set(second.values))
        await second.stop()
        await first.consumer.close()


@both_protocols
async def test_what_the_program_has_in_work_is_waited_for_before_it_is_given_up(protocol: str) -> None:
    async with orders(2) as servers, member(servers, protocol) as first:
        await until(lambda: len(first.assignment()) == 2)
        batch = await first.get_batch(1_000)
        while {part.partition for part in batch.parts} != {P0, P1}:
            batch = await first.get_batch(1_000)
        second = Reader(await member(servers, protocol).start())
        await asyncio.sleep(0.3)  # three heartbeats, in which the broker could give it something
        assert second.partitions == frozenset()
        reader = Reader(first)  # asks for more, so the batch is done
        await until(lambda: len(first.assignment()) == len(second.partitions) == 1)
        committed = await first.committed(second.partitions)
        ends = await first.end_offsets(second.partitions)
        assert {each: offset and offset.offset for each, offset in committed.items()} == ends
        await second.stop()
        assert second.values == []
        await reader.stop()


@both_protocols
async def test_callbacks_may_commit_seek_and_ask(protocol: str) -> None:
    told: list[tuple[str, frozenset[TopicPartition]]] = []

    async def assigned(partitions: frozenset[TopicPartition]) -> None:
        told.append(("assigned", partitions))
        for partition in sorted(partitions):
            assert await consumer.position(partition) >= 0
            consumer.seek(partition, 3)
        await asyncio.sleep(0.1)  # in which a reader that was not held back would have records
        assert not reader.values

    async def revoked(partitions: frozenset[TopicPartition]) -> None:
        told.append(("revoked", partitions))
        outcomes = await consumer.commit(dict.fromkeys(partitions, 7))
        assert outcomes == dict.fromkeys(partitions, CommitOutcome.COMMITTED)

    async with orders(2) as servers:
        consumer = member(servers, protocol, on_assigned=assigned, on_revoked=revoked, enable_auto_commit=False)
        reader = Reader(await consumer.start())
        await until(lambda: len(reader.values) == 94)
        await reader.stop()
        assert told == [("assigned", frozenset({P0, P1})), ("revoked", frozenset({P0, P1}))]
        async with member(servers, protocol) as other:
            committed = await other.committed([P0, P1])
            assert [each and each.offset for each in committed.values()] == [7, 7]


async def test_what_a_callback_raises_is_raised_to_the_program() -> None:
    def assigned(partitions: frozenset[TopicPartition]) -> None:
        raise LookupError("no such thing")

    async with orders(1) as servers, member(servers, on_assigned=assigned) as consumer:
        with pytest.raises(LookupError, match="no such thing"):
            await read(consumer, 1)
        assert await read(consumer, 1)


@both_protocols
async def test_a_program_that_does_not_ask_leaves_and_comes_back(
    protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    lost: list[frozenset[TopicPartition]] = []
    async with (
        orders(1) as servers,
        member(servers, protocol, max_poll_interval_ms=500, on_lost=lost.append) as slow,
    ):
        first = await read(slow, 1)
        second = Reader(await member(servers, protocol).start())
        await until(lambda: len(second.values) == 100)
        assert lost == [frozenset({P0})]
        assert "no records were asked for in max_poll_interval_ms (500 ms)" in caplog.text
        assert await slow.commit(first[0]) == {P0: CommitOutcome.NOT_OURS}
        await second.stop()
        await send(servers, range(100, 101))
        assert [record.value for record in await read(slow, 1)] == [b"100"]


async def test_what_was_handed_out_below_what_the_group_had_committed_is_ours() -> None:
    """A log that was truncated, and goes on with other records from there."""
    async with orders(1, 10) as servers, member(servers) as consumer:
        await until(lambda: bool(consumer.assignment()))
        session = consumer._group  # pyright: ignore[reportPrivateUsage]
        assert session is not None
        session._placing.begun[P0] = 99  # pyright: ignore[reportPrivateUsage]
        [record] = await read(consumer, 1)
        assert await consumer.commit(record) == {P0: CommitOutcome.COMMITTED}


@both_protocols
async def test_walking_slowly_through_records_at_hand_is_asking_for_them(protocol: str) -> None:
    async with orders(1, 10) as servers, member(servers, protocol, max_poll_interval_ms=500) as consumer:
        found = 0
        async for _ in consumer:
            await asyncio.sleep(0.12)  # the program's work: longer in all than max_poll_interval_ms
            found += 1
            if found == 8:
                break
        assert consumer.assignment() == frozenset({P0})


@both_protocols
async def test_latest_counts_for_the_first_start_alone(protocol: str) -> None:
    async with orders(1, 10) as servers:
        settings: dict[str, Any] = {"auto_offset_reset": "latest", "metadata_max_age_ms": 200}
        async with member(servers, protocol, **settings) as consumer:
            assert not await consumer.get_batch(timeout_ms=500)
            await send(servers, range(10, 11))
            assert [record.value for record in await read(consumer, 1)] == [b"10"]
            await consumer.get_batch(timeout_ms=0)
            await consumer.commit()
        await send(servers, range(5), "refunds")
        async with member(servers, protocol, **settings) as consumer:
            consumer.subscribe(["orders", "refunds"])
            found = await read_batches(consumer, 5)
            assert [record.topic for record in found] == ["refunds"] * 5


async def test_a_topic_that_does_not_exist_is_awaited_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    settings: dict[str, Any] = {"allow_auto_create_topics": False, "retry_backoff_max_ms": 100}
    async with orders(1, 1) as servers, member(servers, topics=["late"], **settings) as consumer:
        reader = Reader(consumer)
        await asyncio.sleep(0.5)  # in which the topic is asked for again and again
        await send(servers, range(3), "late")
        await until(lambda: len(reader.values) == 3)
        warnings = [each for each in caplog.records if each.levelno == logging.WARNING and "late" in each.message]
        assert len(warnings) == 1
        await reader.stop()


@both_protocols
async def test_cancelled_calls_lose_and_skip_nothing(protocol: str) -> None:
    async with orders(3, 300) as servers, member(servers, protocol) as consumer:
        values: list[bytes] = []
        for round_ in range(200):
            task = asyncio.get_running_loop().create_task(consumer.get_batch(7, timeout_ms=50))
            for _ in range(round_ % 5):
                await asyncio.sleep(0)
            task.cancel()
            try:
                values += [record.value for record in (await task).records]
            except asyncio.CancelledError:
                continue
        values += [record.value for record in await read_batches(consumer, 300 - len(values))]
        assert sorted(values) == sorted(b"%d" % number for number in range(300))


@both_protocols
async def test_closing_ends_in_time_though_nobody_answers(protocol: str) -> None:
    async with orders(1, 10) as servers:
        consumer: Consumer = await member(servers, protocol, close_timeout_ms=700, request_timeout_ms=30_000).start()
        await read(consumer, 5)
    began = asyncio.get_running_loop().time()
    await consumer.close()
    assert asyncio.get_running_loop().time() - began < 3


async def test_partitions_assigned_by_hand_begin_where_the_group_has_committed() -> None:
    async with orders(1, 10) as servers:
        async with member(servers, topics=[]) as consumer:
            consumer.assign([P0])
            assert len(await read_batches(consumer, 10, 4)) >= 8
        async with member(servers, topics=[]) as consumer:
            consumer.assign([P0])
            assert [record.offset for record in await read(consumer, 1)] == [8]


async def test_code_that_blocks_the_loop_is_named_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stall_watch, "LIMIT_S", 0.2)
    async with orders(1, 10) as servers, member(servers) as consumer:
        await read(consumer, 1)
        time.sleep(0.5)  # what is to be noticed
        await until(lambda: "the event loop stood still for 0." in caplog.text)
        assert f"{__file__}:" in caplog.text


@both_protocols
async def test_a_coordinator_that_moves_is_found_again_and_nothing_is_lost(protocol: str) -> None:
    async with running_broker(FAST | {"num.partitions": "2"}) as broker:
        endpoint = next(iter(broker.bound.values()))
        servers = f"{endpoint.host}:{endpoint.port}"
        await send(servers, range(50))
        async with member(servers, protocol) as consumer:
            first = await read_batches(consumer, 50)
            lost: list[frozenset[TopicPartition]] = []
            consumer.subscribe(["orders"], on_lost=lost.append)
            for index in range(4):
                partition = broker.context.partitions.leader("__consumer_offsets", index)
                replicas = partition.acknowledgements.replicas
                partition.resign()
                await asyncio.sleep(0)
                partition.become_leader(partition.leader_epoch + 1, replicas)
            await consumer.get_batch(timeout_ms=0)
            assert set((await consumer.commit()).values()) == {CommitOutcome.COMMITTED}
            await send(servers, range(50, 60))
            more = await read_batches(consumer, 10)
            assert lost == []
        assert sorted(each.value for each in first + more) == sorted(b"%d" % number for number in range(60))
