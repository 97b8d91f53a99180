"""What people and devices do to a data directory: files and directories that are gone, or something else, and a clock
that jumps. Nothing is lost without a word, everything else is served, and what was taken away can be put back.

(Bits that flip: `test_partitions_flipped_bits.py`, `log/test_log_flipped_bits.py`. Foreign files:
`log/test_recovery.py`. Directories of unknown topics: `test_server_directories.py`.)
"""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.disk.disk import Disk, File
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.server import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.broker.keeping import Kept
from tests.broker.log.logs import T0, open_log, read_all
from tests.broker.servers import broker_on, started
from tests.broker.wire import batch, connected, create_topic, produced, running_broker

DAY_MS = 24 * 3600 * 1000
OPTIONS = {"log.segment.bytes": str(1 << 20)}
RECORDS = 40
VALUE = b"v" * 100_000  # about ten to a segment


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be opened is tried again with each request, not once a second."""
    monkeypatch.setattr("odradek.broker.partitions.table.RETRY_MS", 0)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def with_records(data_dir: Path) -> list[int]:
    """A broker ran on the directory, and stopped; `orders` has these segments, `others` a record."""
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker, connected(broker) as client:
        for topic in ("orders", "others"):
            await create_topic(client, topic)
        for _ in range(RECORDS):
            assert (await produced(client, "orders", batch(VALUE))).error_code == ErrorCode.NONE
        assert (await produced(client, "others", batch(b"a"))).error_code == ErrorCode.NONE
        base_offsets = broker.context.partitions.leader("orders", 0).log.base_offsets
    assert len(base_offsets) >= 4
    return base_offsets


async def answers(broker: Broker, topic: str) -> ErrorCode:
    """What a Produce of one record is answered."""
    async with connected(broker) as client:
        return ErrorCode((await produced(client, topic, batch(b"more"))).error_code)


def log_bytes(broker: Broker) -> bytes:
    return read_all(broker.context.partitions.leader("orders", 0).log)


def lines(caplog: pytest.LogCaptureFixture, *words: str) -> list[str]:
    """The messages that hold all of these words."""
    return [message for message in caplog.messages if all(word in message for word in words)]


async def test_a_missing_directory_is_not_replaced_by_an_empty_one_and_can_be_put_back(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await with_records(data_dir)
    (data_dir / "orders-0").rename(data_dir.parent / "elsewhere")
    disk = FileDisk()
    async with running_broker(OPTIONS, disk, str(data_dir)) as broker:
        for _ in range(3):
            assert await answers(broker, "orders") == ErrorCode.KAFKA_STORAGE_ERROR
        assert await answers(broker, "others") == ErrorCode.NONE
        assert not (data_dir / "orders-0").exists()
        assert len(lines(caplog, "orders-0 is missing", f"offset {RECORDS}", "restore it, or delete the topic")) == 1
        (data_dir.parent / "elsewhere").rename(data_dir / "orders-0")
        assert await answers(broker, "orders") == ErrorCode.NONE
        log = broker.context.partitions.leader("orders", 0).log
        assert (log.log_start_offset, log.log_end_offset) == (0, RECORDS + 1)


async def test_an_empty_directory_in_its_place_is_not_taken_for_it(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As where a device is not mounted."""
    await with_records(data_dir)
    (data_dir / "orders-0").rename(data_dir.parent / "elsewhere")
    (data_dir / "orders-0").mkdir()
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker:
        for _ in range(3):
            assert await answers(broker, "orders") == ErrorCode.KAFKA_STORAGE_ERROR
        assert list((data_dir / "orders-0").iterdir()) == []
        assert len(lines(caplog, "orders-0 is empty", f"offset {RECORDS}")) == 1
        (data_dir / "orders-0").rmdir()
        (data_dir.parent / "elsewhere").rename(data_dir / "orders-0")
        assert await answers(broker, "orders") == ErrorCode.NONE
        assert log_bytes(broker).count(VALUE) == RECORDS


async def test_a_log_that_has_lost_its_topic_id_keeps_its_start(data_dir: Path) -> None:
    await with_records(data_dir)
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker:
        partitions = broker.context.partitions
        await partitions.delete_records(partitions.leader("orders", 0), 5)
    (data_dir / "orders-0" / "partition.metadata").unlink()
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker:
        log = broker.context.partitions.leader("orders", 0).log
        assert (log.log_start_offset, log.log_end_offset) == (5, RECORDS)
    assert (data_dir / "orders-0" / "partition.metadata").exists()


async def test_a_topic_whose_directory_is_missing_can_be_deleted_and_made_again(data_dir: Path) -> None:
    await with_records(data_dir)
    (data_dir / "orders-0").rename(data_dir.parent / "elsewhere")
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker, connected(broker) as client:
        await client.ask(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=5_000), 5)
        await create_topic(client, "orders")
        assert await answers(broker, "orders") == ErrorCode.NONE
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker:
        assert broker.context.partitions.leader("orders", 0).log.log_end_offset == 1


async def test_a_directory_without_its_segments_is_not_taken_for_an_empty_log(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base_offsets = await with_records(data_dir)
    for base_offset in base_offsets:
        (data_dir / "orders-0" / f"{base_offset:020d}.log").unlink()
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker:
        assert await answers(broker, "orders") == ErrorCode.KAFKA_STORAGE_ERROR
        assert await answers(broker, "others") == ErrorCode.NONE
    assert len(lines(caplog, "orders-0 has no segment left", f"offset {RECORDS}")) == 1


async def test_a_missing_last_segment_is_told_of_and_the_rest_is_served(
    data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base_offsets = await with_records(data_dir)
    (data_dir / "orders-0" / f"{base_offsets[-1]:020d}.log").unlink()
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker:
        log = broker.context.partitions.leader("orders", 0).log
        assert (log.log_start_offset, log.log_end_offset) == (0, base_offsets[-1])
        assert await answers(broker, "orders") == ErrorCode.NONE
    assert len(lines(caplog, f"ends at offset {base_offsets[-1]}", f"up to {RECORDS} was on the device")) == 1


@pytest.mark.parametrize("is_compacted", [False, True])
async def test_a_missing_segment_in_the_middle_is_told_of_when_it_is_read(
    data_dir: Path, caplog: pytest.LogCaptureFixture, is_compacted: bool
) -> None:
    """In a compacted topic offsets are missing for another reason, and nothing is said."""
    base_offsets = await with_records(data_dir)
    (data_dir / "orders-0" / f"{base_offsets[1]:020d}.log").unlink()
    options = OPTIONS | ({"log.cleanup.policy": "compact"} if is_compacted else {})
    async with running_broker(options, FileDisk(), str(data_dir)) as broker:
        log = broker.context.partitions.leader("orders", 0).log
        for _ in range(2):
            data = bytes(log.fetch(base_offsets[1], 1 << 20, RECORDS, True).records)
            assert int.from_bytes(data[:8], "big") == base_offsets[2]
    found = lines(caplog, f"no batch holds offset {base_offsets[1]}", f"begins at {base_offsets[2]}")
    assert len(found) == (0 if is_compacted else 1)


async def test_what_is_no_directory_is_left_alone(data_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    await with_records(data_dir)
    (data_dir / "orders-0").rename(data_dir.parent / "elsewhere")
    (data_dir / "orders-0").write_bytes(b"a file")
    (data_dir / "strange-7").write_bytes(b"another file")
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker:
        assert await answers(broker, "orders") == ErrorCode.KAFKA_STORAGE_ERROR
        assert await answers(broker, "others") == ErrorCode.NONE
    assert len(lines(caplog, "orders-0 cannot be opened")) == 1
    assert (data_dir / "orders-0").read_bytes() == b"a file"
    assert (data_dir / "strange-7").read_bytes() == b"another file"


async def test_a_link_to_another_device_is_followed_and_a_deletion_leaves_what_it_leads_to(data_dir: Path) -> None:
    await with_records(data_dir)
    elsewhere = data_dir.parent / "elsewhere"
    (data_dir / "orders-0").rename(elsewhere)
    (data_dir / "orders-0").symlink_to(elsewhere)
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker, connected(broker) as client:
        assert await answers(broker, "orders") == ErrorCode.NONE
        assert log_bytes(broker).count(VALUE) == RECORDS
        await client.ask(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=5_000), 5)
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)):  # in case that the first one had no time for it
        assert [path for path in data_dir.iterdir() if path.name.startswith("orders-0")] == []
    assert any(path.suffix == ".log" for path in elsewhere.iterdir())


async def test_a_link_that_leads_nowhere_is_no_empty_log(data_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As when the other device is not there yet."""
    await with_records(data_dir)
    elsewhere = data_dir.parent / "elsewhere"
    (data_dir / "orders-0").rename(elsewhere)
    (data_dir / "orders-0").symlink_to(data_dir.parent / "not there yet")
    async with running_broker(OPTIONS, FileDisk(), str(data_dir)) as broker:
        assert await answers(broker, "orders") == ErrorCode.KAFKA_STORAGE_ERROR
        elsewhere.rename(data_dir.parent / "not there yet")
        assert await answers(broker, "orders") == ErrorCode.NONE
        assert log_bytes(broker).count(VALUE) == RECORDS
    assert len(lines(caplog, "orders-0 is missing")) == 1


class ReadOnlyPartition(MemoryDisk):
    """Lets nobody write below one directory, once it `is_read_only`, as where it is mounted so."""

    is_read_only = False

    def open(self, path: str, size_bytes: int | None = None) -> File:
        if self.is_read_only and "/orders-0/" in path:
            raise OSError(errno.EROFS, "Read-only file system", path)
        return super().open(path, size_bytes)


async def test_a_read_only_partition_is_refused_alone_and_served_again_later(caplog: pytest.LogCaptureFixture) -> None:
    disk = ReadOnlyPartition()
    async with started(broker_on(disk)) as broker, connected(broker) as client:
        for topic in ("orders", "others"):
            await create_topic(client, topic)
            assert (await produced(client, topic, batch(b"a"))).error_code == ErrorCode.NONE
    disk.is_read_only = True
    async with started(broker_on(disk)) as broker:
        assert await answers(broker, "orders") == ErrorCode.KAFKA_STORAGE_ERROR
        assert await answers(broker, "others") == ErrorCode.NONE
        disk.is_read_only = False
        assert await answers(broker, "orders") == ErrorCode.NONE
    assert len(lines(caplog, "orders-0 cannot be opened", "Read-only file system")) == 1


def test_a_clock_that_jumps_back_loses_nothing() -> None:
    """By ten days, between two appends; then everything that goes by time is done, and the log is opened again."""
    configs = {"retention.ms": str(DAY_MS), "segment.ms": str(DAY_MS)}
    kept = Kept(configs, segment_bytes=400, time_ms=T0 + 10 * DAY_MS)
    for number in range(5):
        kept.append((None, b"before %d" % number))
    kept.environment.time_ms = T0
    for number in range(5):
        kept.append((None, b"after %d" % number))

    def passes(step: Callable[[], None]) -> None:
        step()
        assert [record.value for record in kept.read.records] == [
            *(b"before %d" % number for number in range(5)),
            *(b"after %d" % number for number in range(5)),
        ]

    for step in (kept.retain, kept.settle, kept.clean, kept.restart, kept.retain, kept.kill_and_start, kept.retain):
        passes(step)
    first = kept.log.offset_for_timestamp(T0, kept.log.log_end_offset)
    assert first is not None
    assert first.offset == 0, "the first record that is as late is one of before"


def test_offsets_are_found_by_time_although_the_clock_jumped_back() -> None:
    disk: Disk = MemoryDisk()
    kept = Kept({}, disk=disk, segment_bytes=400, time_ms=T0 + 1000)
    for number in range(20):
        if number == 10:
            kept.environment.time_ms = T0
        kept.append((None, b"%d" % number))
        kept.environment.time_ms += 1
    kept.partitions.close()
    log = open_log(disk)
    found = [log.offset_for_timestamp(time_ms, 20) for time_ms in (T0, T0 + 5, T0 + 1003, T0 + 1010)]
    assert [None if each is None else each.offset for each in found] == [0, 0, 3, None]
