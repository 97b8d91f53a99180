"""`reset`: what it leaves of topics, groups and transactions, and how three clients go on that were in the middle of
something."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import confluent_kafka
import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from odradek import Producer, TransactionFailed
from odradek.testing import Kafka, cluster
from odradek.testing.hosting.loop_thread import LoopThread

ID = "payments"


class Transactor(Protocol):
    """A transactional producer, whose client does not matter."""

    def begin(self) -> None: ...
    def send(self, value: bytes) -> None:
        """Returns when it is acknowledged."""
        ...

    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class OfKafkaPython:
    refuses = KafkaError

    def __init__(self, servers: str) -> None:
        self._producer = KafkaProducer(bootstrap_servers=servers, transactional_id=ID)
        self._producer.init_transactions()

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, value: bytes) -> None:
        self._producer.send("orders", value).get(10)

    def commit(self) -> None:
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(1)


class OfLibrdkafka:
    refuses = confluent_kafka.KafkaException

    def __init__(self, servers: str) -> None:
        self._producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": ID})
        self._producer.init_transactions(10)

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, value: bytes) -> None:
        failed: list[Any] = []
        self._producer.produce("orders", value, on_delivery=lambda error, _: failed.append(error))
        self._producer.flush(10)
        if failed != [None]:
            raise confluent_kafka.KafkaException(failed[0])

    def commit(self) -> None:
        self._producer.commit_transaction(10)

    def abort(self) -> None:
        self._producer.abort_transaction(10)

    def close(self) -> None:
        del self._producer


@pytest.mark.parametrize("client", [OfKafkaPython, OfLibrdkafka], ids=["kafka-python", "confluent-kafka"])
def test_an_open_transaction_is_aborted_and_its_client_sees_that_and_goes_on(
    client: Callable[[str], Transactor],
) -> None:
    with cluster(brokers=1, topics=["orders"]) as kafka:
        producer = client(kafka.bootstrap_servers)
        producer.begin()
        producer.send(b"lost")
        kafka.reset()
        with pytest.raises((KafkaError, confluent_kafka.KafkaException)):
            producer.commit()
        with suppress(KafkaError, confluent_kafka.KafkaException):
            producer.abort()
        producer.close()
        again = client(kafka.bootstrap_servers)
        again.begin()
        again.send(b"kept")
        again.commit()
        again.close()
        assert [record.value for record in kafka.records("orders", 1)] == [b"kept"]


def test_an_open_transaction_of_our_client_is_aborted_too() -> None:
    async def lose(kafka: Kafka) -> None:
        async with Producer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=ID) as producer:
            transaction = producer.transaction()
            await transaction.__aenter__()
            await (await transaction.send("orders", b"lost"))
            await loop_of_test.loop.run_in_executor(None, kafka.reset)
            with pytest.raises(TransactionFailed, match="INVALID_TXN_STATE"):
                await transaction.__aexit__(None, None, None)
        second = Producer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=ID)
        async with second, second.transaction() as again:
            await again.send("orders", b"kept")

    loop_of_test = LoopThread("the test's")
    with cluster(brokers=1, topics=["orders"]) as kafka:
        loop_of_test.run(lose(kafka))
        assert [record.value for record in kafka.records("orders", 1)] == [b"kept"]
    loop_of_test.end()


def test_transactional_ids_keep_producer_id_and_epoch() -> None:
    with cluster(brokers=1, topics=["orders"]) as kafka:
        first = OfLibrdkafka(kafka.bootstrap_servers)
        first.begin()
        first.send(b"a")

        async def identity(contents: Any) -> tuple[int, int]:
            described = await (await contents.admin()).describe_transaction(ID)
            return described.producer_id, described.producer_epoch

        before = kafka.run(identity)
        kafka.reset()
        assert kafka.run(identity) == before


def test_a_consumer_of_a_group_that_is_gone_joins_again() -> None:
    with cluster(topics=["orders"]) as kafka:
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=kafka.bootstrap_servers,
            group_id="billing",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
        )
        kafka.wait_for(lambda: (consumer.poll(timeout_ms=500), consumer.assignment())[1], "an assignment")
        kafka.reset()
        kafka.produce("orders", ["after"])
        seen: list[bytes] = []

        def is_back() -> bool:  # having read it, perhaps, before it heard that its group is gone, and so again
            for records in consumer.poll(timeout_ms=500).values():
                seen.extend(record.value for record in records)
            return set(seen) == {b"after"} and len(kafka.group("billing").members()) == 1

        kafka.wait_for(is_back, "the record, and the member again")
        consumer.close()
