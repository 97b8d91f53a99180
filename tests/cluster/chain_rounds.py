"""Rounds with an exactly-once chain: numbers are copied from topic to topic while brokers and copiers are struck.

    links = chain(("java", "odradek"), ("kafka-python", "librdkafka"))
    with ChainStory("SIGKILL", cluster, links) as story:
        story.rounds(killed)                    # chain_faults.py

The source (chain_source.py) writes numbers to `first`, of 7 partitions; copiers of two libraries copy them to `second`,
of 11, and copiers of two other ones from there to `third`, of 31: each a member of a group that commits its offsets in
the transaction, and aborts some at random (copying.py, java_copier.py).

In the end the source stops, and copiers go on until each number is in `third`. Then, with copiers stopped and no
transaction open, each number that the source was told to be committed must be in each of the three topics once, as
read_committed reads them, and nothing else. No broker, and no client of ours, may have logged an error of its own.

PROCESS_ROUNDS sets how many rounds there are at least, CHAIN_SECONDS for how long there are some (0).
"""

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import TracebackType
from typing import Final, Self

from odradek.client.admin.transactions import TransactionListing
from odradek.testing.sim.checking.history import Acknowledged
from tests.cluster.chain_faults import ChainFault, Strike
from tests.cluster.chain_findings import Finding, explained, findings
from tests.cluster.client_session import Job, now_ms
from tests.cluster.clients import Client
from tests.cluster.committed_reader import CommittedReader
from tests.cluster.coordinators import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    create_coordinators_topics,
    wait_until_topic_is_whole,
)
from tests.cluster.copiers import Copiers, Link
from tests.cluster.gaps import Figures
from tests.cluster.network_faults import RelayedCluster
from tests.cluster.operator_faults import asked
from tests.cluster.real_cluster import NODES, RealCluster, create_topic
from tests.cluster.rounds import ROUNDS, SEED, check_logs

SECONDS: Final = float(os.environ.get("CHAIN_SECONDS", "0"))
TOPICS: Final[Mapping[str, int]] = {"first": 7, "second": 11, "third": 31}
LAST: Final = "third"
CHAIN_OPTIONS: Final = (
    *("--set", "group.initial.rebalance.delay.ms=500"),
    *("--set", "offsets.topic.num.partitions=6"),
    *("--set", "transaction.state.log.num.partitions=6"),
)
AHEAD: Final = 200
"""So many numbers are there before copiers begin: Java's ends where there is nothing to copy."""
COPIED_TIMEOUT_S: Final = 120.0
ENDED_TIMEOUT_S: Final = 30.0
PROGRESS_TIMEOUT_S: Final = 90.0
LOOK_S: Final = 0.2
OVER: Final = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})
"""States of a transactional id that holds nobody up."""


def chain(*libraries: tuple[str, ...]) -> tuple[Link, ...]:
    """The links of the three topics, each copied by these."""
    pairs = pairwise(TOPICS)
    return tuple(
        Link(source, target, TOPICS[target], each) for (source, target), each in zip(pairs, libraries, strict=True)
    )


class ChainStory:
    """A cluster, the source, copiers, and the rounds."""

    def __init__(self, what: str, cluster: RealCluster, links: Sequence[Link], *, bootstrap: str | None = None) -> None:
        """`bootstrap`: where clients find it, if not where its brokers listen."""
        self.cluster = cluster
        self.rng = random.Random(f"{SEED} {what}")
        self.figures = Figures(f"chain: {what}")
        where = bootstrap or cluster.bootstrap
        processes = cluster.processes
        self.copiers = Copiers(processes, where, links, self.rng, self._came)
        file = str(processes.directory / "source.history")
        job = Job("chain-source", "odradek-source", where, "first", TOPICS["first"], file, transactional_id="source")
        self.source = processes.add(Client(job, processes.log_file("odradek-source")))
        self._last = CommittedReader(cluster.bootstrap, LAST, TOPICS[LAST])
        self._turn = self.rng.randrange(12)
        self._spans_ms: list[tuple[float, float]] = []
        """From when to when each round was, by the clock of the wall."""

    def __enter__(self) -> Self:
        print(f"\n{self.figures.what}: PROCESS_SEED={SEED}")  # noqa: T201 - for the report
        for topic, partitions in TOPICS.items():
            create_topic(self.cluster, topic, assignments=_assignments(partitions))
        create_coordinators_topics(self.cluster)
        self.source.start()
        self._wait(lambda: self.source.acknowledged_count >= AHEAD, PROGRESS_TIMEOUT_S, "the source has not begun")
        self.copiers.start()
        self._wait_for_progress()
        return self

    def _came(self, copier: Client) -> None:
        if isinstance(self.cluster, RelayedCluster):
            self.cluster.relay.know(copier.name, copier.pid)

    # -- rounds -------------------------------------------------------------------------------------------------------

    def rounds(self, fault: ChainFault) -> None:
        """As many as there are to be, and for as long."""
        until_ms, count = now_ms() + SECONDS * 1000, 0
        while count < ROUNDS or now_ms() < until_ms:
            self.round(fault)
            count += 1

    def round(self, fault: ChainFault) -> None:
        from_ms = time.time() * 1000
        self.copiers.look()
        fault(Strike(self.cluster, self.copiers, self.rng, self._turn))
        self._turn += 1
        self._wait_until_whole()
        self.cluster.happened("heal", "")
        self._wait_for_progress()
        self._spans_ms.append((from_ms, time.time() * 1000))

    def _wait_until_whole(self) -> None:
        self.cluster.wait_until_whole()
        for topic in (*TOPICS, OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            wait_until_topic_is_whole(self.cluster, topic)

    def _wait_for_progress(self) -> None:
        """Until numbers come to the end of the chain that were not there."""
        self._last.catch_up()
        count = len(self._last.counts)

        def has_more() -> bool:
            self._last.catch_up()
            return len(self._last.counts) > count

        self._wait(has_more, PROGRESS_TIMEOUT_S, f"nothing more comes to {LAST}")

    def _wait(self, holds: Callable[[], bool], timeout_s: float, what: str) -> None:
        deadline = time.monotonic() + timeout_s
        while not holds():
            assert time.monotonic() < deadline, f"{what} in {timeout_s} s"
            time.sleep(LOOK_S)  # between two looks
            self.source.look()
            self.copiers.look()
            assert self.source.is_running or not self.source.was_started, self.source.output

    # -- the end ------------------------------------------------------------------------------------------------------

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._end()
        elif error is not None:
            error.add_note(f"copiers that ended: {dict(self.copiers.ended)}; {self.cluster.notes[-20:]}")

    def _end(self) -> None:
        """Raises AssertionError for whatever was promised and not kept."""
        self.source.stop()
        self.source.look()
        wanted = {each.value for each in self.source.records if isinstance(each, Acknowledged)}

        def all_are_there() -> bool:
            self._last.catch_up()
            return wanted <= self._last.counts.keys()

        is_late = ""
        try:
            self._wait(all_are_there, COPIED_TIMEOUT_S, f"not all numbers come to {LAST}")
        except AssertionError as error:
            is_late = str(error)
        self.copiers.stop()
        listings = self._ended_transactions()
        found = [each for topic in TOPICS for each in findings(topic, wanted, self._all_of(topic).counts)]
        self.figures.acknowledged_count = len(wanted)
        self.figures.finding_count = len(found)
        self.figures.gaps_ms = [longest_gap_ms(self._last.times_ms, *span) for span in self._spans_ms]
        self.figures.report()
        print(f"copiers that ended by themselves: {dict(self.copiers.ended)}")  # noqa: T201 - for the report
        assert not found, self._explained(found, listings) + is_late
        assert not is_late, is_late
        check_logs(self.cluster.processes.directory)

    def _all_of(self, topic: str) -> CommittedReader:
        reader = CommittedReader(self.cluster.bootstrap, topic, TOPICS[topic])
        reader.catch_up()
        return reader

    def _ended_transactions(self) -> list[TransactionListing]:
        """All transactional ids. Raises AssertionError where a transaction stays open."""
        listings: list[TransactionListing] = []

        def are_over() -> bool:
            listings[:] = asked(self.cluster, lambda admin: admin.list_transactions())
            return all(each.state in OVER for each in listings)

        self._wait(are_over, ENDED_TIMEOUT_S, "a transaction stays open")
        return listings

    def _explained(self, found: Sequence[Finding], listings: Sequence[TransactionListing]) -> str:
        """With what the brokers' logs say. Stops the brokers."""
        for broker in self.cluster.broker_processes():
            broker.stop()
        ids = {each.producer_id: each.transactional_id for each in listings}
        return explained(found, self.cluster.data_directories()[0], TOPICS, ids)


def longest_gap_ms(times_ms: Sequence[float], from_ms: float, to_ms: float) -> float:
    """Between two records, not both before or both after this time. 0: there is none."""
    gaps = [after - before for before, after in pairwise(sorted(times_ms)) if after >= from_ms and before <= to_ms]
    return max(gaps, default=0.0)


def _assignments(partitions: int) -> list[list[int]]:
    return [[NODES[(index + place) % len(NODES)] for place in range(len(NODES))] for index in range(partitions)]
