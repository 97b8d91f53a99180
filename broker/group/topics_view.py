"""The topics of the cluster, as consumer groups see them. Pure.

What changes is told by name to each group that may care (`ConsumerGroup.metadata_changed`): topics that were created,
deleted or made again, partitions that were added, and partitions whose replicas stand in other racks now.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Protocol


@dataclass(frozen=True)
class ViewedTopic:
    """A topic. The view gives the same object for as long as the topic does not change: its hash is worked out once."""

    name: str
    topic_id: bytes
    partition_count: int
    racks: tuple[frozenset[str], ...] = ()
    """Where the replicas of each partition stand; () where no broker says its rack."""

    @cached_property
    def metadata_hash(self) -> bytes:
        """Eight bytes, other ones whenever an assignment may have to change: by id, name, partition count or racks.

        Kafka makes its hash of the same things (Utils.computeTopicHash, by XXH3). Ours are other numbers: a group
        that was taken over from Kafka's log is assigned once more, and moves nothing.
        """
        digest = blake2b(digest_size=8)
        name = self.name.encode()
        digest.update(b"%b%d:%b%d:" % (self.topic_id, len(name), name, self.partition_count))
        for partition, racks in enumerate(self.racks):
            for rack in sorted(racks):
                text = rack.encode()
                digest.update(b"%d:%d:%b" % (partition, len(text), text))
        return digest.digest()


class TopicsView(Protocol):
    """Looks at the cluster of this moment."""

    def by_name(self, name: str) -> ViewedTopic | None: ...

    def by_id(self, topic_id: bytes) -> ViewedTopic | None: ...

    def names(self) -> Iterable[str]:
        """Of all topics that a regular expression may match."""
        ...
