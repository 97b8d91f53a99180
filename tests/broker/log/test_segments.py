"""The segments of a log as they come and go, and the two steps in which a compacted one takes the place of others."""

import struct
from dataclasses import replace
from functools import partial

import pytest

from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.aborted import encode_row
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.broker.log.producers import AbortedTxn
from odradek.broker.log.segments import Written
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.log.compacted_logs import data_batch, marker_batch
from tests.broker.log.logs import (
    DIRECTORY,
    STORAGE,
    T0,
    FaultyDisk,
    append,
    batch,
    contents,
    error_of,
    full,
    open_log,
    read_all,
)
from tests.broker.log.swap import transactions

CONFIG = LogConfig(segment_bytes=150, index_interval_bytes=60)
"""Two batches of one record in a segment."""


OWN_TIMES = struct.pack(">qi", T0 + 3, 1)
"""An entry by which a compacted segment is told from the others."""
NONCE = "0123456789abcdef"


def filled(disk: Disk | None = None, count: int = 10) -> Log:
    """Segments 0, 2, 4 and so on."""
    log = open_log(disk or MemoryDisk(), CONFIG, now_ms=100)
    for number in range(count):
        append(log, batch(T0 + number, producer=(1, 0, number)), now_ms=100 + number)
    return log


def names(log: Log, disk: Disk, ending: str) -> list[str]:
    return [name for name in disk.list_dir(log.directory) if name.endswith(ending)]


def merged(disk: Disk, log: Log, *numbers: int, rows: tuple[AbortedTxn, ...] = ()) -> Written:
    """What compaction would write for these segments if all of it stayed."""
    segments = [log.segments[number] for number in numbers]
    base_offset = segments[0].base_offset
    path = f"{log.directory}/{base_offset:020d}"
    data = b"".join(disk.read_whole(segment.file.path) for segment in segments)
    disk.write_new(f"{path}.log.{NONCE}.cleaned", [data])
    suffixes = [".log", ".index", ".timeindex"]
    for suffix, content in ((".index", b""), (".timeindex", OWN_TIMES)):
        disk.write_new(f"{path}{suffix}.{NONCE}.cleaned", [content])
    if rows:
        disk.write_new(f"{path}.txnindex.{NONCE}.cleaned", [encode_row(row) for row in rows])
        suffixes.append(".txnindex")
    return Written(base_offset, [segment.base_offset for segment in segments], len(data), suffixes, NONCE)


# ----------------------------------------------------------------------------------------------------- coming and going
def test_they_are_found_by_their_offsets() -> None:
    segments = filled().segments
    assert segments.base_offsets == [segment.base_offset for segment in segments] == [0, 2, 4, 6, 8]
    assert len(segments) == len(segments.all) == 5
    assert segments.active is segments[-1]
    assert segments.size_bytes == sum(segment.size_bytes for segment in segments)
    for offset, expected in ((0, 0), (1, 0), (2, 2), (9, 8), (100, 8), (-1, 0)):
        found = [segment.base_offset for segment in segments.from_offset(offset)]
        assert found == list(range(expected, 10, 2))


@pytest.mark.parametrize("base_offset", [10, 5, 0])
def test_a_new_one_stands_where_its_offset_belongs(base_offset: int) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    segments, before = log.segments, log.segments.changes
    if base_offset == 0:
        segments.retire(0)
        before = segments.changes
    segments.create(base_offset, CONFIG, T0)
    assert segments.base_offsets == sorted(segments.base_offsets)
    assert segments[segments.base_offsets.index(base_offset)].base_offset == base_offset
    assert segments.changes == before + 1
    assert f"{base_offset:020d}.log" in disk.list_dir(DIRECTORY)


def test_what_goes_has_another_name_at_once_and_is_handed_out_once() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    segments, before = log.segments, log.segments.changes
    segments.retire(0)
    segments.retire(-1)
    assert segments.base_offsets == [2, 4, 6]
    assert segments.changes == before + 2
    assert names(log, disk, ".log") == [f"{offset:020d}.log" for offset in (2, 4, 6)]
    retired = segments.take_retired()
    assert sorted(path.rpartition("/")[2] for path in retired) == names(log, disk, ".deleted")
    assert len(retired) == 6
    assert segments.take_retired() == []


def test_one_that_cannot_go_still_stands() -> None:
    disk = FaultyDisk()
    log = filled(disk)
    before = contents(disk)
    disk.fail_at(0, full, for_good=True)
    with pytest.raises(OSError, match="No space"):
        log.segments.retire(0)
    assert log.segments.base_offsets == [0, 2, 4, 6, 8]
    assert log.segments.take_retired() == []
    assert read_all(log)
    assert contents(disk) == before


def test_snapshots_go_with_their_segments_but_for_the_newest() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    assert log.segments.snapshots.offsets == [2, 4, 6, 8]
    log.segments.retire(0)
    log.segments.retire(0)
    assert log.segments.snapshots.offsets == [4, 6, 8]
    assert len(names(log, disk, ".snapshot")) == 3


# ------------------------------------------------------------------------------------------------------- what is known
def test_facts_say_what_a_segment_holds_without_reading_it() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    log.close()
    log = open_log(disk, CONFIG, now_ms=77, is_clean=True, recovery_point=10)
    for number in range(len(log.segments) + 1):
        log.segments.know(number)  # one that went meanwhile is passed over
    reads: list[str] = []
    readable_bytes = disk.readable_bytes

    def watched(path: str, position: int, size_bytes: int) -> int:
        reads.append(path)
        return readable_bytes(path, position, size_bytes)

    disk.readable_bytes = watched  # type: ignore[method-assign]
    facts = log.segments.facts()
    assert reads == []
    assert [fact.base_offset for fact in facts] == [0, 2, 4, 6, 8]
    assert [fact.size_bytes for fact in facts] == [segment.size_bytes for segment in log.segments]
    assert [(fact.first_timestamp_ms, fact.largest_timestamp_ms) for fact in facts] == [
        (T0 + base, T0 + base + 1) for base in range(0, 10, 2)
    ]
    assert {fact.modified_ms for fact in facts} == {77}
    for fact in facts:
        assert fact.offset_index_bytes == len(disk.read_whole(f"{DIRECTORY}/{fact.base_offset:020d}.index"))
        assert fact.time_index_bytes == len(disk.read_whole(f"{DIRECTORY}/{fact.base_offset:020d}.timeindex"))


def test_sources_are_the_segments_before_an_offset_without_the_active_one() -> None:
    log = filled()
    assert [source.base_offset for source in log.segments.sources(5)] == [0, 2, 4]
    assert [source.base_offset for source in log.segments.sources(4)] == [0, 2]
    every = log.segments.sources(1000)
    assert [(source.base_offset, source.next_offset) for source in every] == [(0, 2), (2, 4), (4, 6), (6, 8)]
    for source, segment in zip(every, log.segments, strict=False):
        assert (source.path, source.size_bytes) == (segment.file.path, segment.size_bytes)
        assert source.aborted == []


def test_a_source_comes_with_the_rows_that_overlap_it_wherever_they_stand() -> None:
    log = filled()
    long, short = AbortedTxn(5, 1, 6, 4), AbortedTxn(6, 4, 7, 8)
    for row in (long, short):
        log.segments[3].txn_index.append(row)
    assert [source.aborted for source in log.segments.sources(100)] == [[long], [long], [long, short], [long, short]]
    assert log.segments.have_aborted(0)
    assert not log.segments.have_aborted(8)
    assert log.segments.aborted(0, 1) == []
    assert log.segments.aborted(7, 8) == [short]


# ------------------------------------------------------------------------------------------------------------ the swap
def test_a_compacted_segment_takes_the_place_of_others_in_two_steps() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    expected, changes = read_all(log), log.segments.changes
    row = AbortedTxn(5, 3, 5, 6)
    written = merged(disk, log, 1, 2, rows=(row,))
    assert log.segments.stands(written)
    assert log.segments.begin_swap(written)
    assert names(log, disk, ".cleaned") == []
    assert len(names(log, disk, ".swap")) == 4
    assert log.segments.base_offsets == [0, 2, 4, 6, 8], "nothing has changed yet"
    assert read_all(log) == expected
    created_ms = log.segments[1].created_ms
    assert created_ms == 102
    assert log.segments.complete_swap(written, CONFIG)
    assert log.segments.base_offsets == [0, 2, 6, 8]
    assert log.segments.changes == changes + 1
    assert log.segments[1].next_offset == 6
    assert log.segments[1].created_ms == created_ms
    assert read_all(log) == expected
    assert log.segments.aborted(2, 6) == [row]
    assert names(log, disk, ".swap") == []
    assert sorted(path.rpartition("/")[2] for path in log.segments.take_retired()) == names(log, disk, ".deleted")
    assert len(names(log, disk, ".log.deleted")) == 2
    assert f"{4:020d}.snapshot" not in disk.list_dir(DIRECTORY)
    assert append(log, batch(T0, producer=(1, 0, 10))).base_offset == 10


def test_the_segment_behind_the_gap_is_read_where_nothing_of_a_group_is_left() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    written = merged(disk, log, 1, 2)._replace(size_bytes=0)
    disk.write_whole(f"{DIRECTORY}/{2:020d}.log.{NONCE}.cleaned", b"")
    log.segments.begin_swap(written)
    log.segments.complete_swap(written, CONFIG)
    for offset in (2, 3, 4, 5, 6):
        assert bytes(log.fetch(offset, 0, 10, True).records)[:8] == (6).to_bytes(8, "big")


@pytest.mark.parametrize("step", ["begin", "complete"])
@pytest.mark.parametrize("what", ["first went", "last went", "active", "merged otherwise", "merged behind"])
def test_what_became_of_segments_meanwhile_keeps_them_from_being_replaced(what: str, step: str) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    written = merged(disk, log, 0, 1) if what == "first went" else merged(disk, log, 2, 3)
    if step == "complete":
        assert log.segments.begin_swap(written)
    match what:
        case "first went":
            log.segments.retire(0)
        case "last went":
            log.segments.retire(-1)
            log.segments.retire(-1)
        case "active":
            log.segments.retire(-1)
        case "merged behind":
            written = written._replace(base_offset=2, replaces=[2, 4, 6])
            for name in names(log, disk, ".cleaned") + names(log, disk, ".swap"):
                disk.rename(f"{DIRECTORY}/{name}", f"{DIRECTORY}/{name.replace('04', '02')}")
            other = merged(disk, log, 2, 3)
            log.segments.begin_swap(other)
            log.segments.complete_swap(other, CONFIG)
        case _:
            other = merged(disk, log, 1, 2)
            log.segments.begin_swap(other)
            log.segments.complete_swap(other, CONFIG)
    before = log.segments.base_offsets[:]
    assert not log.segments.stands(written)
    if step == "begin":
        assert not log.segments.begin_swap(written)
        assert names(log, disk, ".swap") == []
    else:
        assert not log.segments.complete_swap(written, CONFIG)
        assert names(log, disk, ".swap") == [], "lest a start brings it back"
    assert log.segments.base_offsets == before


def test_a_swap_that_is_withdrawn_is_not_completed_by_a_start() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    expected = read_all(log)
    written = merged(disk, log, 1, 2)
    log.segments.begin_swap(written)
    log.segments.withdraw_swap(written)
    assert names(log, disk, ".swap") == []
    log.close_without_flush()
    assert open_log(disk, CONFIG).base_offsets == [0, 2, 4, 6, 8]
    assert read_all(open_log(disk, CONFIG)) == expected


def test_a_swap_that_cannot_even_be_withdrawn_is_completed_by_a_start(caplog: pytest.LogCaptureFixture) -> None:
    disk = FaultyDisk()
    log = filled(disk)
    expected = read_all(log)
    written = merged(disk, log, 1, 2)
    log.segments.begin_swap(written)
    disk.fail_at(0, full, for_good=True)
    log.segments.withdraw_swap(written)
    assert "the next start puts a compacted segment into its place" in caplog.text
    disk.heal()
    log.close_without_flush()
    again = open_log(disk, CONFIG)
    assert again.base_offsets == [0, 2, 6, 8]
    assert read_all(again) == expected


def test_a_swap_that_fails_half_way_ends_all_appends_until_the_next_start() -> None:
    steps = 0
    while True:
        disk = FaultyDisk()
        log = filled(disk)
        expected = read_all(log)
        written = merged(disk, log, 1, 2)
        log.segments.begin_swap(written)
        disk.fail_at(steps, full, for_good=False)
        try:
            log.complete_swap(written)
        except KafkaError as error:
            assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert error_of(partial(append, log, batch(T0))) is STORAGE
        else:
            if steps > 8:
                break
        for offset in range(10):
            try:
                data = bytes(log.fetch(offset, 0, 10, True).records)
            except KafkaError as error:
                assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
            else:
                assert data[:8] == offset.to_bytes(8, "big")
        log.close_without_flush()
        again = open_log(disk, CONFIG)
        assert again.base_offsets in ([0, 2, 6, 8], [0, 2, 4, 6, 8])
        assert read_all(again) == expected
        steps += 1
    assert steps > 8


@pytest.mark.parametrize("recovery_point", [8, 7, 5])
def test_segments_that_a_loss_of_power_brought_back_go_again(recovery_point: int) -> None:
    """The device had the compacted segment's new name, and not those of what it replaces."""
    disk = MemoryDisk()
    log = filled(disk)
    written = merged(disk, log, 1, 2, 3)
    back = {name: content for name, content in contents(disk).items() if name.startswith(f"{4:020d}")}
    log.segments.begin_swap(written)
    log.complete_swap(written)
    expected = read_all(log)
    log.close_without_flush()
    for name, content in back.items():
        disk.write_whole(f"{DIRECTORY}/{name}", content)
    again = open_log(disk, replace(CONFIG, is_compacted=True), recovery_point=recovery_point)
    assert again.base_offsets == [0, 2, 8]
    assert [segment.next_offset for segment in again.segments] == [2, 8, 10]
    assert not [name for name in disk.list_dir(DIRECTORY) if name.startswith(f"{4:020d}") and "snapshot" not in name]
    assert read_all(again) == expected


def test_a_compacted_segment_that_a_start_finds_damaged_is_kept_aside(caplog: pytest.LogCaptureFixture) -> None:
    disk = MemoryDisk()
    log = filled(disk)
    expected = read_all(log)
    written = merged(disk, log, 1, 2)
    log.segments.begin_swap(written)
    log.close_without_flush()
    file = disk.open(f"{DIRECTORY}/{2:020d}.log.swap")
    file.truncate(file.size_bytes - 1)
    again = open_log(disk, CONFIG)
    assert read_all(again) == expected
    assert again.base_offsets == [0, 2, 4, 6, 8]
    assert names(again, disk, ".damaged") == [f"{2:020d}.log.swap.damaged"]
    assert "the segments that it was made of stay" in caplog.text


def test_a_start_completes_what_is_there_of_a_swap() -> None:
    """Whatever was renamed already. The indexes come along, and nothing of the old ones is left or set aside."""
    for done in range(12):
        disk = FaultyDisk()
        log = filled(disk)
        written = merged(disk, log, 1, 2, 3)
        log.segments.begin_swap(written)
        disk.fail_at(done, full, for_good=True)
        with pytest.raises(OSError, match="No space"):
            log.segments.complete_swap(written, CONFIG)
        disk.heal()
        again = open_log(disk, CONFIG, recovery_point=8)
        assert again.base_offsets == [0, 2, 8]
        assert disk.read_whole(f"{DIRECTORY}/{2:020d}.timeindex") == OWN_TIMES
        endings = {name.rpartition(".")[2] for name in disk.list_dir(DIRECTORY)}
        assert endings <= {"log", "index", "timeindex", "snapshot", "leader-epoch-checkpoint"}


def test_a_swap_that_was_begun_in_part_has_not_begun() -> None:
    for done in range(3):
        disk = FaultyDisk()
        log = filled(disk)
        expected = read_all(log)
        written = merged(disk, log, 1, 2, 3)
        disk.fail_at(done, full, for_good=True)
        with pytest.raises(OSError, match="No space"):
            log.segments.begin_swap(written)
        disk.heal()
        again = open_log(disk, CONFIG)
        assert again.base_offsets == [0, 2, 4, 6, 8]
        assert read_all(again) == expected
        assert [name for name in disk.list_dir(DIRECTORY) if name.endswith((".swap", ".cleaned"))] == []


def test_a_segment_of_which_only_the_first_record_is_left_goes_too() -> None:
    """The new segment ends with the offset that the last old one is named after."""
    disk = MemoryDisk()
    log = filled(disk)
    written = merged(disk, log, 1, 2)
    whole = disk.read_whole(f"{DIRECTORY}/{2:020d}.log.{NONCE}.cleaned")
    disk.write_whole(f"{DIRECTORY}/{2:020d}.log.{NONCE}.cleaned", whole[: len(whole) * 3 // 4])
    log.segments.begin_swap(written)
    again = open_log(disk, CONFIG, recovery_point=8)
    assert again.base_offsets == [0, 2, 6, 8]
    assert [header.base_offset for _, header in iterate_batches(read_all(again))] == [0, 1, 2, 3, 4, 6, 7, 8, 9]


def test_indexes_without_a_log_are_removed_by_a_start() -> None:
    disk = MemoryDisk()
    log = filled(disk)
    log.close()
    for name in (f"{2:020d}.index.swap", f"{5:020d}.index", f"{5:020d}.timeindex", f"{7:020d}.txnindex.swap"):
        disk.write_whole(f"{DIRECTORY}/{name}", bytes(8))
    before = {name for name in disk.list_dir(DIRECTORY) if not name.startswith((f"{5:020d}", f"{7:020d}"))}
    open_log(disk, CONFIG)
    assert set(disk.list_dir(DIRECTORY)) == before - {f"{2:020d}.index.swap"}


# ------------------------------------------------------------------------------------------------ aborted transactions
@pytest.mark.parametrize("base_offset", [2, 5])
@pytest.mark.parametrize("has_snapshots", [True, False])
def test_an_index_of_aborted_transactions_that_cannot_be_believed_is_built_anew(
    has_snapshots: bool, base_offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    """With what began in segments before; only its own markers are in it."""
    disk, hand_made = MemoryDisk(), transactions()
    hand_made.append(data_batch(5, (b"k", b"v"), producer=(9, 0, 0), is_transactional=True))
    hand_made.append(marker_batch(6, 9, 0, is_commit=False))
    hand_made.append(marker_batch(7, 3, 0, is_commit=False))
    disk.make_dir(DIRECTORY)
    for segment in hand_made.segments:
        disk.write_new(f"{DIRECTORY}/{segment.base_offset:020d}.log", segment.batches)
    log = open_log(disk, CONFIG)
    assert log.base_offsets == [0, 2, 5]
    rows = log.segments.aborted(0, 8)
    assert rows == [AbortedTxn(2, 0, 4, 5), AbortedTxn(9, 5, 6, 7)]
    log.close()
    if not has_snapshots:
        for name in names(log, disk, ".snapshot"):
            disk.remove(f"{DIRECTORY}/{name}")
    path = f"{DIRECTORY}/{base_offset:020d}.txnindex"
    good = disk.read_whole(path)
    for bad in (good[:-1], bytes(len(good)), good + good, b"\xff" * len(good)):
        disk.write_whole(path, bad)
        log = open_log(disk, CONFIG, is_clean=True, recovery_point=8)
        assert log.segments.aborted(0, 8) == rows
        assert disk.read_whole(path) == good
        log.close_without_flush()
    assert caplog.text.count("built anew") == 4
