"""One Fetch: the question to a leader about the partitions that it leads, and which answer belongs to which. Pure.

Such a request stands for itself (KIP-227: session id 0, epoch -1) and names all that is wanted; `session` makes of it
what has to be said to a broker that remembers. Topics are named by their ids where all of them have one (KIP-516), so a
topic that was deleted and created again is not mistaken for the old one; by their names otherwise.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from odradek.client.fetching.fetch_settings import FetchSettings
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from odradek.protocol.primitives import ZERO_UUID

__all__ = ["LAST_VERSION_WITH_NAMES", "Wanted", "WantedPartition", "answers", "fetch_request", "highest_version"]

CONSUMER: Final = -1
"""As `replica_id`: the one who asks is no broker."""
LAST_VERSION_WITH_NAMES: Final = 12


class WantedPartition(NamedTuple):
    """The offset to fetch from, the leader epoch that is known, and that of the record before the offset (-1: none).

    By the latter a broker finds out that the log was truncated, and that its records are others now (KIP-320).
    """

    offset: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1


Wanted = Mapping[TopicPartition, WantedPartition]


def fetch_request(
    wanted: Wanted, topic_ids: Mapping[str, bytes], settings: FetchSettings, max_bytes: int
) -> FetchRequest:
    """Asks one leader for the partitions, in their order: it fills its answer in that order (KIP-74)."""
    topics: dict[str, list[FetchPartition]] = {}
    for partition, (offset, leader_epoch, last_fetched_epoch) in wanted.items():
        topics.setdefault(partition.topic, []).append(
            FetchPartition(
                partition=partition.partition,
                current_leader_epoch=leader_epoch,
                fetch_offset=offset,
                last_fetched_epoch=last_fetched_epoch,
                partition_max_bytes=settings.max_partition_fetch_bytes,
            )
        )
    return FetchRequest(
        replica_id=CONSUMER,
        max_wait_ms=settings.fetch_max_wait_ms,
        min_bytes=settings.fetch_min_bytes,
        max_bytes=max_bytes,
        isolation_level=1 if settings.read_committed else 0,
        topics=[
            FetchTopic(topic=name, topic_id=topic_ids.get(name, ZERO_UUID), partitions=partitions)
            for name, partitions in topics.items()
        ],
    )


def highest_version(request: FetchRequest) -> int:
    """The last version that can carry the request."""
    has_ids = all(topic.topic_id != ZERO_UUID for topic in request.topics)
    return FetchRequest.max_version if has_ids else LAST_VERSION_WITH_NAMES


def answers(request: FetchRequest, response: FetchResponse) -> dict[TopicPartition, PartitionData]:
    """What is answered, by partition."""
    names = {topic.topic_id: topic.topic for topic in request.topics}
    topics: Sequence[tuple[str, list[PartitionData]]] = [
        (topic.topic or names.get(topic.topic_id, ""), topic.partitions) for topic in response.responses
    ]
    return {TopicPartition(name, each.partition_index): each for name, partitions in topics for each in partitions}
