"""Compaction by a real process of a real broker: killed, stopped, and outliving a broker that was killed.

A topic is filled and becomes a compacted one; its worker is caught as it starts, or as it writes. In the end the log is
opened by itself: the newest record of each key is there, nothing twice, no file is left over.
"""

import asyncio
import os
import select
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigChange, ConfigResource
from odradek.client.admin.topics import NewTopic
from odradek.client.producer.producer import Producer
from processes.compaction_workers import workers_of
from processes.odradek_broker import OdradekBroker
from tests.broker.keeping import read
from tests.broker.log.logs import T0

RECORDS = 24_000
KEYS = 6_000
VALUE_BYTES = 1_000
SETTINGS = {"log.cleaner.backoff.ms": "100", "log.initial.task.delay.ms": "100"}
BEFORE = {"cleanup.policy": "delete", "segment.bytes": str(2 << 20), "min.cleanable.dirty.ratio": "0.01"}
PATIENCE_S = 30.0
LOOK_EVERY_S = 0.0005


class Filled:
    """A broker with a topic that is full, of which all but the last segment can be compacted."""

    def __init__(self, broker: OdradekBroker) -> None:
        self.broker = broker
        self.directory = broker.data_dir / "t-0"
        self.worker = -1
        asyncio.run(self._fill())

    async def _fill(self) -> None:
        async with Admin(bootstrap_servers=self.broker.bootstrap) as admin:
            await admin.create_topics([NewTopic("t", partitions=1, replication_factor=1, configs=BEFORE)])
        async with Producer(bootstrap_servers=self.broker.bootstrap) as producer:
            for number in range(RECORDS):
                await producer.send("t", key=b"%d" % (number % KEYS), value=b"%d" % number + bytes(VALUE_BYTES))

    def compact(self) -> None:
        async def alter() -> None:
            async with Admin(bootstrap_servers=self.broker.bootstrap) as admin:
                change = {ConfigResource.topic("t"): [ConfigChange.set("cleanup.policy", "compact")]}
                await admin.alter_configs(change)

        asyncio.run(alter())

    def catch(self, when: str) -> None:
        """Stops the worker of the round that comes, as soon as it is there, or as it writes."""
        self.compact()
        (self.worker,) = self.wait_for(lambda: workers_of(self.broker.pid))
        if when == "writing":
            self.wait_for(lambda: self.strays)
        os.kill(self.worker, signal.SIGSTOP)

    @property
    def strays(self) -> list[str]:
        return [name for name in os.listdir(self.directory) if name.endswith((".cleaned", ".swap"))]

    def wait_for(self, look: Callable[[], list[str]] | Callable[[], list[int]]) -> list[int]:
        deadline = time.monotonic() + PATIENCE_S
        while not (found := look()):
            assert time.monotonic() < deadline, self.broker.output
            time.sleep(LOOK_EVERY_S)  # between two looks at another process
        return [each for each in found if isinstance(each, int)]

    def wait_for_round(self, count: int = 1) -> None:
        self.wait_for(lambda: [1] * (self.broker.output.count("t-0: compacted up to offset") >= count))

    def check(self) -> None:
        """Of the log as the stopped broker has left it."""
        self.broker.stop()
        assert self.strays == []
        log = Log.open(FileDisk(), str(self.directory), LogConfig(), T0, is_clean=True)
        found = read(log)
        log.close_without_flush()
        assert len(found.offsets) < RECORDS, "it was compacted"
        assert log.log_end_offset == RECORDS
        newest = {record.key: record.value[:-VALUE_BYTES] for record in found.records if record.value is not None}
        assert newest == {b"%d" % key: b"%d" % (RECORDS - KEYS + key) for key in range(KEYS)}


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Filled]:
    words = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    with OdradekBroker(tmp_path / "data", *words, "--log-level", "info") as broker:
        yield Filled(broker)


@contextmanager
def end_of(pid: int) -> Generator[Callable[[], bool]]:
    """Whether the process ends within our patience, though it is nobody's child."""
    descriptor = os.pidfd_open(pid)
    try:
        yield lambda: bool(select.select([descriptor], [], [], PATIENCE_S)[0])
    finally:
        os.close(descriptor)


MOMENTS = pytest.mark.parametrize("when", ["starting", "writing"])


@pytest.mark.only_in_compat
@MOMENTS
def test_a_worker_that_is_killed_is_followed_by_another(filled: Filled, when: str) -> None:
    filled.catch(when)
    os.kill(filled.worker, signal.SIGKILL)
    filled.wait_for_round()
    told = filled.broker.output
    if when == "writing":
        assert "is tried again in 100 ms: the worker failed: it ended by signal 9 (SIGKILL)" in told
    else:
        assert "by signal 9 (SIGKILL)" in told
    filled.check()


@pytest.mark.only_in_compat
@MOMENTS
def test_a_broker_that_stops_takes_its_worker_along_though_that_stands_still(filled: Filled, when: str) -> None:
    filled.catch(when)
    began = time.monotonic()
    assert filled.broker.terminate() == 0
    assert time.monotonic() - began < 2, "of which the worker's end is the least"
    assert not is_there(filled.worker)
    assert [name for name in filled.strays if name.endswith(".cleaned")] == []
    filled.broker.start()
    filled.wait_for_round()
    filled.check()


@pytest.mark.only_in_compat
@MOMENTS
def test_a_worker_that_outlives_its_broker_does_no_harm_to_the_next_one(filled: Filled, when: str) -> None:
    filled.catch(when)
    filled.broker.kill()
    assert is_there(filled.worker)
    with end_of(filled.worker) as has_ended:
        filled.broker.start()
        os.kill(filled.worker, signal.SIGCONT)
        filled.wait_for_round()
        assert has_ended()
    filled.check()


def test_a_round_leaves_no_process_and_no_requests_wait_for_it(filled: Filled) -> None:
    filled.compact()
    filled.wait_for_round()
    assert workers_of(filled.broker.pid) == []
    assert "WARNING" not in filled.broker.output
    filled.check()
