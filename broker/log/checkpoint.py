"""Kafka's small text files: checkpoints (CheckpointFile.java) and `partition.metadata` (PartitionMetadataFile.java).

    0                      version
    2                      how many entries follow
    orders 0 4711          one entry a line, words separated by a blank
    orders 1 12

`leader-epoch-checkpoint` in a partition's directory has entries `epoch start_offset`; those of the data directory
(directories/checkpoints.py) have `topic partition offset`. All are replaced as a whole.

    version: 0
    topic_id: 3xI2yV0ZQ1ixyKcJ9pRPvA
"""

from collections.abc import Iterable, Mapping, Sequence

from odradek.broker.disk.disk import Disk
from odradek.protocol.primitives import uuid_from_text, uuid_text

VERSION = 0
OFFSET_MAX = 2**63 - 1
EPOCH_MAX = PARTITION_MAX = 2**31 - 1
DIGITS_MAX = 19
"""Those of the largest offset."""
SHOWN_MAX = 40
"""So much of what is wrong goes into a message."""
FIRST_LINE = 3
PARTITION_METADATA = "partition.metadata"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


class CorruptCheckpoint(Exception):
    """A file that does not hold what its format says; the text names file and line."""


def encode_checkpoint(entries: Sequence[Iterable[object]]) -> bytes:
    """The content of a checkpoint."""
    lines = [str(VERSION), str(len(entries)), *(" ".join(str(word) for word in entry) for entry in entries)]
    return ("\n".join(lines) + "\n").encode()


def read_checkpoint(disk: Disk, path: str, words: int) -> list[list[str]]:
    """The entries, each of `words` words; none when the file is missing or empty, as Kafka creates it.

    Raises CorruptCheckpoint, OSError.
    """
    if not disk.exists(path):
        return []
    try:
        lines = disk.read_whole(path).decode().splitlines()
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(f"{path} is not text: {error}") from error
    if not lines:
        return []
    if lines[0] != str(VERSION):
        raise CorruptCheckpoint(f"{path} has version {lines[0][:SHOWN_MAX]!r}, only {VERSION} is known")
    entries = [line.split() for line in lines[2:]]
    if len(lines) < 2 or lines[1] != str(len(entries)):
        raise CorruptCheckpoint(f"{path} should say in line 2 that {len(entries)} entries follow")
    for number, entry in enumerate(entries, FIRST_LINE):
        if len(entry) != words:
            raise CorruptCheckpoint(f"{path}, line {number}: {len(entry)} words instead of {words}")
    return entries


def _number(path: str, line: int, word: str, largest: int = OFFSET_MAX) -> int:
    """A word of an entry as a number from 0 up to `largest`. Raises CorruptCheckpoint."""
    if word.isascii() and word.isdecimal() and len(word) <= DIGITS_MAX and int(word) <= largest:
        return int(word)
    raise CorruptCheckpoint(f"{path}, line {line}: {word[:SHOWN_MAX]!r} is no number from 0 to {largest}")


def read_epochs(disk: Disk, path: str) -> list[tuple[int, int]]:
    """The entries of a leader epoch checkpoint: (epoch, start offset). Raises CorruptCheckpoint, OSError."""
    return [
        (_number(path, line, epoch, EPOCH_MAX), _number(path, line, offset))
        for line, (epoch, offset) in enumerate(read_checkpoint(disk, path, 2), FIRST_LINE)
    ]


def read_offset_entries(disk: Disk, path: str) -> list[tuple[str, int, int]]:
    """The entries of an offset checkpoint: (topic, partition, offset). Raises CorruptCheckpoint, OSError."""
    return [
        (topic, _number(path, line, partition, PARTITION_MAX), _number(path, line, offset))
        for line, (topic, partition, offset) in enumerate(read_checkpoint(disk, path, 3), FIRST_LINE)
    ]


def encode_offsets(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """The content of an offset checkpoint: (topic, partition) -> offset."""
    return encode_checkpoint([(topic, partition, offset) for (topic, partition), offset in sorted(offsets.items())])


def read_offsets(disk: Disk, path: str) -> dict[tuple[str, int], int]:
    """Reads an offset checkpoint. Raises CorruptCheckpoint, OSError."""
    return {(topic, partition): offset for topic, partition, offset in read_offset_entries(disk, path)}


def write_partition_metadata(disk: Disk, directory: str, topic_id: bytes) -> None:
    """Writes down of which topic the directory holds a partition. Raises OSError."""
    text = f"version: {VERSION}\ntopic_id: {uuid_text(topic_id)}"
    disk.write_whole(f"{directory}/{PARTITION_METADATA}", text.encode())


def read_partition_metadata(disk: Disk, directory: str) -> bytes | None:
    """The topic id, or None when the file is missing. Raises CorruptCheckpoint, OSError."""
    path = f"{directory}/{PARTITION_METADATA}"
    if not disk.exists(path):
        return None
    try:
        lines = disk.read_whole(path).decode().splitlines()
        fields = dict(line.split(": ", 1) for line in lines if line)
        if fields["version"] != str(VERSION):
            raise CorruptCheckpoint(f"{path} has version {fields['version'][:SHOWN_MAX]!r}, only {VERSION} is known")
        return uuid_from_text(fields["topic_id"])
    except (ValueError, KeyError) as error:
        raise CorruptCheckpoint(f"{path} does not hold a version and a topic id: {error}") from error
