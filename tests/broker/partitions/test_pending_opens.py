"""A topic of many partitions: a few are opened at once, the others soon, or when they are asked for."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from odradek.broker.cluster.keys import partition_key
from odradek.broker.cluster.store import Txn
from odradek.broker.cluster.topics import delete_topic
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.context import Context
from odradek.broker.partitions.pending_opens import OPENED_AT_ONCE, PendingOpens
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.tasks import Tasks, breathe
from tests.broker.support import DATA_DIR, make_topic, running_broker

COUNT = 5 * OPENED_AT_ONCE
LAST = COUNT - 1


@asynccontextmanager
async def with_many(disk: MemoryDisk | None = None) -> AsyncGenerator[Context]:
    """A broker that has just heard of a topic with `COUNT` partitions."""
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders", COUNT)
        yield context


async def opened(context: Context, count: int = COUNT) -> None:
    async with asyncio.timeout(10):
        while len(context.partitions) < count:
            await breathe()


async def test_a_few_are_opened_at_once_and_the_others_in_later_turns() -> None:
    async with with_many() as context:
        seen = [len(context.partitions)]
        while seen[-1] < COUNT:
            await breathe()
            seen.append(len(context.partitions))
        assert seen[0] < COUNT
        assert max(after - before for before, after in pairwise(seen)) == OPENED_AT_ONCE
        assert [partition.index for partition in context.partitions] == list(range(COUNT))
        assert all(partition.is_leader for partition in context.partitions)


async def test_whoever_asks_for_one_gets_it_before_its_turn() -> None:
    async with with_many() as context:
        before = len(context.partitions)
        assert context.partitions.is_online(("orders", LAST))
        assert context.partitions.leader("orders", LAST).index == LAST
        assert len(context.partitions) == before + 1
        await opened(context)


async def test_one_that_changes_before_its_turn_takes_the_newest_role() -> None:
    async with with_many() as context:
        state = context.metadata.image.topics["orders"].partitions[LAST]
        changed = replace(state, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1)
        await context.metadata.store.commit(Txn(put={partition_key("orders", LAST): changed.encode()}))
        await opened(context)
        async with asyncio.timeout(10):
            while context.partitions.leader("orders", LAST).leader_epoch != changed.leader_epoch:
                await breathe()


async def test_a_topic_that_is_deleted_before_their_turn_leaves_nothing() -> None:
    disk = MemoryDisk()
    async with with_many(disk) as context:
        topic = context.metadata.image.topics["orders"]
        await context.metadata.applied(await delete_topic(context.metadata.store, topic))
        with pytest.raises(KafkaError) as caught:
            context.partitions.find("orders", LAST)
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for _ in range(COUNT):
            await breathe()
        assert len(context.partitions) == 0
        assert not disk.exists(f"{DATA_DIR}/orders-{LAST}")


async def test_a_stop_before_their_turn_opens_no_more() -> None:
    disk = MemoryDisk()
    async with with_many(disk) as context:
        context.partitions.close()
        assert len(context.partitions) == 0
        for _ in range(COUNT):
            await breathe()
        assert len(context.partitions) == 0
        assert not disk.exists(f"{DATA_DIR}/orders-{LAST}")


async def test_what_comes_when_all_are_open_is_opened_too() -> None:
    found: list[tuple[str, int]] = []
    openings = PendingOpens(Tasks(asyncio.get_running_loop()), found.append)
    for index in range(3):
        openings.add(("orders", index))
        assert ("orders", index) in openings
        await breathe()
        await breathe()
        assert ("orders", index) not in openings
    assert found == [("orders", 0), ("orders", 1), ("orders", 2)]
