"""Which protocol a group uses: one that all members offer, and most of them like best. Pure.

Kafka's ClassicGroup.selectProtocol. Between two with as many votes the earliest member decides; in Kafka the order of a
hash map does.
"""

from collections.abc import Iterable

from odradek.broker.group.classic.requests import OfferedProtocol


class ProtocolSupport:
    """How many members offer each protocol."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, protocols: Iterable[OfferedProtocol]) -> None:
        """A member offers these. A name that is given twice counts once."""
        for name in {protocol.name for protocol in protocols}:
            self._counts[name] = self._counts.get(name, 0) + 1

    def remove(self, protocols: Iterable[OfferedProtocol]) -> None:
        """A member that offered these no longer does."""
        for name in {protocol.name for protocol in protocols}:
            count = self._counts.pop(name) - 1
            if count:
                self._counts[name] = count

    def has_any_of(self, protocols: Iterable[OfferedProtocol], member_count: int) -> bool:
        """Whether one of these is offered by all of so many members."""
        return any(self._counts.get(protocol.name, 0) == member_count for protocol in protocols)

    def common(self, member_count: int) -> frozenset[str]:
        """What all of so many members offer."""
        return frozenset(name for name, count in self._counts.items() if count == member_count)


def chosen_protocol(offers: Iterable[Iterable[OfferedProtocol]], candidates: frozenset[str]) -> str:
    """Each member votes for the first candidate that it offers; the name with the most votes.

    Every member offers every candidate, and there is one: who does not is not let in.
    """
    votes: dict[str, int] = {}
    for protocols in offers:
        name = next(protocol.name for protocol in protocols if protocol.name in candidates)
        votes[name] = votes.get(name, 0) + 1
    return max(votes, key=votes.__getitem__)
