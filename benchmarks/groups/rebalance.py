"""A rebalance: 50 members join at once, by raw protocol; from the first question until the group is stable.

Both brokers begin a rebalance without delay, and members send heartbeats at once, so that what is measured is the
coordinator's work: joins, syncs, assignments, and their way into the log and back.
"""

from functools import partial

from benchmarks.figures.figures import Bar
from benchmarks.groups.group_servers import commit_when_led, group_servers
from benchmarks.groups.rebalance_load import RebalanceLoad, run_rebalance
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.work import Watch
from benchmarks.load.wire import create_topic

MEMBERS = 50
PARTITIONS = 100
BAR = Bar("≤", 0.5)
PROTOCOLS = (("classic", "classic"), ("consumer", "KIP-848"))


def measure_rebalance(bench: Bench) -> Outcome:
    """Raises LoadFailed, KafkaError, OSError."""
    outcome = Outcome()
    with group_servers(bench, "rebalance") as pair:
        topic = bench.topic("rebalance")
        for server in pair:
            with server.wire() as wire:
                create_topic(wire, topic, PARTITIONS)
                commit_when_led(wire, "first", topic, {0: 0})
        for protocol, title in PROTOCOLS:
            runs = bench.contest.hold(f"rebalance-{protocol}", partial(rebalance_once, bench, protocol, topic), *pair)
            name = f"{MEMBERS} members, {title}: join to stable"
            outcome.add(runs.figure("seconds", name, "s", BAR, digits=3))
            outcome.notes += runs.notes
            outcome.is_disturbed = outcome.is_disturbed or runs.is_disturbed
    return outcome


def rebalance_once(bench: Bench, protocol: str, topic: str, server: Server) -> Run:
    """A new group's. Raises LoadFailed."""
    load = RebalanceLoad(protocol, bench.topic("group"), topic, MEMBERS, PARTITIONS)
    with Watch(server.process.pid) as watch:
        seconds = run_rebalance(server.address, load)
    return Run(seconds, seconds, {"seconds": seconds}, f"{1000 * seconds:.0f} ms", watch.work.other_cores)
