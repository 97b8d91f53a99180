"""Which broker coordinates a group or a transactional id, and a name whose coordinator a broker is."""

from enum import IntEnum
from functools import partial
from typing import Final

from benchmarks.harness.cluster_servers import Cluster, Member
from benchmarks.harness.replicated_topics import restore_leaders
from benchmarks.load.wire import Wire, check, repeat_until_answered
from odradek.broker.internal_topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest

FIND_VERSION: Final = 4
NAMES_MAX: Final = 100


class KeyType(IntEnum):
    """CoordinatorType.java."""

    GROUP = 0
    TRANSACTION = 1


TOPIC_OF: Final = {KeyType.GROUP: OFFSETS_TOPIC, KeyType.TRANSACTION: TRANSACTIONS_TOPIC}
PARTITIONS: Final = 50
"""Of either topic, in Odradek and by Kafka's defaults."""


def coordinator_of(wire: Wire, key: str, key_type: KeyType) -> int:
    """The node id. Raises KafkaError, OSError."""
    request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
    (found,) = wire.ask(request, FIND_VERSION).coordinators
    check(found.error_code, found.error_message)
    return found.node_id


def name_coordinated_by(cluster: Cluster, member: Member, key_type: KeyType, prefix: str) -> str:
    """The first of `prefix`-0, `prefix`-1, … that a broker coordinates; all coordinate what they are preferred for.

    Raises KafkaError, OSError, TimeoutError, LookupError.
    """
    with member.wire() as wire:
        repeat_until_answered(partial(coordinator_of, wire, prefix, key_type))  # makes the topic, too
        restore_leaders(cluster, TOPIC_OF[key_type], PARTITIONS)
        for number in range(NAMES_MAX):
            name = f"{prefix}-{number}"
            if repeat_until_answered(partial(coordinator_of, wire, name, key_type)) == member.node_id:
                return name
    raise LookupError(f"broker {member.node_id} coordinates none of {NAMES_MAX} names of {key_type.name.lower()}s")
