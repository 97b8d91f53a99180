"""`odradek cluster run --processes` under load of kafka-python and librdkafka, idempotent and with acks=all, while its
processes are killed, stopped and restarted: nothing acknowledged is lost, nothing is doubled, no send fails.

What clients were told is judged as the histories of clusters are. `SUPERVISED_ROUNDS` sets how often each thing happens
(2), `SUPERVISED_SEED` repeats a run.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from odradek.testing.sim.checking.checker import check
from odradek.testing.sim.checking.expectations import Rules, TopicRules
from processes.cluster_processes import Processes
from processes.supervised_cluster import SupervisedCluster, children_of, until_gone
from tests.cluster.clients import Clients
from tests.cluster.rounds import everything, history_of

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.timeout(600)]

ROUNDS = int(os.environ.get("SUPERVISED_ROUNDS", "2"))
SEED = int(os.environ.get("SUPERVISED_SEED", "0")) or random.randrange(1, 2**31)
TOPIC = "ledger"
PARTITIONS = 4
PROGRESS = 100
LEASE_S = 2.0
"""`metadata.lease.ms`"""


class Loaded:
    """A cluster with clients that write to it all the time."""

    def __init__(self, cluster: SupervisedCluster, clients: Clients) -> None:
        self.cluster = cluster
        self.clients = clients
        self.rng = random.Random(SEED)

    def goes_on(self, count: int = PROGRESS) -> None:
        """Every producer has so many acknowledgements more, and none has failed."""
        self.clients.wait_for_progress(count)


@contextmanager
def loaded(directory: Path, brokers: int, replicas: int) -> Generator[Loaded]:
    """Checks in the end what its clients were told."""
    print(f"seed {SEED} (the same again: SUPERVISED_SEED={SEED})")  # noqa: T201 - for the report
    with Processes(directory) as processes:
        cluster = processes.add(
            SupervisedCluster(
                directory / "data",
                *("--set", f"default.replication.factor={replicas}", "--log-level", "info"),
                brokers=brokers,
                log_file=processes.log_file("supervisor"),
                dies_with_us=True,
            )
        )
        cluster.start()
        with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, replicas)])
        clients = Clients(processes, cluster.bootstrap, TOPIC, PARTITIONS, kinds=("kafka-python", "librdkafka"))
        clients.start()
        both = Loaded(cluster, clients)
        both.goes_on()
        yield both
        both.goes_on()
        clients.stop()
        clients.look()
        assert clients.failures() == []
        rules = Rules(default=TopicRules(min_insync_replicas=1, has_one_replica=replicas == 1))
        check(history_of(clients, [], everything(cluster.bootstrap, TOPIC, [0] * PARTITIONS)), rules=rules).check()


def a_broker_is_killed(both: Loaded) -> None:
    node_id = both.rng.randrange(both.cluster.brokers) + 1
    pid = both.cluster.kill_broker(node_id)
    both.cluster.broker_pid(node_id, other_than=pid)


def the_supervisor_is_killed(both: Loaded) -> None:
    orphans = [pid for pid, _ in children_of(both.cluster.pid)]
    both.cluster.kill()
    both.cluster.start()
    until_gone(orphans)


def all_are_killed_at_once(both: Loaded) -> None:
    pids = [pid for pid, _ in children_of(both.cluster.pid)]
    both.cluster.pause()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    both.cluster.kill()
    until_gone(pids)
    both.cluster.start()


def all_stop_and_start(both: Loaded) -> None:
    both.cluster.restart()


@pytest.mark.parametrize(
    "happens", [a_broker_is_killed, the_supervisor_is_killed, all_are_killed_at_once, all_stop_and_start]
)
def test_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path, happens: Callable[[Loaded], None]) -> None:
    with loaded(tmp_path, brokers=2, replicas=1) as both:
        for _ in range(ROUNDS):
            happens(both)
            both.goes_on()


def test_a_supervisor_that_stands_still_past_the_lease_costs_no_lease(tmp_path: Path) -> None:
    with loaded(tmp_path, brokers=2, replicas=1) as both:
        cluster = both.cluster
        before = cluster.pids()
        cluster.pause()
        began_s = time.monotonic()
        while time.monotonic() - began_s < 2 * LEASE_S:
            both.goes_on(20)  # acks=all needs no store
        cluster.resume()
        both.goes_on()
        assert cluster.pids() == before, "nobody was restarted"
        assert "this process has stood still" in cluster.output
        assert "was not heard of in time" not in cluster.output
        assert "has not renewed its lease in time" not in cluster.output


def test_a_roll_with_two_replicas_fails_no_send(tmp_path: Path) -> None:
    with loaded(tmp_path, brokers=2, replicas=2) as both:
        before = both.cluster.pids()
        rolled = both.cluster.roll()
        assert rolled.returncode == 0, rolled.stderr
        lines = rolled.stdout.splitlines()
        assert [line.rpartition(" in ")[0] for line in lines[:2]] == [
            "broker 1 was restarted",
            "broker 2 was restarted",
        ]
        assert lines[2] == "all 2 brokers were restarted, and all replicas are in sync"
        after = both.cluster.pids()
        assert not set(before.values()) & set(after.values())
        assert "death" not in both.cluster.output
        assert "is started again" not in both.cluster.output
