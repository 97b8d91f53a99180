"""What empty partitions cost: memory, descriptors, and the time of a start, at 1,000, 5,000 and 10,000 of them.

Linear is what costs as much for each partition from 5,000 to 10,000 as from 1,000 to 5,000.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.figures.table import markdown
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import MEGABYTE
from benchmarks.harness.results import Outcome, Unavailable
from benchmarks.harness.servers import Server
from benchmarks.host.machine import descriptor_count, resident_bytes
from benchmarks.load.wire import create_topic, offsets_once_led
from benchmarks.start import start
from odradek.protocol.errors import KafkaError

PARTITIONS_PER_TOPIC = 500
BAR = Bar("≤", 1.25)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a broker with so many partitions takes, each the median of its starts."""

    partitions: int
    megabytes: Summary
    descriptors: Summary
    start_s: Summary


def measure_empty_partitions(bench: Bench) -> Outcome:
    """Raises Unavailable where the broker refuses so many, LogDiffers, OSError."""
    costs: list[Cost] = []
    with bench.own_odradek("empty") as server:
        topics: dict[str, int] = {}
        for partitions in bench.plan.empty_partitions:
            create_until(server, topics, partitions)
            costs.append(cost_of(bench, server, topics))
    outcome = Outcome(tables=["Empty partitions of Odradek:", table(costs)])
    first, second, third = bench.plan.empty_partitions
    range_text = f"a partition from {second:,} to {third:,}, by one from {first:,} to {second:,}"
    for what, bar, summaries in (
        ("memory", BAR, [cost.megabytes for cost in costs]),
        ("descriptors", None, [cost.descriptors for cost in costs]),
        ("start time", BAR, [cost.start_s for cost in costs]),
    ):
        outcome.add(Statement(f"{what} of {range_text}", "", growth(costs, summaries), None, bar, 2))
    return outcome


def growth(costs: Sequence[Cost], summaries: Sequence[Summary]) -> Summary:
    """How much more the last partitions take, each, than those before; 0 where they take nothing."""
    medians = [summary.median for summary in summaries]
    before, last = (
        (medians[step] - medians[step - 1]) / (costs[step].partitions - costs[step - 1].partitions) for step in (1, 2)
    )
    return Summary((0.0 if last <= 0 else last / before if before > 0 else inf,))


def create_until(server: Server, topics: dict[str, int], partitions: int) -> None:
    """Creates topics until there are so many partitions."""
    with server.wire() as wire:
        while (missing := partitions - sum(topics.values())) > 0:
            name = f"empty-{len(topics)}"
            count = min(PARTITIONS_PER_TOPIC, missing)
            try:
                create_topic(wire, name, count)
            except KafkaError as error:
                raise Unavailable(f"{server} refuses partition {partitions - missing}: {error}") from error
            topics[name] = count


def cost_of(bench: Bench, server: Server, topics: dict[str, int]) -> Cost:
    megabytes: list[float] = []
    descriptors: list[float] = []
    seconds: list[float] = []
    for _ in range(bench.plan.runs):
        server.stop()
        began = time.perf_counter()
        start(server)
        with server.wire() as wire:
            for name, count in topics.items():
                offsets_once_led(wire, name, count)
            seconds.append(time.perf_counter() - began)
        time.sleep(bench.plan.idle_s)  # idle, as measured
        megabytes.append(resident_bytes(server.process.pid) / MEGABYTE)
        descriptors.append(descriptor_count(server.process.pid))
    partitions = sum(topics.values())
    cost = Cost(partitions, *(Summary(tuple(values)) for values in (megabytes, descriptors, seconds)))
    bench.say(f"{partitions:,} empty partitions: {', '.join(cells(cost)[1:])}")
    return cost


def cells(cost: Cost) -> list[str]:
    return [
        f"{cost.partitions:,}",
        f"{cost.megabytes.median:,.0f} MB",
        f"{cost.descriptors.median:,.0f} descriptors",
        f"{cost.start_s.median:.2f} s",
    ]


def table(costs: Sequence[Cost]) -> str:
    return markdown(["partitions", "memory (RSS)", "open files", "start"], [cells(cost) for cost in costs])
