"""Figures: what several runs measured, as one line with its spread, a ratio and a bar.

A figure is the median of its runs; its spread is the lowest and the highest of them. The ratio is Odradek's median by
Apache Kafka's, and a bar says what the ratio must be at least (throughput) or at most (time, memory, CPU).
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal


@dataclass(frozen=True, slots=True)
class Summary:
    """What the runs of one contender measured. At least one run."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        assert self.values, "a summary of no run"

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return min(self.values), max(self.values)


@dataclass(frozen=True, slots=True)
class Bar:
    """What a ratio must be: `Bar("≥", 1.0)`."""

    relation: Literal["≥", "≤"]
    bound: float

    def is_met(self, ratio: float) -> bool:
        compare: Callable[[float, float], bool] = operator.ge if self.relation == "≥" else operator.le
        return compare(ratio, self.bound)

    def __str__(self) -> str:
        return f"{self.relation} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result: the same quantity of both contenders. `digits` after the point are shown."""

    name: str
    unit: str
    ours: Summary
    theirs: Summary
    bar: Bar | None = None
    digits: int = 0

    @property
    def ratio(self) -> float:
        """Ours by theirs. Raises ZeroDivisionError where theirs is nothing, for there is no such figure."""
        return self.ours.median / self.theirs.median

    @property
    def is_met(self) -> bool:
        """Whether the ratio, as measured and not as rounded, is what the bar asks; without a bar it is."""
        return self.bar is None or self.bar.is_met(self.ratio)


def is_steady(slices: Sequence[float], tolerance: float = 0.05) -> bool:
    """Whether the last two slices of a warm-up differ by less than `tolerance` of the larger one."""
    if len(slices) < 2:
        return False
    before, last = slices[-2:]
    return abs(last - before) < tolerance * max(last, before)
