"""How long a cluster is without a leader: from a signal to a broker until all partitions it led acknowledge again.

12 partitions with three replicas, led by the three brokers in equal parts. One of them gets SIGKILL or SIGSTOP, and a
producer that never gives up (`failover_probe.py`) writes a record, acks=all, to each partition that it led; the time is
that of the last one. Then the broker is back, all replicas are in sync, their preferred leaders lead, and it begins
anew with the next broker. In the end every acknowledged record has to be where it was acknowledged.

Odradek and Apache Kafka, with its own timeouts and with Odradek's, each have the machine to themselves.
"""

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.failover_probe import Probe
from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster, Member
from benchmarks.harness.replicated_topics import (
    DURABLE,
    PartitionState,
    controller_of,
    replicated_topic,
    restore_leaders,
)
from benchmarks.harness.results import Outcome

PARTITIONS = 12
EQUAL_TIMEOUTS = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "200"}
"""Odradek's defaults; Kafka's are 9 s and 2 s."""


@dataclass(frozen=True, slots=True)
class Strike:
    """What befalls whom. `is_controller` None: the controller and another one in turn."""

    name: str
    title: str
    signal: signal.Signals
    is_controller: bool | None
    median_bar: Bar | None
    longest_bar: Bar
    is_hard: bool = True
    """Whether there are as many of them as `Plan.hard_kills`, rather than `Plan.kills`."""

    def wants_controller(self, number: int) -> bool:
        return number % 2 == 0 if self.is_controller is None else self.is_controller


KILLED = Strike(
    "kill-leader",
    "SIGKILL of a leader until its partitions acknowledge",
    signal.SIGKILL,
    False,
    Bar("≤", 1.0),
    Bar("≤", 2.0),
    is_hard=False,
)
CONTROLLER_KILLED = Strike(
    "kill-controller",
    "SIGKILL of a leader that is controller, too, until its partitions acknowledge",
    signal.SIGKILL,
    True,
    None,
    Bar("≤", 4.0),
)
STOPPED = Strike(
    "stop-leader",
    "SIGSTOP of a leader, controller or not, until its partitions acknowledge",
    signal.SIGSTOP,
    None,
    None,
    Bar("≤", 4.0),
)


def measure_failover(bench: Bench, strike: Strike) -> Outcome:
    """Raises LogDiffers, KafkaError, OSError, TimeoutError, and what starts and stops raise."""
    plan, topic = bench.plan, bench.topic(strike.name)
    with bench.own_odradek_cluster(f"{strike.name}-odradek") as cluster:
        ours = strikes_at(cluster, topic, strike, plan.hard_kills if strike.is_hard else plan.kills, bench.say)
    with bench.own_kafka_cluster(f"{strike.name}-kafka", {}) as cluster:
        theirs = strikes_at(cluster, topic, strike, plan.kafka_kills, bench.say)
    with bench.own_kafka_cluster(f"{strike.name}-kafka-equal", EQUAL_TIMEOUTS) as cluster:
        equal = strikes_at(cluster, topic, strike, plan.kafka_kills, bench.say)
    outcome = Outcome()
    counts = f"{len(ours.values)} and {len(theirs.values)} times"
    outcome.add(
        Statement(f"{strike.title} ({counts})", "s", ours, theirs, strike.median_bar, 3),
        Statement(f"longest for {strike.name}", "s", longest(ours), longest(theirs), strike.longest_bar, 3),
        Statement(f"{strike.name} beside Kafka with equal timeouts", "s", ours, equal, None, 3),
        Statement(f"longest for {strike.name} beside that", "s", longest(ours), longest(equal), None, 3),
    )
    return outcome


def longest(summary: Summary) -> Summary:
    return Summary((max(summary.values),))


def strikes_at(cluster: Cluster, topic: str, strike: Strike, times: int, say: Callable[[str], None]) -> Summary:
    """Seconds of each. Raises LogDiffers, KafkaError, OSError, TimeoutError."""
    seconds: list[float] = []
    with replicated_topic(cluster, topic, PARTITIONS, DURABLE), Probe(topic) as probe:
        for number in range(times):
            states = restore_leaders(cluster, topic, PARTITIONS)
            victim = chosen(cluster, strike.wants_controller(number), number)
            seconds.append(strike_once(cluster.members, victim, states, strike, probe))
            say(f"{strike.name} {number + 1}/{times} {cluster}, broker {victim.node_id}: {seconds[-1]:.3f} s")
        restore_leaders(cluster, topic, PARTITIONS)
        probe.compare(cluster.members, PARTITIONS)
    return Summary(tuple(seconds))


def chosen(cluster: Cluster, wants_controller: bool, number: int) -> Member:
    """The controller, or one of the others in turn. Raises KafkaError, OSError."""
    controller = controller_of(cluster)
    if wants_controller:
        return controller
    others = [member for member in cluster.members.values() if member.node_id != controller.node_id]
    return others[number % len(others)]


def strike_once(
    members: Mapping[int, Member], victim: Member, states: list[PartitionState], strike: Strike, probe: Probe
) -> float:
    """Seconds from the signal to the last acknowledgement; the broker is back then. Raises TimeoutError, OSError."""
    survivors = {node_id: member for node_id, member in members.items() if node_id != victim.node_id}
    led = [partition for partition, state in enumerate(states) if state.leader == victim.node_id]
    assert led, "who leads nothing is not missed"
    for partition in led:
        probe.put(members, partition)
    probe.connect(survivors)
    began = time.perf_counter()
    victim.strike(strike.signal)
    try:
        for partition in led:
            probe.put(survivors, partition)
        return time.perf_counter() - began
    finally:
        if strike.signal is signal.SIGSTOP:
            victim.strike(signal.SIGCONT)
        else:
            victim.revive()
