"""Pairs and triples of random admin requests to a cluster of ours and one of Kafka's: answers and states are equal, or
the difference is known (`admin_differences.py`).

    python -m tests.compat.admin_fuzz --brokers 3 --first 0 --count 300 --minutes 9

A history is drawn from its seed (`admin_requests.py`) and has topics of its own. After each step both clusters are
looked at until they say the same, for Kafka's brokers hear of a change after the controller has answered. A history
that ends in a difference is made smaller, by whatever still ends in one, and is printed with its seed.
"""

import argparse
import copy
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import click

from processes.apache_kafka import ApacheKafka
from tests.compat.admin_differences import reason_for
from tests.compat.admin_leaves import Leaf, leaves_of
from tests.compat.admin_requests import Step, history, lists_in
from tests.compat.admin_worlds import (
    PATIENCE_S,
    PAUSE_S,
    Address,
    Brokers,
    World,
    delete_topics,
    make_topics,
    set_of_brokers,
)
from tests.compat.clusters import KEEPS_OLD_RECORDS, ODRADEK, THREE_BROKERS, ours
from tests.compat.kafka_cluster import kafka_cluster

OPTIONS = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
} | KEEPS_OLD_RECORDS
TOGETHER = 20
"""Histories whose topics are made at once."""
ATTEMPTS_MAX = 30
"""Runs to make one history smaller."""
REPLICAS = {1: ([1], [1]), 3: ([1, 2], [2, 3])}


class Difference(NamedTuple):
    """What came after a step of a history that is not the same, and not known."""

    step: int
    where: str
    leaves: list[Leaf]


class Both:
    """The two clusters."""

    def __init__(self, theirs: Brokers, ours: Brokers) -> None:
        self.theirs = theirs
        self.ours = ours
        self._runs = 0
        for brokers in (theirs, ours):
            set_of_brokers(brokers)

    def close(self) -> None:
        self.theirs.close()
        self.ours.close()

    @property
    def broker_count(self) -> int:
        return len(self.ours.nodes)

    @contextmanager
    def worlds(self, count: int) -> Generator[list[tuple[World, World]]]:
        """Theirs and ours, made and filled, for so many histories."""
        first = self._runs
        self._runs += count
        pairs = [
            (World(self.theirs, f"f{run}-0-"), World(self.ours, f"f{run}-0-")) for run in range(first, first + count)
        ]
        for side in (0, 1):
            worlds = [pair[side] for pair in pairs]
            make_topics(worlds, replicas=REPLICAS[self.broker_count])
        for pair in pairs:
            settled(*pair)
            for world in pair:
                world.fill()
        yield pairs
        for side in (0, 1):
            delete_topics([pair[side] for pair in pairs])

    def differences(self, seeds: Sequence[int], steps: int = 0) -> dict[int, Difference]:
        """Of the histories of these seeds: the first difference of each that has one that is not known."""
        with self.worlds(len(seeds)) as pairs:
            found = {
                seed: self.run(pair, history(seed, self.broker_count, steps))
                for seed, pair in zip(seeds, pairs, strict=True)
            }
        return {seed: difference for seed, difference in found.items() if difference is not None}

    def difference(self, steps: Sequence[Step]) -> Difference | None:
        with self.worlds(1) as [pair]:
            return self.run(pair, steps)

    def run(self, pair: tuple[World, World], steps: Sequence[Step]) -> Difference | None:
        """The first difference of a history that is not known."""
        try:
            for number, step in enumerate(steps):
                leaves = answered(pair, step)
                unknown = [leaf for leaf in leaves if reason_for(step, leaf) is None]
                if unknown:
                    return Difference(number, "answer", unknown)
                state = settled(*pair)
                if not state:
                    continue
                # What comes of a known difference is known, too, and there is no more to compare.
                known = leaves or all(reason_for(step, leaf) is not None for leaf in state)
                return None if known else Difference(number, "state", state)
            return None
        finally:
            if any(step.api in ("AlterConfigs", "IncrementalAlterConfigs") for step in steps):
                for brokers in (self.theirs, self.ours):
                    set_of_brokers(brokers)


def answered(pair: tuple[World, World], step: Step) -> list[Leaf]:
    """Where the answers differ. One that only looks is asked again for a while: a broker may not have heard yet."""
    theirs, ours_ = (world.do(step) for world in pair)
    deadline = time.monotonic() + PATIENCE_S / 5
    while theirs != ours_ and is_looking(step) and time.monotonic() < deadline:
        time.sleep(PAUSE_S)
        theirs, ours_ = (world.do(step) for world in pair)
    return list(leaves_of(theirs, ours_))


def is_looking(step: Step) -> bool:
    return step.api.startswith(("Describe", "List", "Metadata", "Offset"))


def settled(theirs: World, ours_: World) -> list[Leaf]:
    """Where the states differ, when they have had the time to become equal."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        states = theirs.state(), ours_.state()
        if states[0] == states[1] and not states[0]["moving"]:
            return []
        if time.monotonic() > deadline:
            return list(leaves_of(*states))
        time.sleep(PAUSE_S)


# -- making smaller ---------------------------------------------------------------------------------------------------
def smaller(steps: list[Step], fails: Callable[[list[Step]], bool]) -> list[Step]:
    """The history without what it does not need to fail."""
    attempts = 0
    tried = True
    while tried:
        tried = False
        for candidate in candidates(steps):
            attempts += 1
            if attempts > ATTEMPTS_MAX:
                return steps
            if fails(candidate):
                steps, tried = candidate, True
                break
    return steps


def candidates(steps: list[Step]) -> Iterator[list[Step]]:
    """The history without a step, or without an item of a list in a request."""
    for number in range(len(steps)):
        if len(steps) > 1:
            yield steps[:number] + steps[number + 1 :]
    for number, step in enumerate(steps):
        for which, items in enumerate(lists_in(step.request)):
            for index in range(len(items)):
                request: Any = copy.deepcopy(step.request)
                del list(lists_in(request))[which][index]
                yield [*steps[:number], replace(step, request=request), *steps[number + 1 :]]


# -- clusters ---------------------------------------------------------------------------------------------------------
@contextmanager
def both(broker_count: int) -> Generator[Both]:
    with ExitStack() as running:
        theirs = running.enter_context(kafka(broker_count))
        directory = Path(running.enter_context(TemporaryDirectory(prefix="admin-fuzz-")))
        kind = ODRADEK if broker_count == 1 else THREE_BROKERS
        mine = running.enter_context(ours(kind, directory, **OPTIONS))
        yield running.enter_context(both_of(theirs, mine.places))


@contextmanager
def both_of(theirs: Mapping[int, Address], mine: Mapping[int, Address]) -> Generator[Both]:
    """Of clusters that run, by the addresses of their brokers."""
    clusters = Both(Brokers(theirs), Brokers(mine))
    yield clusters
    clusters.close()


@contextmanager
def kafka(broker_count: int) -> Generator[Mapping[int, Address]]:
    if broker_count == 1:
        with ApacheKafka(properties=OPTIONS) as one:
            yield {1: (one.host, one.port)}
    else:
        with kafka_cluster(**OPTIONS) as nodes:
            yield {node_id: (node.host, node.port) for node_id, node in nodes.items()}


def end(number: int, frame: object) -> None:
    """So that the clusters are stopped."""
    sys.exit(128 + number)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--brokers", type=int, default=3, choices=sorted(REPLICAS))
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--count", type=int, default=300)
    options.add_argument("--steps", type=int, default=0, help="of each history; 0: two or three")
    options.add_argument("--minutes", type=float, default=9.0)
    given = options.parse_args()
    signal.signal(signal.SIGTERM, end)
    deadline = time.monotonic() + given.minutes * 60
    done = failed = 0
    told: set[object] = set()
    """The kinds that were made smaller already."""
    with both(given.brokers) as clusters:
        seeds = list(range(given.first, given.first + given.count))
        for start in range(0, len(seeds), TOGETHER):
            if time.monotonic() > deadline:
                break
            some = seeds[start : start + TOGETHER]
            found = clusters.differences(some, given.steps)
            done += len(some)
            for seed, difference in found.items():
                failed += 1
                steps = history(seed, given.brokers, given.steps)
                kind = steps[difference.step].api, tuple(leaf.path for leaf in difference.leaves)
                tell(seed, steps, clusters, difference, reduce=kind not in told)
                told.add(kind)
            click.echo(f"{done} histories, {failed} with a difference, up to seed {some[-1]}")
    return 1 if failed else 0


def tell(seed: int, steps: list[Step], clusters: Both, difference: Difference, *, reduce: bool) -> None:
    kind = difference.where, [leaf.path for leaf in difference.leaves]

    def fails(candidate: list[Step]) -> bool:
        again = clusters.difference(candidate)
        return again is not None and (again.where, [leaf.path for leaf in again.leaves]) == kind

    small = steps[: difference.step + 1]
    if reduce:
        small = smaller(small, fails)
        difference = clusters.difference(small) or difference
    click.echo(told_of(seed, small, difference))


def told_of(seed: int, steps: Sequence[Step], difference: Difference) -> str:
    """The history and what came of it, to be read and to be run again."""
    return "\n".join(
        (
            f"\nseed {seed}, {difference.where} after step {difference.step + 1}",
            *(f"  {step}" for step in steps),
            *(f"    {'/'.join(leaf.path)}: theirs {leaf.theirs!r}, ours {leaf.ours!r}" for leaf in difference.leaves),
        )
    )


if __name__ == "__main__":
    sys.exit(main())
