"""Who owned which partition before a rebalance, as the members say it.

What a member claims may be out of date: it missed a rebalance, and another got the partition. So a claim has the
generation in which it was good, and the newest one counts. Two claims of one generation cancel each other: at least one
of them is wrong, and nobody can tell which. (Source: AbstractStickyAssignor.java, allSubscriptionsEqual; KIP-792.)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from odradek.client.consumer.assignment.assignor import Member, TopicLayout
from odradek.client.topic_partition import TopicPartition

__all__ = ["Claim", "Claims", "weigh"]


class Claim(NamedTuple):
    """What one member says that it owns, since which generation (-1: not known)."""

    partitions: tuple[TopicPartition, ...]
    generation: int


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of all members, weighed against one another."""

    owners: dict[TopicPartition, str]
    """The member whose claim counts; for partitions that exist, of topics that it still subscribes to."""
    claimants: dict[TopicPartition, set[str]]
    """All members that claim a partition, for whatever reason."""


def weigh(members: Iterable[Member], claims: Mapping[str, Claim], topics: Mapping[str, TopicLayout]) -> Claims:
    """`claims` holds that of every member, by its id."""
    claimants: dict[TopicPartition, set[str]] = {}
    newest: dict[TopicPartition, int] = {}
    owners: dict[TopicPartition, str] = {}
    for member in members:
        claim = claims[member.member_id]
        for partition in dict.fromkeys(claim.partitions):
            claimants.setdefault(partition, set()).add(member.member_id)
            if not _may_keep(member, partition, topics):
                continue
            rival = newest.get(partition)
            if rival is None or claim.generation > rival:
                owners[partition] = member.member_id
                newest[partition] = claim.generation
            elif claim.generation == rival:
                owners.pop(partition, None)
    return Claims(owners, claimants)


def _may_keep(member: Member, partition: TopicPartition, topics: Mapping[str, TopicLayout]) -> bool:
    layout = topics.get(partition.topic)
    return layout is not None and partition.partition < layout.partition_count and partition.topic in member.topics
