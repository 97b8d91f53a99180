"""Makes the heartbeats of a KIP-848 member: what has not changed since the last one is left out.

All is said when the member joins, and after an error or a lost answer: then nobody knows what the broker has heard. To
such a full heartbeat the broker answers with the assignment, even if that has not changed.
(Source: ConsumerHeartbeatRequestManager.HeartbeatState.)
"""

from typing import Final

from odradek.client.consumer.membership.membership import Identity
from odradek.client.consumer.membership.requests import AssignmentByTopicId, ConsumerHeartbeat
from odradek.client.consumer.membership.settings import MembershipSettings

__all__ = ["JOIN_EPOCH", "ConsumerHeartbeats"]

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LEAVE_FOR_A_WHILE_EPOCH: Final = -2
UNCHANGED_TIMEOUT: Final = -1


class ConsumerHeartbeats:
    """Remembers what was said."""

    def __init__(self, settings: MembershipSettings) -> None:
        self._settings = settings
        self._said_topics: frozenset[str] | None = None
        """None: the next heartbeat is a full one."""

    def forget(self) -> None:
        self._said_topics = None

    @property
    def is_full_next(self) -> bool:
        return self._said_topics is None

    def has_news(self, topics: frozenset[str]) -> bool:
        return self._said_topics is not None and topics != self._said_topics

    def next(
        self, identity: Identity, topics: frozenset[str], owned: AssignmentByTopicId, *, acknowledges: bool
    ) -> ConsumerHeartbeat:
        """`acknowledges`: tells what is owned, so that the broker gives to others what is not."""
        is_full = self._said_topics is None or identity.generation == JOIN_EPOCH
        says_topics = is_full or topics != self._said_topics
        self._said_topics = topics
        return ConsumerHeartbeat(
            identity.group_id,
            identity.member_id,
            identity.generation,
            identity.group_instance_id,
            self._settings.rack if is_full else None,
            self._settings.max_poll_interval_ms if is_full else UNCHANGED_TIMEOUT,
            tuple(sorted(topics)) if says_topics else None,
            self._settings.server_assignor if is_full else None,
            owned if is_full or acknowledges else None,
        )

    def leave(self, identity: Identity, *, for_a_while: bool) -> ConsumerHeartbeat:
        """`for_a_while`: a static member keeps its place until its session ends."""
        return ConsumerHeartbeat(
            identity.group_id,
            identity.member_id,
            LEAVE_FOR_A_WHILE_EPOCH if for_a_while else LEAVE_EPOCH,
            identity.group_instance_id,
            None,
            UNCHANGED_TIMEOUT,
            None,
            None,
            None,
        )
