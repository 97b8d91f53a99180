"""The jobs of upkeep on virtual time: when they run, that one that fails goes on, what waiting consumers learn."""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from odradek.broker.cluster.topics import delete_topic
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.handling.context import Context
from odradek.broker.log.checkpoint import HIGH_WATERMARKS, RECOVERY_POINTS, read_offsets
from odradek.broker.log.config import LogConfig
from odradek.broker.partitions.maintenance import Maintenance
from odradek.broker.replica.partition import Partition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import PartitionData
from odradek.protocol.primitives import Buffer
from tests.broker.api.fetching import INITIAL, LARGE, fetched, request, told, wanted
from tests.broker.log.compacted_logs import data_batch
from tests.broker.log.logs import T0
from tests.broker.support import DATA_DIR, append, ask, make_topic, running_broker
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

NO_SETTINGS: Mapping[str, str] = {}
BY_TIME = {"retention.ms": "10000"}
FIRST_S = 30
CHECK_S = 300


@dataclass
class Running:
    """A broker with upkeep, whose wall clock begins at T0 and can be moved."""

    context: Context
    environment: VirtualEnvironment
    upkeep: Maintenance

    def partition(self, topic: str = "orders") -> Partition:
        return self.context.partitions.leader(topic, 0)

    async def topic(self, name: str = "orders", configs: Mapping[str, str] = BY_TIME) -> Partition:
        """With small segments."""
        await make_topic(self.context, name, configs=configs)
        self.partition(name).log.config = LogConfig(segment_bytes=160)
        return self.partition(name)

    def fill(self, name: str = "orders", count: int = 6) -> None:
        """Two records in each segment."""
        for _ in range(count):
            append(self.partition(name), data_batch(0, (b"k", b""), timestamp_ms=self.environment.now_ms()))

    async def delete(self, name: str = "orders") -> None:
        topic = self.context.metadata.image.topics[name]
        await self.context.metadata.applied(await delete_topic(self.context.metadata.store, topic))


@asynccontextmanager
async def running(disk: MemoryDisk | None = None, settings: Mapping[str, str] = NO_SETTINGS) -> AsyncGenerator[Running]:
    async with running_broker(settings, disk=disk) as context:
        environment = VirtualEnvironment()
        environment.jump_ms(T0 - environment.now_ms())
        upkeep = Maintenance(context.disk, environment, context.tasks, context.config, context.partitions)
        yield Running(context, environment, upkeep)


# ------------------------------------------------------------------------------------------------------- when they run
async def test_retention_runs_at_its_interval_and_files_go_a_minute_later() -> None:
    async with running() as broker:
        partition = await broker.topic()
        broker.upkeep.start()
        await asyncio.sleep(FIRST_S + 1)
        broker.fill()
        await asyncio.sleep(CHECK_S - 2)
        assert partition.log.base_offsets == [0, 2, 4]
        await asyncio.sleep(2)
        assert partition.log.base_offsets == [6]
        directory = partition.log.directory
        await asyncio.sleep(58)
        assert len([name for name in broker.context.disk.list_dir(directory) if name.endswith(".deleted")]) == 9
        await asyncio.sleep(2)
        assert not [name for name in broker.context.disk.list_dir(directory) if name.endswith(".deleted")]


async def test_retention_and_recovery_points_begin_half_a_minute_after_the_start() -> None:
    async with running() as broker:
        partition = await broker.topic()
        broker.fill()
        broker.upkeep.start()
        await asyncio.sleep(FIRST_S - 1)
        assert partition.log.log_start_offset == 0
        assert not broker.context.disk.exists(f"{DATA_DIR}/{RECOVERY_POINTS}")
        await asyncio.sleep(2)  # of virtual time, as all here
        assert partition.log.log_start_offset == 6
        assert broker.context.disk.exists(f"{DATA_DIR}/{RECOVERY_POINTS}")


async def test_an_interval_that_is_changed_counts_from_the_next_time() -> None:
    settings = {"log.initial.task.delay.ms": "1000", "log.retention.check.interval.ms": "1000"}
    async with running(settings=settings) as broker:
        partition = await broker.topic(configs={"retention.ms": "500"})
        broker.upkeep.start()
        broker.fill()
        await asyncio.sleep(0.9)
        assert partition.log.log_start_offset == 0
        await asyncio.sleep(0.2)
        assert partition.log.log_start_offset == 6
        broker.context.config.__dict__["log_retention_check_interval_ms"] = 100_000
        await asyncio.sleep(1)
        broker.fill()
        await asyncio.sleep(99)
        assert partition.log.log_start_offset == 6
        await asyncio.sleep(2)
        assert partition.log.log_start_offset == 12


async def test_checkpoints_are_written_where_anything_moved() -> None:
    writes: list[str] = []

    class Watched(MemoryDisk):
        def write_whole(self, path: str, data: Buffer) -> None:
            writes.append(path)
            super().write_whole(path, data)

    async with running(Watched()) as broker:
        await broker.topic()
        broker.fill()
        broker.upkeep.start()
        writes.clear()
        await asyncio.sleep(FIRST_S + 1)
        paths = [f"{DATA_DIR}/{name}" for name in (RECOVERY_POINTS, HIGH_WATERMARKS)]
        assert [writes.count(path) for path in paths] == [1, 1], "not with every interval"
        assert [read_offsets(broker.context.disk, path) for path in paths] == [{("orders", 0): 4}, {("orders", 0): 6}]
        broker.fill()
        await asyncio.sleep(61)
        assert [writes.count(path) for path in paths] == [2, 2]


async def test_idle_producers_are_forgotten() -> None:
    async with running(settings={"producer.id.expiration.ms": "100000"}) as broker:
        partition = await broker.topic()
        append(partition, data_batch(0, (b"k", b""), timestamp_ms=broker.environment.now_ms(), producer=(5, 0, 0)))
        broker.upkeep.start()
        await asyncio.sleep(99)
        assert len(partition.log.producers) == 1
        await asyncio.sleep(602)
        assert len(partition.log.producers) == 0


async def test_compaction_runs_at_its_interval() -> None:
    async with running() as broker:
        partition = await broker.topic(configs={"cleanup.policy": "compact"})
        broker.fill()
        broker.upkeep.start()
        await asyncio.sleep(14)
        assert partition.log.size_bytes > 300
        await asyncio.sleep(2)
        assert partition.log.size_bytes < 300


# ------------------------------------------------------------------------------------------------- when something fails
class FailingDisk(MemoryDisk):
    """Cannot read, rename or sync below `failing`."""

    failing = "nothing"

    def _check(self, path: str) -> None:
        if path.startswith(self.failing):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
        self._check(path)
        return super().readable_bytes(path, position, size_bytes)

    def rename(self, source: str, target: str) -> None:
        self._check(source)
        super().rename(source, target)


def forget(partition: Partition, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked first about a segment is not known yet, as after a start."""
    for segment in partition.log.segments:
        monkeypatch.setattr(segment.indexes, "first_timestamp_ms", None)


@pytest.mark.parametrize("policy", ["delete", "compact"])
async def test_a_log_that_cannot_be_read_keeps_no_other_from_its_turn(
    policy: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FailingDisk()
    async with running(disk) as broker:
        for name in ("bad", "good"):
            partition = await broker.topic(name, {**BY_TIME, "cleanup.policy": policy})
            broker.fill(name)
            forget(partition, monkeypatch)
        disk.failing = f"{DATA_DIR}/bad-0"
        broker.upkeep.start()
        await asyncio.sleep(CHECK_S + 1)
        good = broker.partition("good").log
        assert good.log_start_offset == 6 if policy == "delete" else good.size_bytes < 300
        assert broker.partition("bad").log.base_offsets == [0, 2, 4]
        assert "bad" in caplog.text
        assert "good" not in caplog.text
        disk.failing = "nothing"
        await asyncio.sleep(CHECK_S)
        bad = broker.partition("bad").log
        assert bad.log_start_offset == 6 if policy == "delete" else bad.size_bytes < 300


async def test_a_log_that_cannot_be_synced_keeps_no_recovery_point_from_being_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running() as broker:
        for name in ("bad", "good"):
            await broker.topic(name)
            broker.fill(name)
        await asyncio.sleep(1)
        log = broker.partition("bad").log
        log.durability.durable_offset = 6
        log.close_without_flush()
        broker.upkeep.start()
        await asyncio.sleep(61)
        recovery_points = read_offsets(broker.context.disk, f"{DATA_DIR}/{RECOVERY_POINTS}")
        assert recovery_points == {("bad", 0): 4, ("good", 0): 4}
        assert "its recovery point stays where it is" in caplog.text


async def test_a_checkpoint_that_cannot_be_written_is_written_the_next_time(caplog: pytest.LogCaptureFixture) -> None:
    class Full(MemoryDisk):
        is_full = False

        def write_whole(self, path: str, data: Buffer) -> None:
            if self.is_full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            super().write_whole(path, data)

    disk = Full()
    async with running(disk) as broker:
        await broker.topic()
        broker.fill()
        broker.upkeep.start()
        disk.is_full = True
        await asyncio.sleep(7)
        assert f"high watermarks: this time it could not be done: [Errno 28] {os.strerror(errno.ENOSPC)}" in caplog.text
        disk.is_full = False
        broker.fill(count=1)
        await asyncio.sleep(5)
        assert read_offsets(disk, f"{DATA_DIR}/{HIGH_WATERMARKS}") == {("orders", 0): 7}


async def test_a_log_that_another_broker_leads_is_left_to_that_one() -> None:
    async with running() as broker:
        partition = await broker.topic()
        broker.fill()
        partition.resign()
        broker.environment.jump_ms(1 << 30)
        await broker.upkeep.delete_old_segments()
        assert partition.log.base_offsets == [0, 2, 4]


async def test_a_topic_that_is_deleted_meanwhile_is_not_an_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right when what is cold of it is being fetched."""

    class Cold(MemoryDisk):
        def cached_bytes(self, path: str, position: int, size_bytes: int) -> int:
            return 0 if path.endswith(".log") else size_bytes

    async with running(Cold()) as broker:
        for name in ("first", "second"):
            partition = await broker.topic(name)
            broker.fill(name)
            forget(partition, monkeypatch)
        task = asyncio.ensure_future(broker.upkeep.delete_old_segments())
        await asyncio.sleep(0)
        assert not task.done()
        await broker.delete("first")
        broker.environment.jump_ms(1 << 30)
        await task
        assert broker.partition("second").log.log_start_offset == 6
        assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


async def test_what_runs_ends_with_its_tasks() -> None:
    async with running() as broker:
        await broker.topic()
        broker.fill()
        broker.upkeep.start()
        await asyncio.sleep(CHECK_S + 1)
        assert len(broker.context.tasks) >= 5
    # Nothing is left behind, which the loop checks: neither the jobs nor the removal that was waiting for its time.


# --------------------------------------------------------------------------------------------------- what consumers see
async def test_a_fetch_that_waits_below_the_new_log_start_is_told_so() -> None:
    async with running() as broker:
        await broker.topic()
        broker.fill()
        in_the_last_segment = wanted(offset=4)  # what ends with another one would be answered at once
        sent = request(in_the_last_segment, max_wait_ms=3_600_000, min_bytes=LARGE)
        waiting = asyncio.ensure_future(fetched(broker.context, sent))
        await asyncio.sleep(1)
        assert not waiting.done()
        started_ms = broker.environment.monotonic_ms()
        broker.environment.jump_ms(1 << 30)
        await broker.upkeep.delete_old_segments()
        (answer,) = await waiting
        assert broker.environment.monotonic_ms() - started_ms < 1000
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_session_learns_the_new_log_start() -> None:
    async with running() as broker:
        await broker.topic()
        broker.fill()
        first = await ask(broker.context, request(wanted(offset=6), session=(0, INITIAL)), 12)
        assert [answer.log_start_offset for answer in told(first)] == [0]
        sent = request(session=(first.session_id, 1), max_wait_ms=3_600_000)
        waiting = asyncio.ensure_future(ask(broker.context, sent, 12))
        await asyncio.sleep(1)
        broker.environment.jump_ms(1 << 30)
        await broker.upkeep.delete_old_segments()
        await asyncio.sleep(0)
        broker.fill(count=1)
        answers = told(await waiting)
        assert [facts_of(answer) for answer in answers] == [(6, 7, ErrorCode.NONE)]
        second = await ask(broker.context, request(wanted(offset=7), session=(first.session_id, 2)), 12)
        assert told(second) == []
        broker.environment.jump_ms(1 << 30)
        await broker.upkeep.delete_old_segments()
        third = await ask(broker.context, request(session=(first.session_id, 3)), 12)
        assert [facts_of(answer) for answer in told(third)] == [(7, 7, ErrorCode.NONE)]


def facts_of(answer: PartitionData) -> tuple[int, int, int]:
    return answer.log_start_offset, answer.high_watermark, answer.error_code
