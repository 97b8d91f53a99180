"""What happens in real clusters: leaders and coordinators move, producers are fenced, members lose their sessions."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaConsumer

from odradek.client.admin.errors import ItemsFailed
from odradek.testing import Kafka, cluster
from odradek.testing.operations import NoSuchMember


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    soon = {"group.consumer.heartbeat.interval.ms": "100", "group.consumer.min.heartbeat.interval.ms": "100"}
    with cluster(topics=["orders", "bills"], config=soon) as kafka:
        yield kafka


def leader_of(kafka: Kafka, topic: str) -> int:
    async def ask(contents: object) -> int:
        return (await (await kafka.contents.admin()).describe_topic(topic)).partitions[0].leader

    return kafka.run(ask)


def coordinator_of(kafka: Kafka, group: str) -> int:
    async def ask(contents: object) -> int:
        return (await (await kafka.contents.admin()).describe_group(group)).coordinator_id

    return kafka.run(ask)


def test_a_leader_moves_to_where_it_is_wanted(kafka: Kafka) -> None:
    for to in (1, 2, 3):
        kafka.move_leader("orders", 0, to)
        assert leader_of(kafka, "orders") == to
        kafka.produce("orders", ["a"])
    with pytest.raises(ItemsFailed, match="INVALID_REPLICA_ASSIGNMENT"):
        kafka.move_leader("orders", 0, 9)
    with pytest.raises(LookupError, match="orders has 1 partitions, and no 7"):
        kafka.move_leader("orders", 7, 1)


def test_a_broker_that_is_no_replica_becomes_one_and_leads(kafka: Kafka) -> None:
    kafka.create_topic("single", replication_factor=1)
    kafka.produce("single", ["a"])
    to = leader_of(kafka, "single") % 3 + 1
    kafka.move_leader("single", 0, to)
    assert leader_of(kafka, "single") == to
    assert [record.value for record in kafka.records("single", 1)] == [b"a"]


def test_a_coordinator_moves_and_its_group_goes_on(kafka: Kafka) -> None:
    kafka.produce("bills", ["a"])
    consumer = KafkaConsumer(
        "bills", bootstrap_servers=kafka.bootstrap_servers, group_id="g", auto_offset_reset="earliest"
    )
    while not consumer.poll(1000):
        pass
    for to in (1, 2, 3):
        kafka.move_coordinator(group="g", to=to)
        assert coordinator_of(kafka, "g") == to
    consumer.commit()
    assert list(kafka.group("g").committed().values()) == [1]
    consumer.close()
    with pytest.raises(ValueError, match="either group=… or transactional_id=…"):
        kafka.move_coordinator(to=1)


def test_a_producer_is_fenced(kafka: Kafka) -> None:
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t", "log_level": 0, "linger.ms": 0}
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", b"lost")
    producer.flush(10)
    kafka.move_coordinator(transactional_id="t", to=2)
    kafka.fence("t")
    with pytest.raises(KafkaException) as told:
        producer.commit_transaction(10)
    assert told.value.args[0].fatal()
    assert b"lost" not in [record.value for record in kafka.records("orders")]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_whose_session_has_ended_joins_again(kafka: Kafka, protocol: str) -> None:
    group = f"billing-{protocol}"
    settings = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 50} if protocol == "classic" else {}
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "app",
            "log_level": 0,
            **settings,
        }
    )
    assigned: list[int] = []
    consumer.subscribe(["orders"], on_assign=lambda _, partitions: assigned.append(len(partitions)))
    while not assigned:
        consumer.poll(0.05)
    [before] = kafka.group(group).members()
    with pytest.raises(NoSuchMember, match=rf"group '{group}' has no member 'other'; it has: .*\(client app\)"):
        kafka.expire_group_member(group, "other")
    assert kafka.expire_group_member(group, "app") == [before.member_id]
    while len(assigned) < 2:
        consumer.poll(0.05)
    kafka.wait_for(lambda: len(kafka.group(group).members()) == 1)
    consumer.close()
