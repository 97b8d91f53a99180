"""What the checker found: which rule is broken, on which record, and the events that show it, in time order.

    t-0 at offset 41: inconsistent offset: the offset held value 7 and then value 9
        #12    1012.500 ms  Acknowledged value 7 at t-0 offset 41
        #31    1500.000 ms  Polled c2 t-0 from 40: (40, 3) >(41, 9)<

A finding with an `excuse` is something that was promised to nobody: a loss with acks=1, or after an unclean election
that was logged. It is counted, not held against the cluster.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import Enum
from typing import Final

from odradek.testing.sim.checking.cluster_history import ClusterRecord
from odradek.testing.sim.checking.history import Polled, Record

EXAMPLES_MAX: Final = 5
"""How many findings of a kind are written out."""
NEIGHBOURS: Final = 2
"""How many records of a poll are shown on either side of the one that matters."""

Event = Record | ClusterRecord


class Anomaly(Enum):
    """The rules, each with what breaks it."""

    LOST_WRITE = "lost write"
    """Acknowledged, and readers passed over its offset without it."""
    UNSEEN = "unseen at the end"
    """Acknowledged, and nobody has read it by the end."""
    INCONSISTENT_OFFSET = "inconsistent offset"
    """One offset, two values."""
    DUPLICATE = "duplicate"
    """One record, two offsets."""
    ABORTED_READ = "aborted read"
    """Read, though its producer was told that it was certainly not written (G1a)."""
    PHANTOM = "phantom"
    """Read or acknowledged, and never sent, or not yet, or to another partition."""
    WRITE_ORDER = "write order"
    """Of one idempotent producer, in another order than it was sent."""
    NON_MONOTONIC_SEND = "non-monotonic send"
    """Sent when a higher offset was known already."""
    NON_MONOTONIC_POLL = "non-monotonic poll"
    """A reader went back between two polls."""
    INTERNAL_NON_MONOTONIC_POLL = "non-monotonic poll, internal"
    """A reader went back within one."""
    SKIPPED_POLL = "skipped poll"
    """A reader passed over a record between two polls."""
    INTERNAL_SKIPPED_POLL = "skipped poll, internal"
    """And within one."""
    POSITION_LOST = "position lost"
    """A reader's position was out of range, though nothing was deleted."""
    HIGH_WATERMARK_BACK = "high watermark went back"
    """Within one incarnation of a replica and one leader epoch."""
    IMPOSSIBLE_REPLICA = "impossible replica"
    """Log start, high watermark and log end are not in that order, or in-sync sets not within one another."""
    TWO_LEADERS = "two leaders in one epoch"
    ISR_OUTSIDE_REPLICAS = "in-sync set outside the replicas"
    EPOCH_BACK = "epoch went back"
    """Of a partition in the metadata store, or it stood still while the leader changed."""
    UNLOGGED_ELECTION = "unclean election that nobody logged"
    UNCALLED_ELECTION = "unclean election within the loss model"
    """A clean one was due, and the topic does not allow another."""
    NOT_THE_CONTROLLER = "elected by who is not the controller"
    APPENDED_BELOW_MINIMUM = "appended below min.insync.replicas"
    """With acks=all, though too few were in sync."""
    OTHER_EPOCH = "a fetch of another epoch counted"
    READABLE_LOST = "readable record lost"
    """It was below a high watermark, and a later cleanly elected leader does not have it."""
    REPLICAS_DIFFER = "replicas differ"
    """Below the high watermark, within the in-sync set."""
    DELETED_IS_BACK = "deleted records came back"
    """A later leader starts below what a DeleteRecords was acknowledged to have left."""
    START_UNCALLED = "log start moved"
    """Though nobody has deleted so much."""
    OF_ANOTHER_TOPIC = "record of another topic"
    """Of one with the same name, that was deleted before this one was created."""
    CHANGE_UNDONE = "acknowledged change undone"
    """The metadata store does not have what an operator was told to be done."""
    REASSIGNED_TOO_EARLY = "reassigned too early"
    """Fewer are in sync than have to be, and those that went were."""
    TOO_FEW_REPLICAS = "created with too few replicas"
    REFUSED_WRONGLY = "refused though enough brokers are registered"
    NOT_IN_FORCE = "option not in force"
    """With all repaired, a broker still goes by another value."""
    UNPROCESSED = "processed by no member"
    """Acknowledged, and no member of the group had it by the end."""
    COMMIT_LOST = "committed offset went back"
    """An owner began before an offset whose commit had been acknowledged when it was assigned."""
    BEGAN_AHEAD = "began ahead of every commit"
    """An owner began behind the highest offset that anybody had asked to commit."""
    OTHER_GENERATION = "commit of a generation that had ended"
    """It was acknowledged, though a member had been assigned in a later generation before it was asked for."""
    GENERATION_BACK = "generation went back"
    """A member was assigned in an earlier generation than one before."""
    UNCOMMITTED_READ = "uncommitted read"
    """Of a transaction that is aborted, or that nobody had asked to commit by then."""
    TORN_TRANSACTION = "torn transaction"
    """At the end a part of it can be read and a part cannot; or nothing, though it is committed."""
    LOST_INPUT = "input without output"
    """At the end a record can be read, and no copy of it."""
    DOUBLED_INPUT = "input with two outputs"
    """Two transactions that copied one record can be read."""
    TWO_OWNERS = "two owners"
    """Two members own a partition in one generation, or both for longer than one of them can have been in the dark."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach. `events` are pairs of position in the history (-1: not part of it) and record, in time order."""

    anomaly: Anomaly
    topic: str
    partition: int
    offset: int | None
    text: str
    events: tuple[tuple[int, Event], ...] = ()
    excuse: str | None = None

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition}" + ("" if self.offset is None else f" at offset {self.offset}")
        excuse = "" if self.excuse is None else f" (allowed: {self.excuse})"
        lines = [f"{where}: {self.anomaly.value}: {self.text}{excuse}"]
        lines += [f"    {_position(index):<7} {_told(event, self.offset)}" for index, event in self.events]
        return "\n".join(lines)


class Verdict:
    """All that was found: `findings` break a promise, `excused` do not."""

    def __init__(self, found: Iterable[Finding]) -> None:
        self.findings: list[Finding] = []
        self.excused: list[Finding] = []
        for finding in found:
            (self.findings if finding.excuse is None else self.excused).append(finding)

    @property
    def is_content(self) -> bool:
        return not self.findings

    @property
    def kinds(self) -> set[Anomaly]:
        return {finding.anomaly for finding in self.findings}

    def counts(self) -> dict[str, int]:
        """How many there are of each kind, with those that are excused under their excuse."""
        return dict(Counter(each.anomaly.value for each in self.findings)) | dict(
            Counter(f"{each.anomaly.value}, {each.excuse}" for each in self.excused)
        )

    def __str__(self) -> str:
        """The first few of each kind, those first whose events came first."""
        if self.is_content:
            return f"nothing found; {len(self.excused)} excused"
        lines: list[str] = []
        for anomaly in Anomaly:
            found = [each for each in self.findings if each.anomaly is anomaly]
            found.sort(key=lambda each: each.events[-1][1].at_ms if each.events else 0.0)
            lines += [str(each) for each in found[:EXAMPLES_MAX]]
            if len(found) > EXAMPLES_MAX:
                lines.append(f"... {len(found)} of {anomaly.value} in all")
        return "\n".join(lines)

    def check(self) -> None:
        """Raises AssertionError, with what was found."""
        assert self.is_content, f"{len(self.findings)} findings {self.counts()}\n{self}"


def _position(index: int) -> str:
    return "" if index < 0 else f"#{index}"


def _told(event: Event, offset: int | None) -> str:
    """One line of it; of a poll only what lies around `offset`."""
    if isinstance(event, Polled):
        what = f"{event.client} {event.topic}-{event.partition} from {event.position}: {_around(event, offset)}"
    else:
        what = " ".join(
            f"{field.name}={getattr(event, field.name)!r}" for field in fields(event) if field.name != "at_ms"
        )
    return f"{event.at_ms:>12.3f} ms  {type(event).__name__} {what}"


def _around(polled: Polled, offset: int | None) -> str:
    records = polled.records
    if offset is None:
        nearest = 0
    else:
        nearest = min(range(len(records)), key=lambda index: abs(records[index][0] - offset), default=0)
    first, last = max(0, nearest - NEIGHBOURS), nearest + NEIGHBOURS + 1
    shown = [f">{each}<" if each[0] == offset else str(each) for each in records[first:last]]
    return " ".join([*(["..."] if first else []), *shown, *(["..."] if last < len(records) else [])]) or "nothing"
