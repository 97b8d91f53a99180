"""How long a group's commits stop when its coordinator gets SIGKILL: from the signal to the next acknowledged commit.

Three brokers, `__consumer_offsets` with three replicas. A committer that never gives up finds the coordinator and
commits the next offset, and pauses for two milliseconds after an error. Then the broker is back, all replicas are in
sync, their preferred leaders lead, and it begins anew with a group of the next broker. What was acknowledged last has
to be committed in the end.
"""

import signal
import time
from collections.abc import Callable, Mapping

from benchmarks.failover import EQUAL_TIMEOUTS
from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.groups.committer import Committer
from benchmarks.groups.group_servers import KAFKA_DEFAULTS
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster, Member
from benchmarks.harness.coordinators import KeyType, name_coordinated_by
from benchmarks.harness.replicated_topics import DURABLE, replicated_topic
from benchmarks.harness.results import Outcome

BAR = Bar("≤", 1.0)


def measure_coordinator_failover(bench: Bench) -> Outcome:
    """Raises LogDiffers, KafkaError, OSError, TimeoutError, and what starts and stops raise."""
    plan, topic = bench.plan, bench.topic("failover-of-groups")
    with bench.own_odradek_cluster("coordinator-odradek") as cluster:
        ours = kills_at(cluster, topic, plan.coordinator_kills, bench.say)
    with bench.own_kafka_cluster("coordinator-kafka", KAFKA_DEFAULTS) as cluster:
        theirs = kills_at(cluster, topic, plan.kafka_kills, bench.say)
    with bench.own_kafka_cluster("coordinator-kafka-equal", {**KAFKA_DEFAULTS, **EQUAL_TIMEOUTS}) as cluster:
        equal = kills_at(cluster, topic, plan.kafka_kills, bench.say)
    outcome = Outcome()
    title = f"SIGKILL of a coordinator until a commit is acknowledged ({plan.coordinator_kills} times)"
    outcome.add(
        Statement(title, "s", ours, theirs, BAR, 3),
        Statement("the same beside Kafka with equal timeouts", "s", ours, equal, None, 3),
    )
    return outcome


def kills_at(cluster: Cluster, topic: str, times: int, say: Callable[[str], None]) -> Summary:
    """Seconds of each. Raises LogDiffers, KafkaError, OSError, TimeoutError."""
    seconds: list[float] = []
    with replicated_topic(cluster, topic, len(cluster.members), DURABLE):
        for number in range(times):
            victim = list(cluster.members.values())[number % len(cluster.members)]
            with Committer(topic, name_coordinated_by(cluster, victim, KeyType.GROUP, f"group-{number}")) as committer:
                seconds.append(kill_once(cluster.members, victim, committer))
            say(f"coordinator {number + 1}/{times} {cluster}, broker {victim.node_id}: {seconds[-1]:.3f} s")
    return Summary(tuple(seconds))


def kill_once(members: Mapping[int, Member], victim: Member, committer: Committer) -> float:
    """Seconds from the signal to the next acknowledged commit; the broker is back then. Raises LogDiffers."""
    committer.commit(members)
    survivors = {node_id: member for node_id, member in members.items() if node_id != victim.node_id}
    committer.connect(survivors)
    began = time.perf_counter()
    victim.strike(signal.SIGKILL)
    try:
        committer.commit(survivors)
        took = time.perf_counter() - began
        committer.compare(survivors)
        return took
    finally:
        victim.revive()
