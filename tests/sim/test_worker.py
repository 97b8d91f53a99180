"""A worker's simulated process: on its owner's files, dead or late as its machine's faults say, and alive for a while
when its owner is not.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from odradek.broker.disk.disk import Disk
from odradek.runtime.worker import GiveWay, Stopped, Talk, Worker, WorkerEnded
from odradek.testing.sim.world.losing_disk import ALL_IS_KEPT
from odradek.testing.sim.world.machine import Machine, Main, Running
from odradek.testing.sim.world.worker import WorkerFaults
from odradek.testing.sim.world.world import World


def writer(disk: Disk, give_way: GiveWay) -> Talk:
    """Writes a file for each question, in as many steps as it says, and removes it again when nobody waits."""
    try:
        question = yield b"ready"
        while True:
            for number in range(int(question)):
                disk.write_new(f"file{number}", [b"x"])
                give_way()
            question = yield question
    except Stopped:
        disk.write_new("stopped", [])
        raise


def asking(answers: list[bytes | WorkerEnded], *questions: bytes, faults: WorkerFaults | None = None) -> Main:
    async def main(running: Running) -> None:
        if faults is not None:
            running.machine.worker_faults = faults
        worker = await started(running)
        assert worker.greeting == b"ready"
        for question in questions:
            try:
                answers.append(await worker.ask(question))
            except WorkerEnded as error:
                answers.append(error)
        await worker.close()
        await running.wait_for_stop()

    return main


async def started(running: Running) -> Worker:
    return await running.environment.start_worker("unused", writer, running.disk, in_process=True)


def files(machine: Machine) -> list[str]:
    return machine.device.list_dir("")


def test_it_works_on_the_same_files() -> None:
    answers: list[bytes | WorkerEnded] = []
    with World(1) as world:
        machine = world.machine("m")
        machine.start(asking(answers, b"1", b"3"))
        world.run(1.0)
        assert answers == [b"1", b"3"]
        assert files(machine) == ["file0", "file1", "file2"]
        assert world.errors == []


def test_it_dies_within_its_work_or_with_its_answer() -> None:
    seen: set[tuple[int, bool]] = set()
    for seed in range(40):
        answers: list[bytes | WorkerEnded] = []
        with World(seed) as world:
            machine = world.machine("m")
            machine.start(asking(answers, b"3", b"3", faults=WorkerFaults(death_share=1.0, changes_max=20)))
            world.run(1.0)
            assert isinstance(answers[1], WorkerEnded)
            assert world.errors == []
            seen.add((len(files(machine)), isinstance(answers[0], WorkerEnded)))
    assert {count for count, has_failed in seen if has_failed} >= {1, 2, 3}
    assert (3, False) in seen


def test_its_answer_may_come_late() -> None:
    answers: list[bytes | WorkerEnded] = []
    with World(3) as world:
        machine = world.machine("m")
        machine.start(asking(answers, *[b"1"] * 10, faults=WorkerFaults(late_share=1.0, late_ms=1000.0)))
        world.run(2.0)
        assert 0 < len(answers) < 10
        assert files(machine) == ["file0"]


def orphaned(work: Callable[[Worker], Awaitable[Any]]) -> Main:
    async def main(running: Running) -> None:
        await work(await started(running))
        await running.wait_for_stop()

    return main


async def ask_much(worker: Worker) -> None:
    await worker.ask(b"500")


async def ask_little(worker: Worker) -> None:
    await worker.ask(b"1")


@pytest.mark.parametrize("work", [ask_much, ask_little])
def test_an_orphan_goes_on_and_notices_later(work: Callable[[Worker], Awaitable[Any]]) -> None:
    with World(2) as world:
        machine = world.machine("m")
        machine.cpu.thread_ms = 50.0 if work is ask_much else 0.01
        machine.start(orphaned(work))
        world.run(0.001 if work is ask_much else 0.1)
        before = files(machine)
        machine.kill()
        assert files(machine) == before
        world.run(3.0)
        after = files(machine)
        assert "stopped" in after
        if work is ask_much:
            assert 2 <= len(after) <= 201, "it wrote when its owner was dead, and not all that it was asked for"
        assert world.errors == []


@pytest.mark.parametrize("end", ["power", "closed"])
def test_one_that_is_gone_writes_no_more(end: str) -> None:
    async def close_soon(worker: Worker) -> None:
        await worker.close()

    with World(2) as world:
        machine = world.machine("m")
        machine.start(orphaned(close_soon if end == "closed" else ask_little))
        world.run(0.1)
        before = files(machine)
        if end == "power":
            machine.power_off(ALL_IS_KEPT)
        world.run(5.0)
        assert files(machine) == before
        assert "stopped" not in before


def test_on_files_that_others_do_not_find_it_is_no_process() -> None:
    answers: list[bytes] = []

    async def main(running: Running) -> None:
        worker = await running.environment.start_worker("unused", writer, running.disk, in_process=False)
        answers.append(await worker.ask(b"1"))
        await running.wait_for_stop()

    with World(1) as world:
        machine = world.machine("m")
        machine.worker_faults = WorkerFaults(death_share=1.0)
        machine.start(main)
        world.run(1.0)
        assert answers == [b"1"]
