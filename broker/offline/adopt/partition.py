"""What the directory of one partition says, read and left as it is.

Of a log that was closed, the first header of each segment is read and the last batches; of any other, every header
behind the recovery point, as the start that follows reads it. Two things have to be known before anybody appends:

- the largest leader epoch, in the checkpoint or on a batch: epochs only grow, so the last batches have it (KIP-101);
- the largest producer id, in a snapshot or on a batch that was read (KIP-98).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from struct import Struct
from typing import Final
from zlib import crc32

from odradek.broker.disk.disk import Disk, File
from odradek.broker.log.batches import LENGTH_OVERHEAD, Damage, walk
from odradek.broker.log.checkpoint import CorruptCheckpoint, read_epochs, read_partition_metadata
from odradek.broker.log.epochs import LEADER_EPOCHS
from odradek.broker.log.segment import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, segment_path
from odradek.broker.log.snapshots import SNAPSHOT_SUFFIX, CorruptSnapshot, read_entries
from odradek.protocol.batches.batch import HEADER_SIZE, MAGIC, BatchHeader, read_header

NONE: Final = -1
_NAME = re.compile(r"(\d{20})(\.log|\.snapshot)")
_ROW_SIZES = {OFFSET_INDEX_SUFFIX: 8, TIME_INDEX_SUFFIX: 12}
_OFFSET_ROW = Struct(">ii")
_OLD_HEADER = Struct(">qiIb")  # offset, size, CRC-32 of all that follows, format: before Kafka 0.11
_OLD_SIZE_MIN = 14
_MAGIC_POSITION = 16
_LOOK_FOR_ZEROS_BYTES = 1 << 16


@dataclass(slots=True)
class PartitionFacts:
    """What was found. `obstacles` say why the partition cannot be taken, `remarks` what else is worth to know."""

    topic: str
    index: int
    topic_id: bytes | None = None
    leader_epoch: int = NONE
    """The largest that anything in the directory names."""
    last_epoch: int = NONE
    """That of the last batch: two replicas that agree in it and in the log's end hold the same log (KIP-101)."""
    producer_id: int = NONE
    log_end_offset: int = 0
    segment_count: int = 0
    size_bytes: int = 0
    has_gaps: bool = False
    """Whether offsets are missing, as they are where a log was compacted."""
    obstacles: list[str] = field(default_factory=list[str])
    remarks: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.index}"


def read_partition(
    disk: Disk, directory: str, topic: str, index: int, *, recovery_point: int, is_clean: bool
) -> PartitionFacts:
    """`is_clean`: the last process closed the log; if not, it was synced up to `recovery_point`. Raises OSError."""
    facts = PartitionFacts(topic, index)
    sizes = disk.sizes(directory)
    _read_topic_id(disk, directory, facts)
    _read_epochs(disk, directory, facts)
    for name in sorted(name for name in sizes if name.endswith(SNAPSHOT_SUFFIX) and _NAME.fullmatch(name)):
        _read_snapshot(disk, f"{directory}/{name}", facts)
    base_offsets = sorted(int(name[:20]) for name in sizes if name.endswith(LOG_SUFFIX) and _NAME.fullmatch(name))
    facts.segment_count = len(base_offsets)
    log_sizes = {offset: sizes[segment_path("", offset, LOG_SUFFIX)[1:]] for offset in base_offsets}
    facts.size_bytes = sum(log_sizes.values())
    last = max((offset for offset, size in log_sizes.items() if size), default=NONE)
    facts.log_end_offset = max(base_offsets, default=0)
    for offset, following in zip_longest(base_offsets, base_offsets[1:]):
        if not log_sizes[offset]:
            continue
        is_walked = offset >= last or (not is_clean and (following is None or following > recovery_point))
        with_index = is_clean and offset == last
        _read_segment(disk, directory, offset, log_sizes[offset], facts, is_walked=is_walked, with_index=with_index)
    if is_clean:
        _look_at_indexes(base_offsets, sizes, facts)
    return facts


def _read_topic_id(disk: Disk, directory: str, facts: PartitionFacts) -> None:
    try:
        facts.topic_id = read_partition_metadata(disk, directory)
    except CorruptCheckpoint as error:
        facts.obstacles.append(f"its topic id cannot be read: {error}")
        return
    if facts.topic_id is None:
        facts.obstacles.append("it has no partition.metadata, so nothing says which topic it is of")


def _read_epochs(disk: Disk, directory: str, facts: PartitionFacts) -> None:
    path = f"{directory}/{LEADER_EPOCHS}"
    try:
        rows = read_epochs(disk, path)
    except CorruptCheckpoint as error:
        facts.remarks.append(f"its leader epochs are taken from the batches: {error}")
        return
    facts.leader_epoch = max((epoch for epoch, _ in rows), default=NONE)


def _read_snapshot(disk: Disk, path: str, facts: PartitionFacts) -> None:
    try:
        entries, _ = read_entries(disk.read_whole(path))
    except CorruptSnapshot as error:
        facts.remarks.append(
            f"a snapshot of its producers is damaged, the start reads the log instead: {path}: {error}"
        )
        return
    facts.producer_id = max(facts.producer_id, *(entry.producer_id for entry in entries), NONE)


def _read_segment(
    disk: Disk,
    directory: str,
    base_offset: int,
    size_bytes: int,
    facts: PartitionFacts,
    *,
    is_walked: bool,
    with_index: bool,
) -> None:
    """Learns from the first header of a segment and, if `is_walked`, from all, or those behind the last index entry."""
    file = disk.open(segment_path(directory, base_offset, LOG_SUFFIX), size_bytes)
    try:
        start = _last_indexed(disk, directory, base_offset, file) if with_index else 0
        if start or not is_walked:
            _take_first(file, base_offset, facts)
        if is_walked:
            expected_offset = None if start else base_offset
            for _, header in walk(file, start, size_bytes):
                _take(facts, header, expected_offset)
                expected_offset = header.last_offset + 1
    except Damage as damage:
        _judge(file, damage, size_bytes, facts)
    finally:
        file.close()


def _take_first(file: File, base_offset: int, facts: PartitionFacts) -> None:
    """Raises Damage, OSError."""
    head = file.pread(HEADER_SIZE, 0)
    if len(head) < HEADER_SIZE or head[_MAGIC_POSITION] != MAGIC:
        raise Damage(file.path, 0, "no batch starts there")
    _take(facts, read_header(head), base_offset)


def _take(facts: PartitionFacts, header: BatchHeader, expected_offset: int | None) -> None:
    facts.leader_epoch = max(facts.leader_epoch, header.partition_leader_epoch)
    if header.last_offset + 1 >= facts.log_end_offset:
        facts.last_epoch = header.partition_leader_epoch
    facts.producer_id = max(facts.producer_id, header.producer_id)
    facts.log_end_offset = max(facts.log_end_offset, header.last_offset + 1)
    is_thinned = header.record_count != header.last_offset_delta + 1
    if is_thinned or expected_offset not in (None, header.base_offset):
        facts.has_gaps = True


def _judge(file: File, damage: Damage, size_bytes: int, facts: PartitionFacts) -> None:
    """What stands where no batch begins: messages of an older Kafka, what a crash left, zeros, or damage."""
    name, position = file.path.rpartition("/")[2], damage.position
    rest_bytes = size_bytes - position
    version = _old_message_version(file, position, rest_bytes)
    if version is not None:
        facts.obstacles.append(
            f"{name} has messages of format {version}, from before Kafka 0.11, at position {position}: "
            "copied to another topic by a client of Kafka's they get the present one"
        )
    elif any(file.pread(min(_LOOK_FOR_ZEROS_BYTES, rest_bytes), position)):
        facts.remarks.append(
            f"{name} is no log from position {position} on ({damage.reason}): a start cuts off such an end of "
            f"{rest_bytes} bytes, which is right after a crash; if there was none, look at the device"
        )


def _old_message_version(file: File, position: int, rest_bytes: int) -> int | None:
    """0 or 1 if a whole message of that format begins there, by its checksum, which is CRC-32 (LegacyRecord.java)."""
    if rest_bytes < _OLD_HEADER.size:
        return None
    _, size_bytes, crc, version = _OLD_HEADER.unpack(file.pread(_OLD_HEADER.size, position))
    if version not in (0, 1) or not _OLD_SIZE_MIN <= size_bytes <= rest_bytes - LENGTH_OVERHEAD:
        return None
    data = file.pread(LENGTH_OVERHEAD + size_bytes, position)
    return version if crc32(data[_MAGIC_POSITION:]) == crc else None


def _last_indexed(disk: Disk, directory: str, base_offset: int, file: File) -> int:
    """The position of the last batch in the index, where the log bears the entry out; else 0."""
    path = segment_path(directory, base_offset, OFFSET_INDEX_SUFFIX)
    if not disk.exists(path):
        return 0
    rows = disk.read_whole(path)
    if not rows or len(rows) % _OFFSET_ROW.size:
        return 0
    relative_offset, position = _OFFSET_ROW.unpack_from(rows, len(rows) - _OFFSET_ROW.size)
    if not 0 <= position <= file.size_bytes - HEADER_SIZE:
        return 0
    header = read_header(file.pread(HEADER_SIZE, position))
    is_borne_out = header.magic == MAGIC and base_offset <= header.base_offset <= base_offset + relative_offset
    return position if is_borne_out else 0


def _look_at_indexes(base_offsets: list[int], sizes: Mapping[str, int], facts: PartitionFacts) -> None:
    names = [(f"{offset:020d}{suffix}", row_size) for offset in base_offsets for suffix, row_size in _ROW_SIZES.items()]
    count = sum(1 for name, row_size in names if name not in sizes or sizes[name] % row_size)
    if count:
        facts.remarks.append(f"{count} of its indexes are missing or cut short; they are built anew when they are used")
