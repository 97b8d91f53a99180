"""Each fault on the wire with two foreign clients: what an application sees of it, and what is in the log then."""

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from kafka import KafkaConsumer
from kafka.errors import CorruptRecordError, TopicAuthorizationFailedError

from odradek.broker.handling.interceptors import Proceed
from odradek.protocol.errors import ErrorCode
from odradek.protocol.errors import KafkaError as AnsweredError
from odradek.testing import FaultRefused, Kafka, RecordedRequest, WaitedInVain, cluster
from tests.odradek.testing.faults.foreign_senders import REQUEST_TIMEOUT_MS, SENDERS, Sender, sender

numbers = count()

UNDERFLOW, BAD_MESSAGE = -155, -199
"""Of librdkafka's own errors."""


@pytest.fixture(scope="module")
def kafka_of_all() -> Iterator[Kafka]:
    with cluster(brokers=1) as kafka:
        yield kafka


@pytest.fixture
def kafka(kafka_of_all: Kafka) -> Iterator[Kafka]:
    yield kafka_of_all
    kafka_of_all.faults.clear()


@pytest.fixture
def topic(kafka: Kafka) -> str:
    name = f"orders-{next(numbers)}"
    kafka.create_topic(name, 2)
    return name


@pytest.fixture(params=list(SENDERS), scope="module")
def client_of_all(request: pytest.FixtureRequest, kafka_of_all: Kafka) -> Iterator[Sender]:
    with sender(request.param, kafka_of_all.bootstrap_servers) as client:
        yield client


@pytest.fixture
def client(client_of_all: Sender, kafka: Kafka, topic: str) -> Sender:
    """It has connected, and sent a first record."""
    assert client_of_all.send(topic, b"first").offset() == 0
    return client_of_all


def values(kafka: Kafka, topic: str) -> list[bytes | None]:
    return [record.value for record in kafka.records(topic)]


def test_a_partition_whose_leader_is_said_to_be_another_one(kafka: Kafka, topic: str, client: Sender) -> None:
    with kafka.faults.fail(api="Produce", error="NOT_LEADER_OR_FOLLOWER", topic=topic, partition=0, times=2) as fault:
        assert client.send(topic, b"a", 1).offset() == 0, "another partition"
        assert fault.count == 0
        assert client.send(topic, b"b", 0).offset() == 1, "the client asks for metadata and tries again"
        fault.wait_for_count(2)
    assert values(kafka, topic) == [b"first", b"b", b"a"]


@pytest.mark.parametrize("name", SENDERS)
def test_an_error_that_no_client_retries(kafka: Kafka, topic: str, name: str) -> None:
    """With a client of its own: kafka-python's idempotent producer ends by it."""
    refused = kafka.faults.fail(api="Produce", error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with sender(name, kafka.bootstrap_servers) as client, refused as fault:
        with pytest.raises((TopicAuthorizationFailedError, KafkaException), match=rf"authorization failed|{topic}"):
            client.send(topic, b"a").offset()
        assert str(fault) == "fail Produce with TOPIC_AUTHORIZATION_FAILED, 1 time(s)"
    assert values(kafka, topic) == []


@pytest.mark.parametrize("where", ["request", "answer"])
def test_a_delay(kafka: Kafka, topic: str, client: Sender, where: Any) -> None:
    with kafka.faults.delay(api="Produce", ms=80, where=where) as fault:
        began_s = time.monotonic()
        assert client.send(topic, b"a").offset() == 1
        assert time.monotonic() - began_s >= 0.08
        assert fault.count == 1


def test_what_is_dropped_is_sent_again_and_is_there_once(kafka: Kafka, topic: str, client: Sender) -> None:
    with kafka.faults.drop(api="Produce", where="answer", times=1):
        began_s = time.monotonic()
        assert client.send(topic, b"a").offset() == 1
        assert time.monotonic() - began_s >= REQUEST_TIMEOUT_MS / 1000
    assert values(kafka, topic) == [b"first", b"a"]


@pytest.mark.parametrize("where", ["request", "answer"])
def test_a_client_connects_again(kafka: Kafka, topic: str, client: Sender, where: Any) -> None:
    with kafka.faults.disconnect(api="Produce", where=where, times=1) as fault:
        assert client.send(topic, b"a").offset() == 1
        assert not fault.is_in_force, "once"
    assert values(kafka, topic) == [b"first", b"a"]


def test_a_half_open_connection_is_given_up_by_its_client(kafka: Kafka, topic: str, client: Sender) -> None:
    with kafka.faults.half_open(api="Produce", times=1) as fault:
        assert client.send(topic, b"a").offset() == 1
        assert fault.is_in_force
    assert values(kafka, topic) == [b"first", b"a"]


def test_half_open_connections_are_closed_when_that_is_undone(kafka: Kafka, topic: str, client: Sender) -> None:
    fault = kafka.faults.half_open(api="Produce")
    sent = client.send(topic, b"a")
    fault.wait_until_held()
    fault.undo()
    assert sent.offset() == 1
    assert values(kafka, topic) == [b"first", b"a"]


@pytest.mark.parametrize("where", ["request", "answer"])
def test_requests_are_held_until_the_test_lets_them_go(kafka: Kafka, topic: str, client: Sender, where: Any) -> None:
    with kafka.faults.hold(api="Produce", topic=topic, where=where) as fault:
        sent = client.send(topic, b"a")
        fault.wait_until_held()
        assert not sent.is_done
        assert len(values(kafka, topic)) == (1 if where == "request" else 2)
        fault.release(1)
        assert sent.offset() == 1
        assert fault.is_in_force, "it holds the next one"
    assert client.send(topic, b"b").offset() == 2


@pytest.mark.parametrize("name", SENDERS)
def test_an_answer_that_cannot_be_read(kafka: Kafka, topic: str, name: str) -> None:
    """kafka-python asks again when its time is up, confluent-kafka says so; the record is there in both cases."""
    with sender(name, kafka.bootstrap_servers) as client, kafka.faults.corrupt(api="Produce", times=1) as fault:
        try:
            assert client.send(topic, b"a").offset() == 0
            assert name == "kafka-python"
        except KafkaException as told:
            error: KafkaError = told.args[0]
            assert error.code() == UNDERFLOW
        assert fault.count == 1
    assert values(kafka, topic) == [b"a"]


def test_a_client_is_throttled(kafka: Kafka, topic: str, client: Sender) -> None:
    with kafka.faults.throttle(api="Produce", ms=100, times=1):
        assert client.send(topic, b"a").offset() == 1
        began_s = time.monotonic()
        kafka.wait_for(lambda: client.throttled_ms, "the application is told")
        assert client.throttled_ms == pytest.approx(100)
        assert client.send(topic, b"b").offset() == 2
        assert time.monotonic() - began_s >= 0.05, "its connection is muted"


def test_a_function_of_the_test_decides(kafka: Kafka, topic: str, client: Sender) -> None:
    seen: list[RecordedRequest] = []

    async def refuse_once(request: RecordedRequest, proceed: Proceed) -> Any:
        seen.append(request)
        if len(seen) == 1:
            raise AnsweredError(ErrorCode.NOT_ENOUGH_REPLICAS)
        answer = await proceed(request.request)
        answer.responses[0].partition_responses[0].base_offset += 1000
        return answer

    with kafka.faults.intercept(refuse_once, api="Produce", topic=topic):
        assert client.send(topic, b"a").offset() == 1001
    assert [each.topics for each in seen] == [((topic, 0),)] * 2
    assert values(kafka, topic) == [b"first", b"a"]
    with pytest.raises(FaultRefused, match="is no coroutine function"):
        kafka.faults.intercept(values)  # type: ignore[arg-type]


# -- consumers ---------------------------------------------------------------------------------------------------------


def of_kafka_python(kafka: Kafka, topic: str) -> KafkaConsumer:
    return KafkaConsumer(topic, bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest")


def test_kafka_python_finds_records_that_are_corrupt(kafka: Kafka, topic: str) -> None:
    """Its next poll would not return: 3.0.12 reads the batch again and again. So the consumer has to be closed."""
    kafka.produce(topic, ["a"])
    with kafka.faults.corrupt(topic=topic, times=1) as fault, of_kafka_python(kafka, topic) as consumer:
        with pytest.raises(CorruptRecordError, match="failed crc check"):
            consumer.poll(5000)
        assert fault.count == 1


@pytest.mark.parametrize("checks", [True, False])
def test_confluent_kafka_finds_records_that_are_corrupt_if_it_is_to(kafka: Kafka, topic: str, checks: bool) -> None:
    kafka.produce(topic, ["a"])
    with kafka.faults.corrupt(topic=topic, times=1) as fault:
        consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": topic,
                "auto.offset.reset": "earliest",
                "check.crcs": checks,
                "fetch.error.backoff.ms": 0,
                "log_level": 0,
            }
        )
        consumer.subscribe([topic])
        seen: list[int] = []
        while 0 not in seen:
            message = consumer.poll(5)
            assert message is not None
            error = message.error()
            seen.append(0 if error is None else error.code())
        consumer.close()
        assert fault.count == 1
    assert seen == ([BAD_MESSAGE, 0] if checks else [0])


def test_records_that_are_read_from_files_can_be_corrupted(tmp_path: Path) -> None:
    """Large ones go from the file to the socket, and through no memory of the broker."""
    with cluster(brokers=1, data_dir=tmp_path) as kafka:
        kafka.produce("orders", [bytes(500_000)])
        kafka.faults.corrupt(times=1)
        with of_kafka_python(kafka, "orders") as consumer, pytest.raises(CorruptRecordError, match="failed crc check"):
            consumer.poll(5000)


def test_a_fetch_of_a_session_fails_for_the_partition_that_is_named(kafka: Kafka, topic: str) -> None:
    """kafka-python fetches by sessions, whose requests name no partition that is quiet."""
    kafka.produce(topic, [{"value": b"a", "partition": 0}, {"value": b"b", "partition": 1}])
    with of_kafka_python(kafka, topic) as consumer:
        seen: list[bytes] = []
        while len(seen) < 2:
            seen += [record.value for batch in consumer.poll(1000).values() for record in batch]
        with kafka.faults.fail(api="Fetch", error="NOT_LEADER_OR_FOLLOWER", topic=topic, partition=0) as fault:
            while not fault.count:
                assert consumer.poll(10) == {}
            kafka.produce(topic, [{"value": b"c", "partition": 0}, {"value": b"d", "partition": 1}])
            while b"d" not in seen:
                seen += [record.value for batch in consumer.poll(1000).values() for record in batch]
            assert b"c" not in seen
        while b"c" not in seen:
            seen += [record.value for batch in consumer.poll(1000).values() for record in batch]


# -- the handles -------------------------------------------------------------------------------------------------------


def test_what_is_in_force_is_told_and_cleared(kafka: Kafka) -> None:
    first = kafka.faults.fail(api="Produce", error=6, client_id="nobody")
    kafka.faults.delay(ms=5, broker=7)
    assert list(map(str, kafka.faults.in_force)) == [
        "fail Produce of client nobody with NOT_LEADER_OR_FOLLOWER, 0 time(s)",
        "delay every request at broker 7 by 5 ms, 0 time(s)",
    ]
    with pytest.raises(WaitedInVain, match=r"fault applied 1 time\(s\): .* there was: fail Produce of client nobody"):
        first.wait_for_count(1, timeout_s=0.02)
    kafka.faults.clear()
    assert kafka.faults.in_force == []
    assert repr(kafka.faults) == "<faults: none>"
    assert not first.is_in_force


def test_the_kits_own_clients_are_left_alone_unless_they_are_named(kafka: Kafka, topic: str) -> None:
    with kafka.faults.drop():
        kafka.produce(topic, ["a"])
    with kafka.faults.delay(ms=1, client_id="odradek-testing") as fault:
        kafka.produce(topic, ["b"])
        assert fault.count > 0
