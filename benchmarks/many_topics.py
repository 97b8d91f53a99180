"""A thousand topics of three partitions with three replicas: how long they take to be there, and what they cost idle.

The clock runs from the first CreateTopics, of 50 topics each, until every broker says that all partitions have a leader
and all replicas in sync. After some seconds of rest the CPU time of all processes over a minute without a request is
taken, and their memory. Odradek and Apache Kafka each have the machine to themselves, and are started anew for each
run.
"""

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass

from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.plan import MEGABYTE, Plan
from benchmarks.harness.replicated_topics import LOOK_EVERY_S, REPLICAS, state_of, topics_of
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import cpu_seconds, resident_bytes
from benchmarks.load.wire import Wire, check
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.metadata import MetadataResponseTopic

PARTITIONS = 3
TOPICS_A_REQUEST = 50
CREATE_TIMEOUT_MS = 120_000
READY_TIMEOUT_S = 600.0
REST_S = 5.0
IDLE_BAR = Bar("≤", 5.0)


@dataclass(frozen=True, slots=True)
class ManyTopics:
    """What one run measured."""

    seconds: float
    """Until all was there."""
    brokers_percent: float
    """Of one core, idle, all brokers together."""
    etcd_percent: float
    megabytes: float
    """RSS of all processes."""

    @property
    def percent(self) -> float:
        return self.brokers_percent + self.etcd_percent

    def __str__(self) -> str:
        return (
            f"{self.seconds:.1f} s, then idle {self.brokers_percent:.1f} % of a core and etcd {self.etcd_percent:.1f} "
            f"%, {self.megabytes:,.0f} MB"
        )


def measure_many_topics(bench: Bench) -> Outcome:
    """Raises KafkaError, OSError, TimeoutError, and what starts and stops raise."""
    plan = bench.plan
    ours, theirs = list[ManyTopics](), list[ManyTopics]()
    for number in range(1, plan.many_topics_runs + 1):
        clusters: tuple[AbstractContextManager[Cluster], AbstractContextManager[Cluster]] = (
            bench.own_odradek_cluster(f"many-odradek-{number}"),
            bench.own_kafka_cluster(f"many-kafka-{number}", {}),
        )
        for opened, done in zip(clusters, (ours, theirs), strict=True):
            with opened as cluster:
                done.append(run_many_topics(cluster, plan))
                bench.say(f"many-topics {number}/{plan.many_topics_runs} {cluster}: {done[-1]}")
    size = f"{plan.many_topics:,} topics × {PARTITIONS} partitions × RF {REPLICAS}"
    outcome = Outcome()
    outcome.add(
        _statement(f"{size}: created, led and in sync", "s", ours, theirs, "seconds", 1),
        _statement(f"idle CPU with {size}, all processes", "% of a core", ours, theirs, "percent", 1, IDLE_BAR),
        _statement("of it etcd", "% of a core", ours, theirs, "etcd_percent", 1),
        _statement(f"memory (RSS) with {size}, all processes", "MB", ours, theirs, "megabytes", 0),
    )
    return outcome


def _statement(
    name: str,
    unit: str,
    ours: list[ManyTopics],
    theirs: list[ManyTopics],
    quantity: str,
    digits: int,
    bar: Bar | None = None,
) -> Statement:
    mine, other = (Summary(tuple(getattr(run, quantity) for run in runs)) for runs in (ours, theirs))
    return Statement(name, unit, mine, other, bar, digits)


def run_many_topics(cluster: Cluster, plan: Plan) -> ManyTopics:
    """Raises KafkaError, OSError, TimeoutError."""
    names = [f"many-{number}" for number in range(plan.many_topics)]
    began = time.perf_counter()
    with next(iter(cluster.members.values())).wire() as wire:
        create_all(cluster, wire, names)
    seconds = time.perf_counter() - began
    time.sleep(REST_S)  # what creation has left to do is done then
    before, started = _cpu(cluster), time.monotonic()
    time.sleep(plan.many_topics_idle_s)  # the measurement itself
    idle_s = time.monotonic() - started
    brokers, etcd = (100 * (now - then) / idle_s for now, then in zip(_cpu(cluster), before, strict=True))
    return ManyTopics(seconds, brokers, etcd, sum(map(resident_bytes, cluster.pids)) / MEGABYTE)


def _cpu(cluster: Cluster) -> tuple[float, float]:
    return sum(map(cpu_seconds, cluster.broker_pids)), sum(map(cpu_seconds, cluster.etcd_pids))


def create_all(cluster: Cluster, wire: Wire, names: list[str]) -> None:
    """Creates them; returns when every broker says that they are full. Raises KafkaError, OSError, TimeoutError."""
    for first in range(0, len(names), TOPICS_A_REQUEST):
        create(wire, names[first : first + TOPICS_A_REQUEST])
    for member in cluster.members.values():
        with member.wire() as other:
            wait_until_full(other, names)


def create(wire: Wire, names: list[str]) -> None:
    """Raises KafkaError, OSError."""
    topics = [
        CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=REPLICAS, assignments=[], configs=[])
        for name in names
    ]
    for created in wire.ask(CreateTopicsRequest(topics=topics, timeout_ms=CREATE_TIMEOUT_MS), 5).topics:
        check(created.error_code, created.error_message)


def wait_until_full(wire: Wire, names: list[str]) -> None:
    """Returns when the broker says that every partition has a leader and all its replicas in sync. Raises
    TimeoutError, OSError."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    left = names
    while left := [topic.name or "" for topic in topics_of(wire, left) if not is_full(topic)]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(left)} topics are not in sync after {READY_TIMEOUT_S} s, among them {left[0]}")
        time.sleep(LOOK_EVERY_S)  # between two looks, not instead of them


def is_full(topic: MetadataResponseTopic) -> bool:
    """Whether the topic is there, and each of its partitions has a leader and all its replicas in sync."""
    return (
        topic.error_code == 0
        and len(topic.partitions) == PARTITIONS
        and all(state_of(partition).is_full for partition in topic.partitions)
    )
