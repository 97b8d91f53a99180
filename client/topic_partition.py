"""`TopicPartition`: the name of one partition, as Admin and Fetcher take and return it."""

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["TopicPartition", "by_topic"]


class TopicPartition(NamedTuple):
    """A partition of a topic. Equal to, and sorted like, the plain tuple."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition indexes by topic, in the order in which they come."""
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics
