"""Reads that do not wait in the loop's thread: on a disk in memory that a test makes cold, and on real files.

On the disk in memory every wait of the loop's thread is found out. Real files are written through and dropped from the
page cache, which Linux may refuse in part; so what depends on the cold is tried until it was cold once.
"""

import asyncio
import errno
import os
import struct
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from odradek.broker.disk.cold_reads import READ_AHEAD_BYTES, TRIES, read_without_blocking, warm
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.disk_page_cache import NotCached
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.log.log import Log
from odradek.broker.log.segments import Segments
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.primitives import Buffer
from odradek.runtime.environment import Environment
from tests.broker.cold_disk import ColdDisk
from tests.broker.keeping import DATA_DIR, DIRECTORY, NONE, Kept, read
from tests.broker.log.logs import T0

PATH = f"{DATA_DIR}/file"
PIECE = READ_AHEAD_BYTES


@pytest.fixture
def disk() -> ColdDisk:
    """With a cold file of three pieces and a bit."""
    disk = ColdDisk()
    disk.make_dir(DATA_DIR)
    disk.write_new(PATH, [bytes([number]) * PIECE for number in range(3)] + [b"end"])
    disk.evict(PATH)
    return disk


# ------------------------------------------------------------------------------------------------------------ patiently
async def test_what_is_hot_is_read_at_once_without_a_helper_thread(disk: ColdDisk) -> None:
    disk.evict(PATH, keep_bytes=100)
    file = disk.open(PATH)
    reading = read_without_blocking(disk, Environment(), lambda: file.pread(100, 0))
    with pytest.raises(StopIteration) as ended:
        reading.send(None)
    assert ended.value.value == bytes(100)
    assert disk.fetched == []
    assert disk.waits == []


async def test_what_is_cold_is_fetched_by_a_helper_thread_and_read_again(disk: ColdDisk) -> None:
    file, threads = disk.open(PATH), list[int]()

    class Watched(Environment):
        async def run_blocking(self, function: Callable[..., object], *args: object, **kwargs: object) -> object:  # type: ignore[override]
            def run() -> object:
                threads.append(threading.get_ident())
                return function(*args, **kwargs)

            return await super().run_blocking(run)

    calls: list[None] = []

    def ask() -> bytes:
        calls.append(None)
        return bytes(file.pread(10, PIECE - 5)) + bytes(file.pread(2 * PIECE, PIECE))

    assert await read_without_blocking(disk, Watched(), ask) == bytes(5) + b"\1" * 5 + b"\1" * PIECE + b"\2" * PIECE
    assert disk.fetched == [(PATH, PIECE - 5, PIECE), (PATH, PIECE, 2 * PIECE)], "at least a piece, else all of it"
    assert len(calls) == 3
    assert disk.waits == []
    assert threading.get_ident() not in threads
    assert len(threads) == 2


async def test_after_so_many_tries_it_waits(disk: ColdDisk) -> None:
    disk.evicts_at_once = True
    file = disk.open(PATH)
    assert await read_without_blocking(disk, Environment(), lambda: file.pread(3, 3 * PIECE)) == b"end"
    assert len(disk.fetched) == TRIES
    assert disk.waits == [PATH]


async def test_what_cannot_be_fetched_is_found_out_by_the_reader(disk: ColdDisk) -> None:
    class BadSector(ColdDisk):
        def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    broken = BadSector()
    await warm(broken, Environment(), [NotCached(PATH, 0, 1), NotCached(f"{PATH}-gone", 0, 1)])

    def ask() -> bytes:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the log says so")

    with pytest.raises(KafkaError, match="the log says so"):
        await read_without_blocking(broken, Environment(), ask)
    disk.remove(PATH)
    await warm(disk, Environment(), [NotCached(PATH, 0, 1)])


async def test_the_block_is_left_while_the_helper_thread_reads(disk: ColdDisk) -> None:
    """Another reader of the loop may come in between, and wait or not as it likes."""
    file = disk.open(PATH)
    between: list[bytes] = []

    class Between(Environment):
        async def run_blocking(self, function: Callable[..., object], *args: object, **kwargs: object) -> object:  # type: ignore[override]
            between.append(bytes(file.pread(1, 2 * PIECE)))
            return await super().run_blocking(function, *args, **kwargs)

    assert await read_without_blocking(disk, Between(), lambda: file.pread(1, 0)) == b"\0"
    assert between == [b"\2"]


# ---------------------------------------------------------------------------------------------- what the log does in it
def written(disk: Disk, *, batch_bytes: int = 1000, count: int = 60) -> Kept:
    """A log of three segments."""
    kept = Kept(NONE, disk=disk, segment_bytes=batch_bytes * (count // 3 + 1), index_interval_bytes=4096)
    for number in range(count):
        kept.append((b"%d" % number, bytes(batch_bytes - 100)), timestamp_ms=T0 + number)
    assert len(kept.log.base_offsets) == 3
    return kept


def known(segments: Segments) -> list[tuple[int, int, int, int]]:
    return [
        (segment.next_offset, segment.first_timestamp_ms, segment.max_timestamp_ms, segment.max_timestamp_offset)
        for segment in segments
    ]


async def read_patiently(disk: Disk, reading: Callable[[], Buffer]) -> Buffer:
    return await read_without_blocking(disk, Environment(), reading)


async def learn(disk: Disk, log: Log) -> None:
    for number in range(len(log.segments)):
        await read_without_blocking(disk, Environment(), partial(log.segments.know, number))


def test_what_retention_wants_to_know_is_found_without_waiting() -> None:
    disk = ColdDisk()
    kept = written(disk)
    expected = known(kept.log.segments)
    kept.restart()
    disk.evict_all(DIRECTORY)
    asyncio.run(learn(disk, kept.log), debug=True)
    assert disk.waits == []
    assert len(disk.fetched) > 3
    assert known(kept.log.segments) == expected
    assert len(kept.log.segments.facts()) == 3
    assert disk.waits == [], "all of it is known from then on"


@pytest.mark.parametrize("lost", ["both", ".index", ".timeindex"])
def test_indexes_that_were_lost_are_built_anew_from_a_cold_log(lost: str) -> None:
    """A read that was refused half-way must leave nothing behind that is taken for the truth."""
    disk = ColdDisk()
    kept = written(disk, batch_bytes=100_000, count=90)
    expected = known(kept.log.segments)
    kept.stop()
    for suffix in (".index", ".timeindex") if lost == "both" else (lost,):
        disk.remove(f"{DIRECTORY}/{0:020d}{suffix}")
    kept.start()
    disk.evict_all(DIRECTORY)
    asyncio.run(learn(disk, kept.log), debug=True)
    assert known(kept.log.segments) == expected
    assert read(kept.log).offsets == list(range(90))


@pytest.mark.parametrize("index", [b"", struct.pack(">ii", 3, 77)], ids=["lost", "wrong"])
def test_a_reader_comes_by_an_index_of_a_cold_log_that_is(index: bytes) -> None:
    disk = ColdDisk()
    kept = written(disk, batch_bytes=100_000, count=90)
    kept.stop()
    disk.write_whole(f"{DIRECTORY}/{0:020d}.index", index)
    kept.start()
    disk.evict(f"{DIRECTORY}/{0:020d}.log")
    log = kept.log
    data = asyncio.run(read_patiently(disk, lambda: log.fetch(20, 0, 90, True).records), debug=True)
    assert int.from_bytes(data[:8], "big") == 20
    assert read(log).offsets == list(range(90))


# ----------------------------------------------------------------------------------------------------------- real files
class WatchedDisk(FileDisk):
    """Notes what is fetched, and by which threads."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[tuple[str, int]] = []

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        self.fetched.append((path, threading.get_ident()))
        return super().read_range(path, position, size_bytes)


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """A directory on a device that tells what is in memory."""
    if not hasattr(os, "RWF_NOWAIT"):
        pytest.skip(f"{sys.platform} has no RWF_NOWAIT")
    probe = tmp_path / "probe"
    probe.write_bytes(b"x")
    descriptor = os.open(probe, os.O_RDONLY)
    try:
        os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
    except OSError as error:
        pytest.skip(f"the file system of the temporary directory does not take RWF_NOWAIT: {error}")
    finally:
        os.close(descriptor)
    return tmp_path


def drop_from_memory(directory: str) -> None:
    for path in Path(directory).iterdir():
        descriptor = os.open(path, os.O_RDWR)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def test_real_files_that_were_dropped_from_memory_are_fetched_by_helper_threads(
    device: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = WatchedDisk()
    kept = Kept(NONE, disk=disk, data_dir=f"{device}/data", segment_bytes=2 << 20)
    for number in range(60):
        kept.append((b"%d" % number, os.urandom(100_000)), timestamp_ms=T0 + number)
    expected, pread = read(kept.log), os.pread
    waits: list[int] = []

    def watched(descriptor: int, size_bytes: int, position: int) -> bytes:
        if threading.get_ident() == threading.main_thread().ident:
            waits.append(position)
        return pread(descriptor, size_bytes, position)

    found: list[bytes] = []

    async def read_all_of_it() -> None:
        log, environment, offset = kept.log, Environment(), 0
        while offset < 60:
            drop_from_memory(kept.directory)
            data = await read_without_blocking(disk, environment, partial(log.fetch, offset, 300_000, 60, True))
            found.append(bytes(data.records))
            offset = [header.last_offset for _, header in iterate_batches(data.records)][-1] + 1

    with monkeypatch.context() as patched:
        patched.setattr(os, "pread", watched)
        asyncio.run(read_all_of_it(), debug=True)
    assert waits == []
    assert b"".join(found) == b"".join(expected.batches)
    assert disk.fetched, "not once was anything cold"
    assert threading.get_ident() not in {thread for _, thread in disk.fetched}
    kept.stop()
