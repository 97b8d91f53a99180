"""A machine: what survives which end of its process, and what sleep, power and a new disk do to it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from odradek.testing.sim.world.losing_disk import ALL_IS_LOST
from odradek.testing.sim.world.machine import Machine, Main, Running
from odradek.testing.sim.world.world import World


def doing(work: Callable[[Running], Awaitable[object]], *, then_waits: bool = True) -> Main:
    """What a process does: some work, and then nothing until it is to stop."""

    async def main(running: Running) -> None:
        await work(running)
        if then_waits:
            await running.wait_for_stop()

    return main


async def write(running: Running) -> None:
    """One file that is synced, with its name, and one that is not."""
    running.disk.write_whole("synced", b"x")
    running.disk.open("unsynced").append([b"y"])


async def nothing(running: Running) -> None:
    del running


def files(machine: Machine) -> list[str]:
    return machine.device.list_dir("")


@pytest.mark.parametrize(
    ("end", "left"),
    [("kill", ["synced", "unsynced"]), ("power", ["synced"]), ("disk", [])],
)
def test_what_is_left_on_the_disk(end: str, left: list[str]) -> None:
    with World(1) as world:
        machine = world.machine("m")
        machine.start(doing(write))
        world.run(1.0)
        if end == "kill":
            machine.kill()
        else:
            machine.power_off(ALL_IS_LOST)
            if end == "disk":
                machine.lose_disk()
            machine.boot()
        found: list[str] = []

        async def look(running: Running) -> None:
            found.extend(running.disk.list_dir(""))

        machine.start(doing(look))
        world.run(2.0)
        assert found == files(machine) == left


def test_each_process_has_own_randomness_and_incarnation_and_its_machines_boot_id() -> None:
    seen: list[tuple[int, bytes, str]] = []

    async def look(running: Running) -> None:
        environment = running.environment
        seen.append((running.incarnation, environment.random_bytes(8), environment.boot_id()))

    with World(1) as world:
        machine = world.machine("m")
        for _ in range(2):
            machine.start(doing(look))
            world.run(world.now_ms / 1000.0 + 1.0)
            machine.kill()
        machine.power_off(ALL_IS_LOST)
        machine.boot()
        machine.start(doing(look))
        world.run(5.0)
    assert [incarnation for incarnation, _, _ in seen] == [1, 2, 3]
    assert len({entropy for _, entropy, _ in seen}) == 3
    first, second, third = (boot_id for _, _, boot_id in seen)
    assert first == second != third


def test_a_process_that_ends_by_itself_says_why() -> None:
    exits: list[str] = []

    async def fail(running: Running) -> None:
        del running
        raise OSError("no disk")

    with World(1) as world:
        machine = world.machine("m")
        machine.on_exit = lambda running, why: exits.append(f"{running.process.name} {why}")
        machine.start(doing(fail))
        world.run(1.0)
        assert machine.running is None
        machine.start(doing(nothing))
        world.run(2.0)
        machine.stop()
        world.run(3.0)
        assert machine.running is None
    assert exits == ["m/1 OSError: no disk", "m/2 "]


def test_a_machine_that_sleeps_does_nothing_and_its_lease_clock_runs_on() -> None:
    clocks: list[tuple[float, float]] = []

    async def tick(running: Running) -> None:
        environment = running.environment
        while True:
            clocks.append((environment.monotonic_ms(), environment.lease_clock_ms()))
            await asyncio.sleep(1.0)

    with World(1) as world:
        machine = world.machine("m")
        machine.start(doing(tick))
        world.at(1.5, machine.suspend)
        world.at(11.5, machine.wake)
        world.run(11.4)
        assert len(clocks) == 2
        world.run(12.2)
        assert len(clocks) == 3
    (_, _), (awake_ms, lease_ms), (awake_after_ms, lease_after_ms) = clocks
    assert awake_after_ms - awake_ms == pytest.approx(1_000.0, abs=5.0)
    assert lease_after_ms - lease_ms == pytest.approx(11_000.0, abs=5.0)


def test_power_that_fails_in_its_sleep_ends_that_too() -> None:
    with World(1) as world:
        machine = world.machine("m")
        machine.start(doing(nothing))
        world.run(1.0)
        machine.suspend()
        machine.power_off(ALL_IS_LOST)
        machine.wake()
        assert not machine.is_on
        machine.boot()
        machine.start(doing(nothing))
        world.run(2.0)
        assert machine.running is not None


def test_what_programs_log_is_in_the_trace_and_nowhere_else() -> None:
    lines: list[str] = []

    async def complain(running: Running) -> None:
        from odradek.runtime.tasks import logger

        logger.warning("something about %s", running.process.name)

    with World(1, log=lines.append) as world:
        world.machine("m").start(doing(complain))
        world.run(1.0)
    assert [line for line in lines if "something about m/1" in line]
