"""A loss of power with two data directories: what was acknowledged after a sync is there, wherever it lies.

`LosingDisk` keeps what was synced; of the rest each page and each name is kept or dropped by chance. The topic has
`flush.messages=1`, so that an acknowledgement is a promise. Each round begins with another boot of the machine.
"""

import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.handling.context import Context
from odradek.broker.partitions.table import Partitions
from odradek.broker.server import Broker
from odradek.protocol.errors import ErrorCode
from odradek.runtime.environment import Environment
from odradek.testing.sim.world.losing_disk import Fate, LosingDisk
from tests.broker.log.logs import read_all
from tests.broker.support import batch
from tests.broker.wire import connected, create_topic, produced, settings

DIRS = ("a", "b")
PARTITIONS = 3
ROUNDS = 4
SEEDS = 8


class Machine(Environment):
    """The machine under this boot."""

    def __init__(self, boot: int) -> None:
        super().__init__()
        self._boot = boot

    def boot_id(self) -> str | None:
        return f"boot-{self._boot}"


@asynccontextmanager
async def up(disk: LosingDisk, boot: int) -> AsyncGenerator[Broker]:
    broker = Broker(settings(DIRS, {"log.flush.interval.messages": "1"}), Machine(boot), disk)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


def check(context: Context, acknowledged: dict[int, list[bytes]]) -> None:
    for index, values in acknowledged.items():
        partition = context.partitions.leader("orders", index)
        data = read_all(partition.log)
        assert [value for value in values if value not in data] == []
    places = {index: context.partitions.place(context.partitions.find("orders", index)).path for index in acknowledged}
    assert places == {0: "a", 1: "b", 2: "a"}


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_what_was_acknowledged_is_there_wherever_it_lies(seed: int) -> None:
    chance = random.Random(seed)
    disk = LosingDisk()
    acknowledged: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    for number in range(ROUNDS):
        async with up(disk, number) as broker, connected(broker) as client:
            if not number:
                await create_topic(client, "orders", PARTITIONS)
            check(broker.context, acknowledged)
            for count in range(chance.randint(1, 6)):
                index = chance.randrange(PARTITIONS)
                value = b"<%d-%d-%d>" % (seed, number, count)
                answer = await produced(client, "orders", batch(value), index=index)
                assert answer.error_code == ErrorCode.NONE
                acknowledged[index].append(value)
            after = disk.after_power_failure(Fate(chance, chance.choice([0.0, 0.3, 0.7, 1.0])))
        disk = after
    async with up(disk, ROUNDS) as broker:
        check(broker.context, acknowledged)


async def test_a_start_that_dies_before_its_logs_are_back_leaves_that_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until then the log may have a gap. The next start is of the same boot, and must not take it for whole."""

    def fail(partitions: Partitions, image: ClusterImage) -> None:
        raise OSError("the process dies")

    disk = LosingDisk()
    async with up(disk, 0) as broker, connected(broker) as client:
        await create_topic(client, "orders", PARTITIONS)
        after = disk.after_power_failure(Fate(random.Random(1), 1.0))
    with monkeypatch.context() as patch:
        patch.setattr(Partitions, "load", fail)
        with pytest.raises(OSError, match="the process dies"):
            async with up(after, 1):
                raise AssertionError("it cannot start")
    async with up(after, 1) as broker:
        assert [directory.lacks_the_newest for directory in broker.directories] == [True, True]
        killed = after.after_power_failure(Fate(random.Random(1), 1.0))
    async with up(killed, 1) as broker:
        assert [directory.lacks_the_newest for directory in broker.directories] == [False, False]
