"""Failure detection by the controller, on a network in memory: refused, silent, cut off, or only slow."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.keys import CONTROLLER_KEY, encode_stopping, stopping_key
from odradek.broker.cluster.store import Txn
from odradek.broker.controller.fencing import ASK_AGAIN_MS, LOOK_MS_MIN, LOOKS_PER_SESSION, Fencing
from tests.broker.cluster.faulty_store import Fate
from tests.broker.controller.brokers import Brokers, Member, brokers, settle, sleep_ms
from tests.client.memory_network import MemoryEnvironment, MemoryNetwork, MemoryServer, Reach

pytestmark = pytest.mark.virtual_time

SESSION_MS = 1_500
LOOK_MS = SESSION_MS / LOOKS_PER_SESSION
PORT = 9092


class CountingEnvironment(MemoryEnvironment):
    """Counts how often somebody sleeps."""

    __slots__ = ("sleeps",)

    def __init__(self, network: MemoryNetwork, address: str) -> None:
        super().__init__(network, address=address)
        self.sleeps = 0

    async def sleep(self, delay_ms: float) -> None:
        self.sleeps += 1
        await super().sleep(delay_ms)


class Watched:
    """Broker 1 is the controller and watches brokers 2 and 3, which listen, and send heartbeats while they are told."""

    def __init__(self, cluster: Brokers) -> None:
        self.cluster = cluster
        self.network = MemoryNetwork()
        self.environments: dict[int, CountingEnvironment] = {}
        self.servers: dict[int, MemoryServer] = {}
        self.beating: set[int] = set()
        self.fencing = self.watching(cluster[1])

    def watching(self, member: Member) -> Fencing:
        environment = CountingEnvironment(self.network, f"10.0.0.{member.node_id}")
        self.environments[member.node_id] = environment
        fencing = Fencing(
            member.controller,
            member.metadata,
            member.config,
            environment,
            member.tasks,
            member.node_id,
            "PLAINTEXT",
        )
        member.tasks.start(fencing.run(), "watch the others")
        return fencing

    def listen(self, node_id: int) -> None:
        server = self.servers[node_id] = self.network.listen(asyncio.Protocol, f"10.0.0.{node_id}", PORT)
        server.start()

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            for node_id in self.beating:
                self.fencing.heard(node_id, self.epoch(node_id))

    def epoch(self, node_id: int) -> int:
        return self.cluster[node_id].registration.epoch

    async def there(self) -> list[int]:
        await settle()
        return sorted((await self.cluster.image()).brokers)


@asynccontextmanager
async def watched() -> AsyncGenerator[Watched]:
    async with brokers(joining=()) as cluster:
        world = Watched(cluster)
        for node_id in (2, 3):
            world.listen(node_id)
        world.beating |= {2, 3}
        await cluster[1].join()
        for node_id in (2, 3):
            await cluster[node_id].join()
        cluster[1].tasks.start(world.beat(), "heartbeats of the others")
        await settle()
        assert cluster.active() == [1]
        try:
            yield world
        finally:
            for member in cluster.members.values():
                await member.tasks.close()
            world.network.stop()


def dead(world: Watched, node_id: int) -> None:
    """Its process is gone."""
    world.servers[node_id].close()
    world.beating.discard(node_id)
    world.cluster[node_id].store.is_cut = True


async def test_who_is_heard_of_stays() -> None:
    async with watched() as world:
        await sleep_ms(20 * SESSION_MS)
        assert await world.there() == [1, 2, 3]


async def test_who_is_silent_is_fenced_when_its_time_is_over_and_not_before() -> None:
    async with watched() as world:
        await sleep_ms(1_000)
        world.beating.discard(2)
        world.cluster[2].store.is_cut = True
        await sleep_ms(SESSION_MS - 2 * LOOK_MS_MIN - 200)
        assert await world.there() == [1, 2, 3]
        await sleep_ms(4 * LOOK_MS_MIN + 200)
        assert await world.there() == [1, 3]


async def test_nobody_looks_where_there_is_nobody_to_watch() -> None:
    """The controller looks a few times in each session timeout; a broker that is not it never does."""
    async with watched() as world:
        world.watching(world.cluster[3])
        await sleep_ms(10 * SESSION_MS)
        assert 9 * LOOKS_PER_SESSION <= world.environments[1].sleeps <= 11 * LOOKS_PER_SESSION
        assert world.environments[3].sleeps == 0


async def test_a_lost_connection_with_nobody_behind_it_is_fenced_at_once() -> None:
    async with watched() as world:
        dead(world, 2)
        world.fencing.connection_lost(2, world.epoch(2))
        await sleep_ms(10)
        assert await world.there() == [1, 3]


@pytest.mark.parametrize("has_said_so", [False, True])
async def test_to_fence_a_broker_that_stops_in_order_is_no_warning(
    has_said_so: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with brokers() as cluster:
        await cluster[2].crash()
        if has_said_so:
            await cluster.store.commit(Txn(put={stopping_key(2): encode_stopping(1)}))
        await settle()
        with caplog.at_level(logging.INFO, "odradek.broker.controller.controller"):
            await cluster[1].controller.fence(2, cluster[2].registration.epoch, "nobody listens")
        (told,) = [record for record in caplog.records if "nobody listens" in record.getMessage()]
        assert told.levelno == (logging.INFO if has_said_so else logging.WARNING)


async def test_a_lost_connection_means_nothing_while_somebody_listens() -> None:
    async with watched() as world:
        world.fencing.connection_lost(2, world.epoch(2))
        await sleep_ms(2 * SESSION_MS)
        assert await world.there() == [1, 2, 3]
        assert not world.network.open_clients()


async def test_a_process_that_is_about_to_be_gone_may_still_take_a_connection_and_lose_it() -> None:
    """The kernel closes a killed process's sockets one by one: the one that listens may come after the others."""

    class Dying(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.abort()
            world.servers[2].close()

    async with watched() as world:
        await sleep_ms(2 * SESSION_MS)  # by then those questions are over that its election led to
        dead(world, 2)
        server = world.servers[2] = world.network.listen(Dying, "10.0.0.2", PORT)
        server.start()
        world.fencing.connection_lost(2, world.epoch(2))
        await sleep_ms(50)
        assert await world.there() == [1, 3]


async def test_one_that_takes_connections_and_loses_them_is_given_its_time() -> None:
    """As it does where it has too many: it is asked now and then, and not without a pause."""

    class Full(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.abort()

    async with watched() as world:
        await sleep_ms(2 * SESSION_MS)
        world.servers[2].close()
        world.network.listen(Full, "10.0.0.2", PORT).start()
        attempts = len(world.network.attempts)
        world.fencing.connection_lost(2, world.epoch(2))
        await sleep_ms(2 * SESSION_MS)
        assert SESSION_MS / ASK_AGAIN_MS / 2 < len(world.network.attempts) - attempts <= SESSION_MS / ASK_AGAIN_MS
        assert await world.there() == [1, 2, 3]


async def test_a_connection_of_a_former_life_is_not_asked_about() -> None:
    async with watched() as world:
        world.servers[2].close()
        attempts = len(world.network.attempts)
        world.fencing.connection_lost(2, world.epoch(2) - 1)
        await sleep_ms(100)
        assert len(world.network.attempts) == attempts
        assert await world.there() == [1, 2, 3]


async def test_one_that_cannot_be_reached_is_given_its_time() -> None:
    async with watched() as world:
        world.network.path("10.0.0.2", PORT).reach = Reach.BLACK_HOLE
        world.fencing.connection_lost(2, world.epoch(2))
        world.beating.discard(2)
        world.cluster[2].store.is_cut = True
        await sleep_ms(SESSION_MS - 300)
        assert await world.there() == [1, 2, 3]
        await sleep_ms(400)
        assert await world.there() == [1, 3]


async def test_one_that_is_heard_of_stays_though_it_cannot_be_reached() -> None:
    async with watched() as world:
        world.network.path("10.0.0.2", PORT).reach = Reach.BLACK_HOLE
        former = world.epoch(2)
        world.fencing.connection_lost(2, former)
        await sleep_ms(3 * SESSION_MS)
        assert world.epoch(2) == former


async def test_who_is_fenced_though_it_lives_comes_back() -> None:
    async with watched() as world:
        former = world.epoch(2)
        world.beating.discard(2)
        await sleep_ms(SESSION_MS + 300)
        world.beating.add(2)
        await sleep_ms(10)
        assert await world.there() == [1, 2, 3]
        assert world.epoch(2) > former
        await sleep_ms(2 * SESSION_MS)
        assert await world.there() == [1, 2, 3]


async def test_a_new_controller_asks_after_everybody_and_knows_who_died_with_the_last_one() -> None:
    async with watched() as world:
        cluster = world.cluster
        world.fencing = world.watching(cluster[3])
        dead(world, 2)
        cluster[1].controller.may_lead = cluster[2].controller.may_lead = False
        world.listen(1)
        await cluster.store.commit(Txn(delete=(CONTROLLER_KEY,)))
        await sleep_ms(10)
        assert cluster.active() == [3]
        assert await world.there() == [1, 3]


async def test_a_new_controller_hears_who_is_there_from_its_first_moment() -> None:
    """Nothing else changes in the metadata with its election."""
    async with watched() as world:
        cluster = world.cluster
        fencing = world.watching(cluster[3])
        cluster[1].controller.may_lead = cluster[2].controller.may_lead = False
        world.listen(1)
        assert not fencing.heard(2, world.epoch(2))
        await cluster.store.commit(Txn(delete=(CONTROLLER_KEY,)))
        await settle()
        assert fencing.heard(2, world.epoch(2))
        assert not world.fencing.heard(2, world.epoch(2)), "the former one does not any more"


async def test_a_controller_that_hears_nobody_gives_way_to_one_that_may() -> None:
    """It is cut off from the others, and not from the store. They would be fenced again and again, and nobody could
    lead anything, for as long as that lasts."""
    async with watched() as world:
        world.cluster[3].controller.may_lead = False
        world.beating.clear()
        await sleep_ms(1.5 * SESSION_MS)
        assert world.cluster.active() == [2]
        assert await world.there() == [1, 2, 3]


async def test_one_that_hears_somebody_stays_and_so_does_one_of_two() -> None:
    async with watched() as world:
        world.beating.remove(2)
        world.cluster[2].store.is_cut = True
        await sleep_ms(2 * SESSION_MS)
        assert (world.cluster.active(), await world.there()) == ([1], [1, 3])
        world.beating.clear()
        world.cluster[3].store.is_cut = True
        await sleep_ms(2 * SESSION_MS)
        assert (world.cluster.active(), await world.there()) == ([1], [1])


async def test_who_gave_way_is_elected_again_when_nobody_else_is() -> None:
    async with watched() as world:
        world.cluster[2].controller.may_lead = world.cluster[3].controller.may_lead = False
        world.beating.clear()
        await sleep_ms(1.5 * SESSION_MS)
        assert world.cluster.active() == []
        await sleep_ms(SESSION_MS)
        assert world.cluster.active() == [1]


async def test_a_store_that_does_not_answer_is_asked_again_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with watched() as world:
        dead(world, 2)
        world.cluster[1].store.fates.extend([Fate.REFUSED] * 5)
        await sleep_ms(SESSION_MS + 1_000)
        assert await world.there() == [1, 3]
        assert not world.cluster[1].store.fates
        assert caplog.text.count("broker 2 could not be fenced, and is asked after again") == 1


async def test_a_controller_that_was_held_up_fences_nobody_for_it() -> None:
    """Its process stood still: it heard nobody, and its timers ring late."""
    async with watched() as world:
        epochs = [world.epoch(node_id) for node_id in (2, 3)]
        environment = MemoryEnvironment
        sleep = environment.sleep

        async def late(self: MemoryEnvironment, delay_ms: float) -> None:
            await sleep(self, delay_ms)
            if delay_ms == LOOK_MS and world.beating:
                world.beating.clear()
                await sleep(self, 2 * SESSION_MS)
                world.beating.update((2, 3))

        environment.sleep = late  # type: ignore[method-assign, assignment]
        try:
            await sleep_ms(2 * SESSION_MS + 2 * LOOK_MS)
        finally:
            environment.sleep = sleep  # type: ignore[method-assign]
        assert await world.there() == [1, 2, 3]
        assert [world.epoch(node_id) for node_id in (2, 3)] == epochs
