"""The embedded store survives: a crash at every byte, damage at every byte, a full disk, a failing sync."""

import asyncio
import errno
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from odradek.broker.cluster import embedded
from odradek.broker.cluster.embedded import FILE_NAME, EmbeddedStore
from odradek.broker.cluster.journal import FORMAT_VERSION, MAGIC, decode_file, encode_commit
from odradek.broker.cluster.store import Change, Conflict, Entry, Event, StoreClosed, StoreDamaged, Txn
from odradek.broker.disk.disk import File, Syncer
from odradek.broker.disk.file_slice import FileSlice
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.protocol.batches.crc32c import crc32c
from odradek.protocol.primitives import Buffer
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from odradek.testing.sim.world.device import LosingDevice
from odradek.testing.sim.world.losing_disk import ALL_IS_LOST


class FaultyFile:
    """A file that tells its disk of every step."""

    def __init__(self, disk: "FaultyDisk", file: File) -> None:
        self._disk = disk
        self._file = file

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def size_bytes(self) -> int:
        return self._file.size_bytes

    def append(self, parts: Sequence[Buffer]) -> int:
        before = self._disk.read_whole(self.path)
        added = b"".join(parts)
        for length in range(len(added) + 1):
            self._disk.could_crash_with(before + added[:length])
        return self._file.append(parts)

    def pread(self, size_bytes: int, position: int, at_least: int | None = None) -> bytes | bytearray:
        return self._file.pread(size_bytes, position, at_least)

    def slice(self, size_bytes: int, position: int) -> FileSlice | None:
        return self._file.slice(size_bytes, position)

    def preallocate(self, size_bytes: int) -> None:
        self._file.preallocate(size_bytes)

    def truncate(self, size_bytes: int) -> None:
        self._file.truncate(size_bytes)

    def syncer(self) -> Syncer:
        return self._file.syncer()

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()


class FaultyDisk(MemoryDisk):
    """A disk that fails on demand, and keeps every content of the file that a crash could leave behind."""

    def __init__(self, size_bytes_max: int | None = None) -> None:
        super().__init__(size_bytes_max)
        self.sync_fails = False
        self.write_whole_fails_before = False
        self.write_whole_fails_after = False
        self.crashes: list[tuple[bytes, int]] | None = None
        self.acknowledged = 0
        """The revision that was answered to the caller when the crash struck."""

    def could_crash_with(self, content: bytes) -> None:
        if self.crashes is not None:
            self.crashes.append((content, self.acknowledged))

    def open(self, path: str, size_bytes: int | None = None) -> File:
        return FaultyFile(self, super().open(path, size_bytes))

    def sync(self, content: Content) -> None:
        if self.sync_fails:
            raise OSError(errno.EIO, "sync failed")
        super().sync(content)

    def write_whole(self, path: str, data: Buffer) -> None:
        if self.exists(path):
            self.could_crash_with(self.read_whole(path))
        if self.write_whole_fails_before:
            raise OSError(errno.ENOSPC, "no room", path)
        super().write_whole(path, data)
        self.could_crash_with(bytes(data))
        if self.write_whole_fails_after:
            raise OSError(errno.EIO, "directory not synced", path)


def disk_with(content: bytes) -> MemoryDisk:
    disk = MemoryDisk()
    disk.write_whole(FILE_NAME, content)
    return disk


async def everything(store: EmbeddedStore) -> tuple[int, dict[str, Entry]]:
    snapshot = await store.read("")
    return snapshot.revision, snapshot.entries


async def written() -> tuple[bytes, list[int]]:
    """A file with a snapshot and four commits, and the positions at which the commits begin."""
    disk = MemoryDisk()
    store = EmbeddedStore.open(disk, "")
    positions: list[int] = []
    for txn in (
        Txn(put={"/a": b"1", "/b": b""}),
        Txn(put={"/c": b"3"}),
        Txn(put={"/a": b"4"}, delete=("/b",)),
        Txn(put={"/d": b"5"}),
    ):
        positions.append(len(disk.read_whole(FILE_NAME)))
        await store.commit(txn)
    await store.close()
    return disk.read_whole(FILE_NAME), positions


async def test_all_is_there_after_a_restart_and_revisions_go_on() -> None:
    disk = MemoryDisk()
    store = EmbeddedStore.open(disk, "")
    first = await store.commit(Txn(put={"/a": b"1", "/b": b"1", "/c": b"1"}))
    second = await store.commit(Txn(expect={"/a": first}, put={"/a": b"2"}, delete=("/b",)))
    before = await everything(store)
    await store.close()
    store = EmbeddedStore.open(disk, "")
    assert await everything(store) == before == (second, {"/a": Entry(b"2", second), "/c": Entry(b"1", first)})
    with pytest.raises(Conflict):
        await store.commit(Txn(expect={"/a": first}, put={"/a": b"3"}))
    assert await store.commit(Txn(expect={"/a": second}, put={"/a": b"3"})) == second + 1


async def test_a_crash_at_any_byte_leaves_what_was_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each content that a crash could leave, during commits, a lease's end, a restart and compactions, is opened."""
    monkeypatch.setattr(embedded, "COMPACTION_BYTES_MIN", 300)
    disk = FaultyDisk()
    disk.crashes = []
    store = EmbeddedStore.open(disk, "")
    states: dict[int, dict[str, bytes]] = {0: {}}

    async def remember() -> None:
        snapshot = await store.read("")
        disk.acknowledged = snapshot.revision
        # Keys under a lease are gone after a start, which takes a revision and changes nothing else.
        states[snapshot.revision] = {
            key: entry.value for key, entry in snapshot.entries.items() if not key.startswith("/leased")
        }

    for number in range(12):
        await store.commit(Txn(put={f"/k{number % 5}": b"%d" % number * 3}, delete=(f"/k{(number + 2) % 5}",)))
        await remember()
    lease = await store.lease(1000)
    await store.commit(Txn(put={"/leased": b"x"}, lease=lease))
    await remember()
    await lease.revoke()
    await remember()
    await store.commit(Txn(put={"/leased too": b"y"}, lease=await store.lease(1000)))
    await remember()
    await store.close()
    store = EmbeddedStore.open(disk, "")
    await remember()
    assert len(disk.crashes) > 600
    assert sum(content.count(b"rec") == 1 for content, _ in disk.crashes) > 3, "there were compactions"

    for content, acknowledged in disk.crashes:
        after = disk_with(content)
        reopened = EmbeddedStore.open(after, "")
        revision, entries = await everything(reopened)
        assert revision >= acknowledged
        assert {key: entry.value for key, entry in entries.items()} == states[min(revision, max(states))]
        next_revision = await reopened.commit(Txn(put={"/next": b"!"}))
        assert next_revision == revision + 1
        again = EmbeddedStore.open(after, "")
        assert (await everything(again)) == (await everything(reopened))


@pytest.mark.parametrize("rubbish", [b"\x00", b"\xff", b"\xf1rec"])
async def test_a_torn_tail_of_any_content_is_cut_off(rubbish: bytes) -> None:
    """The device wrote the file's new size and none, or something else, of its new content."""
    whole, positions = await written()
    for cut in range(positions[-1], len(whole)):
        torn = whole[:cut] + (rubbish * len(whole))[: len(whole) - cut]
        if torn == whole:
            continue
        disk = disk_with(torn)
        revision, entries = await everything(EmbeddedStore.open(disk, ""))
        assert (revision, list(entries)) == (3, ["/a", "/c"])
        left = disk.read_whole(FILE_NAME)
        assert decode_file(left).end_position == len(left), "nothing of it is in the file any more"


async def test_a_flipped_bit_before_the_last_commit_is_refused_and_nothing_is_written() -> None:
    whole, positions = await written()
    for position in range(positions[-1]):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        disk = disk_with(bytes(damaged))
        with pytest.raises(StoreDamaged, match=rf"^{FILE_NAME} can not be used: "):
            EmbeddedStore.open(disk, "")
        assert disk.read_whole(FILE_NAME) == damaged


async def test_a_commit_taken_out_of_the_middle_is_noticed() -> None:
    whole, positions = await written()
    with pytest.raises(StoreDamaged, match="revision 3 after revision 1"):
        EmbeddedStore.open(disk_with(whole[: positions[1]] + whole[positions[2] :]), "")


@pytest.mark.parametrize("content", [b"", b"something else", MAGIC, MAGIC + b"\x00\x00\x00\x01"])
def test_a_file_that_is_not_ours_is_refused(content: bytes) -> None:
    disk = disk_with(content)
    with pytest.raises(StoreDamaged):
        EmbeddedStore.open(disk, "")
    assert disk.read_whole(FILE_NAME) == content


async def test_a_newer_format_is_refused_before_anything_is_written() -> None:
    whole, _ = await written()
    fields = MAGIC + (FORMAT_VERSION + 1).to_bytes(4, "big")
    content = fields + crc32c(fields).to_bytes(4, "big") + whole[16:] + b"torn"
    disk = disk_with(content)
    with pytest.raises(StoreDamaged, match=r"written by a newer Odradek; this one reads up to 2"):
        EmbeddedStore.open(disk, "")
    assert disk.read_whole(FILE_NAME) == content


async def test_leases_end_with_the_process_and_revisions_are_not_given_out_again() -> None:
    disk = MemoryDisk()
    store = EmbeddedStore.open(disk, "")
    await store.commit(Txn(put={"/kept": b"", "/freed": b""}))
    lease = await store.lease(10_000)
    epoch = await store.commit(Txn(put={"/brokers/1": b"", "/freed": b""}, lease=lease))
    await store.commit(Txn(put={"/freed": b"free"}))
    await store.close()
    store = EmbeddedStore.open(disk, "")
    revision, entries = await everything(store)
    assert list(entries) == ["/freed", "/kept"]
    assert revision == epoch + 2
    assert await store.commit(Txn(put={"/brokers/1": b""}, lease=await store.lease(10_000))) == epoch + 3
    await store.close()
    assert (await everything(EmbeddedStore.open(disk, "")))[0] == epoch + 4


async def test_leases_outlive_a_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "COMPACTION_BYTES_MIN", 1)
    disk = MemoryDisk()
    store = EmbeddedStore.open(disk, "")
    await store.commit(Txn(put={"/leased": b"1"}, lease=await store.lease(10_000)))
    for number in range(20):
        await store.commit(Txn(put={"/other": b"%d" % number}))
    await store.close()
    assert list((await everything(EmbeddedStore.open(disk, "")))[1]) == ["/other"]


async def test_a_full_disk_fails_the_commit_alone() -> None:
    disk = MemoryDisk()
    store = EmbeddedStore.open(disk, "")
    await store.commit(Txn(put={"/a": b"1"}))
    disk.size_bytes_max = len(disk.read_whole(FILE_NAME)) + 20
    before = await everything(store)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            await store.commit(Txn(put={"/b": bytes(100)}))
    assert await everything(store) == before
    disk.size_bytes_max = None
    await store.commit(Txn(put={"/b": b"2"}))
    assert await everything(store) == await everything(EmbeddedStore.open(disk, ""))


async def test_after_a_failed_sync_the_next_commit_writes_a_new_file() -> None:
    """What the device holds of the failed commit is unknown, and syncing again would not tell."""
    disk = FaultyDisk()
    store = EmbeddedStore.open(disk, "")
    await store.commit(Txn(put={"/a": b"1"}))
    disk.sync_fails = True
    with pytest.raises(OSError, match="sync failed"):
        await store.commit(Txn(put={"/lost": b""}))
    assert list((await everything(store))[1]) == ["/a"]
    disk.write_whole_fails_before = True
    with pytest.raises(OSError, match="no room"):
        await store.commit(Txn(put={"/lost": b""}))
    disk.sync_fails = disk.write_whole_fails_before = False
    disk.write_whole_fails_after = True
    with pytest.raises(OSError, match="directory not synced"):
        await store.commit(Txn(put={"/lost": b""}))
    disk.write_whole_fails_after = False
    disk.crashes = []
    await store.commit(Txn(expect={"/lost": 0}, put={"/b": b"2"}))
    assert b"/lost" not in disk.read_whole(FILE_NAME)
    assert len(disk.crashes) > 2, "the file was written anew, and the commit appended"
    assert await everything(store) == await everything(EmbeddedStore.open(disk, ""))


async def test_the_file_is_compacted_when_it_has_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "COMPACTION_BYTES_MIN", 2_000)
    disk = MemoryDisk()
    store = EmbeddedStore.open(disk, "")
    sizes: list[int] = []
    for number in range(200):
        await store.commit(Txn(put={f"/k{number % 7}": b"%100d" % number}))
        sizes.append(len(disk.read_whole(FILE_NAME)))
    assert max(sizes) < 5_000
    assert any(after < before for before, after in pairwise(sizes))
    assert await everything(store) == await everything(EmbeddedStore.open(disk, ""))


@pytest.mark.parametrize("fault", ["write_whole_fails_before", "write_whole_fails_after"])
async def test_a_compaction_that_fails_loses_nothing(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr(embedded, "COMPACTION_BYTES_MIN", 500)
    disk = FaultyDisk()
    store = EmbeddedStore.open(disk, "")
    setattr(disk, fault, True)
    committed = 0
    for number in range(30):
        try:
            await store.commit(Txn(put={f"/k{number % 7}": b"%50d" % number}))
            committed += 1
        except OSError:
            assert fault == "write_whole_fails_after", "with the old file in place, commits go on"
        assert (await everything(store))[1] == (await everything(EmbeddedStore.open(disk_of(disk), "")))[1]
    # The new file's name is not durable, so nothing may be acknowledged on it before it was written once more.
    assert (committed < 30) == (fault == "write_whole_fails_after")
    setattr(disk, fault, False)
    await store.commit(Txn(put={"/last": b""}))
    assert await everything(store) == await everything(EmbeddedStore.open(disk, ""))


def disk_of(disk: MemoryDisk) -> MemoryDisk:
    return disk_with(disk.read_whole(FILE_NAME))


# -- with a helper thread ---------------------------------------------------------------------------------------------


class Gate:
    """Stands for the executor: what is to run in a thread waits until the test lets it."""

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def run_blocking(self, function: Callable[..., Any], *args: Any) -> Any:
        may_run = asyncio.Event()
        self.waiting.put_nowait(may_run)
        await may_run.wait()
        return function(*args)


@pytest.fixture
def tasks() -> Iterator[Callable[[], Tasks]]:
    yield lambda: Tasks(Environment().loop)


async def test_a_commit_is_visible_only_once_it_is_synced(tasks: Callable[[], Tasks]) -> None:
    gate = Gate()
    store = EmbeddedStore.open(MemoryDisk(), "", run_blocking=gate.run_blocking, tasks=tasks())
    first = asyncio.ensure_future(store.commit(Txn(expect={"/a": 0}, put={"/a": b"1"})))
    second = asyncio.ensure_future(store.commit(Txn(expect={"/a": 0}, put={"/a": b"2"})))
    third = asyncio.ensure_future(store.commit(Txn(expect={"/a": 1}, put={"/a": b"3"})))
    syncing = await gate.waiting.get()
    for _ in range(10):
        await asyncio.sleep(0)
    assert gate.waiting.empty(), "one after the other"
    assert await everything(store) == (0, {})
    syncing.set()
    assert await first == 1
    with pytest.raises(Conflict):
        await second
    (await gate.waiting.get()).set()
    assert await third == 2
    await store.close()


async def test_a_commit_whose_caller_was_cancelled_runs_to_its_end(tasks: Callable[[], Tasks]) -> None:
    gate = Gate()
    disk = MemoryDisk()
    store = EmbeddedStore.open(disk, "", run_blocking=gate.run_blocking, tasks=tasks())
    cancelled = asyncio.ensure_future(store.commit(Txn(put={"/a": b"1"})))
    syncing = await gate.waiting.get()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    after = asyncio.ensure_future(store.commit(Txn(put={"/b": b"2"})))
    syncing.set()
    (await gate.waiting.get()).set()
    assert await after == 2
    assert list((await everything(store))[1]) == ["/a", "/b"]
    assert await everything(store) == await everything(EmbeddedStore.open(disk, ""))
    await store.close()


async def test_closing_waits_for_the_commit_under_way_and_refuses_those_behind_it(tasks: Callable[[], Tasks]) -> None:
    gate = Gate()
    disk = MemoryDisk()
    store = EmbeddedStore.open(disk, "", run_blocking=gate.run_blocking, tasks=tasks())
    under_way = asyncio.ensure_future(store.commit(Txn(put={"/a": b"1"})))
    behind = asyncio.ensure_future(store.commit(Txn(put={"/b": b"2"})))
    syncing = await gate.waiting.get()
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    assert not closing.done()
    syncing.set()
    assert await under_way == 1
    with pytest.raises(StoreClosed):
        await behind
    await closing
    assert list((await everything(EmbeddedStore.open(disk, "")))[1]) == ["/a"]


async def test_a_start_does_not_rely_on_what_a_failed_sync_left_in_the_page_cache() -> None:
    """The process ended with that error, the next one found its commit and added others, and then power failed."""
    device = LosingDevice()
    device.make_dir("data")
    device.sync_dir("")
    store = EmbeddedStore.open(device, "data")
    await store.commit(Txn(put={"/a": b"1"}))
    path = f"data/{FILE_NAME}"
    content = device.content(path)
    content += encode_commit(Change(2, (Event("/b", b"2"),)), ())
    device.sync_failed(content)
    again = EmbeddedStore.open(device, "data")
    revision, entries = await everything(again)
    assert (revision, list(entries)) == (2, ["/a", "/b"])
    await again.commit(Txn(put={"/c": b"3"}))
    after = EmbeddedStore.open(device.after_power_failure(ALL_IS_LOST), "data")
    revision, entries = await everything(after)
    assert (revision, list(entries)) == (3, ["/a", "/b", "/c"])
