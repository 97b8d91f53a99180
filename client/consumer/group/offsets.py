"""Committed offsets, those behind what was handed out, and what became of a commit. Pure."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from odradek.client.arguments import require_kind
from odradek.client.consumer.records import ConsumerBatch, ConsumerRecord
from odradek.client.errors.client_errors import ClientError
from odradek.client.topic_partition import TopicPartition

__all__ = ["CommitFailed", "CommitOutcome", "OffsetAndMetadata", "offsets_behind"]


class OffsetAndMetadata(NamedTuple):
    """The offset of the next record to read. `leader_epoch`: of the record before it; -1: not known."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class CommitOutcome(Enum):
    """Of one partition."""

    COMMITTED = "committed"
    NOT_OURS = "not ours"
    """It was given to another member, or is about to be: its records may be read again there."""


class CommitFailed(ClientError):
    """Some partitions were not committed, for other reasons than that they are another member's."""

    hint = "See `errors`. What is not committed is read again after a restart."

    def __init__(
        self, errors: Mapping[TopicPartition, ClientError], outcomes: Mapping[TopicPartition, CommitOutcome]
    ) -> None:
        first, error = next(iter(errors.items()))
        others = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        super().__init__(f"the offset of {first} was not committed{others}: {error.message}")
        self.errors = dict(errors)
        self.outcomes = dict(outcomes)
        """Of the other partitions."""
        self.retriable = all(each.retriable for each in errors.values())
        self.code = error.code


def offsets_behind(what: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Where reading goes on behind a record or a batch, of its partitions. Raises TypeError for anything else."""
    if isinstance(what, ConsumerRecord):
        return {TopicPartition(what.topic, what.partition): OffsetAndMetadata(what.offset + 1)}
    require_kind("what", what, ConsumerBatch, "a record or a batch of the consumer")
    assert isinstance(what, ConsumerBatch)
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    for part in what.parts:
        before = offsets.get(part.partition)
        if before is None or before.offset < part.next_offset:
            offsets[part.partition] = OffsetAndMetadata(part.next_offset, "", part.leader_epoch)
    return offsets
