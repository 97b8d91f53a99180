"""What an assignor is given, and what it gives. Pure.

Topics are named by their ids: a topic that was deleted and made again is another topic. Racks are not part of it,
since Kafka's assignors ignore them (4.3.1). A change of racks leads to a new assignment all the same, by the metadata
hash of the group.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

Partitions = Mapping[bytes, frozenset[int]]
"""Partition indexes by topic id. A topic without partitions does not occur."""

NO_PARTITIONS: Partitions = {}


class MemberSpec(NamedTuple):
    """A member, as an assignor sees it."""

    topics: frozenset[bytes]
    """The topics that the member has subscribed to and that exist. All are in `GroupSpec.partition_counts`."""
    assigned: Partitions = NO_PARTITIONS
    """The target assignment that the member had until now. It may name topics and partitions that are gone."""
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    """A group, as an assignor sees it."""

    members: Mapping[str, MemberSpec]
    """By member id. Assignors decide ties by this order: it must not depend on the broker that leads."""
    partition_counts: Mapping[bytes, int]


Assignor = Callable[[GroupSpec], dict[str, Partitions]]
"""Gives every member of the group its partitions, {} where it has none."""
