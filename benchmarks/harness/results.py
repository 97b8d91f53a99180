"""Finished measurements on disk: each is written when it is done, with what it holds for, and is not repeated.

A measurement holds for one commit, one plan, one machine and one set of versions: its `Stamp`; the commit is the last
one that changed what is measured (`machine.MEASURED`). What was measured with files that differ from it, or beside
other work, is kept to be looked at and never taken for finished.

    {"name": …, "stamp": {…}, "date": …, "outcome": {"lines": […], "notes": […], …}}     a line of JSON each
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.figures.figures import Line, line_from_json, line_to_json


class Unavailable(Exception):
    """A figure that cannot be measured here and now; the text says why."""


@dataclass(slots=True)
class Outcome:
    """What one measurement came to. `missing` says why there is nothing, where there is nothing."""

    lines: list[Line] = field(default_factory=list[Line])
    notes: list[str] = field(default_factory=list[str])
    """What a reader of the lines has to know: how Kafka was warmed up, what the generator can do, what disturbed."""
    tables: list[str] = field(default_factory=list[str])
    """What does not fit into the one table, as text."""
    is_disturbed: bool = False
    are_bars_met: bool = True
    missing: str = ""

    def add(self, *lines: Line) -> None:
        """Takes lines in, and whether their bars are met."""
        self.lines.extend(lines)
        self.are_bars_met = self.are_bars_met and all(line.is_met for line in lines)

    def to_json(self) -> dict[str, Any]:
        return {
            "lines": [line_to_json(line) for line in self.lines],
            "notes": self.notes,
            "tables": self.tables,
            "is_disturbed": self.is_disturbed,
            "are_bars_met": self.are_bars_met,
            "missing": self.missing,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        fields: dict[str, Any] = {**values, "lines": [line_from_json(line) for line in values["lines"]]}
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a measurement holds for."""

    commit: str
    plan: dict[str, Any]
    hardware: str
    software: str
    settings: list[str]

    @property
    def is_of_a_commit(self) -> bool:
        """Whether the commit says all: a plus says that files differ from it, and "none" that there is none."""
        return not self.commit.endswith("+") and self.commit != "none"


@dataclass(frozen=True, slots=True)
class Finished:
    """An entry of the file."""

    name: str
    stamp: Stamp
    date: str
    outcome: Outcome

    def to_line(self) -> str:
        return json.dumps(asdict(self) | {"outcome": self.outcome.to_json()}, ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str) -> Self:
        values: dict[str, Any] = json.loads(line)
        return cls(values["name"], Stamp(**values["stamp"]), values["date"], Outcome.from_json(values["outcome"]))


class Results:
    """The file of finished measurements."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def find(self, name: str, stamp: Stamp) -> Finished | None:
        """The latest undisturbed measurement of this name that holds for all that the stamp says."""
        if not stamp.is_of_a_commit:
            return None
        fitting = [
            entry
            for entry in self._entries()
            if entry.name == name and entry.stamp == stamp and not (entry.outcome.is_disturbed or entry.outcome.missing)
        ]
        return fitting[-1] if fitting else None

    def keep(self, entry: Finished) -> None:
        """Adds an entry, on disk when this returns. Raises OSError."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(entry.to_line() + "\n")

    def _entries(self) -> Iterator[Finished]:
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                # A run that was killed may have left half a line, an older version one that reads otherwise.
                with suppress(ValueError, KeyError, TypeError):
                    yield Finished.from_line(line)
