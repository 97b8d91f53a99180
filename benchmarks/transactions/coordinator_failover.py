"""How long a transactional id is held up when its coordinator gets SIGKILL: from the signal until it commits again.

Three brokers, `__transaction_state` with three replicas. A producer that never gives up has a transaction open at the
signal: it commits that one, and then begins, writes and commits another one; both count. Where the broker led the
partition that is written to, that is part of it. Then the broker is back, all replicas are in sync, their preferred
leaders lead, and it begins anew with an id of the next broker. What was committed has to be there in the end.
"""

import signal
import time
from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.failover import EQUAL_TIMEOUTS
from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import Cluster, Member
from benchmarks.harness.coordinators import KeyType, name_coordinated_by
from benchmarks.harness.replicated_topics import restore_leaders
from benchmarks.harness.results import Outcome
from benchmarks.transactions.transaction_topic import require_committed, transaction_topic
from benchmarks.transactions.transactor import Transactor

BAR: Final = Bar("≤", 1.0)


def measure_transaction_failover(bench: Bench) -> Outcome:
    """Raises LogDiffers, KafkaError, OSError, TimeoutError, and what starts and stops raise."""
    plan, topic = bench.plan, bench.topic("failover-of-transactions")
    with bench.own_odradek_cluster("transactions-odradek") as cluster:
        ours = kills_at(cluster, topic, plan.coordinator_kills, bench.say)
    with bench.own_kafka_cluster("transactions-kafka", {}) as cluster:
        theirs = kills_at(cluster, topic, plan.kafka_kills, bench.say)
    with bench.own_kafka_cluster("transactions-kafka-equal", EQUAL_TIMEOUTS) as cluster:
        equal = kills_at(cluster, topic, plan.kafka_kills, bench.say)
    outcome = Outcome()
    title = f"SIGKILL of a coordinator until its id commits again ({plan.coordinator_kills} times)"
    outcome.add(
        Statement(title, "s", ours, theirs, BAR, 3),
        Statement("the same beside Kafka with equal timeouts", "s", ours, equal, None, 3),
    )
    return outcome


def kills_at(cluster: Cluster, topic: str, times: int, say: Callable[[str], None]) -> Summary:
    """Seconds of each. Raises LogDiffers, KafkaError, OSError, TimeoutError."""
    seconds: list[float] = []
    count = len(cluster.members)
    with transaction_topic(cluster, topic, count) as places:
        committed = 0
        for number in range(times):
            restore_leaders(cluster, topic, count)
            victim = list(cluster.members.values())[number % count]
            transactional_id = name_coordinated_by(cluster, victim, KeyType.TRANSACTION, f"id-{number}")
            with Transactor(topic, number // count % count, transactional_id) as transactor:
                seconds.append(kill_once(cluster.members, victim, transactor))
                committed += transactor.committed
            say(f"coordinator {number + 1}/{times} {cluster}, broker {victim.node_id}: {seconds[-1]:.3f} s")
        restore_leaders(cluster, topic, count)
        require_committed(places, topic, committed)
    return Summary(tuple(seconds))


def kill_once(members: Mapping[int, Member], victim: Member, transactor: Transactor) -> float:
    """Seconds from the signal until two transactions are committed; the broker is back then. Raises TimeoutError."""
    transactor.initialize(members)
    transactor.write(members)
    survivors = {node_id: member for node_id, member in members.items() if node_id != victim.node_id}
    transactor.connect(survivors)
    began = time.perf_counter()
    victim.strike(signal.SIGKILL)
    try:
        transactor.commit(survivors)
        transactor.write(survivors)
        transactor.commit(survivors)
        return time.perf_counter() - began
    finally:
        victim.revive()
