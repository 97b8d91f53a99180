"""A reader of a few lines: the warm-up's records come first, the others within the clock, and all count in the sum."""

import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable

import pytest

from benchmarks.contenders.client_load import ClientLoad
from benchmarks.contenders.job import Job, Reading
from benchmarks.contenders.reading import group_of, read, run_reading, went_silent

LOAD = ClientLoad("t", count=10, warm_count=3, value_bytes_min=50, value_bytes_max=150, key_bytes=16)
JOB = Job("consume", "Odradek", "get_batch", "127.0.0.1", 9092, LOAD)


class FakeConsumer:
    """Has records that add up to their count. Those of the warm-up take long."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def take(self, wanted: int) -> int:
        if not self.asked:
            time.sleep(0.2)  # not measured
        self.asked.append(wanted)
        return wanted


def by_blocking(fake: FakeConsumer) -> Reading:
    return read(LOAD, fake.take)


def by_asyncio(fake: FakeConsumer) -> Reading:
    @contextlib.asynccontextmanager
    async def consumer_of(job: Job) -> AsyncGenerator[FakeConsumer, None]:
        assert job is JOB
        yield fake

    async def take(consumer: FakeConsumer, wanted: int) -> int:
        return consumer.take(wanted)

    return run_reading(JOB, consumer_of, take)


@pytest.mark.parametrize("run", [by_blocking, by_asyncio])
def test_the_clock_runs_behind_the_warm_up_and_all_is_added_up(run: Callable[[FakeConsumer], Reading]) -> None:
    fake = FakeConsumer()
    found = run(fake)
    assert fake.asked == [3, 10]
    assert found.total == 13
    assert 0 < found.seconds < 0.1
    assert 0 <= found.cpu_seconds < 0.1


def test_every_process_has_a_group_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    first = group_of(JOB)
    monkeypatch.setattr(os, "getpid", os.getppid)
    assert group_of(JOB) != first


def test_silence_is_told_with_how_far_it_came() -> None:
    assert str(went_silent("aiokafka", 5, 13)) == "aiokafka gave 5 of 13 records, and nothing more within 10 s"
