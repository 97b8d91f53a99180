"""A compaction worker, asked as a broker asks it: what it needs of a log is in the round, and it is asked in order."""

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.compaction import LastRecord
from odradek.broker.log.compaction_messages import (
    BuildMap,
    Failed,
    GroupWritten,
    MapBuilt,
    Nonce,
    Ready,
    Round,
    WriteGroup,
    build_map_message,
    counts_of,
    error_of,
    packed,
    suffixes_of,
    unpacked,
)
from odradek.broker.log.compaction_worker import compact
from odradek.broker.log.leftovers import cleaned_path
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.segment import segment_path
from odradek.broker.log.segments import Source
from odradek.broker.log.uncleanable import UncleanableLog
from odradek.broker.version import VERSION
from odradek.protocol.batches.batch import iterate_batches, read_header
from odradek.protocol.errors import MalformedMessage
from odradek.runtime.worker import Stopped, Talk
from tests.broker.log.compacted_logs import data_batch, marker_batch
from tests.broker.log.logs import DIRECTORY, T0

NONCE = Nonce("0123456789abcdef")
MUCH = 1 << 20


def no_way() -> None:
    """Nobody else wants to run."""


def segment(disk: MemoryDisk, *batches: bytes, rows: tuple[AbortedTxn, ...] = ()) -> Source:
    disk.make_dir(DIRECTORY)
    base_offset = read_header(batches[0]).base_offset
    path = segment_path(DIRECTORY, base_offset, ".log")
    size_bytes = disk.write_new(path, batches)
    return Source(base_offset, read_header(batches[-1]).last_offset + 1, path, size_bytes, list(rows))


def round_over(*sources: Source, first_dirty_offset: int = 0, now_ms: int = T0, **more: int) -> Round:
    return Round(
        DIRECTORY,
        NONCE,
        list(sources),
        {7: LastRecord(0, 0)},
        log_start_offset=0,
        first_dirty_offset=first_dirty_offset,
        first_uncleanable_offset=sources[-1].next_offset,
        delete_retention_ms=1000,
        now_ms=now_ms,
        index_interval_bytes=4096,
        dedupe_buffer_bytes=more.get("dedupe_buffer_bytes", MUCH),
        load_factor=0.9,
        io_bytes=MUCH,
    )


def begun(disk: MemoryDisk) -> Talk:
    talk = compact(disk, no_way)
    assert unpacked(Ready, next(talk)).program_version == VERSION
    return talk


def map_built(talk: Talk, round_: Round) -> MapBuilt:
    return unpacked(MapBuilt, talk.send(packed(build_map_message(round_))))


def group_written(talk: Talk, *base_offsets: int) -> GroupWritten:
    return unpacked(GroupWritten, talk.send(packed(WriteGroup(base_offsets=list(base_offsets)))))


def written(disk: MemoryDisk, base_offset: int) -> list[bytes]:
    data = disk.read_whole(cleaned(base_offset))
    return [data[position : position + header.size_bytes] for position, header in iterate_batches(data)]


def cleaned(base_offset: int) -> str:
    return cleaned_path(DIRECTORY, base_offset, ".log", NONCE)


def test_it_builds_the_map_and_writes_group_after_group() -> None:
    disk = MemoryDisk()
    old, new = data_batch(0, (b"a", b"1"), (b"b", b"1")), data_batch(2, (b"a", b"2"))
    last = data_batch(3, (b"c", b"1"))
    talk = begun(disk)
    built = map_built(talk, round_over(segment(disk, old), segment(disk, new), segment(disk, last)))
    assert (built.end_offset, built.bytes_read) == (4, len(old + new + last))
    first = group_written(talk, 0, 2)
    assert suffixes_of(first) == [".log", ".index", ".timeindex"]
    assert first.size_bytes == len(disk.read_whole(cleaned(0)))
    assert counts_of(first)[:3] == (3, 2, len(old + new))
    second = group_written(talk, 3)
    assert counts_of(second)[:3] == (4, 3, len(old + new + last))
    assert written(disk, 3) == [last]


def test_it_knows_the_producers_last_records() -> None:
    """A batch of which nothing stays keeps its header, so that its producer can go on."""
    disk = MemoryDisk()
    sources = segment(disk, data_batch(0, (b"a", b"1"), producer=(7, 0, 0)), data_batch(1, (b"a", b"2")))
    talk = begun(disk)
    map_built(talk, round_over(sources))
    group_written(talk, 0)
    assert [(read_header(data).producer_id, read_header(data).record_count) for data in written(disk, 0)] == [
        (7, 0),
        (-1, 1),
    ]


def test_it_knows_which_transactions_were_aborted() -> None:
    disk = MemoryDisk()
    source = segment(
        disk,
        data_batch(0, (b"a", b"kept")),
        data_batch(1, (b"a", b"aborted"), producer=(9, 0, 0), is_transactional=True),
        marker_batch(2, 9, 0, is_commit=False),
        rows=(AbortedTxn(9, 1, 2, 3),),
    )
    talk = begun(disk)
    map_built(talk, round_over(source))
    assert counts_of(group_written(talk, 0)).records_kept == 2
    assert written(disk, 0)[0] == data_batch(0, (b"a", b"kept"))


def test_what_it_cannot_do_is_answered_and_it_goes_on_being_asked() -> None:
    disk = MemoryDisk()
    source = segment(disk, data_batch(0, (b"a", b"1")))
    torn = bytearray(disk.read_whole(source.path))
    torn[-1] ^= 1
    disk.write_whole(source.path, bytes(torn))
    talk = begun(disk)
    answer = unpacked(Failed, talk.send(packed(build_map_message(round_over(source)))))
    assert isinstance(error_of(answer), UncleanableLog)
    disk.remove(source.path)
    round_ = round_over(source)
    assert isinstance(
        error_of(unpacked(Failed, begun(disk).send(packed(build_map_message(round_))))), FileNotFoundError
    )
    small = round_over(source, dedupe_buffer_bytes=1)
    assert "raise log.cleaner.dedupe.buffer.size" in str(
        error_of(unpacked(Failed, begun(disk).send(packed(build_map_message(small)))))
    )


def test_what_was_written_goes_when_nobody_waits_for_it_any_more() -> None:
    disk = MemoryDisk()
    source = segment(disk, data_batch(0, (b"a", b"1")))
    talk = begun(disk)
    map_built(talk, round_over(source))
    group_written(talk, 0)
    with pytest.raises(Stopped):
        talk.throw(Stopped())
    assert disk.list_dir(DIRECTORY) == [f"{0:020d}.log"]


def test_it_stops_within_its_work_and_leaves_nothing() -> None:
    ways: list[int] = []

    def stop() -> None:
        ways.append(len(ways))
        if len(ways) == 3:
            raise Stopped

    disk = MemoryDisk()
    source = segment(disk, *(data_batch(offset, (b"%d" % offset, b"")) for offset in range(2)))
    talk = compact(disk, stop)
    next(talk)
    map_built(talk, round_over(source))
    with pytest.raises(Stopped):
        group_written(talk, 0)
    assert disk.list_dir(DIRECTORY) == [f"{0:020d}.log"]


@pytest.mark.parametrize("question", [packed(Ready(program_version="")), packed(WriteGroup(base_offsets=[0])), b""])
def test_what_it_does_not_understand_ends_it(question: bytes) -> None:
    with pytest.raises(MalformedMessage):
        begun(MemoryDisk()).send(question)


def test_a_round_begins_once() -> None:
    disk = MemoryDisk()
    round_ = round_over(segment(disk, data_batch(0, (b"a", b"1"))))
    talk = begun(disk)
    map_built(talk, round_)
    with pytest.raises(MalformedMessage, match=f"{BuildMap.__name__} came where"):
        map_built(talk, round_)
