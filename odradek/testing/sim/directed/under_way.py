"""Which transactions are under way, and which brokers have their records, for stories of transactions.

under_way = UnderWay(world, stage.leader_of)
ending = under_way.look()          # at what the history says since
under_way.leaders(ending[0].places)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from odradek.testing.sim.checking.history import Sent
from odradek.testing.sim.checking.transaction_history import Ended, Ending, InTransaction
from odradek.testing.sim.world.machine import Machine
from odradek.testing.sim.world.world import World

SETTLED_MS: Final = 10.0
"""So long after it was sent a record is in its partition, where nothing is wrong."""


@dataclass(slots=True)
class OpenTransaction:
    """One that its client has not been told the end of."""

    name: str
    places: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    """Topic and partition of each of its records."""
    newest_ms: float = 0.0
    """When the last one was sent."""
    wanted: Literal["commit", "abort", ""] = ""
    ending_ms: float = 0.0
    """When its end was asked for first."""

    @property
    def producer(self) -> str:
        """The life of a producer that it is of."""
        return self.name.rpartition(".")[0]

    def is_settled(self, now_ms: float) -> bool:
        """Its records are where they belong, and its end was not asked for before this moment."""
        until_ms = self.ending_ms if self.wanted else now_ms
        return until_ms - self.newest_ms >= SETTLED_MS


class UnderWay:
    """The open transactions. `look` before asking."""

    def __init__(self, world: World, leader_of: Callable[[str, int], Machine | None]) -> None:
        """`leader_of`: who leads a partition, None where nobody does."""
        self._world = world
        self._leader_of = leader_of
        self._seen = 0
        self._places: dict[int, tuple[str, int]] = {}
        """By value."""
        self.open: dict[str, OpenTransaction] = {}
        self.look()

    @property
    def now_ms(self) -> float:
        return self._world.now_ms

    def look(self) -> list[OpenTransaction]:
        """Reads the history on. Returns those whose end was asked for the first time since the last look."""
        records = self._world.history.records
        new, self._seen = records[self._seen :], len(records)
        ending: list[OpenTransaction] = []
        for record in new:
            match record:
                case Sent():
                    if record.partition is not None:
                        self._places[record.value] = record.topic, record.partition
                case InTransaction():
                    each = self.open.setdefault(record.transaction, OpenTransaction(record.transaction))
                    each.places.add(self._places[record.value])
                    each.newest_ms = record.at_ms
                case Ending():
                    each = self.open.setdefault(record.transaction, OpenTransaction(record.transaction))
                    if not each.wanted:
                        each.wanted, each.ending_ms = record.wanted, record.at_ms
                        ending.append(each)
                case Ended():
                    self.open.pop(record.transaction, None)
                case _:
                    pass
        return ending

    def settled(self) -> list[OpenTransaction]:
        """Those that stay open, as it seems: they have all that was sent, and nobody asks for their end."""
        return [each for each in self.open.values() if not each.wanted and each.is_settled(self.now_ms)]

    def leaders(self, places: Iterable[tuple[str, int]]) -> list[Machine]:
        """Who leads these partitions, each once, in a settled order."""
        leaders = [self._leader_of(*place) for place in sorted(places)]
        return list(dict.fromkeys(each for each in leaders if each is not None))
