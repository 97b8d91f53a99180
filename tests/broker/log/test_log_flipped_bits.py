"""A flipped bit in each kind of file of a log, after a clean stop and after a kill: what is noticed, and what follows.

What can be promised depends on what Kafka's format can show:

| file | checksum | a flipped bit |
|---|---|---|
| `.log` behind the recovery point | CRC-32C, but for offset and epoch | the log ends before that batch |
| `.log` before it | the same | is passed on as it is, or the read fails; consumers check. Nothing else changes |
| `.index` | none | its entries are checked by what they point at: no wrong answer, ever |
| `.timeindex` | none | likewise |
| `.snapshot` | CRC-32C | is noticed; the producers come from the one before and the batches |
| `.txnindex` | none | each row is checked by the marker and the batch that it names (test_log_damaged_files.py) |
| `leader-epoch-checkpoint` | none | is checked by the batches where an epoch begins, and taken from them |

The checkpoints of the data directory are in test_checkpoints.py, the rest of what a broker reads in
test_partitions_flipped_bits.py. Damage of other kinds is in test_log_damaged_files.py.
"""

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.config import LogConfig
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.log.damaged_logs import COUNT, Written, add, check_goes_on, check_lookups, check_reads
from tests.broker.log.logs import DIRECTORY, T0, Model, append, batch, known_producers, open_log

ENDS = pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])


@ENDS
@pytest.mark.parametrize("which", [1, -1])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_no_flipped_bit_of_an_index_gives_a_wrong_answer(suffix: str, which: int, is_clean: bool) -> None:
    written = Written(is_clean=is_clean)
    for disk, position in written.flips(written.file(suffix, which)):
        log = written.open(disk)
        check_reads(log, written.model, position)
        check_lookups(log, written.model, position)
        if which == -1 and position % 3 != 1:
            check_goes_on(log, written.model, disk, position)


@pytest.mark.parametrize("times", [(0, 10, 20, 10, 30, 30), (5, 5, 5, 5, 5, 5), (30, 10, 30, 20, 30, 10)])
def test_nor_does_one_by_which_an_entry_names_another_batch_with_its_timestamp(times: tuple[int, ...]) -> None:
    """What the entry points at seems to bear it out."""
    config = LogConfig(index_interval_bytes=0)
    disk, model = MemoryDisk(), Model()
    log = open_log(disk, config)
    for time in times:
        append(log, batch(T0 + time))
        model.append(batch(T0 + time))
    log.roll(0)
    log.close()
    path = f"{DIRECTORY}/{0:020d}.timeindex"
    good = disk.read_whole(path)
    for bit in range(8 * len(good)):
        position = bit // 8
        disk.write_whole(path, good[:position] + bytes([good[position] ^ 1 << bit % 8]) + good[position + 1 :])
        log = open_log(disk, config, recovery_point=log.recovery_point, is_clean=True)
        for timestamp in range(T0 - 5, T0 + 40, 5):
            found = log.offset_for_timestamp(timestamp, 1000)
            assert found == model.offset_for_timestamp(timestamp, 1000), (bit, timestamp - T0)
        largest = log.offset_of_max_timestamp(1000)
        assert largest is not None
        assert largest[:2] == (T0 + max(times), times.index(max(times))), bit
        log.close_without_flush()


@ENDS
@pytest.mark.parametrize("which", [1, -1])
def test_every_flipped_bit_of_a_snapshot_is_noticed(
    which: int, is_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    written = Written(is_clean=is_clean)
    name = written.file(".snapshot", which)
    newest = max(other for other in written.disk.list_dir(DIRECTORY) if other.endswith(".snapshot"))
    for disk, position in written.flips(newest if which == -1 else name, 29):
        caplog.clear()
        log = written.open(disk)
        assert known_producers(log) == written.model.producers(), position
        assert ("is removed, for it is damaged" in caplog.text) == (which == -1), "only the newest is looked at"
        check_goes_on(log, written.model, disk, position)


@ENDS
def test_a_flipped_bit_of_an_old_batch_changes_nothing_else(is_clean: bool) -> None:
    """Reads of it answer what is on the disk, or what follows, or fail; all else is as it was, and appends go on."""
    written = Written(is_clean=is_clean)
    name, model = written.file(".log", 1), written.model
    first, end = written.bases[1], written.bases[2]
    following = b"".join(data for base, _, data in model.batches if base >= end)
    for disk, _ in written.flips(name, 7):
        log = written.open(disk)
        assert log.log_end_offset == model.log_end_offset
        broken = disk.read_whole(f"{DIRECTORY}/{name}")
        for offset in range(model.log_end_offset):
            is_there = first <= offset < end
            try:
                data = bytes(log.fetch(offset, 1 << 20, model.log_end_offset, True).records)
            except KafkaError as error:
                assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
                assert is_there
                continue
            if is_there:
                assert data in broken or following.startswith(data), "what is on the disk, and nothing that is not"
            else:
                assert data
                assert model.read(offset, 1 << 20, model.log_end_offset, True).startswith(data)
        append(log, batch(T0 + 9000), leader_epoch=8)


@ENDS
def test_a_flipped_bit_of_the_last_segment_ends_the_log_before_it_or_goes_unseen(is_clean: bool) -> None:
    """After a kill every batch is checked. After a clean stop only the headers of the last ones are looked at."""
    written = Written(is_clean=is_clean)
    name, model = written.file(".log", -1), written.model
    starts = [0]
    for entry in model.batches:
        if entry[0] >= written.bases[-1]:
            starts.append(starts[-1] + len(entry[2]))
    noticed = 0
    for disk, position in written.flips(name):
        log = written.open(disk)
        number = max(number for number, start in enumerate(starts) if start <= position)
        within = position - starts[number]
        expected = model.copy()
        expected.truncate_to(model.batches[len(model.batches) - len(starts) + 1 + number][0])
        if log.log_end_offset == expected.log_end_offset:
            noticed += 1
            check_reads(log, expected, position)
        elif is_clean:
            assert log.log_end_offset >= expected.log_end_offset or within < HEADER_SIZE
        else:
            assert within < 8 or 12 <= within < 16, "only offset and epoch stand before the checksum"
        log.begin_epoch(8)
        append(log, batch(T0 + 9000), leader_epoch=8)
    assert noticed > (20 if is_clean else 1000)


@ENDS
def test_whatever_the_leader_epochs_say_records_are_read_and_appended(is_clean: bool) -> None:
    """A digit that became another one is believed, and consumers may be told to start from another offset. But the
    broker's own epoch, which is larger than that of any batch, must do for an append."""
    written = Written(is_clean=is_clean)
    for disk, position in written.flips("leader-epoch-checkpoint"):
        log = written.open(disk)
        check_reads(log, written.model, position)
        epochs = [epoch for epoch, _ in log.epochs.entries]
        assert epochs == sorted({*epochs})
        log.begin_epoch(COUNT // 6)
        add(log, written.model.copy(), COUNT)
