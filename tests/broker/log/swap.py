"""A log right before a round of compaction, and what has to hold of it whatever happens in the round.

`Staged` is a partition with everything that compaction is about: keys written again, tombstones whose horizon has come
and others, an idempotent producer, an aborted and a committed transaction, several leader epochs, and segments that
become fewer. Beside it stands all that was ever appended; `check` compares what a consumer reads with that.
"""

from collections.abc import Iterable
from itertools import pairwise

from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.batches import walk
from odradek.broker.log.checkpoint import write_partition_metadata
from odradek.broker.log.log import Log
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.records import Record, iterate_records
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.keeping import COMPACT, DATA_DIR, DIRECTORY, TOPIC_ID, Kept, Read, read
from tests.broker.log.compacted_logs import MemoryLog, data_batch, is_commit, last_values, marker_batch, read_committed

CONFIGS = {**COMPACT, "delete.retention.ms": "100"}
SEGMENT_BYTES = 320
GROUP_BYTES = 420
MORE = ((b"a", b"more"), (b"d", None))


def lay_down(disk: Disk, log: MemoryLog) -> None:
    """Writes the segments of a log made by hand. All else a start makes from them."""
    disk.make_dir(DIRECTORY)
    write_partition_metadata(disk, DIRECTORY, TOPIC_ID)
    for segment in log.segments:
        content = b"".join(with_leader_epoch(data, 0) for data in segment.batches)
        disk.write_new(f"{DIRECTORY}/{segment.base_offset:020d}.log", [content])
    disk.sync_dir(DIRECTORY)
    disk.sync_dir(DATA_DIR)


def with_leader_epoch(data: bytes, leader_epoch: int) -> bytes:
    return data[:12] + leader_epoch.to_bytes(4, "big") + data[16:]


def transactions() -> MemoryLog:
    """Producer 2 aborts, producer 3 commits, in two segments."""
    log = MemoryLog()

    def write(producer: int, sequence: int, key: bytes, value: bytes) -> None:
        ids = producer, 0, sequence
        log.append(data_batch(log.next_offset, (key, value), producer=ids, is_transactional=True))

    write(2, 0, b"a", b"aborted")
    write(3, 0, b"b", b"committed")
    log.roll()
    write(2, 1, b"c", b"aborted")
    log.append(marker_batch(log.next_offset, 3, 0, is_commit=True))
    log.append(marker_batch(log.next_offset, 2, 0, is_commit=False))
    log.roll()
    return log


class Staged:
    """The partition, in a process that appended to it and compacted it once; a second round is due."""

    def __init__(self, disk: MemoryDisk, *, settles: bool = True) -> None:
        """`settles`: everything is on the device, and the recovery point is written down."""
        disk.make_dir(DATA_DIR)
        disk.sync_dir("")
        log = transactions()
        lay_down(disk, log)
        self.appended = [with_leader_epoch(data, 0) for data in log.appended]
        self.aborted = log.aborted
        self.kept = Kept(CONFIGS, disk=disk, segment_bytes=SEGMENT_BYTES, group_bytes=GROUP_BYTES)
        self.append(0, (b"x", b"1"), (b"y", b"1"))
        self.append(2, (b"x", None), (b"z", b"1"))
        self.kept.roll()
        self.kept.clean()  # the horizon of the tombstone is set
        self.kept.remove_retired()
        self.kept.environment.time_ms += 200
        self.append(4, (b"y", b"2"), (b"d", b"1"))
        self.append(6, (b"z", None), (b"y", b"3"))
        self.append(-1, (b"b", b"newer"), (b"e", b"1"))
        self.append(8, (b"x", b"2"))
        self.append(-1, (b"e", b"2"))
        self.kept.roll()
        self.append(-1, (b"y", b"active"))
        if settles:
            self.kept.settle()

    def append(self, sequence: int, *records: tuple[bytes, bytes | None]) -> None:
        """As producer 1, or as none where the sequence is -1."""
        producer = (1, 0, sequence) if sequence >= 0 else (-1, -1, -1)
        data = data_batch(0, *records, timestamp_ms=self.kept.environment.time_ms, producer=producer)
        offset = self.kept.append_batch(data)
        self.appended.append(offset.to_bytes(8, "big") + with_leader_epoch(data, self.kept.leader_epoch)[8:])

    @property
    def end_offset(self) -> int:
        return read_header(self.appended[-1]).last_offset + 1

    def before(self, end_offset: int) -> list[bytes]:
        return [data for data in self.appended if read_header(data).last_offset < end_offset]

    # -- what has to hold -----------------------------------------------------------------------------------------

    def check(self, *, durable_offset: int | None = None, in_order: bool = True) -> Read:
        """Of each key the newest value is read, and nothing that was not written. Lookups find what is there.

        `durable_offset`: power failed, so that what stood behind it may be gone, from some offset on. `in_order`: no
        segment reaches into the next one.
        """
        log = self.kept.log
        found = read(log)
        if in_order:
            check_segments(log)
        if durable_offset is None:
            assert log.log_end_offset == self.end_offset
        else:
            assert durable_offset <= log.log_end_offset <= self.end_offset
        appended = self.before(log.log_end_offset)
        check_records(found, appended)
        committed = read_committed(found.batches, log.segments.aborted(0, log.log_end_offset))
        assert last_values(committed) == last_values(read_committed(appended, self.aborted))
        check_lookups(self.kept, found)
        assert producers_of(self.kept) == producers_in(appended)
        return found

    def check_answers(self) -> None:
        """As `check`, of a log whose disk failed: what it answers is right, or KAFKA_STORAGE_ERROR."""
        try:
            self.check()
        except KafkaError as error:
            assert error.code is ErrorCode.KAFKA_STORAGE_ERROR


def check_segments(log: Log) -> None:
    for segment, following in pairwise(log.segments):
        for _, header in walk(segment.file, 0, segment.size_bytes):
            assert segment.base_offset <= header.base_offset
            assert header.last_offset < following.base_offset, "no segment is there twice"


def check_records(found: Read, appended: Iterable[bytes]) -> None:
    """Every record is what was appended at its offset."""
    written = {record.offset: record for data in appended for record in iterate_records(data)}
    for record in found.records:
        assert record == written[record.offset]
    assert found.offsets == sorted(set(found.offsets))


def check_lookups(kept: Kept, found: Read) -> None:
    """By offset and by timestamp, from each place, the same is found as by reading from the start."""
    log = kept.log
    for offset in range(log.log_start_offset, log.log_end_offset):
        data = bytes(log.fetch(offset, 0, log.log_end_offset, True).records)
        expected = next((batch for batch in found.batches if read_header(batch).last_offset >= offset), b"")
        assert data == expected, offset
    for timestamp_ms in {record.timestamp_ms + step for record in found.records for step in (0, 1)}:
        assert log.offset_for_timestamp(timestamp_ms, log.log_end_offset) == first_from(found, timestamp_ms)


def first_from(found: Read, timestamp_ms: int) -> tuple[int, int, int] | None:
    for data in found.batches:
        for record in iterate_records(data):
            if record.timestamp_ms >= timestamp_ms:
                return record.timestamp_ms, record.offset, read_header(data).partition_leader_epoch
    return None


Producer = tuple[int, int, bool]
"""Epoch, last sequence, whether a transaction is open."""


def producers_of(kept: Kept) -> dict[int, Producer]:
    return {
        producer_id: (state.epoch, state.last_sequence, state.current_txn_first_offset >= 0)
        for producer_id, state in kept.log.producers.states()
    }


def producers_in(batches: Iterable[bytes]) -> dict[int, Producer]:
    """As the log was written."""
    found: dict[int, Producer] = {}
    for data in batches:
        header = read_header(data)
        if header.producer_id >= 0:
            _, sequence, _ = found.get(header.producer_id, (0, -1, False))
            found[header.producer_id] = (
                header.producer_epoch,
                sequence if header.is_control else header.last_sequence,
                header.is_transactional and not header.is_control,
            )
    return found


def records_of(batches: Iterable[bytes]) -> list[Record]:
    return [record for data in batches for record in iterate_records(data)]


def markers_of(batches: Iterable[bytes]) -> list[tuple[int, bool]]:
    """Producer id, and whether it is a commit, of each marker that has not been taken out."""
    headers = [(read_header(data), data) for data in batches]
    return [
        (header.producer_id, is_commit(data)) for header, data in headers if header.is_control and header.record_count
    ]
