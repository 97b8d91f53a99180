"""What the tests of `odradek dump` share: a data directory written by hand, by the formats and not by our log engine.

The batches are those of a `MemoryLog` (tests/broker/log/compacted_logs.py); indexes, snapshots and checkpoints are made
from all that was ever appended to it, in obvious Python.
"""

from collections.abc import Sequence
from struct import pack

from odradek.broker.directories.meta_properties import MetaProperties, store
from odradek.broker.disk.disk import Disk
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.aborted import encode_row
from odradek.broker.log.markers import read_marker
from odradek.broker.log.producers import AbortedTxn, Producers
from odradek.broker.log.snapshots import encode_snapshot
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.compression import Codec
from odradek.protocol.primitives import uuid_text
from tests.broker.log.compacted_logs import T0, MemoryLog, MemorySegment, data_batch, marker_batch, open_transactions

DATA_DIR = "data"
ORDERS = "data/orders-0"
ORDERS_ID = bytes(range(16))
OTHERS_ID = bytes(range(16, 32))
RECOVERY_POINTS = f"{DATA_DIR}/recovery-point-offset-checkpoint"
HIGH_WATERMARKS = f"{DATA_DIR}/replication-offset-checkpoint"
CLEAN_SHUTDOWN = f"{DATA_DIR}/.kafka_cleanshutdown"
INTERVAL_BYTES = 100
Epochs = Sequence[tuple[int, int]]


def sample_log() -> MemoryLog:
    """Three segments: every codec, keys, headers, LogAppendTime, two idempotent producers, of which one had its epoch
    raised, and transactions: aborted and committed over each other, over a roll, and one that is open at the end."""
    log = MemoryLog()

    def put(*values: bytes, producer: tuple[int, int, int] = (-1, -1, -1), is_transactional: bool = False,
            codec: Codec = Codec.NONE, append_time_ms: int | None = None) -> None:  # fmt: skip
        log.append(
            data_batch(
                log.next_offset,
                *((b"key-%d" % number if number else None, value) for number, value in enumerate(values)),
                timestamp_ms=T0 + 7 * log.next_offset,
                producer=producer,
                is_transactional=is_transactional,
                codec=codec,
                append_time_ms=append_time_ms,
                headers=(("name", b"value"), ("none", None)),
            )
        )

    def end(producer_id: int, epoch: int, *, is_commit: bool) -> None:
        offset = log.next_offset
        log.append(marker_batch(offset, producer_id, epoch, is_commit=is_commit, timestamp_ms=T0 + 7 * offset))

    put(b"one", b"two", b"three")
    put(b"four", producer=(1, 0, 0), codec=Codec.GZIP)
    put(b"five", b"six", producer=(1, 0, 1), codec=Codec.SNAPPY)
    put(b"seven", producer=(8, 2, 0), is_transactional=True)
    put(b"eight", producer=(9, 0, 0), is_transactional=True, codec=Codec.LZ4)
    log.roll()
    put(b"nine", b"ten", producer=(8, 2, 1), is_transactional=True)
    end(9, 0, is_commit=False)
    put(b"eleven", codec=Codec.ZSTD, append_time_ms=T0 + 500)
    end(8, 3, is_commit=False)
    put(b"twelve", producer=(9, 0, 1), is_transactional=True)
    end(9, 0, is_commit=True)
    log.roll()
    put(b"thirteen", b"fourteen", producer=(1, 0, 3))
    put(b"fifteen", producer=(8, 3, 0), is_transactional=True)
    return log


def sample_disk(*, is_clean: bool = True) -> MemoryDisk:
    """A data directory with the sample as `orders-0`, and an empty `others-1`."""
    disk = MemoryDisk()
    write_partition(disk, ORDERS, sample_log(), epochs=[(3, 0), (5, 8), (6, 18)])
    write_partition(disk, "data/others-1", MemoryLog(), topic_id=OTHERS_ID, epochs=[])
    write_data_directory(disk, {("orders", 0): 18, ("others", 1): 0}, is_clean=is_clean)
    return disk


def write_data_directory(disk: Disk, ends: dict[tuple[str, int], int], *, is_clean: bool = True) -> None:
    """The small files, where logs end as `ends` says."""
    store(disk, DATA_DIR, MetaProperties("b2RyYWRlay10ZXN0cy0wMQ", 0, "AAAAAAAAAAAAAAAAAAAAAQ"))
    entries = [(topic, partition, offset) for (topic, partition), offset in ends.items()]
    write_checkpoint(disk, RECOVERY_POINTS, entries)
    write_checkpoint(disk, HIGH_WATERMARKS, entries)
    if is_clean:
        disk.write_whole(CLEAN_SHUTDOWN, b"{}")


def write_checkpoint(disk: Disk, path: str, entries: Sequence[Sequence[object]]) -> None:
    lines = ["0", str(len(entries)), *(" ".join(map(str, entry)) for entry in entries)]
    disk.write_whole(path, "".join(f"{line}\n" for line in lines).encode())


def write_partition(
    disk: Disk,
    directory: str,
    log: MemoryLog,
    *,
    epochs: Epochs = ((3, 0),),
    topic_id: bytes = ORDERS_ID,
    interval_bytes: int = INTERVAL_BYTES,
) -> None:
    """All files of a partition whose broker stopped cleanly."""
    disk.make_dir(directory)
    disk.write_whole(f"{directory}/partition.metadata", f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode())
    write_checkpoint(disk, f"{directory}/leader-epoch-checkpoint", epochs)
    for segment in log.segments:
        write_segment(disk, directory, segment, log.appended, epochs, interval_bytes)
    for offset in {log.next_offset, *(segment.base_offset for segment in log.segments[1:])}:
        write_snapshot(disk, directory, log.appended, offset)


def write_segment(
    disk: Disk,
    directory: str,
    segment: MemorySegment,
    appended: Sequence[bytes],
    epochs: Epochs,
    interval_bytes: int = INTERVAL_BYTES,
) -> None:
    base_offset = segment.base_offset
    batches = [with_epoch(data, epoch_of(epochs, read_header(data).base_offset)) for data in segment.batches]
    offset_rows, time_rows = index_rows(batches, base_offset, interval_bytes)
    for suffix, content in (
        ("log", b"".join(batches)),
        ("index", b"".join(pack(">ii", *row) for row in offset_rows)),
        ("timeindex", b"".join(pack(">qi", *row) for row in time_rows)),
        ("txnindex", b"".join(encode_row(with_last_stable_offset(row, appended)) for row in segment.rows)),
    ):
        if content or suffix != "txnindex":
            disk.write_whole(f"{directory}/{base_offset:020d}.{suffix}", content)


def index_rows(
    batches: Sequence[bytes], base_offset: int, interval_bytes: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The rows of both indexes, as they stand once the segment takes no more."""
    offset_rows: list[tuple[int, int]] = []
    time_rows: list[tuple[int, int]] = []
    position = indexed = 0
    largest = (-1, 0)
    for data in batches:
        header = read_header(data)
        largest = max(largest, (header.max_timestamp, header.last_offset - base_offset), key=lambda entry: entry[0])
        if position - indexed > interval_bytes:
            offset_rows.append((header.last_offset - base_offset, position))
            time_rows += [largest] if not time_rows or largest[0] > time_rows[-1][0] else []
            indexed = position
        position += len(data)
    time_rows += [largest] if largest[0] > (time_rows[-1][0] if time_rows else -1) else []
    return offset_rows, time_rows


def with_last_stable_offset(row: AbortedTxn, appended: Sequence[bytes]) -> AbortedTxn:
    """Where the last stable offset was with the marker in the log: the transaction is not open any more."""
    until = [data for data in appended if read_header(data).base_offset <= row.last_offset]
    return row._replace(last_stable_offset=min(open_transactions(until).values(), default=row.last_offset + 1))


def write_snapshot(disk: Disk, directory: str, appended: Sequence[bytes], offset: int) -> None:
    """What the batches before `offset` say of their producers."""
    producers = Producers()
    for data in appended:
        header = read_header(data)
        if header.base_offset < offset:
            marker = read_marker(data, header) if header.is_control else None
            producers.update(header, header.base_offset, marker)
    disk.write_whole(f"{directory}/{offset:020d}.snapshot", encode_snapshot(producers))


def epoch_of(epochs: Epochs, offset: int) -> int:
    return max(epoch for epoch, start_offset in epochs if start_offset <= offset)


def with_epoch(data: bytes, epoch: int) -> bytes:
    return data[:12] + pack(">i", epoch) + data[16:]
