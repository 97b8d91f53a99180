"""What a leader sends to its followers: whole batches, as they stand in its log. Pure.

A follower appends them byte for byte, with the offsets and leader epochs that they carry
(`UnifiedLog.appendAsFollower`). What is inside a batch was the leader's to judge. What is checked here is that the
batches are whole, are those that the leader has, and go on where this log ends:

| rule | where it is broken |
|---|---|
| magic 2, a possible size, the checksum | CORRUPT_MESSAGE |
| offsets only grow; some may be missing between two batches, for compaction takes batches away | CORRUPT_MESSAGE |
| the first batch does not begin before the log's end | OFFSET_OUT_OF_RANGE |
| leader epochs never go back | CORRUPT_MESSAGE |
| no leader epoch is later than the leader's | what stands from there on is left out |

The last one is no mistake of the leader (KAFKA-18723). It may send a slice of its file which the kernel reads later. If
it was deposed and its log truncated meanwhile, the bytes are those of another leader, of whom this follower knows
nothing.

A batch that is cut at the end is left out, too: it comes again with the next fetch.
"""

from typing import NamedTuple

from odradek.broker.log.markers import Marker, read_marker
from odradek.protocol.batches.batch import BatchHeader, crc_matches, iterate_batches
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage


class LogBounds(NamedTuple):
    """What batches have to follow on."""

    log_start_offset: int
    log_end_offset: int
    latest_epoch: int
    """-1 when none is known."""

    def may_hold(self, header: BatchHeader) -> bool:
        """Whether an empty log may begin with this batch although it begins before: its records before the log start
        were deleted at the leader, whose log start lies within the batch (DeleteRecords)."""
        is_empty = self.log_start_offset == self.log_end_offset
        return is_empty and header.base_offset < self.log_end_offset <= header.last_offset


class Replicated(NamedTuple):
    """A batch to be appended as it is."""

    header: BatchHeader
    marker: Marker | None
    """Of a control batch."""
    end: int
    """Where it ends in what the leader sent."""


def check_replicated(data: memoryview, end: LogBounds, leader_epoch: int) -> list[Replicated]:
    """The batches at the beginning of `data` that a follower of the leader of `leader_epoch` appends, in order.

    Raises KafkaError: CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE. Nothing may be appended then.
    """
    checked: list[Replicated] = []
    next_offset, epoch, is_later = end.log_end_offset, end.latest_epoch, False
    try:
        for position, header in iterate_batches(data):
            if is_later := header.partition_leader_epoch > leader_epoch:
                break
            batch = data[position : position + header.size_bytes]
            if not crc_matches(batch):
                raise _corrupt(f"the batch at offset {header.base_offset} does not have the checksum that it carries")
            if checked or not end.may_hold(header):
                _check_offsets(header, next_offset, is_first=not checked)
            if 0 <= header.partition_leader_epoch < epoch:
                raise _corrupt(
                    f"the batch at offset {header.base_offset} is of leader epoch {header.partition_leader_epoch}, and "
                    f"stands behind one of {epoch}"
                )
            marker = read_marker(batch, header) if header.is_control else None
            checked.append(Replicated(header, marker, position + header.size_bytes))
            next_offset, epoch = header.last_offset + 1, max(epoch, header.partition_leader_epoch)
    except MalformedMessage as error:
        raise _corrupt(str(error)) from error
    if not checked and len(data) and not is_later:
        raise _corrupt(f"{len(data)} bytes hold no whole batch")
    return checked


def _check_offsets(header: BatchHeader, next_offset: int, *, is_first: bool) -> None:
    if header.last_offset_delta < 0:
        raise _corrupt(f"the batch at offset {header.base_offset} ends before it begins")
    if header.base_offset < next_offset:
        why = f"a batch begins at offset {header.base_offset}, where {next_offset} or a later one has to follow"
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, why) if is_first else _corrupt(why)


def _corrupt(why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, why)
