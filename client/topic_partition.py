"""`TopicPartition`: the name of one partition, as Admin and Fetcher take and return it."""

from typing import NamedTuple

__all__ = ["TopicPartition"]


class TopicPartition(NamedTuple):
    """A partition of a topic. Equal to, and sorted like, the plain tuple."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
