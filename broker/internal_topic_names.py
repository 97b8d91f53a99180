"""The topics that brokers keep their own state in, by Kafka's names (Topic.INTERNAL_TOPICS)."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset((OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_TOPIC))


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS
