"""Faults on the wire and recorded requests, where the brokers are in a child process: the same calls do the same."""

from collections.abc import Generator
from typing import Any

import pytest
from kafka import KafkaProducer

from odradek.testing import Kafka, WaitedInVain, cluster
from odradek.testing.faults.fault import FaultRefused
from odradek.testing.faults.recorded_requests import UnexpectedRequests
from odradek.testing.running_cluster import NotInThisMode

CLIENT = "billing"


@pytest.fixture(scope="module")
def kafka() -> Generator[Kafka]:
    with cluster(1, topics=["orders"], subprocess=True) as running:
        yield running


@pytest.fixture
def producer(kafka: Kafka) -> Generator[KafkaProducer]:
    made = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, client_id=CLIENT, retry_backoff_ms=10, enable_idempotence=False
    )
    yield made
    made.close()
    kafka.faults.clear()


def test_a_fault_is_applied_counted_and_undone(kafka: Kafka, producer: KafkaProducer) -> None:
    with kafka.faults.fail(api="Produce", error="NOT_LEADER_OR_FOLLOWER", topic="orders", times=2) as fault:
        producer.send("orders", b"a").get(10)
        fault.wait_for_count(2)
        assert str(fault) == "fail Produce of orders with NOT_LEADER_OR_FOLLOWER, 2 of 2 time(s)"
    with kafka.faults.delay(api="Produce", ms=1.0) as delay:
        assert [str(each) for each in kafka.faults.in_force] == ["delay Produce by 1 ms, 0 time(s)"]
        assert delay.is_in_force
    assert kafka.faults.in_force == []
    with pytest.raises(FaultRefused, match="Kafka has no error 'NOT_LEADER'; the nearest is"):
        kafka.faults.fail(error="NOT_LEADER")


def test_a_request_is_held_until_the_test_lets_it_go(kafka: Kafka, producer: KafkaProducer) -> None:
    held = kafka.faults.hold(api="Produce", times=1)
    with pytest.raises(WaitedInVain, match=r"1 request\(s\) held"):
        held.wait_until_held(timeout_s=0.02)
    sent = producer.send("orders", b"b")
    held.wait_until_held()
    assert not sent.is_done
    held.release(1)
    sent.get(10)


def test_requests_are_recorded_and_come_over_whole(kafka: Kafka, producer: KafkaProducer) -> None:
    producer.send("orders", b"before").get(10)
    before = kafka.requests()
    producer.send("orders", b"c").get(10)
    produced = kafka.requests(api="Produce", topic="orders", client_id="bill*", since=before).at_most(1)
    [request] = produced
    assert (request.api, request.broker, request.client_id, request.topics) == ("Produce", 1, CLIENT, (("orders", 0),))
    assert request.request.acks == -1
    assert repr(produced) == "<1 requests (Produce of orders of client bill*)>"
    with pytest.raises(UnexpectedRequests, match=r"at most 0 requests \(Produce\) were expected, and 1 came"):
        kafka.requests(api="Produce", since=before).none()


def test_a_function_of_the_test_cannot_be_called_there(kafka: Kafka) -> None:
    async def unanswered(seen: Any, proceed: Any) -> None:
        return None

    with pytest.raises(NotInThisMode, match="intercept has brokers call a function of the test"):
        kafka.faults.intercept(unanswered)


def test_a_cluster_ends_with_requests_that_are_held() -> None:
    with cluster(1, topics=["orders"], subprocess=True) as kafka:
        producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, enable_idempotence=False, retries=0)
        held = kafka.faults.hold(api="Produce")
        producer.send("orders", b"never")
        held.wait_until_held()
    producer.close(10)  # what it has not sent has failed with its connection
