"""Rounds: something happens to a cluster under load, again and again, and in the end all that was promised is checked.

    with Story("SIGKILL, leader", cluster) as story:
        story.rounds("SIGKILL, leader", fault)  # fault(cluster, rng) returns when all is repaired

Several kinds of faults happen to one cluster, one after the other (`lots`): to start a cluster and its clients, and to
look through all of it in the end, takes longer than two rounds. Producers and readers of three libraries work all the
while. After each round the cluster must become whole again by itself, and every producer must get on. In the end nobody
sends any more, every reader must come to the end, all is read from beginning to end once more, and the checker of the
simulator judges what all of them were told; besides, no send has failed, no broker has logged an error of its own, and
the brokers' logs are the same byte for byte.

PROCESS_ROUNDS sets how many (1), PROCESS_SEED repeats a run's choices as far as processes can be repeated.
"""

import os
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pytest

from odradek.testing.sim.checking.checker import check
from odradek.testing.sim.checking.expectations import Rules, TopicRules
from odradek.testing.sim.checking.history import History, Phase, Placed, Polled, Record
from odradek.testing.sim.checking.numbered import decoded
from tests.cluster.client_session import now_ms
from tests.cluster.clients import PRODUCERS, READERS, Clients
from tests.cluster.gaps import FiguresByKind, longest_gap_ms
from tests.cluster.raised_epochs import EXCUSE, excused, under_two_epochs
from tests.cluster.real_cluster import ASSIGNMENTS, NODES, TOPIC, RealCluster
from tests.compat.producer_load import read_back
from tests.compat.watermarks import log_ends

ROUNDS: Final = int(os.environ.get("PROCESS_ROUNDS", "1"))
IS_SHORT: Final = "PROCESS_ROUNDS" not in os.environ
"""Then the most telling kind is run, and the others are left to `make rounds` (three of each) and `make soak`."""
SEED: Final = int(os.environ.get("PROCESS_SEED", "0")) or random.randrange(1, 2**31)
FINAL: Final = "final"
OWN_ERROR: Final = re.compile(r"Traceback \(most recent call last\)|\b(ERROR|CRITICAL) ")
"""What no fault excuses in a broker's log, or in one of our client's."""

KINDS_A_CLUSTER: Final = 5

Fault = Callable[[RealCluster, random.Random], None]
not_when_short: Final = pytest.mark.skipif(IS_SHORT, reason="left to `make rounds`: it takes a while")


def lots(kinds: Iterable[str]) -> list[Any]:
    """Parameters `whats`: so many kinds of rounds at most are a tuple, as happens to one cluster."""
    return [pytest.param(whats, id=" | ".join(whats)) for whats in batched(kinds, KINDS_A_CLUSTER)]


def batched(kinds: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    """As even as it can be: 7 in lots of 5 are 4 and 3."""
    left = list(kinds)
    for number in range(-(-len(left) // size), 0, -1):
        take = -(-len(left) // number)
        yield tuple(left[:take])
        del left[:take]


class Story:
    """A cluster, its clients, and the rounds."""

    def __init__(
        self,
        what: str,
        cluster: RealCluster,
        *,
        is_patient: bool = False,
        bootstrap: str | None = None,
        kinds: Sequence[str] = PRODUCERS + READERS,
        count: int = ROUNDS,
    ) -> None:
        """`what`: names the choices of its rounds. `bootstrap`: where clients find it, if not where its brokers
        listen. `count`: of rounds of each kind."""
        self.cluster = cluster
        self.count = count
        self.rng = random.Random(f"{SEED} {what}")
        self.what = what
        self.figures = FiguresByKind()
        self.clients = Clients(
            cluster.processes,
            bootstrap or cluster.bootstrap,
            TOPIC,
            len(ASSIGNMENTS),
            is_patient=is_patient,
            kinds=kinds,
        )

    def __enter__(self) -> Self:
        print(f"\n{self.what}: PROCESS_SEED={SEED}")  # noqa: T201 - for the report
        self.clients.start()
        self.clients.wait_for_progress(50)
        return self

    def rounds(self, what: str, fault: Fault) -> None:
        """As many of this kind as the story has of each."""
        self.figures.measure(what, self.count, partial(self._round, fault), lambda: self.clients.acknowledged_count)

    def _round(self, fault: Fault) -> float:
        """The longest gap in it, in ms."""
        from_ms = now_ms()
        fault(self.cluster, self.rng)
        self.cluster.wait_until_whole()
        self.cluster.happened("heal", "")
        self.clients.wait_for_progress(100)
        return longest_gap_ms(self.clients.history(), from_ms, now_ms())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._end()
        else:
            self.clients.look()
            history = sorted((*self.clients.history(), *self.cluster.notes), key=lambda each: each.at_ms)
            self._write_history(history)
            if error is not None:
                error.add_note(f"judged as far as it is known: {check(history, self.cluster.deletions, self._rules)}")

    def _end(self) -> None:
        """Raises AssertionError for whatever was promised and not kept."""
        self.clients.stop()
        self.clients.look()
        self.cluster.wait_until_whole()
        read = everything(self.cluster.bootstrap, TOPIC, deleted_before(self.cluster))
        history = history_of(self.clients, self.cluster.notes, read)
        self._write_history(history)
        verdict = check(history, self.cluster.deletions, self._rules)
        if not verdict.is_content:
            verdict = excused(verdict, doubled_in(self.cluster, TOPIC, len(ASSIGNMENTS)))
        self.figures.report(len(verdict.findings))
        if count := self.clients.stood_still():
            print(f"{count} of librdkafka's consumers stood still (librdkafka_reader.py)")  # noqa: T201 - for the report
        if count := sum(each.excuse == EXCUSE for each in verdict.excused):
            print(f"{count} records: {EXCUSE} (raised_epochs.py)")  # noqa: T201 - for the report
        verdict.check()
        assert self.clients.failures() == [], "a send failed, in the time that its client gives it"
        check_logs(self.cluster.processes.directory, self.cluster.excused_errors)
        self._check_replicas()

    @property
    def _rules(self) -> Rules:
        copies = self.cluster.copies
        return Rules(default=TopicRules(min_insync_replicas=min(2, copies), has_one_replica=copies == 1))

    def _write_history(self, records: Sequence[Record]) -> None:
        file = self.cluster.processes.directory / "history"
        file.write_text(History(sorted(records, key=lambda each: each.at_ms)).to_json())

    def _check_replicas(self) -> None:
        """Stops the brokers, and compares what they have on disk."""
        replicas = {index: each.replica_nodes for index, each in self.cluster.partitions().items()}
        for process in self.cluster.broker_processes():
            process.stop()
        directories = dict[int, Path](zip(NODES, self.cluster.data_directories(), strict=True))
        for index, nodes in replicas.items():
            logs = [log_of(directories[node] / f"{TOPIC}-{index}") for node in nodes]
            assert all(logs), "nothing is there"
            if not self.cluster.deletions:
                assert [len(log) for log in logs] == [len(logs[0])] * len(logs)
            assert have_the_same_end(logs), f"replicas of {TOPIC}-{index} differ"


def doubled_in(cluster: RealCluster, topic: str, partitions: int) -> set[int]:
    """What librdkafka may have doubled, by the logs of all brokers."""
    logs = [
        log_of(directory / f"{topic}-{index}")
        for directory in cluster.data_directories()
        for index in range(partitions)
    ]
    return {value for log in logs for value in under_two_epochs(log)}


def deleted_before(cluster: RealCluster) -> list[int]:
    """Of each partition the offset at which its log starts."""
    starts = [0] * len(ASSIGNMENTS)
    for each in cluster.deletions:
        starts[each.partition] = max(starts[each.partition], each.before_offset)
    return starts


def have_the_same_end(logs: Sequence[bytes]) -> bool:
    """Whether each log is the end of the longest. Deleted records go by whole segments, which differ by replica."""
    longest = max(logs, key=len)
    return all(longest.endswith(log) for log in logs)


def history_of(clients: Clients, happened: Sequence[Record], read: Sequence[Record]) -> list[Record]:
    """What clients were told, as far as it was looked at, and what happened meanwhile; and then what was read in the
    end, when all was well."""
    told = sorted((*clients.history(), *happened), key=lambda each: each.at_ms)
    return [*told, Phase(read[0].at_ms, "liveness"), *read, Phase(read[-1].at_ms, "end")]


def everything(bootstrap: str, topic: str, starts: Sequence[int]) -> list[Record]:
    """All partitions, read by librdkafka from where their logs start to their ends."""
    found: list[Record] = [Placed(now_ms(), FINAL, topic, index, start, "start") for index, start in enumerate(starts)]
    ends = log_ends(bootstrap, topic, range(len(starts)))
    for message in read_back(bootstrap, topic, ends, dict(enumerate(starts))):
        index, offset, at_ms = message.partition(), message.offset(), now_ms()
        assert index is not None
        assert offset is not None
        found.append(Polled(at_ms, at_ms, FINAL, topic, index, offset, [(offset, decoded(message.value()))]))
    return found


def log_of(directory: Path) -> bytes:
    """The batches of a partition, whatever the segments that they lie in."""
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def check_logs(directory: Path, excused: re.Pattern[str] | None = None) -> None:
    """Raises AssertionError for an error that is a broker's own, or our client's, unless its line has what is
    `excused`."""
    for path in sorted([*directory.glob("broker*.log"), *directory.glob("odradek*.log")]):
        text = path.read_text(errors="replace")
        for found in OWN_ERROR.finditer(text):
            line = text[found.start() : text.find("\n", found.start())]
            if excused is None or excused.search(line) is None:
                shown = text[max(0, found.start() - 1_000) : found.start() + 3_000]
                raise AssertionError(f"{path} says:\n{shown}")


def lasts(seconds: float) -> None:
    """How long a fault lasts; nothing is ordered by it."""
    time.sleep(seconds)
