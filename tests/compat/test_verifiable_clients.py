"""Kafka's VerifiableProducer and VerifiableConsumer on three brokers, each of which is killed once.

The static members of a group, of either protocol, read every record that was acknowledged. A member that is killed
returns without a rebalance; one of KIP-848 is stopped instead.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from kafka.admin import KafkaAdminClient

from tests.compat.brokers_on_etcd import NODE_IDS, brokers_on_etcd
from tests.compat.verifiable import VerifiableConsumer, VerifiableProducer

pytestmark = [
    pytest.mark.compat,
    pytest.mark.three_brokers,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

TOPIC: Final = "verified"
PARTITIONS: Final = 6
INSTANCES: Final = ("one", "two")
RECORDS_A_STEP: Final = 300
THROUGHPUT: Final = 200
"""Records a second: the tools are to be looked at, not to be timed."""
PATIENCE_S: Final = 60.0
COOPERATIVE: Final = ("--assignment-strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor")


def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"no {what} after {PATIENCE_S} s"
        time.sleep(0.1)  # between two looks


def total(offsets: dict[int, set[int]]) -> int:
    return sum(map(len, offsets.values()))


def read_by(consumers: list[VerifiableConsumer]) -> dict[int, set[int]]:
    """By partition: the offsets that any of them has read."""
    found: dict[int, set[int]] = {}
    for consumer in consumers:
        for index, ranges in consumer.consumed.items():
            found.setdefault(index, set()).update(offset for each in ranges for offset in each)
    return found


def nothing_skipped(consumer: VerifiableConsumer) -> None:
    """What a member reads of a partition goes on where it was, or further back: never further on."""
    for index, ranges in consumer.consumed.items():
        last = ranges[0].stop
        for each in ranges[1:]:
            assert each.start <= last, f"partition {index}: {each} after {last}"
            last = max(last, each.stop)


@pytest.mark.parametrize(
    ("protocol", "words"),
    [("classic", ()), ("classic", COOPERATIVE), ("consumer", ())],
    ids=["classic", "cooperative", "848"],
)
def test_nothing_is_missed_while_brokers_die(tmp_path: Path, protocol: str, words: tuple[str, ...]) -> None:
    with brokers_on_etcd(tmp_path / "brokers") as brokers, ExitStack() as stack:
        bootstrap = ",".join(broker.bootstrap for broker in brokers.values())
        with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
            admin.create_topics({TOPIC: {"num_partitions": PARTITIONS, "replication_factor": 3}})
        start = partial(VerifiableConsumer, bootstrap, TOPIC, tmp_path / "clients", "readers", protocol)
        producer = stack.enter_context(VerifiableProducer(bootstrap, TOPIC, tmp_path / "clients", THROUGHPUT))
        one, two = (stack.enter_context(start(instance, *words)) for instance in INSTANCES)
        consumers = [one, two]

        def progress() -> None:
            """The producer's next records are acknowledged, and all of them are read."""
            wanted = total(producer.acknowledged) + RECORDS_A_STEP
            until(lambda: total(producer.acknowledged) >= wanted, "acknowledgements")
            acknowledged = producer.acknowledged
            until(lambda: covers(read_by(consumers), acknowledged), "records")

        until(
            lambda: one.assigned | two.assigned == set(range(PARTITIONS)) and bool(one.assigned and two.assigned),
            "balance",
        )
        progress()
        for node_id in NODE_IDS:
            brokers[node_id].kill()
            progress()
            brokers[node_id].start()
            until(lambda: len(in_sync(bootstrap)) == len(NODE_IDS), "replicas in sync")
        # Java's consumer says once that it goes: one that has lost its coordinator says it to nobody.
        commits = [consumer.commits for consumer in consumers]
        until(lambda: all(each.commits > before for each, before in zip(consumers, commits, strict=True)), "commits")
        revocations, owned = one.revocations, two.assigned
        if protocol == "consumer":
            two.stop()  # for one that did not say that it goes is waited for (UNRELEASED_INSTANCE_ID)
        else:
            two.kill()
        returned = stack.enter_context(start(INSTANCES[1], *words))
        consumers.append(returned)
        until(lambda: returned.assigned == owned, "partitions of the member that was killed")
        progress()
        assert one.revocations == revocations
        producer.stop()
        acknowledged = producer.acknowledged
        until(lambda: covers(read_by(consumers), acknowledged), "records")
        for consumer in consumers:
            nothing_skipped(consumer)


def are_balanced(one: VerifiableConsumer, two: VerifiableConsumer) -> bool:
    owned = one.assigned, two.assigned
    return all(owned) and owned[0] | owned[1] == set(range(PARTITIONS)) and not owned[0] & owned[1]


def covers(read: dict[int, set[int]], acknowledged: dict[int, set[int]]) -> bool:
    return all(offsets <= read.get(index, set()) for index, offsets in acknowledged.items())


def in_sync(bootstrap: str) -> set[int]:
    """The brokers that hold all of the topic's partitions in sync."""
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        [topic] = admin.describe_topics([TOPIC])
    found: set[int] = set(NODE_IDS)
    for each in topic["partitions"]:
        found &= set(each["isr_nodes"])
    return found
