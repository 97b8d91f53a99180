"""The queues of the accumulator: the batches of each partition that wait to be sent, and what is known of their topic.

Pure. `Accumulator` fills and drains them.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

from odradek.client.producer.batching.batch import ProducerBatch
from odradek.client.producer.hooks.partitioner import StickyPartitioner

__all__ = ["PartitionQueue", "TopicQueues"]

RATIO_IMPROVING_STEP: Final = 0.005
RATIO_WORSENING_STEP: Final = 0.05


class PartitionQueue:
    """The batches of a partition that have not been drained, oldest first; `open` is the one that takes records."""

    __slots__ = ("batches", "has_begun", "in_flight_count", "is_muted", "key", "open", "partition", "topic")

    def __init__(self, topic: "TopicQueues", partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.key = (topic.name, partition)
        self.batches: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        self.in_flight_count = 0
        self.is_muted = False
        self.has_begun = False
        """Whether it ever had a batch."""

    @property
    def is_complete(self) -> bool:
        """Whether no batch of it takes more records, which is when the sticky partitioner may move on."""
        return self.open is None or self.open.is_full


class TopicQueues:
    """The queues of a topic's partitions, and what was learned about the topic."""

    __slots__ = ("available", "compression_ratio", "name", "partition_count", "partitions", "size_limit", "sticky")

    def __init__(self, name: str, sticky: StickyPartitioner) -> None:
        self.name = name
        self.sticky = sticky
        self.partitions: list[PartitionQueue] = []
        self.partition_count = 0
        self.available: Sequence[int] = ()
        """Partitions with a leader."""
        self.size_limit: int | None = None
        """No batch over so many bytes: the broker refused a larger one. Until metadata is refreshed."""
        self.compression_ratio = 1.0

    def update(self, partition_count: int, available: Sequence[int]) -> None:
        """Takes over what the newest metadata says. A queue is never dropped: its batches end by themselves."""
        while len(self.partitions) < partition_count:
            self.partitions.append(PartitionQueue(self, len(self.partitions)))
        self.partition_count = partition_count
        self.available = available

    def observe_ratio(self, compressed_bytes: int, bytes_before: int) -> None:
        """Follows how well the topic's records compress, quickly for the worse (CompressionRatioEstimator.java)."""
        observed = compressed_bytes / bytes_before
        if observed > self.compression_ratio:
            self.compression_ratio = max(self.compression_ratio + RATIO_WORSENING_STEP, observed)
        else:
            self.compression_ratio = max(self.compression_ratio - RATIO_IMPROVING_STEP, observed)
