"""A simulated process: asyncio works in it as on its own loop, and it can be paused, slowed and killed.

Several run in one thread, each on its own loop, and none notices the others.
"""

import asyncio
import inspect
from collections.abc import AsyncGenerator

import pytest

from odradek.runtime.tasks import breathe
from odradek.testing.killed import Killed
from odradek.testing.sim.world.process import Stuck
from odradek.testing.sim.world.process_loop import TIDY_TIMERS
from tests.sim.support import Bench


def test_each_process_has_its_own_loop_which_asyncio_finds() -> None:
    bench = Bench()
    one, other = bench.process("one", 100.0), bench.process("other", 7_000.0)
    found: dict[str, list[object]] = {}

    async def look(name: str) -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        before_s = loop.time()
        await asyncio.sleep(0.5)
        found[name] = [loop, loop.is_running(), task.get_name(), before_s, loop.time() - before_s]
        assert asyncio.get_running_loop() is loop
        assert asyncio.current_task() is task

    one.start(look("one"), "first")
    other.start(look("other"), "second")
    bench.run()
    assert found["one"][:3] == [one.loop, True, "first"]
    assert found["other"][:3] == [other.loop, True, "second"]
    assert found["one"][3:] == [pytest.approx(100.0, abs=0.01), pytest.approx(0.5, abs=0.01)]
    assert found["other"][3:] == [pytest.approx(7_000.0, abs=0.01), pytest.approx(0.5, abs=0.01)]
    assert one.errors + other.errors == []


def test_no_loop_runs_between_the_rounds() -> None:
    bench = Bench()
    bench.process().start(asyncio.sleep(1.0), "sleeper")
    seen: list[str] = []

    def look() -> None:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        seen.append("none")

    bench.at(0.5, look)
    bench.run()
    assert seen == ["none"]


def test_a_future_of_another_process_is_refused() -> None:
    bench = Bench()
    one, other = bench.process("one"), bench.process("other")
    foreign = other.loop.create_future()

    async def wait() -> None:
        await foreign

    one.start(wait(), "waiter")
    bench.run()
    assert len(one.errors) == 1
    assert "attached to a different loop" in one.errors[0]


def test_timeouts_shields_groups_and_generators_work() -> None:
    bench = Bench()
    process = bench.process()
    seen: list[object] = []

    async def numbers() -> AsyncGenerator[int]:
        for number in range(3):
            await asyncio.sleep(0.01)
            yield number

    async def work() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await asyncio.shield(asyncio.sleep(0.2))
        seen.extend(await asyncio.gather(asyncio.sleep(0.1, "a"), asyncio.sleep(0.05, "b")))
        seen.extend([number async for number in numbers()])
        await asyncio.wait_for(asyncio.sleep(0.01), 1.0)
        seen.append("end")

    bench.do(process, work(), 2.0)
    assert seen == ["a", "b", 0, 1, 2, "end"]


def test_what_is_for_the_end_of_a_round_comes_after_all_of_it_and_before_the_next() -> None:
    bench = Bench()
    process = bench.process()
    seen: list[str] = []

    async def work() -> None:
        process.loop.call_soon(seen.append, "next round")
        process.loop.call_at_end(lambda: seen.append("end"))
        process.loop.call_at_end(lambda: seen.append("never")).cancel()
        seen.append("round")

    process.start(work(), "work")
    bench.run()
    assert seen == ["round", "end", "next round"]


def test_a_timer_fires_in_time_though_an_earlier_is_cancelled_and_a_later_is_set() -> None:
    bench = Bench()
    process = bench.process()
    rung: list[tuple[str, float]] = []

    def ring(name: str) -> None:
        rung.append((name, process.loop.time() - 100.0))

    async def work() -> None:
        loop = asyncio.get_running_loop()
        early = loop.call_later(0.5, ring, "cancelled")
        loop.call_later(2.0, ring, "late")
        loop.call_later(1.0, ring, "middle")
        early.cancel()

    bench.at(0.6, process.post, lambda: process.loop.call_later(0.2, ring, "sooner"))
    bench.do(process, work(), 3.0)
    assert [name for name, _ in rung] == ["sooner", "middle", "late"]
    assert [at_s for _, at_s in rung] == [pytest.approx(at_s, abs=0.001) for at_s in (0.8, 1.0, 2.0)]


def test_cancelled_timers_do_not_pile_up() -> None:
    bench = Bench()
    process = bench.process()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(50):
            for _ in range(100):
                loop.call_later(3600.0, print).cancel()
            await asyncio.sleep(0.001)

    bench.do(process, work())
    assert len(process.loop.timers) < 4 * TIDY_TIMERS


def test_what_came_while_it_was_paused_is_served_before_the_timers_that_are_due() -> None:
    bench = Bench()
    process = bench.process()
    seen: list[str] = []

    async def work() -> None:
        asyncio.get_running_loop().call_later(0.5, seen.append, "timer")

    process.start(work(), "work")
    bench.at(0.1, process.pause)
    bench.at(0.9, process.post, seen.append, "request")
    bench.run(2.0)
    assert seen == []
    process.resume()
    bench.run(1.0)
    assert seen == ["request", "timer"]


def test_a_paused_process_has_no_helper_threads_either() -> None:
    bench = Bench()
    process = bench.process()
    seen: list[str] = []

    async def work() -> None:
        process.pause()
        await process.run_in_helper(lambda: seen.append("helped"))
        seen.append("told")

    process.start(work(), "work")
    bench.run()
    assert seen == []
    process.resume()
    bench.run()
    assert seen == ["helped", "told"]


def test_a_helper_takes_its_time_and_hands_on_errors() -> None:
    bench = Bench()
    process = bench.process()
    seen: list[object] = []

    def slow() -> str:
        process.spend(0.25)
        return "done"

    def fail() -> None:
        raise OSError("no")

    async def work() -> None:
        loop = asyncio.get_running_loop()
        before_s = loop.time()
        seen.append(await process.run_in_helper(slow))
        seen.append(loop.time() - before_s)
        with pytest.raises(OSError, match="no"):
            await process.run_in_helper(fail)

    bench.do(process, work())
    assert seen == ["done", pytest.approx(0.25, abs=0.01)]


def test_no_more_helpers_run_than_there_may_be() -> None:
    bench = Bench()
    process = bench.process()
    process.helpers_max = 2
    ended: list[float] = []

    async def work() -> None:
        async def one() -> None:
            await process.run_in_helper(lambda: process.spend(0.1))
            ended.append(asyncio.get_running_loop().time() - 100.0)

        await asyncio.gather(*(one() for _ in range(4)))

    bench.do(process, work())
    assert ended == [pytest.approx(at_s, abs=0.01) for at_s in (0.1, 0.1, 0.2, 0.2)]


def test_time_passes_for_one_that_waits_in_a_call_and_not_for_the_others() -> None:
    bench = Bench()
    slow, quick = bench.process("slow"), bench.process("quick")
    seen: list[str] = []

    async def work(name: str, spends_s: float) -> None:
        if spends_s:
            slow.spend(spends_s)
        await asyncio.sleep(0)
        seen.append(name)

    slow.start(work("slow", 0.5), "work")
    quick.start(work("quick", 0.0), "work")
    bench.run(0.4)
    assert seen == ["quick"]
    bench.run(0.2)
    assert seen == ["quick", "slow"]


def test_a_device_is_no_slower_for_a_machine_that_computes_slowly() -> None:
    bench = Bench()
    process = bench.process()
    process.cpu.slowness = 100.0
    seen: list[str] = []

    async def work() -> None:
        process.spend(0.1)
        await asyncio.sleep(0)
        seen.append("done")

    process.start(work(), "work")
    bench.run(0.2)
    assert seen == ["done"]


def test_one_that_goes_round_without_end_is_found() -> None:
    bench = Bench()
    process = bench.process()
    process.cpu.round_ms = 0.001

    async def spin() -> None:
        while True:
            await breathe()

    process.start(spin(), "spinner")
    with pytest.raises(Stuck, match="spinner"):
        bench.run(5.0)


def test_what_a_killed_process_tries_in_its_finally_clauses_comes_to_nothing() -> None:
    bench = Bench()
    process = bench.process()
    seen: list[str] = []

    async def helper() -> None:
        seen.append("a task was started")

    async def work(name: str) -> None:
        try:
            await asyncio.sleep(100.0)
        finally:
            seen.append(f"{name} tidies up")
            try:
                process.check()
                seen.append("it reached the world")
            finally:
                process.loop.create_task(helper())

    process.start(work("first"), "first")
    process.start(work("second"), "second")
    process.when_killed(lambda: seen.append("severed"))
    bench.run()
    process.kill()
    process.kill()
    bench.run()
    assert seen == ["severed", "first tidies up", "second tidies up"]
    assert process.errors == []


def test_what_had_not_begun_when_it_was_killed_never_does() -> None:
    bench = Bench()
    process = bench.process()
    seen: list[str] = []

    async def work() -> None:
        seen.append("began")

    coroutine = work()
    process.start(coroutine, "work")
    process.kill()
    bench.run()
    assert seen == []
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


def test_one_that_is_killed_in_the_middle_of_a_call_does_nothing_more() -> None:
    bench = Bench()
    process = bench.process()
    seen: list[str] = []

    def call() -> None:
        process.kill()
        raise Killed

    async def dies() -> None:
        seen.append("before")
        call()
        seen.append("after")

    async def other() -> None:
        seen.append("another task")

    process.start(dies(), "dies")
    process.start(other(), "other")
    bench.run()
    assert seen == ["before"]
    assert process.loop.is_closed()


def test_one_may_be_killed_within_a_helper_thread() -> None:
    bench = Bench()
    process = bench.process()
    seen: list[str] = []

    def call() -> None:
        process.kill()
        raise Killed

    async def work() -> None:
        try:
            await process.run_in_helper(call)
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    process.start(work(), "work")
    bench.run()
    assert seen == ["GeneratorExit"]
    assert process.loop.is_closed()


def test_nothing_reaches_a_dead_process() -> None:
    bench = Bench()
    process = bench.process()
    seen: list[str] = []
    process.kill()
    process.post(seen.append, "posted")
    bench.run()
    assert seen == []
    with pytest.raises(Killed):
        process.check()


def test_the_world_goes_on_after_an_error_that_nobody_handles() -> None:
    bench = Bench()
    process = bench.process()

    async def fail() -> None:
        raise ValueError("a mistake")

    process.start(fail(), "failing")
    process.post(lambda: 1 // 0)
    bench.run()
    assert [error.split(": ")[2] for error in process.errors] == ["ZeroDivisionError", "ValueError"]
