"""The shards of one topic: begun and ended with leadership, loaded one after the other, found by key."""

import asyncio

import pytest

from odradek.broker.coordinator.key_partition import partition_of
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.coordinator.shards import Shards
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.tasks import Tasks
from tests.broker.coordinator.counters import Counters
from tests.broker.coordinator.test_loading import write
from tests.broker.coordinator.test_shard import Options, add, read, turns
from tests.broker.replica.test_partition import code_of, partition_with


def shards_of(disk: MemoryDisk, count: int | None = 3, topic: str = "orders") -> Shards[Counters]:
    tasks = Tasks(asyncio.get_running_loop())
    return Shards(topic, Counters, Options(), lambda name: count if name == topic else None, disk, tasks)


def key_in(index: int, count: int = 3) -> str:
    return next(key for key in map(str, range(1_000)) if partition_of(key, count) == index)


def code_for(shards: Shards[Counters], key: str) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        shards.of(key)
    return raised.value.code


async def test_a_key_is_coordinated_where_its_partition_is_led_and_loaded() -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    write(partition, ("a", "4"))
    shards = shards_of(disk)
    here, elsewhere = key_in(0), key_in(1)
    assert code_for(shards, here) is ErrorCode.NOT_COORDINATOR
    shards.leads(partition, 0)
    assert code_for(shards, here) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert code_for(shards, elsewhere) is ErrorCode.NOT_COORDINATOR
    await turns(20)
    assert await add(shards.of(here), "a", 1) == 5
    shards.leads_no_longer(partition, 0)
    assert code_for(shards, here) is ErrorCode.NOT_COORDINATOR


async def test_a_topic_that_there_is_not_has_no_coordinators() -> None:
    assert code_for(shards_of(MemoryDisk(), count=None), "a") is ErrorCode.NOT_COORDINATOR


async def test_other_topics_are_none_of_its_business() -> None:
    shards = shards_of(MemoryDisk(), topic="bills")
    partition = partition_with()
    shards.leads(partition, 0)
    assert list(shards.all) == []
    shards.leads_no_longer(partition, 0)


async def test_a_later_epoch_begins_with_nothing_that_the_earlier_one_knew() -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    shards = shards_of(disk)
    shards.leads(partition, 0)
    await turns(20)
    first = shards.of(key_in(0))
    await add(first, "a", 1)
    shards.leads_no_longer(partition, 0)
    shards.leads(partition, 0)
    shards.leads_no_longer(partition, 7)  # another epoch's end ends nothing
    await turns(20)
    assert first.state is ShardState.ENDED
    assert await read(shards.of(key_in(0)), "a") == 1, "from the log"
    assert await code_of(read(first, "a")) is ErrorCode.NOT_COORDINATOR


async def test_news_reach_those_that_are_loaded() -> None:
    disk = MemoryDisk()
    partition = partition_with(disk=disk)
    shards = shards_of(disk)
    shards.leads(partition, 0)
    told: list[Counters] = []
    shards.tell(lambda machine, now: told.append(machine))
    assert told == []
    await turns(20)
    shards.tell(lambda machine, now: told.append(machine))
    assert told == [shards.of(key_in(0)).machine]


async def test_a_broker_that_stops_answers_everybody_who_waits() -> None:
    disk = MemoryDisk()
    partition: Partition = partition_with(disk=disk)
    shards = shards_of(disk)
    shards.leads(partition, 0)
    await turns(20)
    shard = shards.of(key_in(0))
    held = asyncio.ensure_future(
        code_of(shard.ask(lambda machine, waiting, now: machine.hold("b", waiting, 60_000, now)))
    )
    await turns()
    shards.stop()
    assert await held is ErrorCode.NOT_COORDINATOR
    assert list(shards.all) == []
