"""What groups cost that do nothing: 10,000 of them without members, with three offsets each.

The broker's resident memory is read before they are there and afterwards, and then what it uses of a core for as long
as nobody asks for anything.
"""

import time

from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.groups.group_servers import commit_when_led
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import MEGABYTE
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.machine import cpu_seconds
from benchmarks.idle_connections import settled
from benchmarks.load.wire import create_topic

PARTITIONS = 3
FIRST = 64
"""So many groups are there before memory is read: with them come the topic of offsets, and what is imported late."""
MEMORY_BAR = Bar("≤", 20.0)
CPU_BAR = Bar("≤", 1.0)


def measure_idle_groups(bench: Bench) -> Outcome:
    """Raises KafkaError, OSError."""
    count = bench.plan.idle_groups
    with bench.own_odradek("idle-groups") as server:
        megabytes, percent = idle_with(server, bench.topic("idle"), count, bench.plan.idle_groups_s)
    bench.say(f"{count:,} idle groups: {megabytes:.1f} MB, {percent:.2f} % of a core")
    outcome = Outcome()
    what = f"{count:,} idle groups without members, three offsets each"
    outcome.add(
        Statement(f"memory of {what}", "MB", Summary((megabytes,)), None, MEMORY_BAR, 1),
        Statement(f"processor with {what}", "% of a core", Summary((percent,)), None, CPU_BAR, 2),
    )
    return outcome


def idle_with(server: Server, topic: str, count: int, seconds: float) -> tuple[float, float]:
    """Megabytes that `count` groups take, and percent of a core over so many seconds. Raises KafkaError, OSError."""
    pid = server.process.pid
    with server.wire() as wire:
        create_topic(wire, topic, PARTITIONS)
        for number in range(FIRST):
            commit_when_led(wire, f"first-{number}", topic, dict.fromkeys(range(PARTITIONS), 1))
        before_bytes = settled(pid)
        for number in range(count):
            commit_when_led(wire, f"group-{number}", topic, dict.fromkeys(range(PARTITIONS), number))
        megabytes = (settled(pid) - before_bytes) / MEGABYTE
    cpu_before, began = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)  # idle, as measured
    return megabytes, 100 * (cpu_seconds(pid) - cpu_before) / (time.monotonic() - began)
