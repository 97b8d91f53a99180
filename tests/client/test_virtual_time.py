"""The virtual loop: time jumps and nothing else changes; what hangs, spins, never ends or is left behind is found."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.virtual_time import (
    SECONDS_MAX,
    START_S,
    BusyLoop,
    Deadlock,
    Leftovers,
    NeverEnds,
    VirtualEnvironment,
    VirtualTimeLoop,
    check_nothing_is_left,
    run_virtual,
    threads_run,
    virtual_loop,
)


# ------------------------------------------------------------------------------------------------------------- time
def test_the_clock_jumps_to_each_timer_and_stands_still_between() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        seen = [loop.time()]
        for seconds in (0.001, 3_000, 0, 1e-6):
            await asyncio.sleep(seconds)
            seen.append(loop.time())
        for _ in range(100):
            await asyncio.sleep(0)
        return [*seen, loop.time()]

    before = time.monotonic()
    seen = run_virtual(main())
    assert time.monotonic() - before < 5
    assert [round(at - START_S, 6) for at in seen] == [0, 0.001, 3000.001, 3000.001, 3000.001001, 3000.001001]


@given(st.lists(st.floats(0, 3_000, allow_nan=False), max_size=20))
def test_timers_run_in_their_order_and_at_their_time(delays_s: list[float]) -> None:
    ran: list[tuple[float, float]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()

        def ring(due: float) -> None:
            ran.append((due, loop.time()))

        for delay_s in delays_s:
            loop.call_later(delay_s, ring, loop.time() + delay_s)
        await asyncio.sleep(3_001)

    run_virtual(main())
    assert [due for due, _ in ran] == sorted(START_S + delay_s for delay_s in delays_s)
    assert all(0 <= at - due < 1e-8 or -1e-8 < at - due <= 0 for due, at in ran), "within the resolution of the clock"


def test_timers_can_ring_early_and_late_as_those_of_uvloop_do() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        rings: list[float] = []
        for delay_ms in (0.4, 1.4, 1.6, 7.0):
            start_s = loop.time()
            rung = loop.create_future()
            loop.call_later(delay_ms / 1000, rung.set_result, None)
            await rung
            rings.append(round((loop.time() - start_s) * 1000, 6))
        return rings

    assert run_virtual(main(), VirtualTimeLoop(whole_ms=True)) == [0, 1, 2, 7]
    assert run_virtual(main()) == [0.4, 1.4, 1.6, 7.0]


def test_a_timeout_ends_what_waits_and_a_cancelled_timer_moves_no_clock() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(1_000, ring).cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.create_future(), 5)
        return loop.time()

    rung: list[bool] = []

    def ring() -> None:
        rung.append(True)

    assert run_virtual(main()) == START_S + 5
    assert not rung


def test_two_runs_are_the_same() -> None:
    async def main() -> list[tuple[str, float]]:
        environment = VirtualEnvironment(seed=7)
        events: list[tuple[str, float]] = []

        async def work(name: str) -> None:
            for _ in range(20):
                await asyncio.sleep(environment.random_bytes(1)[0] / 100)
                events.append((name, environment.monotonic_ms()))

        await asyncio.gather(*map(work, "abcde"))
        return events

    assert run_virtual(main()) == run_virtual(main())


def test_the_wall_clock_follows_and_jumps_alone() -> None:
    async def main() -> None:
        environment = VirtualEnvironment()
        start_ms, monotonic_ms = environment.now_ms(), environment.monotonic_ms()
        await asyncio.sleep(1.5)
        assert environment.now_ms() == start_ms + 1_500
        environment.jump_ms(-86_400_000)
        assert environment.now_ms() == start_ms + 1_500 - 86_400_000
        environment.jump_ms(2 * 86_400_000)
        assert environment.now_ms() == start_ms + 1_500 + 86_400_000
        assert environment.monotonic_ms() == monotonic_ms + 1_500

    run_virtual(main())


def test_chance_comes_from_the_seed() -> None:
    async def main(seed: int) -> bytes:
        environment = VirtualEnvironment(seed=seed)
        return environment.random_bytes(16) + environment.random_uuid()

    assert run_virtual(main(1)) == run_virtual(main(1)) != run_virtual(main(2))


# ---------------------------------------------------------------------------------------------------- what is found
# ruff: noqa: ASYNC110 - these loops are what is looked for
async def waits_for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def spins() -> None:
    while True:
        await asyncio.sleep(0)


async def spins_slowly() -> None:
    while True:
        await asyncio.sleep(1e-6)


async def repeats() -> None:
    while True:
        await asyncio.sleep(10)


@pytest.mark.parametrize(
    ("main", "error"),
    [(waits_for_ever, Deadlock), (spins, BusyLoop), (spins_slowly, BusyLoop), (repeats, NeverEnds)],
)
def test_what_can_never_end_raises_and_names_its_tasks(
    main: Callable[[], Coroutine[Any, Any, None]], error: type[Exception]
) -> None:
    async def outer() -> None:
        asyncio.current_task().set_name("the test")  # type: ignore[union-attr]  # pyright: ignore
        await main()

    with pytest.raises(error, match=rf"task the test in .*outer \(test_virtual_time.py:\d+\) > {main.__name__} "):
        run_virtual(outer())


def test_a_loop_of_many_rounds_is_no_busy_loop_when_time_passes() -> None:
    async def main() -> int:
        for _ in range(1_000):
            await asyncio.sleep(0.01)
        return virtual_loop().iterations

    # A sleep takes two rounds: the timer ends a future, and the future wakes the task.
    assert 2_000 <= run_virtual(main(), VirtualTimeLoop(iterations_per_second_max=210)) <= 2_005
    with pytest.raises(BusyLoop):
        run_virtual(main(), VirtualTimeLoop(iterations_per_second_max=190))


def test_the_bound_of_time_can_be_set() -> None:
    run_virtual(asyncio.sleep(SECONDS_MAX + 1), VirtualTimeLoop(seconds_max=SECONDS_MAX + 2))
    with pytest.raises(NeverEnds):
        run_virtual(asyncio.sleep(11), VirtualTimeLoop(seconds_max=10))


def test_a_task_left_behind_is_found() -> None:
    async def main() -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(repeats(), name="forgotten")

    with pytest.raises(Leftovers, match="task forgotten in repeats"):
        run_virtual(main())


def test_a_timer_left_behind_is_found_and_a_cancelled_one_is_none() -> None:
    async def main(cancel: bool) -> None:
        timer = asyncio.get_running_loop().call_later(60, print)
        if cancel:
            timer.cancel()

    run_virtual(main(True))
    with pytest.raises(Leftovers, match=r"timer in 60.000 s"):
        run_virtual(main(False))


def test_an_error_in_a_callback_is_found() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(int, "no number")
        await asyncio.sleep(1)

    with pytest.raises(Leftovers, match="no number"):
        run_virtual(main())


def test_what_runs_out_by_itself_is_not_left_behind() -> None:
    async def main() -> None:
        async def cancelled() -> None:
            try:
                await repeats()
            finally:
                for _ in range(5):
                    await asyncio.sleep(0)

        task = asyncio.get_running_loop().create_task(cancelled())
        await asyncio.sleep(0)
        task.cancel()

    run_virtual(main())


def test_an_error_of_the_program_is_not_hidden_by_what_it_leaves() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(60, print)
        raise LookupError("the real one")

    with pytest.raises(LookupError, match="the real one"):
        run_virtual(main())


def test_what_is_slow_to_die_is_ended_when_the_loop_got_stuck() -> None:
    ended: list[str] = []

    async def main() -> None:
        for name in "ab":
            try:
                await waits_for_ever()
            finally:
                ended.append(name)

    async def insists() -> None:
        try:
            await main()
        finally:
            await main()

    with pytest.raises(Deadlock):
        run_virtual(insists())
    assert ended == ["a", "a"]


@pytest.mark.parametrize("debug", [False, True])
def test_a_loop_is_closed_whatever_happened(debug: bool) -> None:
    for main, error in ((waits_for_ever, Deadlock), (spins, BusyLoop)):
        loop = VirtualTimeLoop(iterations_per_second_max=1_000)
        with pytest.raises(error):
            run_virtual(main(), loop, debug=debug)
        assert loop.is_closed()
        assert loop.get_debug() is debug


# ---------------------------------------------------------------------------------------------------------- threads
def test_blocking_work_runs_in_the_loop_s_thread_and_takes_virtual_time() -> None:
    async def main() -> None:
        environment = VirtualEnvironment()
        before_ms = environment.monotonic_ms()
        assert await environment.run_blocking(threading.get_ident) == threading.get_ident()
        assert environment.monotonic_ms() == pytest.approx(before_ms + 250)  # pyright: ignore[reportUnknownMemberType]
        with pytest.raises(ZeroDivisionError):
            await environment.run_blocking(lambda: 1 // 0)

    run_virtual(main(), VirtualTimeLoop(blocking_ms=250))


def test_blocking_work_goes_on_when_nobody_waits_for_it_any_more() -> None:
    """A real thread cannot be called back either: it still reads the bytes it was given."""
    ran: list[int] = []

    async def main() -> None:
        environment = VirtualEnvironment()
        task = environment.loop.create_task(environment.run_blocking(ran.append, 1))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert ran == []
        await asyncio.sleep(1)

    run_virtual(main(), VirtualTimeLoop(blocking_ms=250))
    assert ran == [1]


def test_threads_call_in_while_they_are_expected() -> None:
    async def main() -> list[str]:
        loop = virtual_loop()
        answers: list[str] = []
        done = asyncio.Event()

        async def answer() -> str:
            await asyncio.sleep(60)  # virtual time passes while a thread waits
            return "answer"

        def ask() -> None:
            answers.append(asyncio.run_coroutine_threadsafe(answer(), loop).result(20))
            loop.call_soon_threadsafe(done.set)

        thread = threading.Thread(target=ask)
        with threads_run():
            thread.start()
            await done.wait()
        thread.join()
        return answers

    assert run_virtual(main()) == ["answer"]


# ------------------------------------------------------------------------------------------------------ what is refused
REAL_NETWORK: list[Callable[[asyncio.AbstractEventLoop], Coroutine[Any, Any, object]]] = [
    lambda loop: loop.create_connection(asyncio.Protocol, "127.0.0.1", 9),
    lambda loop: loop.create_server(asyncio.Protocol, "127.0.0.1", 0),
    lambda loop: loop.getaddrinfo("localhost", 9),
    lambda loop: loop.getnameinfo(("127.0.0.1", 9)),
    lambda loop: loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)),
]


@pytest.mark.parametrize("use", REAL_NETWORK)
def test_the_real_network_is_refused(use: Callable[[asyncio.AbstractEventLoop], Coroutine[Any, Any, object]]) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="no real network"):
            await use(asyncio.get_running_loop())

    run_virtual(main())


# -------------------------------------------------------------------------------------------------------- the marker
@pytest.mark.virtual_time
async def test_the_marker_gives_an_async_test_virtual_time_and_debug_mode() -> None:
    loop = virtual_loop()
    assert isinstance(loop, VirtualTimeLoop)
    assert loop.get_debug()
    await asyncio.sleep(3_000)
    assert loop.time() == START_S + 3_000


@pytest.mark.virtual_time(blocking_ms=40.0, seconds_max=50_000)
async def test_the_marker_s_arguments_reach_the_loop() -> None:
    assert virtual_loop().blocking_ms == 40.0
    await asyncio.sleep(49_000)


@pytest.mark.virtual_time
async def test_the_marker_s_check_finds_a_task_and_an_error_that_only_the_collector_sees() -> None:
    async def fail() -> None:
        raise LookupError("nobody looked")

    loop = virtual_loop()
    task = loop.create_task(repeats(), name="forgotten")
    cycle: list[object] = [loop.create_task(fail())]
    cycle.append(cycle)
    await loop.settle()
    del cycle
    with pytest.raises(Leftovers, match=r"task forgotten in repeats[^\n]*\n- timer in 10.000 s[^\n]*\n- error: Task"):
        await check_nothing_is_left()
    task.cancel()
    loop.errors.clear()


def test_the_check_stands_around_every_marked_test(request: pytest.FixtureRequest) -> None:
    marked = [item for item in request.session.items if item.get_closest_marker("virtual_time") is not None]
    assert marked
    assert all(item.fixturenames[0] == "nothing_is_left" for item in marked)  # type: ignore[attr-defined] # pyright: ignore
