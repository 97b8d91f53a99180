"""Brokers in the simulator whose turns take what they take here, and a store that takes its time."""

import asyncio
from itertools import pairwise

from benchmarks.scale.simulated_cluster import COMMIT_MS, KEY_MS, BusyStore, MeasuredCpu, scale_table, simulated_scale
from odradek.broker.cluster.store import Txn
from odradek.testing.sim.world.machine import Running
from odradek.testing.sim.world.world import World


def test_lost_brokers_are_replaced_and_come_back() -> None:
    found = simulated_scale(4, 100)
    assert (found.brokers, found.partitions) == (4, 100)
    assert found.commits > 1
    assert "4 brokers, 100" in scale_table([found])


def test_a_round_takes_the_time_that_it_takes_here() -> None:
    cpu = MeasuredCpu()
    cpu.begin()
    taken = [cpu.round_s(0.5) for _ in range(3)]
    assert all(each >= 0.0 for each in taken)
    assert cpu.busy_s == sum(taken)


def test_the_store_takes_one_request_after_the_other() -> None:
    answered_ms: list[float] = []

    async def main(running: Running) -> None:
        assert running.store is not None

        async def ask() -> None:
            assert running.store is not None
            await running.store.read("/")
            answered_ms.append(world.now_ms)

        await asyncio.gather(*(ask() for _ in range(20)))

    with World(1, has_store=True, store_type=BusyStore) as world:
        busy = world.store
        assert isinstance(busy, BusyStore)
        world.network.default.jitter_ms = 0.0
        world.machine("m").start(main)
        world.run(1.0)
        assert len(answered_ms) == 20
        assert all(later - sooner >= COMMIT_MS / 2 for sooner, later in pairwise(answered_ms))
        assert round(1000 * busy.busy_s, 6) == 20 * COMMIT_MS
        busy.commit(Txn(put={"/foreign/1": b"", "/foreign/2": b""}))
        assert round(1000 * busy.busy_s, 6) == round(20 * COMMIT_MS + 2 * KEY_MS, 6)
