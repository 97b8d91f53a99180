"""Whether the offset checkpoints of a data directory name its partitions, and offsets that their logs have.

Checkpoints are written now and then: after a clean stop they are true to the offset, else they may lag behind, name a
topic that was deleted since, or a log that has lost its oldest segments since. No offset ever lies behind the end.
"""

from collections.abc import Mapping
from typing import NamedTuple

from odradek.broker.directories.checkpoints import Key
from odradek.broker.disk.disk import Disk
from odradek.broker.log.checkpoint import RECOVERY_POINTS, CorruptCheckpoint, read_offset_entries
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.names import base_name
from odradek.broker.offline.dump.partition_check import Report

_FIRST_LINE = 3


class Entry(NamedTuple):
    """A line of an offset checkpoint."""

    topic: str
    partition: int
    offset: int


def read_entries(disk: Disk, path: str) -> list[Entry]:
    """The entries, each for another partition. Raises Inconsistency, OSError."""
    entries: dict[Key, Entry] = {}
    try:
        for line, (topic, partition, offset) in enumerate(read_offset_entries(disk, path), _FIRST_LINE):
            if (topic, partition) in entries:
                raise Inconsistency(path, f"{topic}-{partition} stands in it twice", line=line)
            entries[topic, partition] = Entry(topic, partition, offset)
    except CorruptCheckpoint as error:
        raise Inconsistency(path, str(error)) from error
    return list(entries.values())


def check_offsets(path: str, entries: list[Entry], reports: Mapping[Key, Report], *, is_clean: bool) -> list[Note]:
    """Compares the entries with the logs. `is_clean`: the broker stopped cleanly. Raises Inconsistency."""
    notes: list[Note] = []
    for line, (topic, partition, offset) in enumerate(entries, _FIRST_LINE):
        report = reports.get((topic, partition))
        end_offset = 0 if report is None else report.end_offset
        text = None
        if report is None:
            text = f"there is no partition {topic}-{partition}"
            if not is_clean:
                notes.append(Note(path, f"line {line}: {text} (any more)"))
                continue
        elif offset > end_offset:
            text = f"{topic}-{partition} has offset {offset}, and its log ends at {end_offset}"
        elif is_clean and base_name(path) == RECOVERY_POINTS and offset != end_offset:
            text = f"{topic}-{partition} is flushed up to {offset} and ends at {end_offset}, though the stop was clean"
        if text is not None:
            raise Inconsistency(path, text, line=line)
    return notes
