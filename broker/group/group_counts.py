"""What the groups of a broker have done since its start, counted for its metrics. Pure."""

from collections import Counter
from typing import Final


class GroupCounts:
    """Shared by all groups of all shards of a broker."""

    __slots__ = ("commits", "deletions", "expirations", "rebalances")

    def __init__(self) -> None:
        self.commits = 0
        """Offsets that were committed; one request may hold many. Those of a transaction count with its marker (in
        Kafka's `offset-commit-count` with their request, also where the transaction aborts)."""
        self.expirations = 0
        self.deletions = 0
        """Offsets that clients had deleted."""
        self.rebalances: Counter[str] = Counter()
        """Rebalances that were begun, by kind of reason."""


NOT_COUNTED: Final = GroupCounts()
"""For groups whose counts nobody reads."""
