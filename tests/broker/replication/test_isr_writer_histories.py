"""Histories of a leader, its followers, a controller and a store that loses answers: what the high watermark promises.

At every moment, whatever is under way:

- the maximal in-sync set of the leader contains the one that is stored, if it leads in the epoch that the store has;
- below the high watermark every stored member has all there is: it has fetched it under this leader, in the life that
  it has now, or it was so when the leader began. That holds for a leader that was replaced, too, for anybody in the
  stored set may be the one that has replaced it.

Followers come back whole, or without what they had; the latter give up their in-sync places as the broker does
(broker/membership/startup_losses.py).
"""

import asyncio
import random
from dataclasses import replace

import pytest

from odradek.broker.cluster.keys import PartitionState, decode_partition, partition_key
from odradek.broker.cluster.store import Conflict
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.membership.registration import Identity
from odradek.broker.membership.startup_losses import Findings, Found, give_up_in_sync_places
from odradek.protocol.codec.schema import ZERO_UUID
from tests.broker.cluster.faulty_store import Fate
from tests.broker.replication.isr_world import LAG_MS_MAX, TOPIC_ID, IsrWorld, settle

pytestmark = pytest.mark.virtual_time(seconds_max=1e9)

HISTORIES = 80
STEPS = 60
FOLLOWERS = (1, 2, 3)
ACTIONS = (
    ("append", 8),
    ("fetch", 24),
    ("see", 8),
    ("fate", 6),
    ("deliver", 5),
    ("cut", 2),
    ("heal", 4),
    ("stop", 1),
    ("restart", 3),
    ("lose", 3),
    ("fence", 2),
    ("epoch", 1),
    ("wait", 5),
    ("starve", 2),
    ("trap", 2),
    ("usurp", 1),
    ("check", 3),
)
FATES = (Fate.LOST, Fate.REFUSED, Fate.LATE, Fate.HELD)
CONFIG = BrokerConfig({})


class History:
    """One history, and what is true in it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world = IsrWorld(min_insync=self.chance.choice((1, 2)))
        self.has: dict[int, int] = dict.fromkeys(FOLLOWERS, 0)
        self.began_at = 0
        self.epoch = 0
        self.additions = 0

    async def run(self) -> None:
        state = PartitionState(TOPIC_ID, (0, 1, 2, 3), (0, 1, 2), 0)
        try:
            await self.world.begin(state)
            names, weights = zip(*ACTIONS, strict=True)
            for _ in range(STEPS):
                await self.act(self.chance.choices(names, weights)[0])
                await settle()
                await self.check()
            await self.heal()
        finally:
            await self.world.close()

    async def act(self, action: str) -> None:
        world, chance = self.world, self.chance
        broker_id = chance.choice(FOLLOWERS)
        match action:
            case "append":
                self.append()
            case "fetch":
                self.fetch(broker_id)
            case "see":
                await world.see()
            case "fate":
                world.store.fates.append(chance.choice(FATES))
            case "deliver":
                await world.store.deliver()
            case "cut" | "heal":
                world.store.is_cut = action == "cut"
            case "starve":
                await self.starve(broker_id)
            case "trap":
                await self.trap(broker_id)
            case "usurp":
                await self.usurp(broker_id)
            case "check":
                world.roles.check_in_sync(world.partition)
            case "wait":
                await asyncio.sleep(chance.choice((0.05, 0.2, 2)))
            case _:
                await self.change(action, broker_id)

    async def change(self, action: str, broker_id: int) -> None:
        """Of the cluster, by others."""
        world = self.world
        match action:
            case "stop":
                await world.stop(broker_id)
            case "restart":
                await world.register(broker_id)
            case "lose":
                self.has[broker_id] = 0
                identity = Identity(broker_id, {}, (ZERO_UUID,))
                await give_up_in_sync_places(
                    world.store.store, identity, Findings(elsewhere=Found.NOT_THE_NEWEST), CONFIG
                )
                await world.register(broker_id)
            case "fence":
                await self.remove(broker_id)
            case _:
                stored = await world.stored()
                following = replace(
                    stored, leader_epoch=stored.leader_epoch + 1, partition_epoch=stored.partition_epoch + 1
                )
                await world.write(following)

    def append(self) -> None:
        """Where somebody takes it."""
        if self.world.partition.is_leader:
            self.world.append()

    async def usurp(self, broker_id: int) -> None:
        """As `trap`; then another epoch begins, and the leader hears of it from the store before its image knows."""
        await self.remove(broker_id)
        await self.trap(broker_id)
        await self.change("epoch", broker_id)
        self.world.store.is_cut = False
        await asyncio.sleep(3)

    async def starve(self, broker_id: int) -> None:
        """One follower does not fetch for longer than it may, while the others fetch everything."""
        await asyncio.sleep(LAG_MS_MAX / 1000 + 1)
        self.append()
        for other in FOLLOWERS:
            if other != broker_id:
                self.fetch(other, everything=True)
                self.fetch(other, everything=True)

    async def trap(self, broker_id: int) -> None:
        """An addition is stored and its leader does not hear of it; then the one that was added falls behind."""
        world = self.world
        world.store.is_cut = False
        await world.see()
        world.store.fates.extend([Fate.LOST, *[Fate.REFUSED] * 3])
        self.fetch(broker_id, everything=True)
        self.fetch(broker_id, everything=True)
        await settle()
        world.store.is_cut = True
        await self.starve(broker_id)

    def fetch(self, broker_id: int, *, everything: bool = False) -> None:
        """A fetch says what the follower has, then it gets some of what it lacks. Leaders that do not know of its
        present life do not answer (broker/api/fetch/follower.py)."""
        known = self.world.image.brokers.get(broker_id)
        if known is not None and self.world.partition.is_leader and known.epoch == self.world.epochs[broker_id]:
            self.world.fetch(broker_id, self.has[broker_id])
            end = self.world.partition.log.log_end_offset
            self.has[broker_id] = end if everything else self.chance.randint(self.has[broker_id], end)

    async def remove(self, broker_id: int) -> None:
        stored = await self.world.stored()
        left = tuple(each for each in stored.isr if each != broker_id)
        if left != stored.isr:
            try:
                await self.world.write(replace(stored, isr=left, partition_epoch=stored.partition_epoch + 1))
            except Conflict:
                return

    async def check(self) -> None:
        partition, stored = self.world.partition, await self.world.stored()
        if partition.leader_epoch != self.epoch:
            self.epoch = partition.leader_epoch
            self.began_at = partition.high_watermark.value
        if stored.leader_epoch == partition.leader_epoch and partition.is_leader:
            assert set(stored.isr) <= set(partition.replicas.maximal_isr), "a member is not counted"
        high_watermark = partition.high_watermark.value
        for broker_id in stored.isr:
            if broker_id and high_watermark > self.began_at:
                assert self.has[broker_id] >= high_watermark, f"broker {broker_id} lacks what is acknowledged"

    async def heal(self) -> None:
        """When all is well everybody is in sync at last, and the high watermark is the log's end."""
        world = self.world
        world.store.is_cut = False
        world.store.fates.clear()
        for broker_id in FOLLOWERS:
            await world.register(broker_id)
        for _ in range(4):
            await world.store.deliver()
            await asyncio.sleep(3)
            await world.see()
            for broker_id in FOLLOWERS:
                self.has[broker_id] = world.partition.log.log_end_offset
                world.fetch(broker_id)
            world.roles.check_in_sync(world.partition)
            await settle()
            await self.check()
        assert (await world.stored()).isr == (0, 1, 2, 3)
        assert world.partition.high_watermark.value == world.partition.log.log_end_offset
        assert world.partition.replicas.pending_isr == ()
        history = await world.store.store.read("/partitions/")
        entry = history.entries[partition_key("orders", 0)]
        self.additions = decode_partition(entry.value, "orders", 0).partition_epoch


async def test_below_the_high_watermark_every_stored_member_has_all_there_is() -> None:
    changes = 0
    for seed in range(HISTORIES):
        history = History(seed)
        try:
            await history.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
        changes += history.additions
    assert changes > 3 * HISTORIES, "histories in which nothing is written show nothing"
