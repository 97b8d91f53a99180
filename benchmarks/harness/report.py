"""The report: makes the measurements that are not finished yet, keeps what came out, and prints it all as one table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from benchmarks.figures.table import head, markdown, row
from benchmarks.harness.bench import Bench, Measurement, Say
from benchmarks.harness.results import Finished, Outcome, Results, Stamp, Unavailable
from benchmarks.harness.servers import OURS, THEIRS
from benchmarks.host.machine import Machine


@dataclass(slots=True)
class Report:
    """What was asked for, in the order of the catalogue."""

    results: Results
    stamp: Stamp
    machine: Machine
    say: Say
    entries: list[Finished] = field(default_factory=list[Finished])
    """What is finished, or was now."""

    def measure(self, bench: Bench, measurements: Sequence[Measurement], *, again: bool = False) -> None:
        """Makes or finds each. A failure ends it, and what was finished until then stays written."""
        order = [measurement.name for measurement in measurements]
        # Those without the pair come first, so that no idle neighbour costs them anything.
        for measurement in sorted(measurements, key=lambda each: each.is_paired):
            entry = None if again else self.results.find(measurement.name, self.stamp)
            if entry is None:
                entry = self._made(bench, measurement)
            else:
                self.say(f"{measurement.name}: finished on {entry.date} for this commit, and not repeated")
            self.entries.append(entry)
            self.entries.sort(key=lambda each: order.index(each.name))

    def _made(self, bench: Bench, measurement: Measurement) -> Finished:
        self.say(f"{measurement.name}: {measurement.about}")
        try:
            outcome = measurement.measure(bench)
        except Unavailable as error:
            outcome = Outcome(missing=str(error), are_bars_met=False)
            self.say(f"{measurement.name}: not measured: {error}")
        outcome.is_disturbed = outcome.is_disturbed or not self.machine.is_idle
        entry = Finished(measurement.name, self.stamp, datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), outcome)
        self.results.keep(entry)
        return entry

    @property
    def is_met(self) -> bool:
        """Whether every bar is known to be met."""
        return all(entry.outcome.are_bars_met and not entry.outcome.is_disturbed for entry in self.entries)

    def text(self) -> str:
        """The machine, what has to be known of the figures, the table, and what does not fit into it."""
        runs = self.stamp.plan["runs"]
        notes = [f"{runs} runs of each, medians [lowest–highest]"]
        for day in sorted({entry.date.split()[0] for entry in self.entries}):
            of_day = [entry.name for entry in self.entries if entry.date.startswith(day)]
            notes.append(f"measured on {day}: {', '.join(of_day)}")
        notes += [note for entry in self.entries for note in entry.outcome.notes]
        notes += [f"{entry.name} is NOT MEASURED: {entry.outcome.missing}" for entry in self._missing()]
        parts = ["\n".join([*self.machine.lines(), *(f"note      {note}" for note in notes)])]
        if rows := self._rows():
            parts.append(markdown(head(OURS, THEIRS), rows))
        parts += [table for entry in self.entries for table in entry.outcome.tables]
        if disturbed := [entry.name for entry in self.entries if entry.outcome.is_disturbed]:
            parts.append(f"The machine was not idle: nothing is decided about {', '.join(disturbed)}. Repeat them.")
        return "\n" + "\n\n".join(parts)

    def _missing(self) -> list[Finished]:
        return [entry for entry in self.entries if entry.outcome.missing]

    def _rows(self) -> list[list[str]]:
        return [
            row(line, is_preliminary=entry.outcome.is_disturbed)
            for entry in self.entries
            for line in entry.outcome.lines
        ]
