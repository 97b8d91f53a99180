"""A follower that stops leaves the in-sync set; acks=all goes on with two, is refused with one, and resumes."""

from pathlib import Path
from random import Random
from typing import Final, Literal

import pytest
from confluent_kafka import KafkaError, Message, Producer

from odradek.testing.sim.checking.history import Acknowledged, Failed, Sent
from odradek.testing.sim.checking.numbered import encoded
from processes.child_process import ChildProcess
from tests.cluster.client_session import ACKS_ALL, now_ms
from tests.cluster.clients import VALUES_EACH
from tests.cluster.real_cluster import ASSIGNMENTS, TOPIC, RealCluster, plain_cluster
from tests.cluster.rounds import ROUNDS, Story, not_when_short

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180 + 90 * ROUNDS)]

LAG_MS: Final = 2_000
PROBE: Final = "probe"
PROBE_TIMEOUT_S: Final = 20.0
FIRST_VALUE: Final = 100 * VALUES_EACH
LEADER_1: Final = ([1, 2, 3],) * len(ASSIGNMENTS)
OPTIONS: Final = ("--set", f"replica.lag.time.max.ms={LAG_MS}")
PATIENT: Final = ("--set", "broker.session.timeout.ms=120000", "--set", "metadata.lease.ms=120000")
"""So that nobody but the leader misses a follower that stands still."""

How = Literal["SIGSTOP", "SIGKILL"]


@not_when_short
@pytest.mark.parametrize("how", ["SIGSTOP", "SIGKILL"])
def test_with_two_it_goes_on_and_with_one_it_waits(how: How, tmp_path: Path) -> None:
    options = (*OPTIONS, *PATIENT) if how == "SIGSTOP" else OPTIONS
    what = f"two followers stop one after the other, {how}"
    with plain_cluster(tmp_path, *options, assignments=LEADER_1) as cluster, Story(what, cluster) as story:

        def stops(cluster: RealCluster, rng: Random) -> None:
            cluster.wait_until(lambda: cluster.leaders() == [1] * len(ASSIGNMENTS))
            order = [2, 3]
            rng.shuffle(order)
            first, second = (cluster.brokers[number - 1] for number in order)
            from_ms = now_ms()
            _stop(cluster, first, how)
            _wait_for_isr(cluster, sorted({1, order[1]}))
            if how == "SIGSTOP":
                assert now_ms() - from_ms > LAG_MS * 0.9, "it was given the time that it is allowed"
            story.clients.wait_for_progress(50)
            assert probe(cluster) is None

            _stop(cluster, second, how)
            _wait_for_isr(cluster, [1])
            assert probe(cluster) == "NOT_ENOUGH_REPLICAS"
            assert cluster.in_sync() == [[1]] * len(ASSIGNMENTS), "and so it stays"

            for broker in (first, second):
                _go_on(cluster, broker, how)

        story.rounds(what, stops)


def probe(cluster: RealCluster) -> str | None:
    """The error of one record with acks=all that is sent once; None if it is acknowledged. The history has it, too, and
    what is refused must never be read."""
    value = FIRST_VALUE + len(cluster.notes)
    told: list[Acknowledged | Failed] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            name = error.name() if error is not None else "no offset"
            told.append(Failed(now_ms(), value, name, is_definite=name == "NOT_ENOUGH_REPLICAS"))
        else:
            told.append(Acknowledged(now_ms(), value, TOPIC, partition, offset))

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "retries": 0, "log_level": 3})
    cluster.notes.append(Sent(now_ms(), PROBE, PROBE, value, TOPIC, 0, ACKS_ALL))
    producer.produce(TOPIC, encoded(value), partition=0, on_delivery=delivered)
    assert producer.flush(PROBE_TIMEOUT_S) == 0
    [answer] = told
    cluster.notes.append(answer)
    return answer.error if isinstance(answer, Failed) else None


def _wait_for_isr(cluster: RealCluster, expected: list[int]) -> None:
    """Of all partitions, as their leader says."""
    cluster.wait_until(lambda: cluster.in_sync() == [expected] * len(ASSIGNMENTS))


def _stop(cluster: RealCluster, broker: ChildProcess, how: How) -> None:
    if how == "SIGSTOP":
        cluster.happened("pause", broker.name)
        broker.pause()
    else:
        cluster.happened("process crash", broker.name)
        broker.kill()


def _go_on(cluster: RealCluster, broker: ChildProcess, how: How) -> None:
    if how == "SIGSTOP":
        cluster.happened("continue", broker.name)
        broker.resume()
    else:
        cluster.happened("start", broker.name)
        broker.start()
