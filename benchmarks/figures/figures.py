"""Figures: what several runs measured, as one line with its spread, a ratio and a bar.

A figure is the median of its runs; its spread is the lowest and the highest of them. The ratio is Odradek's median by
Apache Kafka's, and a bar says what the ratio must be at least (throughput) or at most (time, memory, CPU). A statement
has no ratio: its bar, if it has one, bounds Odradek's own median, and what Kafka measured may stand beside it.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal


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
    """What a ratio, or the median of a statement, must be: `Bar("≥", 1.0)`."""

    relation: Literal["≥", "≤"]
    bound: float

    def is_met(self, value: float) -> bool:
        compare: Callable[[float, float], bool] = operator.ge if self.relation == "≥" else operator.le
        return compare(value, self.bound)

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


@dataclass(frozen=True, slots=True)
class Statement:
    """One line of the result that is not judged by Apache Kafka's: a quantity with a bound of its own, or none."""

    name: str
    unit: str
    ours: Summary
    theirs: Summary | None = None
    bar: Bar | None = None
    digits: int = 0

    @property
    def is_met(self) -> bool:
        """Whether the median, as measured and not as rounded, is what the bar asks; without a bar it is."""
        return self.bar is None or self.bar.is_met(self.ours.median)


Line = Figure | Statement


def line_to_json(line: Line) -> dict[str, Any]:
    """A line as JSON can hold it."""
    return {"kind": type(line).__name__} | asdict(line)


def line_from_json(values: Mapping[str, Any]) -> Line:
    """The line that `line_to_json` wrote. Raises KeyError, TypeError for anything else."""
    fields = {name: value for name, value in values.items() if name != "kind"}
    for name in ("ours", "theirs"):
        if fields[name] is not None:
            fields[name] = Summary(tuple(fields[name]["values"]))
    fields["bar"] = None if fields["bar"] is None else Bar(**fields["bar"])
    return Figure(**fields) if values["kind"] == Figure.__name__ else Statement(**fields)


def is_steady(slices: Sequence[float], tolerance: float = 0.05) -> bool:
    """Whether the last two slices of a warm-up differ by less than `tolerance` of the larger one."""
    if len(slices) < 2:
        return False
    before, last = slices[-2:]
    return abs(last - before) < tolerance * max(last, before)
