"""The constituents of docs/scale.md: what metadata, etcd, heartbeats, batches and the loss of a broker cost, measured
apart.

Odradek alone. Tables, no figures: nothing is judged here. What they say of a hundred brokers is worked out on paper.
"""

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.figures.table import markdown
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.plan import MEGABYTE
from benchmarks.harness.replicated_topics import controller_of, topics_of
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import cpu_seconds
from benchmarks.load.wire import Wire, delete_topic
from benchmarks.many_topics import PARTITIONS, create_all
from benchmarks.produce import MICROSECONDS
from benchmarks.scale.batch_costs import batch_costs, batch_table
from benchmarks.scale.metadata_costs import MetadataCosts, metadata_costs
from benchmarks.scale.store_costs import WATCHES, WRITERS, StoreCost, store_costs
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest

HEARTBEATS = 5000
LOOK_EVERY_S = 0.05
LOSS_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Loss:
    """A broker was killed that led a third of `partitions`, and had a replica of all."""

    partitions: int
    led: int
    seconds: float
    """Until a survivor says that somebody else leads all of them."""
    controller_cpu_s: float
    etcd_cpu_s: float


def measure_scale(bench: Bench) -> Outcome:
    """Raises KafkaError, OSError, TimeoutError, and what starts and stops raise."""
    plan = bench.plan
    metadata = [metadata_costs(partitions) for partitions in plan.scale_partitions]
    bench.say(f"scale: the metadata of {', '.join(f'{cost.partitions:,}' for cost in metadata)} partitions is measured")
    stores = store_costs(bench.directory / "scale-etcd", plan.scale_commits)
    bench.say(f"scale: {', '.join(f'{cost.name} {cost.per_s:,.0f} commits/s' for cost in stores)}")
    with bench.own_odradek_cluster("scale-cluster") as cluster:
        heartbeat_us = heartbeat_cost(cluster)
        loss = lose_broker(cluster, bench.topic("scale"), plan.scale_lost_partitions)
    bench.say(f"scale: {loss}, {heartbeat_us:.0f} µs a heartbeat")
    with bench.own_odradek_cluster("scale-batches") as cluster:
        batches = batch_table(batch_costs(bench, cluster))
    return Outcome(
        tables=[metadata_table(metadata), store_table(stores, "etcd"), batches, loss_text(loss, heartbeat_us)]
    )


def heartbeat_cost(cluster: Cluster) -> float:
    """CPU time of a broker for one BrokerHeartbeat, in microseconds; it is one of a broker that nobody knows."""
    member = controller_of(cluster)
    heartbeat = BrokerHeartbeatRequest(broker_id=99, broker_epoch=1, current_metadata_offset=1)
    with member.wire() as wire:
        before = cpu_seconds(member.process.pid)
        for _ in range(HEARTBEATS):
            wire.ask(heartbeat, 1)
        return MICROSECONDS * (cpu_seconds(member.process.pid) - before) / HEARTBEATS


def lose_broker(cluster: Cluster, prefix: str, partitions: int) -> Loss:
    """Raises TimeoutError, KafkaError, OSError."""
    names = [f"{prefix}-{number}" for number in range(partitions // PARTITIONS)]
    controller = controller_of(cluster)
    victim = next(member for member in cluster.members.values() if member is not controller)
    with controller.wire() as wire:
        create_all(cluster, wire, names)
        led = leaders_of(wire, names).count(victim.node_id)
        cpu = cpu_seconds(controller.process.pid), sum(map(cpu_seconds, cluster.etcd_pids))
        began = time.perf_counter()
        victim.strike(signal.SIGKILL)
        while victim.node_id in leaders_of(wire, names):
            if time.perf_counter() - began > LOSS_TIMEOUT_S:
                raise TimeoutError(f"broker {victim.node_id} is said to lead after {LOSS_TIMEOUT_S} s")
            time.sleep(LOOK_EVERY_S)  # between two looks, not instead of them
        seconds = time.perf_counter() - began
        after = cpu_seconds(controller.process.pid), sum(map(cpu_seconds, cluster.etcd_pids))
        victim.revive()
        for name in names:
            delete_topic(wire, name)
    return Loss(len(names) * PARTITIONS, led, seconds, after[0] - cpu[0], after[1] - cpu[1])


def leaders_of(wire: Wire, names: Sequence[str]) -> list[int]:
    """Of all partitions of these topics, as a broker knows it. Raises OSError."""
    return [partition.leader_id for topic in topics_of(wire, names) for partition in topic.partitions]


def metadata_table(costs: Sequence[MetadataCosts]) -> str:
    rows = [
        [
            "keys and values in the store, bytes a partition",
            *(f"{each.stored_bytes / each.partitions:,.0f}" for each in costs),
        ],
        ["all of them, MB", *(f"{each.stored_bytes / MEGABYTE:,.1f}" for each in costs)],
        ["image of a broker, bytes a partition", *(f"{each.image_bytes / each.partitions:,.0f}" for each in costs)],
        ["all of it, MB", *(f"{each.image_bytes / MEGABYTE:,.1f}" for each in costs)],
        ["building it at a start, s", *(f"{each.image_s:.2f}" for each in costs)],
        ["applying a commit of 100 partitions, ms", *(f"{1000 * each.change_s:.2f}" for each in costs)],
        ["the controller's look at all partitions, ms", *(f"{1000 * each.look_s:.0f}" for each in costs)],
        ["– when a broker of 100 is lost, ms", *(f"{1000 * each.lost_s:.0f}" for each in costs)],
        ["– partitions that change then", *(f"{each.lost_partitions:,}" for each in costs)],
        ["– in commits", *(f"{each.lost_commits:,}" for each in costs)],
        ["first fetch of a follower, partitions named", *(f"{each.fetch_partitions:,}" for each in costs)],
        ["– bytes", *(f"{each.fetch_bytes:,}" for each in costs)],
        ["– encoding and decoding it, ms", *(f"{1000 * each.fetch_s:.2f}" for each in costs)],
    ]
    head = ["with so many partitions, 100 brokers, three replicas", *(f"{each.partitions:,}" for each in costs)]
    return f"What metadata costs one process:\n\n{markdown(head, rows)}"


def store_table(costs: Sequence[StoreCost], store: str) -> str:
    titles = {
        "single": "one partition each, one writer",
        "together": f"one partition each, {WRITERS} writers",
        "full": "100 partitions each, one writer",
        "watched": f"the same with {WATCHES} watches",
    }
    rows = [[titles[each.name], f"{each.per_s:,.0f}", f"{each.store_ms:.2f}"] for each in costs]
    return f"What commits cost {store}:\n\n{markdown(['commits', 'a second', f'CPU of {store}, ms each'], rows)}"


def loss_text(loss: Loss, heartbeat_us: float) -> str:
    return (
        f"SIGKILL of a broker with {loss.partitions:,} partitions, {loss.led:,} of them led: all led by others after "
        f"{loss.seconds:.2f} s, for {loss.controller_cpu_s:.2f} s of the controller's CPU time and "
        f"{loss.etcd_cpu_s:.2f} s of etcd's.\n\nA heartbeat costs the controller {heartbeat_us:.0f} µs of CPU time."
    )
