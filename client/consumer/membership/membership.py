"""`Membership`: what the consumer drives, whichever protocol its group has.

Pure: it is told what happens and when, and says what is to be done.

    membership.subscribe(topics, now)     what to read; at first, and whenever a pattern matches other topics
    membership.polled(now)                the user asks for records, or still waits for some
    membership.revoked(partitions, now)   what `Revoke` or `Lost` named is given up
    membership.answered(request, answer, now)
    membership.advance(now)               at `next_deadline_ms`, or later
    membership.take_actions()             after each of them

No error of a group turns into an offset: what a member loses it reads again from what was committed, or not at all.
A member that does not reach its coordinator keeps its partitions, as Java's does: if others get them meanwhile, its
commits are refused. All times are milliseconds of one clock that never goes back.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol

from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.membership.actions import Action
from odradek.client.consumer.membership.requests import Answer, Request
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

__all__ = ["CLOSING", "POLL_OVERDUE", "UNSUBSCRIBED", "Identity", "Membership"]

CLOSING = "the consumer is being closed"
UNSUBSCRIBED = "the consumer unsubscribed from all topics"
POLL_OVERDUE = "consumer poll timeout has expired."
"""The reason that brokers are told, in Java's words."""


class Identity(NamedTuple):
    """As what the member commits offsets. `generation` is the member epoch of KIP-848; -1: it is in no generation."""

    group_id: str
    member_id: str
    generation: int
    group_instance_id: str | None


class Membership(Protocol):
    """Of one consumer in one group."""

    @property
    def identity(self) -> Identity: ...
    @property
    def settled(self) -> Identity:
        """With the generation of what it owns, which is older while a rebalance is between JoinGroup and SyncGroup:
        what it had may be another's in the one that it has joined."""
        ...

    @property
    def coordinator(self) -> int | None:
        """The node to send commits to; None: it is looked for, or nobody needs it."""
        ...

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """Including those that are being given up."""
        ...

    @property
    def is_stable(self) -> bool:
        """It is in the group, has its assignment, and nothing is being given up."""
        ...

    @property
    def has_ended(self) -> bool:
        """It has left for good, or failed: nothing will be said any more."""
        ...

    @property
    def watched_topics(self) -> frozenset[str]:
        """Whose layout matters: those of this member, and for a leader of a classic group those of all members."""
        ...

    @property
    def next_deadline_ms(self) -> float:
        """When `advance` has something to do; infinite where only an event can bring something new.

        It may lie in the past: then `advance` is due at once.
        """
        ...

    def subscribe(self, topics: Collection[str], now_ms: float) -> None:
        """These topics from now on. None at all: the member leaves, and comes back with the next ones."""
        ...

    def topics_changed(self, topics: Mapping[str, TopicLayout], now_ms: float) -> None:
        """Metadata has been refreshed. `topics`: at least the watched ones that exist."""
        ...

    def polled(self, now_ms: float) -> None:
        """The user asks for records. While he waits for some, this is to be called before each `advance`.

        After `max_poll_interval_ms` without it the member gives its place to others; the next call brings it back.
        """
        ...

    def revoked(self, partitions: Collection[TopicPartition], now_ms: float) -> None:
        """Nothing of these partitions is read, worked on or committed any more."""
        ...

    def rejoin(self, reason: str, now_ms: float) -> None:
        """Asks for a rebalance (KIP-568). Without effect under KIP-848, where the broker decides."""
        ...

    def leave(self, now_ms: float, *, leaves_group: bool | None = None) -> None:
        """Leaves for good: what it owns is revoked, then the group is told.

        `leaves_group` (KIP-1092): True, also a static member gives up its place; False, also a dynamic one keeps it
        until its session ends; None, static ones keep it and others do not.
        """
        ...

    def answered(self, request: Request, answer: Answer, now_ms: float) -> None:
        """An answer to one that nobody waits for any more is ignored."""
        ...

    def coordinator_lost(self, node_id: int, now_ms: float) -> None:
        """The connection to that coordinator was lost, or a request about offsets was answered with NOT_COORDINATOR."""
        ...

    def commit_refused(self, identity: Identity, code: ErrorCode, now_ms: float) -> None:
        """A request about offsets, sent as `identity`, was refused with an error of groups."""
        ...

    def advance(self, now_ms: float) -> None:
        """Does what is due."""
        ...

    def take_actions(self) -> list[Action]:
        """What is to be done, in order; each is said once."""
        ...
