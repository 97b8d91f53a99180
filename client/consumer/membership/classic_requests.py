"""The requests of a member of a classic group, made from its settings and from what it is at the moment."""

from collections.abc import Collection, Mapping
from typing import Final

from odradek.client.consumer.assignment.assignor import Assignor
from odradek.client.consumer.assignment.user_data import sorted_by_topic
from odradek.client.consumer.membership.membership import Identity
from odradek.client.consumer.membership.requests import Heartbeat, Join, Leave, Sync
from odradek.client.consumer.membership.settings import MembershipSettings
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.consumer_protocol import PROTOCOL_TYPE, Subscription, encode_subscription

__all__ = ["ClassicRequests"]

LAPSE_MS: Final = 5_000
"""How much longer than the rebalance time-out an answer may take (AbstractCoordinator.JOIN_GROUP_TIMEOUT_LAPSE)."""


class ClassicRequests:
    """Holds nothing that changes, but for what assignors remember."""

    def __init__(self, settings: MembershipSettings, assignors: Mapping[str, Assignor]) -> None:
        self._settings = settings
        self._assignors = assignors
        self._held_timeout_ms = max(settings.max_poll_interval_ms + LAPSE_MS, settings.request_timeout_ms)

    def join(
        self,
        member_id: str,
        topics: Collection[str],
        owned: Collection[TopicPartition],
        owned_generation: int,
        reason: str,
    ) -> Join:
        """`owned_generation`: the one in which the member got what it owns."""
        protocols: list[tuple[str, bytes]] = []
        for name, assignor in self._assignors.items():
            user_data = assignor.user_data(topics)
            said = Subscription(
                sorted(topics), user_data, sorted_by_topic(owned), owned_generation, self._settings.rack
            )
            protocols.append((name, encode_subscription(said)))
        return Join(
            self._settings.group_id,
            member_id,
            self._settings.group_instance_id,
            self._settings.session_timeout_ms,
            self._settings.max_poll_interval_ms,
            PROTOCOL_TYPE,
            tuple(protocols),
            reason,
            self._held_timeout_ms,
        )

    def sync(self, identity: Identity, protocol_name: str, assignments: tuple[tuple[str, bytes], ...]) -> Sync:
        return Sync(
            identity.group_id,
            identity.member_id,
            identity.group_instance_id,
            identity.generation,
            PROTOCOL_TYPE,
            protocol_name,
            assignments,
            self._held_timeout_ms,
        )

    def heartbeat(self, identity: Identity) -> Heartbeat:
        return Heartbeat(identity.group_id, identity.member_id, identity.group_instance_id, identity.generation)

    def leave(self, identity: Identity, reason: str) -> Leave:
        return Leave(identity.group_id, identity.member_id, identity.group_instance_id, reason)
