"""A job survives its way into the process, and the stopwatch counts only what happens within it."""

import asyncio
import time
import weakref

import pytest

from benchmarks.contenders.client_load import ClientLoad
from benchmarks.contenders.job import Job, Loop, Stopwatch, runner

LOAD = ClientLoad("t", count=10, warm_count=1, value_bytes_min=50, value_bytes_max=150, key_bytes=16)


def test_a_job_is_the_same_in_the_process() -> None:
    job = Job("latency", "aiokafka", "", "127.0.0.1", 9092, LOAD, "uvloop", 100.0, 0.25)
    assert Job.from_json(job.to_json()) == job
    assert job.bootstrap == "127.0.0.1:9092"


def test_the_stopwatch_tells_time_from_cpu_time() -> None:
    with Stopwatch() as resting:
        time.sleep(0.1)  # measured
    assert resting.timing.seconds >= 0.1
    assert resting.timing.cpu_seconds < 0.08
    with Stopwatch() as working:
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
    assert working.timing.cpu_seconds >= 0.1
    assert working.timing.seconds >= 0.09


def test_garbage_of_before_is_gone_before_the_clock_runs() -> None:
    class Ring:
        """Refers to itself, so that it stays until somebody collects it."""

        def __init__(self) -> None:
            self.myself = self

    gone = weakref.ref(Ring())
    with Stopwatch():
        assert gone() is None


@pytest.mark.parametrize(("loop", "module"), [("asyncio", "asyncio"), ("uvloop", "uvloop")])
def test_the_loop_is_the_one_that_was_asked_for(loop: Loop, module: str) -> None:
    async def module_of_the_loop() -> str:
        return type(asyncio.get_running_loop()).__module__.partition(".")[0]

    with runner(loop) as running:
        assert running.run(module_of_the_loop()) == module
