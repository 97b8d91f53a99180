"""Groups of kafka-python, aiokafka and confluent-kafka, of both protocols, on one broker and three.

Members come and go, the broker restarts, static members return, and clients share a group with ours: every record is
read, and the ends are committed.
"""

from collections.abc import Generator
from typing import Final

import pytest

from tests.compat.clusters import OURS, Ours, broker_count, ours
from tests.compat.group_clients import aiokafka, confluent_kafka, confluent_kafka_848, kafka_python, odradek
from tests.compat.group_members import Client, Group
from tests.compat.kit_cluster import KitCluster

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.timeout(400)]

PARTITIONS: Final = 6
RECORDS: Final = 60
CLIENTS: Final = [kafka_python, aiokafka, confluent_kafka, confluent_kafka_848]
FAST: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "4",
}


@pytest.fixture(scope="module", params=OURS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Ours]:
    """Its groups do not wait for members to come, and hear of changes soon."""
    with ours(request.param, tmp_path_factory.mktemp("groups"), **FAST) as running:
        yield running


@pytest.fixture(scope="module")
def restarted(tmp_path_factory: pytest.TempPathFactory) -> Generator[KitCluster]:
    """Each test that uses it restarts it."""
    with KitCluster(1, tmp_path_factory.mktemp("restarted") / "data", FAST) as running:
        yield running


def group_of(broker: Ours, name: str) -> Group:
    return Group(broker.bootstrap, name, PARTITIONS, broker_count(broker))


def progress(group: Group) -> None:
    group.write(RECORDS)
    group.until_committed()


@pytest.mark.parametrize("client", CLIENTS)
def test_members_come_and_go(broker: Ours, client: Client) -> None:
    with group_of(broker, f"come-and-go-{client.__name__}") as group:
        first = group.join(client)
        group.join(client)
        group.until_balanced()
        progress(group)
        group.join(client)
        group.until_balanced()
        progress(group)
        group.leave(first)
        group.until_balanced()
        progress(group)
        assert set(group.read().values()) == {1}, "what is committed before a rebalance is not read again"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_group_goes_on_after_a_restart(restarted: KitCluster, client: Client) -> None:
    """Of three brokers, each is killed in test_verifiable_clients.py."""
    with group_of(restarted, f"restart-{client.__name__}") as group:
        stays, leaves = group.join(client), group.join(client)
        group.until_balanced()
        progress(group)
        restarted.stop()
        restarted.start()
        progress(group)
        group.leave(leaves)
        group.until_balanced()
        group.leave(stays)
        group.join(client)
        progress(group)
        assert set(group.read().values()) == {1}, "members go on where the group has committed"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_static_member_returns_unnoticed(broker: Ours, client: Client) -> None:
    with group_of(broker, f"static-{client.__name__}") as group:
        other, one = group.join(client, "other"), group.join(client, "one")
        group.until_balanced()
        progress(group)
        group.until_balanced()  # kafka-python was seen to join once more, in one run of a hundred, under load
        revocations, owned, others = other.revocations, {*one.owned}, {*other.owned}
        group.leave(one)
        group.write(RECORDS)
        group.until_committed_in(others)
        assert other.owned == others
        returned = group.join(client, "one")
        group.until_balanced()
        assert returned.owned == owned
        progress(group)
        assert other.revocations == revocations
        assert set(group.read().values()) == {1}


def test_several_clients_share_a_group(broker: Ours) -> None:
    with group_of(broker, "several-clients") as group:
        first = group.join(kafka_python)
        group.join(aiokafka)
        group.until_balanced()
        progress(group)
        for client in (confluent_kafka, odradek):
            group.join(client)
            group.until_balanced()
            progress(group)
        group.leave(first)
        group.until_balanced()
        progress(group)
