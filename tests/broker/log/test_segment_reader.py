"""An indexed file: batches are found whatever its index says, and no read gives wrong data because of it.

A segment before the recovery point is opened as a start leaves it: only its end is known, and nobody has looked at its
indexes. Every flipped bit, every cut and noise are tried on an index; reads wait for no device where they must not.
"""

import errno
import os
import struct
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.disk.disk import File
from odradek.broker.disk.disk_descriptors import Descriptor
from odradek.broker.disk.disk_page_cache import NotCached
from odradek.broker.disk.file_slice import FileSlice
from odradek.broker.disk.memory_disk import Content, MemoryDisk
from odradek.broker.log import segment_reader
from odradek.broker.log.config import LogConfig
from odradek.broker.log.segment import Segment, segment_path
from tests.broker.log.logs import T0, Model, batch, copied

DIRECTORY = "d"
BASE = 1000
CONFIG = LogConfig(index_interval_bytes=150)
INDEX = segment_path(DIRECTORY, BASE, ".index")


class SlicingDisk(MemoryDisk):
    """One whose files can be sent by the kernel, however little of them."""

    slices = 0

    def slice(self, path: str, content: Content, position: int, size_bytes: int) -> FileSlice:
        self.slices += 1
        descriptor = os.memfd_create(path)
        os.pwrite(descriptor, content[position : position + size_bytes], position)
        return FileSlice(Descriptor(descriptor), path, position, size_bytes)


@pytest.fixture(autouse=True)
def no_slice_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_reader, "SLICE_BYTES_MIN", 1)


def written(disk: SlicingDisk, count: int = 24, config: LogConfig = CONFIG) -> Model:
    """A closed segment with batches of one to three records, and what it holds."""
    disk.make_dir(DIRECTORY)
    model = Model(log_start_offset=BASE, log_end_offset=BASE)
    segment = Segment.create(disk, DIRECTORY, BASE, config, 0)
    for number in range(count):
        model.append(batch(*[T0 + number] * (number % 3 + 1), value=b"v" * (number % 7)))
        _, last_offset, data = model.batches[-1]
        segment.append([data], last_offset, T0 + number, config)
    segment.deactivate()
    segment.close()
    return model


def reopened(disk: SlicingDisk, model: Model) -> Segment:
    """As recovery opens it when it lies before the recovery point."""
    segment = Segment(disk, DIRECTORY, BASE, CONFIG, 0, disk.sizes(DIRECTORY))
    segment.next_offset = model.log_end_offset
    return segment


def with_index(disk: SlicingDisk, index: bytes | None) -> SlicingDisk:
    copy = copied(disk, SlicingDisk())
    if index is None:
        copy.remove(INDEX)
    else:
        copy.write_whole(INDEX, index)
    return copy


def check_reads(segment: Segment, model: Model, offsets: range | None = None) -> None:
    """By reading and in slices, each of which may be the first to use the index."""
    end = model.log_end_offset
    for offset in offsets or range(BASE, end):
        for size_bytes_max, end_offset in ((0, end), (400, end), (10_000, end), (500, offset + 5), (10_000, end - 3)):
            wanted = offset, size_bytes_max, end_offset
            if offset % 2:
                assert sliced(segment, *wanted) == model.read(*wanted, False), wanted
            assert bytes(segment.read(*wanted, True).records) == model.read(*wanted, True), wanted
            if not offset % 2:
                assert sliced(segment, *wanted) == model.read(*wanted, False), wanted
    assert segment.next_offset == end


def sliced(segment: Segment, offset: int, size_bytes_max: int, end_offset: int) -> bytes:
    found = segment.read(offset, size_bytes_max, end_offset, False, as_slice=True).records
    return found.read() if isinstance(found, FileSlice) else bytes(found)


def test_a_slice_is_cut_where_a_read_is() -> None:
    disk = SlicingDisk()
    model = written(disk)
    segment, end = reopened(disk, model), model.log_end_offset
    seen: set[bool] = set()
    for offset in range(BASE, end):
        for wanted in ((offset, 400, end), (offset, 10_000, end), (offset, 500, offset + 5), (offset, 10_000, end - 3)):
            found = segment.read(*wanted, False, as_slice=True)
            if isinstance(found.records, FileSlice):
                assert found.is_cut == segment.read(*wanted, False).is_cut, wanted
                seen.add(found.is_cut)
    assert seen == {True, False}


def test_the_index_is_opened_with_its_first_use() -> None:
    class Watched(SlicingDisk):
        def open(self, path: str, size_bytes: int | None = None) -> File:
            opened.append(path)
            return super().open(path, size_bytes)

    opened: list[str] = []
    disk = Watched()
    model = written(disk)
    opened.clear()
    segment = reopened(disk, model)
    assert [path for path in opened if path.endswith("index")] == []
    check_reads(segment, model)
    assert opened.count(INDEX) == 1


def test_a_good_index_is_not_rewritten(caplog: pytest.LogCaptureFixture) -> None:
    disk = SlicingDisk()
    model = written(disk)
    before = disk.read_whole(INDEX)
    assert len(before) > 8 * 8
    check_reads(reopened(disk, model), model)
    assert disk.read_whole(INDEX) == before
    assert "anew" not in caplog.text


def test_a_search_reads_little() -> None:
    """Through the index: a piece of the log at most an interval long, whatever the size of the file."""

    class Counting(SlicingDisk):
        bytes_read = 0

        def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
            self.bytes_read += size_bytes
            return super().readable_bytes(path, position, size_bytes)

    counts: list[int] = []
    for batch_count in (200, 2000):
        disk = Counting()
        model = written(disk, batch_count, LogConfig(index_interval_bytes=4096))
        segment = reopened(disk, model)
        segment.locate(model.log_end_offset - 20)
        disk.bytes_read = 0
        segment.locate(model.log_end_offset // 2 + BASE // 2)
        counts.append(disk.bytes_read)
    assert max(counts) < 3 * 4096
    assert counts[1] < counts[0] + 4096


def test_a_slice_is_found_by_the_index_and_some_headers_however_long_it_is() -> None:
    class Counting(SlicingDisk):
        bytes_read = reads = 0

        def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
            self.bytes_read += size_bytes
            self.reads += 1
            return super().readable_bytes(path, position, size_bytes)

    counts: list[int] = []
    for batch_count in (200, 2000):
        disk = Counting()
        model = written(disk, batch_count, LogConfig(index_interval_bytes=4096))
        segment = reopened(disk, model)
        middle, end = model.batches[batch_count // 2][0], model.log_end_offset
        segment.locate(end - 20)
        disk.bytes_read = 0
        size_bytes = segment.size_bytes // 4
        first, following = sliced(segment, middle, size_bytes, end), b""
        counts.append(disk.bytes_read)
        disk.reads = 0
        rest = iter(model.batches[batch_count // 2 :])
        next_offset, _, data = next(rest)
        while len(following) < len(first):
            following += data
            next_offset, _, data = next(rest)
        assert following == first
        sliced(segment, next_offset, 1 << 30, end)
        assert disk.reads == 0, "who goes on where a slice ended needs no search, and the rest no look at a header"
    assert max(counts) < 4 * 4096
    assert counts[1] < counts[0] + 4096


# -- indexes that are wrong -------------------------------------------------------------------------------------------


def test_no_flipped_bit_of_the_index_gives_wrong_data() -> None:
    disk = SlicingDisk()
    model = written(disk)
    good = disk.read_whole(INDEX)
    for position in range(len(good)):
        for bit in range(8):
            broken = with_index(disk, good[:position] + bytes([good[position] ^ 1 << bit]) + good[position + 1 :])
            check_reads(reopened(broken, model), model, range(BASE + position % 3, model.log_end_offset, 3))


def test_an_index_cut_at_any_byte_gives_no_wrong_data() -> None:
    disk = SlicingDisk()
    model = written(disk)
    good = disk.read_whole(INDEX)
    for size_bytes in range(len(good)):
        broken = with_index(disk, good[:size_bytes])
        check_reads(reopened(broken, model), model, range(BASE, model.log_end_offset, 5))
        if size_bytes % 8:
            assert broken.read_whole(INDEX) == good, "it is not whole, and built anew"


SPOILED: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda _: None,
    "empty": lambda _: b"",
    "zeros": lambda content: bytes(len(content)),
    "zeros behind it": lambda content: content + bytes(800),
    "zeros within": lambda content: content[:16] + bytes(16) + content[32:],
    "ones": lambda content: b"\xff" * len(content),
    "backwards": lambda content: b"".join(content[at : at + 8] for at in range(len(content) - 8, -1, -8)),
    "of another log": lambda content: struct.pack(">ii", 5, 61) + content[8:],
    "positions behind the end": lambda content: b"".join(struct.pack(">ii", n, 10**6 + n) for n in range(1, 20)),
    "positions of batches too late": lambda content: shifted(content),
    "negative": lambda content: struct.pack(">ii", -5, -70) + content,
}


def shifted(content: bytes) -> bytes:
    """Each offset with the position of the next one: a search that believed it would miss what is between."""
    rows = list(struct.iter_unpack(">ii", content))
    return b"".join(struct.pack(">ii", offset, position) for (offset, _), (_, position) in pairwise(rows))


@pytest.mark.parametrize("how", list(SPOILED))
def test_an_index_that_is_wrong_gives_no_wrong_data(how: str) -> None:
    disk = SlicingDisk()
    model = written(disk)
    good = disk.read_whole(INDEX)
    broken = with_index(disk, SPOILED[how](good))
    check_reads(reopened(broken, model), model)


@pytest.mark.parametrize("how", ["positions of batches too late", "ones"])
def test_an_index_that_was_found_wrong_is_built_anew(how: str, caplog: pytest.LogCaptureFixture) -> None:
    disk = SlicingDisk()
    model = written(disk)
    good = disk.read_whole(INDEX)
    broken = with_index(disk, SPOILED[how](good))
    check_reads(reopened(broken, model), model)
    assert broken.read_whole(INDEX) == good
    assert "the indexes are built anew" in caplog.text


@given(noise=st.binary(max_size=200))
def test_noise_for_an_index_gives_no_wrong_data(noise: bytes) -> None:
    disk = SlicingDisk()
    model = written(disk, 12)
    check_reads(reopened(with_index(disk, noise), model), model)


# -- rebuilding where a read may fail or must not wait ----------------------------------------------------------------


class ColdDisk(SlicingDisk):
    """Nothing of a `.log` is in memory but what was fetched; reads of it fail while `is_broken`."""

    is_cold = is_broken = False
    reads_left = 0

    def cached_bytes(self, path: str, position: int, size_bytes: int) -> int:
        return 0 if self.is_cold and path.endswith(".log") else size_bytes

    def readable_bytes(self, path: str, position: int, size_bytes: int) -> int:
        if self.is_broken and path.endswith(".log"):
            self.reads_left -= 1
            if self.reads_left < 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return super().readable_bytes(path, position, size_bytes)


def spoilt_segment(disk: ColdDisk, count: int, index: bytes) -> tuple[Segment, Model]:
    model = written(disk, count)
    disk.write_whole(INDEX, index)
    return reopened(disk, model), model


@pytest.mark.parametrize("index", [b"", b"odd", bytes(24)], ids=["lost", "not whole", "zeros"])
def test_a_rebuild_that_would_have_to_wait_is_done_when_the_log_is_in_memory(index: bytes) -> None:
    """Whoever reads in the loop fetches what is missing and tries again; until then nothing may be lost."""
    disk = ColdDisk()
    segment, model = spoilt_segment(disk, 1200, index)
    assert segment.size_bytes > 64 * 1024, "it takes more than one piece"
    disk.is_cold = True
    middle = model.batches[600]
    for _ in range(50):
        assert segment.next_offset == model.log_end_offset
        try:
            with disk.cached_only():
                data = bytes(segment.read(middle[0], 10, model.log_end_offset, True).records)
        except NotCached as missing:
            disk.read_range(missing.path, missing.position, missing.size_bytes)
        else:
            assert data == middle[2]
            break
    else:
        pytest.fail("it never came to an end")
    disk.is_cold = False
    check_reads(segment, model, range(BASE, model.log_end_offset, 97))
    assert segment.max_timestamp_ms == T0 + 1199


@pytest.mark.parametrize("reads_left", [0, 1, 2])
def test_a_rebuild_that_failed_has_lost_nothing(reads_left: int) -> None:
    disk = ColdDisk()
    segment, model = spoilt_segment(disk, 1200, b"odd")
    disk.is_broken, disk.reads_left = True, reads_left
    with pytest.raises(OSError, match="Input/output error"):
        segment.read(model.batches[600][0], 10, model.log_end_offset, True)
    assert segment.next_offset == model.log_end_offset
    disk.is_broken = False
    check_reads(segment, model, range(BASE, model.log_end_offset, 97))
    assert (segment.max_timestamp_ms, segment.max_timestamp_offset) == (T0 + 1199, model.log_end_offset - 1)


@pytest.mark.parametrize("reads_left", [0, 1])
def test_a_look_for_the_largest_timestamp_that_failed_has_lost_nothing(reads_left: int) -> None:
    disk = ColdDisk()
    model = written(disk, 1200)
    for suffix in (".index", ".timeindex"):
        disk.write_whole(segment_path(DIRECTORY, BASE, suffix), b"")
    segment = reopened(disk, model)
    disk.is_broken, disk.reads_left = True, reads_left
    with pytest.raises(OSError, match="Input/output error"):
        _ = segment.max_timestamp_ms
    disk.is_broken = False
    check_reads(segment, model, range(BASE, model.log_end_offset, 97))
    assert segment.max_timestamp_ms == T0 + 1199
