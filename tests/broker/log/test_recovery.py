"""Opening what a process left behind: torn tails at every byte, wrong indexes, leftovers, foreign files."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.broker.log.log import Log
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.log.logs import (
    DIRECTORY,
    T0,
    Model,
    append,
    assert_same,
    batch,
    contents,
    copied,
    open_log,
    stored,
)

CONFIG = LogConfig(segment_bytes=400, index_interval_bytes=150)
LAST_BATCH = batch(T0 + 900, T0 + 901, producer=(1, 0, 300))


def written(*, is_closed: bool = True) -> tuple[MemoryDisk, Model]:
    """A log of several segments on a disk: its last process was stopped, or killed."""
    disk, model = MemoryDisk(), Model()
    log = open_log(disk, CONFIG)
    for number in range(18):
        data = batch(T0 + 10 * number, T0 + 10 * number - 3, value=b"v" * (number % 5), producer=(1, 0, 2 * number))
        append(log, data, leader_epoch=number // 5)
        model.append(data, leader_epoch=number // 5)
    assert len(log.base_offsets) > 3
    if is_closed:
        log.close()
    return disk, model


def active(disk: MemoryDisk, suffix: str = ".log") -> str:
    return f"{DIRECTORY}/" + max(name for name in disk.list_dir(DIRECTORY) if name.endswith(suffix))


def nonempty_index(disk: MemoryDisk, suffix: str) -> str:
    name = next(name for name, content in contents(disk).items() if name.endswith(suffix) and content)
    return f"{DIRECTORY}/{name}"


def test_an_empty_log_gets_no_snapshot_of_its_producers() -> None:
    """Nor does Kafka write one: there is nothing to know."""
    disk = MemoryDisk()
    open_log(disk, CONFIG)
    open_log(disk, CONFIG)
    assert [name for name in disk.list_dir(DIRECTORY) if name.endswith(".snapshot")] == []


@pytest.mark.parametrize("is_closed", [True, False])
def test_everything_is_there_again_and_nothing_is_rewritten(is_closed: bool, caplog: pytest.LogCaptureFixture) -> None:
    disk, model = written(is_closed=is_closed)
    before = contents(disk)
    log = open_log(disk, CONFIG)
    assert_same(log, model)
    assert "cut" not in caplog.text
    if is_closed:
        assert contents(disk) == before
    for number in range(100, 104):
        data = batch(T0 + number)
        append(log, data, leader_epoch=8)
        model.append(data, leader_epoch=8)
    assert_same(log, model)
    log.close()
    assert_same(open_log(disk, CONFIG), model)


@pytest.mark.parametrize("there", range(1, len(LAST_BATCH)))
def test_a_batch_torn_at_any_byte_is_cut_off_and_the_log_goes_on_there(
    there: int, caplog: pytest.LogCaptureFixture
) -> None:
    disk, model = written(is_closed=False)
    path = active(disk)
    size_bytes = len(disk.read_whole(path))
    disk.open(path).append([stored(LAST_BATCH, model.log_end_offset)[:there]])
    log = open_log(disk, CONFIG)
    assert_same(log, model)
    assert f"{path}: cut {there} bytes at position {size_bytes}" in caplog.text
    assert f"the log goes on at offset {model.log_end_offset}" in caplog.text
    assert len(disk.read_whole(path)) == size_bytes
    append(log, batch(T0), leader_epoch=3)
    model.append(batch(T0), leader_epoch=3)
    log.close()
    assert_same(open_log(disk, CONFIG), model)


TAILS = {
    "one zero": bytes(1),
    "zeros, as a power cut may leave": bytes(10_000),
    "noise": b"\xff" * 200,
    "an offset that cannot come again": stored(LAST_BATCH, 0),
    "an offset that the indexes cannot hold": stored(LAST_BATCH, 2**31 + 500),
    "damage and a good batch behind it": stored(LAST_BATCH, 1000)[:-1] + b"\x01" + stored(LAST_BATCH, 1002),
    "a length of 2 GiB": stored(LAST_BATCH, 1000)[:8] + b"\x7f\xff\xff\xff" + bytes(4),
}


@pytest.mark.parametrize("what", list(TAILS))
def test_a_tail_that_is_no_batch_is_cut_off(what: str) -> None:
    disk, model = written()
    disk.open(active(disk)).append([TAILS[what]])
    assert_same(open_log(disk, CONFIG), model)


def test_a_flipped_byte_anywhere_in_the_active_segment_is_found_and_cut_there() -> None:
    """Base offset and leader epoch are outside of the checksum: of those only an offset that goes back is noticed."""
    disk, model = written()
    path = active(disk)
    good = disk.read_whole(path)
    ends = [0]
    for first, _, data in model.batches:
        if first >= int(path.split("/")[-1][:20]):
            ends.append(ends[-1] + len(data))
    assert ends[-1] == len(good)
    found = 0
    for position in range(len(good)):
        number = max(number for number, end in enumerate(ends) if end <= position)
        in_batch = position - ends[number]
        if in_batch < 8 or 12 <= in_batch < 16:
            continue
        broken = copied(disk, MemoryDisk())
        broken.write_whole(path, good[:position] + bytes([good[position] ^ 0x04]) + good[position + 1 :])
        log = open_log(broken, CONFIG)
        assert len(broken.read_whole(path)) == ends[number], position
        expected = model.copy()
        expected.truncate_to(model.batches[len(model.batches) - len(ends) + 1 + number][0])
        assert log.log_end_offset == expected.log_end_offset
        found += 1
    assert found > 180


def test_damage_before_the_last_segment_ends_the_log_and_keeps_later_segments_aside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nothing but a lost page or a bad disk does this. Kafka deletes what follows; we rename it."""
    disk, model = written()
    names = [name for name in disk.list_dir(DIRECTORY) if name.endswith(".log")]
    second = int(names[1][:20])
    before = contents(disk)
    disk.open(f"{DIRECTORY}/{names[1]}").truncate(HEADER_SIZE + 5)
    log = open_log(disk, CONFIG)
    model.truncate_to(second)
    assert_same(log, model)
    after = contents(disk)
    for name in names[2:]:
        assert name not in after
        assert after[f"{name}.unreachable"] == before[name]
        assert f"{name}: renamed to *.unreachable" in caplog.text
    caplog.clear()
    log.close()
    assert_same(open_log(disk, CONFIG), model)
    assert "unreachable" in caplog.text, "they are named again at every start"


def test_an_empty_segment_that_a_failed_roll_left_behind_is_removed() -> None:
    disk, model = written()
    between = model.batches[-1][0]
    assert between > int(active(disk).split("/")[-1][:20])
    for suffix in (".log", ".index", ".timeindex"):
        disk.write_whole(f"{DIRECTORY}/{between:020d}{suffix}", b"")
    assert_same(open_log(disk, CONFIG), model)
    assert not any(name.startswith(f"{between:020d}") for name in disk.list_dir(DIRECTORY))


def test_an_empty_segment_behind_one_that_lost_batches_goes_with_them() -> None:
    """Power failed soon after a roll. If it stayed, the log would have a gap of which its end says nothing."""
    disk, model = written()
    path = active(disk)
    end = model.log_end_offset
    for suffix in (".log", ".index", ".timeindex"):
        disk.write_whole(f"{DIRECTORY}/{end:020d}{suffix}", b"")
    assert open_log(copied(disk, MemoryDisk()), CONFIG).base_offsets[-1] == end
    content = disk.read_whole(path)
    disk.write_whole(path, content[:-1] + bytes([content[-1] ^ 1]))
    log = open_log(disk, CONFIG)
    first = model.batches[-1][0]
    assert first < end
    assert log.log_end_offset == first
    assert f"{end:020d}.log" not in disk.list_dir(DIRECTORY)
    append(log, batch(T0), leader_epoch=3)
    assert bytes(log.fetch(first, 1000, first + 1, True).records) == stored(batch(T0), first, 3)


def test_after_a_restart_index_entries_are_due_as_if_it_had_not_happened() -> None:
    """In the offset index; the time index gets one more with every stop."""
    disk, other = MemoryDisk(), MemoryDisk()
    config = LogConfig(index_interval_bytes=400)
    uninterrupted = open_log(other, config)
    for number in range(8):
        log = open_log(disk, config)
        for extra in range(4):
            append(log, batch(T0 + 4 * number + extra))
            append(uninterrupted, batch(T0 + 4 * number + extra))
        log.close()
    uninterrupted.close()
    index = "00000000000000000000.index"
    assert contents(disk)[index] == contents(other)[index]
    assert len(contents(disk)[index]) == 8 * (31 // (400 // len(batch(T0)) + 1))


SPOILED: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda _: None,
    "empty": lambda _: b"",
    "half an entry too many": lambda content: content + bytes(5),
    "half an entry too few": lambda content: content[:-3],
    "zeros behind it, as Kafka preallocates": lambda content: content + bytes(8 * 12 * 10),
    "only zeros": lambda content: bytes(len(content)),
    "a wrong offset": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "noise": lambda content: b"\xa5" * 24 * 7,
    "every entry twice": lambda content: content + content,
}


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("how", list(SPOILED))
def test_an_index_that_is_missing_short_or_wrong_is_built_anew(how: str, suffix: str) -> None:
    """Byte by byte as it was, but for the last time entry of the active segment, which comes when it is closed."""
    disk, model = written()
    before = contents(disk)
    for name, content in before.items():
        if name.endswith(suffix) and content:
            path = f"{DIRECTORY}/{name}"
            spoiled = SPOILED[how](content)
            disk.remove(path)
            if spoiled is not None:
                disk.write_whole(path, spoiled)
    log = open_log(disk, CONFIG)
    assert_same(log, model)
    for timestamp in range(T0 - 5, T0 + 150, 3):
        assert log.offset_for_timestamp(timestamp, 1000) == model.offset_for_timestamp(timestamp, 1000)
    log.close()
    assert contents(disk) == before


def test_behind_the_recovery_point_indexes_are_as_dense_as_is_wanted_now() -> None:
    disk, model = written()
    log = open_log(disk, LogConfig(segment_bytes=400, index_interval_bytes=10_000))
    assert_same(log, model)
    assert all(content == b"" for name, content in contents(disk).items() if name.endswith(".index"))
    log = open_log(disk, LogConfig(segment_bytes=400, index_interval_bytes=0))
    assert_same(log, model)
    log.close()
    for name, content in contents(disk).items():
        if name.endswith(".index"):
            batches = [entry for entry in model.batches if entry[0] >= int(name[:20])]
            assert content[:4] == struct.pack(">i", batches[1][1] - int(name[:20])), "each batch but the first"


def test_an_index_is_never_built_larger_than_allowed() -> None:
    disk, model = written()
    small = LogConfig(segment_bytes=10_000, index_interval_bytes=0, segment_index_bytes=24)
    log = open_log(disk, small)
    assert_same(log, model)
    assert all(len(content) <= 24 for name, content in contents(disk).items() if "index" in name)


def test_leftovers_are_finished_off(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    disk, model = written()
    before = contents(disk)
    leftovers = [
        "00000000000000000099.log.deleted",
        "00000000000000000099.index.deleted",
        "00000000000000000000.snapshot.deleted",
        "leader-epoch-checkpoint.tmp",
        "partition.metadata.tmp",
        "00000000000000000777.index",  # an index whose log is gone
        "00000000000000000777.timeindex",
    ]
    for name in leftovers:
        disk.write_whole(f"{DIRECTORY}/{name}", b"x")
    assert_same(open_log(disk, CONFIG), model)
    assert contents(disk) == before
    for name in leftovers:
        assert name in caplog.text


def test_foreign_files_are_left_alone_and_named_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    disk, model = written()
    foreign = ["0.log", "00000000000000000001.log.bak", "README", "99999999999999999999.log", "notes.deleted", "zz"]
    for name in foreign[:-1]:
        disk.write_whole(f"{DIRECTORY}/{name}", b"not ours")
    disk.make_dir(f"{DIRECTORY}/zz")
    disk.make_dir(f"{DIRECTORY}/00000000000000005555.log")
    disk.write_whole(f"{DIRECTORY}/partition.metadata", b"version: 0\n")
    disk.write_whole(f"{DIRECTORY}/00000000000000000000.snapshot", b"Kafka's")
    disk.write_whole(f"{DIRECTORY}/00000000000000000000.txnindex", b"")
    assert_same(open_log(disk, CONFIG), model)
    lines = [record.getMessage() for record in caplog.records if "no part of a log" in record.getMessage()]
    assert len(lines) == 1
    for name in (*foreign, "00000000000000005555.log"):
        assert name in lines[0]
        assert disk.exists(f"{DIRECTORY}/{name}")
    assert "snapshot" not in lines[0]
    assert "partition.metadata" not in lines[0]


@pytest.mark.parametrize("content", [None, b"", b"nonsense", b"0\n1\n0 0\n", b"0\n3\n0 0\n1 10\n9 5000\n"])
def test_leader_epochs_come_from_the_batches_where_the_checkpoint_lacks_them(content: bytes | None) -> None:
    disk, model = written()
    path = f"{DIRECTORY}/leader-epoch-checkpoint"
    assert disk.read_whole(path) == b"0\n4\n0 0\n1 10\n2 20\n3 30\n"
    if content is None:
        disk.remove(path)
    else:
        disk.write_whole(path, content)
    log = open_log(disk, CONFIG)
    assert_same(log, model)
    log.flush()
    assert disk.read_whole(path) == b"0\n4\n0 0\n1 10\n2 20\n3 30\n"


@pytest.mark.parametrize("checkpoint", [b"0\n1\n4 0\n", b"0\n1\n4 8\n"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_where_compaction_took_the_first_batches_their_epoch_is_not_looked_for(
    checkpoint: bytes, is_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    disk = MemoryDisk()
    disk.make_dir(DIRECTORY)
    disk.write_whole(f"{DIRECTORY}/{0:020d}.log", stored(batch(T0), 8, 4) + stored(batch(T0), 9, 4))
    disk.write_whole(f"{DIRECTORY}/leader-epoch-checkpoint", checkpoint)
    for _ in range(3):
        log = open_log(disk, CONFIG, is_clean=is_clean)
        assert (log.epochs.latest, log.epochs.epoch_for(8), log.log_end_offset) == (4, 4, 10)
        log.close()
    assert "leader epochs" not in caplog.text


def test_an_epoch_that_was_cut_off_with_its_batches_is_forgotten() -> None:
    disk, model = written()
    path = active(disk)
    last = model.batches[-1]
    log = open_log(disk, CONFIG)
    append(log, LAST_BATCH[:53] + (36).to_bytes(4, "big") + LAST_BATCH[57:], leader_epoch=6)
    log.close_without_flush()
    path = active(disk)
    disk.open(path).truncate(len(disk.read_whole(path)) - 1)
    log = open_log(disk, CONFIG)
    assert log.log_end_offset == last[1] + 1
    assert log.epochs.latest == 3


def test_real_files_are_recovered_too(tmp_path: Path) -> None:
    disk, model = written(is_closed=False)
    directory = tmp_path / "orders-0"
    directory.mkdir()
    for name, content in contents(disk).items():
        (directory / name).write_bytes(content)
    with (tmp_path / "orders-0" / active(disk).split("/")[-1]).open("ab") as stream:
        stream.write(b"torn")
    files = FileDisk(descriptors_max=2)
    log = Log.open(files, str(directory), CONFIG, 0)
    assert_same(log, model)
    append(log, batch(T0), leader_epoch=3)
    model.append(batch(T0), leader_epoch=3)
    log.close()
    log = Log.open(files, str(directory), CONFIG, 0)
    assert_same(log, model)
    log.close()
    assert files.open_descriptors == 0


def test_an_unreadable_directory_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "orders-0").write_bytes(b"a file")
    with pytest.raises(KafkaError) as caught:
        Log.open(FileDisk(), str(tmp_path / "orders-0"), CONFIG, 0)
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert "orders-0" in caught.value.message
