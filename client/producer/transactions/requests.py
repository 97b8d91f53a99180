"""What a transactional producer asks of coordinators, and what comes back. Pure.

A request names the broker that it goes to; None: any. (`messages` has the bytes.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from odradek.client.errors.base import ClientError
from odradek.client.offset_commit import Committed, GroupIdentity
from odradek.client.producer.idempotence.idempotence import Key
from odradek.client.producer.idempotence.sequences import Identity
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

__all__ = ["AddOffsets", "AddPartitions", "Answer", "Codes", "CommitOffsets", "Coordinated", "CoordinatorFound", "End"]
__all__ += ["FindCoordinator", "Given", "Init", "KeyType", "NoAnswer", "OffsetsOfGroup", "Request"]


class KeyType(Enum):
    """Of what has a coordinator, with its number in FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


class Coordinated(NamedTuple):
    key_type: KeyType
    key: str


class OffsetsOfGroup:
    """Offsets that are to be committed with a transaction, as one call of the program named them."""

    __slots__ = ("group", "offsets")

    def __init__(self, group: GroupIdentity, offsets: Mapping[TopicPartition, Committed]) -> None:
        self.group = group
        self.offsets = offsets


# ---------------------------------------------------------------------------------------------------------- requests
@dataclass(frozen=True, slots=True)
class FindCoordinator:
    of: Coordinated
    node_id: None = None


@dataclass(frozen=True, slots=True)
class Init:
    """`identity`: what the producer has, in which case it goes on in the next epoch; nobody's at the beginning. What is
    under way is aborted."""

    node_id: int
    identity: Identity


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Only up to transaction version 1."""

    node_id: int
    identity: Identity
    partitions: frozenset[Key]


@dataclass(frozen=True, slots=True)
class AddOffsets:
    """Only up to transaction version 1."""

    node_id: int
    identity: Identity
    group_id: str


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Goes to the coordinator of the group."""

    node_id: int
    identity: Identity
    what: OffsetsOfGroup
    uses_v2: bool


@dataclass(frozen=True, slots=True)
class End:
    node_id: int
    identity: Identity
    is_commit: bool
    uses_v2: bool


Request = FindCoordinator | Init | AddPartitions | AddOffsets | CommitOffsets | End


# ----------------------------------------------------------------------------------------------------------- answers
class CoordinatorFound(NamedTuple):
    node_id: int


class Given(NamedTuple):
    """The identity from now on, of Init and End; nobody's where End brings no new one."""

    identity: Identity


@dataclass(frozen=True, slots=True)
class Codes:
    """By what they are about, such as a partition; all of them NONE where everything was done."""

    codes: Mapping[str, ErrorCode]
    message: str = ""
    """The coordinator's own words."""


class NoAnswer(NamedTuple):
    """Why there is none. The request may have been carried out, if it `was_sent`."""

    error: ClientError
    was_sent: bool = True


Answer = CoordinatorFound | Given | Codes | NoAnswer
