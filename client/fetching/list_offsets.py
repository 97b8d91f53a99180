"""ListOffsets from the asking side: which offset a partition has at its ends, or at a moment. Pure.

A partition is asked for by a timestamp: `EARLIEST`, `LATEST`, `MAX_TIMESTAMP`, or milliseconds since 1970, to which the
answer is the first record that is not older. LATEST is the high watermark; with read_committed it is the last stable
offset, where the first transaction that is still open begins (KIP-98).

(Source: ListOffsetsHandler.java; the special timestamps: ListOffsetsRequest.java, KIP-79, KIP-734.)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

__all__ = ["EARLIEST", "LATEST", "MAX_TIMESTAMP", "ListedOffset", "list_offsets_request", "listed_offsets"]

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
"""The record with the largest timestamp (KIP-734)."""

CONSUMER: Final = -1
"""As `replica_id`: the one who asks is no broker."""
MAX_TIMESTAMP_SINCE: Final = 7
READ_COMMITTED_SINCE: Final = 2


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset of a partition. `offset` is -1 where no record is as young as what was asked for.

    `timestamp_ms` is the record's where it was found by time, else -1; `leader_epoch` -1: the broker does not tell.
    """

    offset: int
    timestamp_ms: int = -1
    leader_epoch: int = -1


def list_offsets_request(
    wanted: Mapping[TopicPartition, int], leader_epochs: Mapping[TopicPartition, int], *, read_committed: bool
) -> ListOffsetsRequest:
    """Asks one leader for partitions by timestamp. `leader_epochs`: where known, the epoch as whose leader it is asked
    (KIP-320)."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for partition, timestamp in wanted.items():
        topics.setdefault(partition.topic, []).append(
            ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=leader_epochs.get(partition, -1),
                timestamp=timestamp,
            )
        )
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        isolation_level=1 if read_committed else 0,
        topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def lowest_version(timestamps: Iterable[int], *, read_committed: bool) -> int:
    """The first version of ListOffsets that knows what is asked for."""
    if MAX_TIMESTAMP in timestamps:
        return MAX_TIMESTAMP_SINCE
    return READ_COMMITTED_SINCE if read_committed else ListOffsetsRequest.min_version


def listed_offsets(
    wanted: Iterable[TopicPartition], response: ListOffsetsResponse
) -> dict[TopicPartition, ListedOffset | ClientError]:
    """What a leader answered for each partition that it was asked for; one that it left out failed, retriably."""
    found = {
        TopicPartition(topic.name, each.partition_index): each for topic in response.topics for each in topic.partitions
    }
    outcomes: dict[TopicPartition, ListedOffset | ClientError] = {}
    for partition in wanted:
        answer = found.get(partition)
        if answer is None:
            outcomes[partition] = broker_error(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                "it left the partition out of its answer",
                f"the offset of {partition}",
            )
        elif answer.error_code:
            outcomes[partition] = broker_error(answer.error_code, "", f"ListOffsets of {partition}")
        else:
            outcomes[partition] = ListedOffset(answer.offset, answer.timestamp, answer.leader_epoch)
    return outcomes
