"""What a membership wants done: a request to be sent, or something that the consumer has to do about its partitions."""

from dataclasses import dataclass
from typing import TypeAlias

from odradek.client.consumer.membership.requests import Request
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

__all__ = ["Action", "Assigned", "Failed", "Lost", "Noted", "Revoke", "Send"]


@dataclass(frozen=True, slots=True)
class Send:
    """Send this, to the coordinator `node_id`; None: to any broker. Then call `answered` once."""

    request: Request
    node_id: int | None


@dataclass(frozen=True, slots=True)
class Revoke:
    """Bring work on these partitions to an end, commit it, stop reading them, then call `revoked`.

    After `deadline_ms` the group may have gone on without this member.
    """

    partitions: frozenset[TopicPartition]
    deadline_ms: float
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """These partitions may have another owner already: drop them without a commit, which would be refused, then call
    `revoked`. They may be under revocation at that moment: then this cuts it short, and one `revoked` is enough."""

    partitions: frozenset[TopicPartition]
    reason: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """The member owns these from now on, beside what it has. Empty where a rebalance brought nothing new."""

    partitions: frozenset[TopicPartition]
    generation: int


@dataclass(frozen=True, slots=True)
class Noted:
    """Worth a warning in the log; the member goes on."""

    text: str
    code: ErrorCode | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The membership has ended, and the user has to know. What it owned was said to be lost before."""

    code: ErrorCode
    text: str


Action: TypeAlias = Send | Revoke | Lost | Assigned | Noted | Failed
