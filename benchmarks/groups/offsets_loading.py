"""How long a coordinator loads a million offsets: the start of a broker that has them, less that of one without.

Both contenders are stopped cleanly and started again, in turn. What is timed reaches from the start of the process to
the moment when a group of each partition of `__consumer_offsets` has been answered with what it has committed.
"""

import time
from collections.abc import Mapping
from functools import partial
from statistics import median

from benchmarks.figures.figures import Bar, Figure, Summary
from benchmarks.groups.group_servers import commit_when_led, committed, group_servers
from benchmarks.harness.bench import Bench
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.machine import settle_pages
from benchmarks.load.wire import create_topic, repeat_until_answered
from benchmarks.start import start

PARTITIONS = 100
"""Of the topic whose offsets are committed; a request commits them all."""
EMPTY_STARTS = 3
LOOKED_AT = 400
"""So many groups are asked for after a start: some of each of the 50 partitions."""
BAR = Bar("≤", 1.5)


def measure_offsets_loading(bench: Bench) -> Outcome:
    """Raises LogDiffers, KafkaError, OSError, and what starts raise."""
    topic = bench.topic("loaded")
    offsets = {f"group-{number}": number for number in range(bench.plan.loaded_offsets // PARTITIONS)}
    seconds: dict[str, list[float]] = {}
    with group_servers(bench, "offsets-loading") as pair:
        empty: dict[str, float] = {}
        for server in pair:
            prepare(server, topic)
            empty[server.name] = median(start_until_loaded(server, topic, {}) for _ in range(EMPTY_STARTS))
            commit_all(server, topic, offsets)
        for run in range(1, bench.plan.runs + 1):
            for server in pair:
                took = start_until_loaded(server, topic, offsets)
                seconds.setdefault(server.name, []).append(took - empty[server.name])
                bench.say(
                    f"loading {run}/{bench.plan.runs} {server}: {took:.2f} s from the start of the process, "
                    f"{empty[server.name]:.2f} s without offsets"
                )
    ours, theirs = (Summary(tuple(seconds[server.name])) for server in pair)
    outcome = Outcome()
    outcome.add(Figure(f"loading of {len(offsets) * PARTITIONS:,} offsets", "s", ours, theirs, BAR, 2))
    return outcome


def prepare(server: Server, topic: str) -> None:
    """Has the topic, and that of offsets, created. Raises KafkaError, OSError."""
    with server.wire() as wire:
        create_topic(wire, topic, PARTITIONS)
        commit_when_led(wire, "first", topic, {0: 0})


def commit_all(server: Server, topic: str, offsets: Mapping[str, int]) -> None:
    """Every group commits its offset for each partition. Raises KafkaError, OSError."""
    with server.wire() as wire:
        for group, offset in offsets.items():
            commit_when_led(wire, group, topic, dict.fromkeys(range(PARTITIONS), offset))
    settle_pages()


def start_until_loaded(server: Server, topic: str, expected: Mapping[str, int]) -> float:
    """Stops it and starts it again; seconds until all groups that are looked at are answered. Raises LogDiffers."""
    server.stop()
    began = time.perf_counter()
    start(server)
    looked_at = {group: expected[group] for group in list(expected)[:: max(1, len(expected) // LOOKED_AT)]}
    with server.wire() as wire:
        repeat_until_answered(partial(committed, wire, "first", topic, [0]))
        for group, offset in looked_at.items():
            found = repeat_until_answered(partial(committed, wire, group, topic, [0, PARTITIONS - 1]))
            if set(found.values()) != {offset}:
                raise LogDiffers(f"{server}: {group} has {found} after a start, and {offset} was acknowledged")
    return time.perf_counter() - began
