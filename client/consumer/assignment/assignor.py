"""What every assignor is given and gives back: the members of a group, the layout of topics, and partitions by member.

An assignor runs in the leader of a classic group, which is told what all members have said when they joined. All of
them list the assignors that they can go by, and the coordinator picks one that all have: names and bytes are Java's.
Assignors are pure: the same members and topics give the same assignment, in whatever order they are handed over.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from odradek.client.topic_partition import TopicPartition
from odradek.protocol.primitives import ZERO_UUID

__all__ = [
    "NO_GENERATION",
    "Assignor",
    "EagerAssignor",
    "Member",
    "RebalanceProtocol",
    "TopicLayout",
    "in_java_order",
    "ordered_members",
    "partitions_of",
    "rebalance_protocol",
]

NO_GENERATION: Final = -1


class RebalanceProtocol(IntEnum):
    """What a member does with its partitions before it joins again (KIP-429). A higher one is preferred."""

    EAGER = 0
    """It gives all of them up."""
    COOPERATIVE = 1
    """It keeps them, and gives up afterwards what was not assigned to it again."""


class TopicLayout(NamedTuple):
    """A topic as metadata describes it."""

    partition_count: int
    racks: tuple[frozenset[str], ...] = ()
    """The racks of the replicas of each partition; empty where they are not known."""
    topic_id: bytes = ZERO_UUID


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group, as its JoinGroup described it."""

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    """The partitions that it has not given up (subscription version 1 and later)."""
    generation: int = NO_GENERATION
    """Of what it owns; -1: not known (subscription version 2 and later, KIP-792)."""
    rack: str | None = None
    user_data: bytes | None = None


class Assignor(Protocol):
    """One way to divide partitions. Built in are range, roundrobin, sticky and cooperative-sticky."""

    @property
    def name(self) -> str:
        """By which the members of a group agree on it."""
        ...

    @property
    def protocols(self) -> frozenset[RebalanceProtocol]:
        """Those that its assignments are good for. COOPERATIVE: it gives nobody what another member still owns."""
        ...

    def user_data(self, topics: Collection[str]) -> bytes | None:
        """What its counterpart in the leader is told about this member beside the topics that it subscribes to."""
        ...

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """This member has received its assignment, made by this assignor."""
        ...

    def assign(self, members: Sequence[Member], topics: Mapping[str, TopicLayout]) -> dict[str, list[TopicPartition]]:
        """The partitions of every member by its id; topics that are not in `topics` do not exist."""
        ...


class EagerAssignor:
    """The base of assignors that know nothing but subscriptions: they have no user data, and remember nothing."""

    protocols: frozenset[RebalanceProtocol] = frozenset((RebalanceProtocol.EAGER,))

    def user_data(self, topics: Collection[str]) -> bytes | None:
        return None

    def on_assignment(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        pass


def rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The best that all of them can do, whichever the group picks. Raises ValueError where they have none in common.

    (Source: the constructor of ConsumerCoordinator.java.)
    """
    if not assignors:
        raise ValueError("a member of a classic group needs an assignor")
    common = frozenset(RebalanceProtocol).intersection(*(assignor.protocols for assignor in assignors))
    if not common:
        names = ", ".join(assignor.name for assignor in assignors)
        raise ValueError(f"the assignors {names} have no rebalance protocol in common")
    return max(common)


def in_java_order(text: str) -> bytes:
    """A key that sorts text as Java's String.compareTo does: by UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")


def ordered_members(members: Iterable[Member]) -> list[Member]:
    """Static members by instance id, then the others by member id, so that a restart changes no place.

    (Source: AbstractPartitionAssignor.MemberInfo.)
    """

    def key(member: Member) -> tuple[bool, bytes]:
        if member.instance_id is not None:
            return False, in_java_order(member.instance_id)
        return True, in_java_order(member.member_id)

    return sorted(members, key=key)


def partitions_of(topic: str, layout: TopicLayout) -> list[TopicPartition]:
    return [TopicPartition(topic, partition) for partition in range(layout.partition_count)]
