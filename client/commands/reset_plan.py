"""What a reset of a group's offsets comes to, before anything is changed. Pure.

An offset that a partition does not have becomes the nearest one that it has, and the plan says so, as in Kafka's own
tool (ConsumerGroupCommand.java: prepareOffsetsToReset). A time after all records is the end of the partition.

A file has a line for each partition, as `kafka-consumer-groups.sh --export` writes it:

    topic,partition,offset                  of the one group that is named
    group,topic,partition,offset            of several
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from odradek.client.admin.group_offsets import CommittedOffset
    from odradek.client.topic_partition import TopicPartition

__all__ = ["Ends", "Move", "Reset", "To", "moved", "parse_reset_file", "planned"]

OFFSET_MAX: Final = 2**63 - 1
ID_MAX: Final = 2**31 - 1


class To(Enum):
    """Where offsets are reset to."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIME = "time"
    SHIFT = "shift"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Reset:
    """`value`: the offset, the time in milliseconds since 1970, or by how many records the offsets are shifted."""

    to: To
    value: int = 0


class Ends(NamedTuple):
    """What is known of a partition. `by_time`: of the first record that is not older than the time; -1: there is none.

    `written`: what the file has.
    """

    start: int
    end: int
    by_time: int = -1
    written: int = 0


class Move(NamedTuple):
    """An offset before and after a reset. `note`: what is not as it was asked for."""

    partition: "TopicPartition"
    before: int | None
    after: int
    note: str = ""


def planned(
    reset: Reset,
    ends: "Mapping[TopicPartition, Ends]",
    committed: "Mapping[TopicPartition, CommittedOffset]",
) -> tuple[list[Move], list[str]]:
    """The moves, in order of their partitions; and for what cannot be done, a sentence each."""
    moves: list[Move] = []
    refused: list[str] = []
    for partition in sorted(ends):
        offset = committed[partition].offset if partition in committed else None
        if reset.to is To.SHIFT and offset is None:
            refused.append(f"{partition} has no offset that could be shifted: leave it out, or name an offset for it")
            continue
        moves.append(moved(reset, partition, offset, ends[partition]))
    return moves, refused


def moved(reset: Reset, partition: "TopicPartition", before: int | None, ends: Ends) -> Move:
    """Where a partition's offset comes to. A shift needs one that is there."""
    match reset.to:
        case To.EARLIEST:
            return Move(partition, before, ends.start)
        case To.LATEST:
            return Move(partition, before, ends.end)
        case To.TIME if ends.by_time < 0:
            return Move(partition, before, ends.end, "no record is as young: the end")
        case To.TIME:
            return Move(partition, before, min(ends.by_time, ends.end))
        case To.OFFSET:
            return _within(partition, before, reset.value, ends)
        case To.SHIFT:
            assert before is not None
            return _within(partition, before, before + reset.value, ends)
        case To.FILE:
            return _within(partition, before, ends.written, ends)


def _within(partition: "TopicPartition", before: int | None, wanted: int, ends: Ends) -> Move:
    if wanted > ends.end:
        return Move(partition, before, ends.end, f"{wanted} is behind the end")
    if wanted < ends.start:
        return Move(partition, before, ends.start, f"{wanted} is before the start")
    return Move(partition, before, wanted)


# ------------------------------------------------------------------------------------------------------------ the file
def parse_reset_file(lines: Iterable[str], groups: Iterable[str]) -> "dict[str, dict[TopicPartition, int]]":
    """Offsets by group and partition. Raises ValueError with the line: one that is none, or of a group not named."""
    named = list(dict.fromkeys(groups))
    found: dict[str, dict[TopicPartition, int]] = {group: {} for group in named}
    reader = csv.reader(lines)
    for cells in reader:
        if not cells:
            continue
        where = f"line {reader.line_num}"
        if len(cells) == 3 and len(named) == 1:
            cells = [named[0], *cells]
        if len(cells) != 4:
            columns = "topic,partition,offset" if len(named) == 1 else "group,topic,partition,offset"
            raise ValueError(f"{where}: write {columns}")
        group = cells[0]
        partition, offset = _row(where, *cells[1:])
        if group not in found:
            raise ValueError(f"{where}: the group {group} is not named: name it, too, or take the line out")
        if partition in found[group]:
            raise ValueError(f"{where}: {partition} comes twice")
        found[group][partition] = offset
    if empty := next((group for group in named if not found[group]), None):
        raise ValueError(f"it has no line of the group {empty}")
    return found


def _row(where: str, topic: str, number: str, offset: str) -> "tuple[TopicPartition, int]":
    from odradek.client.topic_partition import TopicPartition

    if not topic or not _is_number(number, ID_MAX) or not _is_number(offset, OFFSET_MAX):
        raise ValueError(f"{where}: a topic, and the numbers of a partition and an offset are wanted")
    return TopicPartition(topic, int(number)), int(offset)


def _is_number(text: str, maximum: int) -> bool:
    return text.strip().isdecimal() and int(text) <= maximum
