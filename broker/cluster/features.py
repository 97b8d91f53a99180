"""What all brokers of a cluster can do: features, each with a level, and from when on they rely on it (KIP-584). Pure.

A broker says with its registration which levels it has (`NodeState.features`). Once every registered broker, there or
not, has a level, the controller writes it down as finalized, and brokers rely on it from then on. It is not taken back
by itself, whoever joins later.

An operator may lower the level of some (`SETTABLE`), and the controller leaves it there until the operator raises it to
what this release can do (`held`: levels by name, which stand beside those that are finalized).

Most are brokers' among themselves; clients are told of Kafka's (`OF_CLIENTS`, ApiVersions).
"""

from collections.abc import Collection, Mapping
from typing import Final

from odradek.broker.cluster.keys import NodeState

Levels = Mapping[str, int]
"""By name, from 1."""

ENVELOPE: Final = "forwarding.envelope"
"""A request that another broker sends on comes in an Envelope (handling/forwarding.py)."""
GROUPS: Final = "group.coordinator"
"""It coordinates groups, and so `__consumer_offsets` may be created (handling/coordinator_topics.py)."""
TRANSACTIONS: Final = "transaction.coordinator"
"""It coordinates transactions, and takes part in them: `__transaction_state` may be created."""
GROUP_VERSION: Final = "group.version"
"""Kafka's: 1 are consumer groups (KIP-848)."""
TRANSACTION_VERSION: Final = "transaction.version"
"""Kafka's: from 1 on the records of transactions are flexible, 2 is an epoch for each transaction (KIP-890)."""
ACLS: Final = "access.acls"
"""It keeps ACLs, and refuses by them: where an authorizer is set, its rules count from then on. It comes with backups,
for what was refused before must not be allowed after a restore."""
SUPPORTED: Final[Levels] = {
    ENVELOPE: 1,
    GROUPS: 1,
    TRANSACTIONS: 1,
    GROUP_VERSION: 1,
    TRANSACTION_VERSION: 2,
    ACLS: 1,
}
"""What this release can do."""
OF_CLIENTS: Final = (GROUP_VERSION, TRANSACTION_VERSION)
"""Those that clients are told of."""
SETTABLE: Final = (TRANSACTION_VERSION,)
"""Those whose level an operator sets: brokers read and serve what was begun under any level, whichever is finalized."""


def to_finalize(
    registered: Collection[int], nodes: Mapping[int, NodeState], finalized: Levels, held: Levels
) -> dict[str, int]:
    """All that is finalized afterwards; the same as before where nothing is due."""
    after = dict(finalized)
    for name in SUPPORTED:
        level = common_level(name, registered, nodes)
        if level > after.get(name, 0) and name not in held:
            after[name] = level
    return after


def common_level(name: str, registered: Collection[int], nodes: Mapping[int, NodeState]) -> int:
    """The highest one that all registered brokers have, this release included; 0 where one has none."""
    levels = [node.features.get(name, 0) if (node := nodes.get(each)) is not None else 0 for each in registered]
    return min([SUPPORTED[name], *levels]) if levels else 0


def counts(name: str, registered: Collection[int], nodes: Mapping[int, NodeState], finalized: Levels) -> bool:
    """Whether the feature is finalized, or is about to be: every registered broker has it. For what must count from the
    first request of a new cluster on, which may come before the controller has written that down."""
    return finalized.get(name, 0) > 0 or common_level(name, registered, nodes) > 0
