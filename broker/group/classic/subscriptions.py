"""The topics that the members of a consumers' group subscribe to (ClassicGroup.computeSubscribedTopics). Pure."""

from collections.abc import Iterable
from typing import Final

from odradek.protocol.codec.codec import decode_prefix
from odradek.protocol.consumer_protocol import PROTOCOL_TYPE, ConsumerProtocolSubscription
from odradek.protocol.errors import MalformedMessage

CONSUMER_PROTOCOL_TYPE: Final = PROTOCOL_TYPE
"""The only protocol type whose subscriptions are Kafka's own; those of others (Connect, Schema Registry) are opaque."""
_VERSION_SIZE: Final = 2


def topics_of(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all these members. None: one of them does not parse, so that they are not known."""
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            topics.update(_topics(subscription))
    except MalformedMessage:
        return None
    return frozenset(topics)


def _topics(subscription: bytes) -> list[str]:
    """Version 0 is the beginning of every version, and nothing behind it matters here. Raises MalformedMessage."""
    if len(subscription) < _VERSION_SIZE:
        raise MalformedMessage(f"a subscription of {len(subscription)} bytes")
    return decode_prefix(ConsumerProtocolSubscription, 0, subscription, _VERSION_SIZE).topics
