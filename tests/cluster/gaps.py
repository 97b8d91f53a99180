"""How long a cluster under test did not acknowledge: the longest gap between acknowledgements, by round, and a table.

A gap is counted for each partition, for its leader is its own; the longest of a round is that of the partition that
waited longest. Rows are printed, and added to the file that ROUNDS_TABLE names.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

from odradek.testing.sim.checking.history import Acknowledged, Record

TABLE: Final = os.environ.get("ROUNDS_TABLE", "")
HEAD: Final = (
    "| what | rounds | acknowledged | longest gap of a round, median | longest | lost or doubled |\n"
    "|---|---|---|---|---|---|\n"
)


def longest_gap_ms(records: Iterable[Record], from_ms: float, to_ms: float) -> float:
    """Between two acknowledgements of one partition, not both before or both after this time. 0: there is none."""
    moments: dict[tuple[str, int], list[float]] = {}
    for record in records:
        if isinstance(record, Acknowledged):
            moments.setdefault((record.topic, record.partition), []).append(record.at_ms)
    gaps = [
        after - before
        for each in moments.values()
        for before, after in pairwise(sorted(each))
        if after >= from_ms and before <= to_ms
    ]
    return max(gaps, default=0.0)


@dataclass(slots=True)
class Figures:
    """Of one kind of round."""

    what: str
    gaps_ms: list[float] = field(default_factory=list[float])
    acknowledged_count: int = 0
    finding_count: int = 0

    def row(self) -> str:
        gaps = f"{median(self.gaps_ms) / 1000:.2f} s | {max(self.gaps_ms) / 1000:.2f} s" if self.gaps_ms else "– | –"
        count = f"{self.acknowledged_count:,}"
        return f"| {self.what} | {len(self.gaps_ms)} | {count} | {gaps} | {self.finding_count or 'none'} |\n"

    def report(self) -> None:
        print(self.row(), end="")  # noqa: T201 - for the report
        if TABLE:
            file = Path(TABLE)
            is_new = not file.exists()
            with file.open("a") as table:
                table.write((HEAD if is_new else "") + self.row())


class FiguresByKind:
    """Of the kinds of rounds that happen to one cluster, one after the other."""

    def __init__(self) -> None:
        self._all: list[Figures] = []

    def measure(self, what: str, count: int, one: Callable[[], float], acknowledged: Callable[[], int]) -> None:
        """So many rounds of one kind. `one` is a round, and answers its longest gap in ms; `acknowledged`: how many
        records are, by then."""
        figures, before = Figures(what), acknowledged()
        self._all.append(figures)
        for _ in range(count):
            figures.gaps_ms.append(one())
        figures.acknowledged_count = acknowledged() - before

    def report(self, finding_count: int) -> None:
        """What is found in the history is found of all of them."""
        for figures in self._all:
            figures.finding_count = finding_count
            figures.report()
