"""Transactional producers of other clients, all driven in one way: each function makes one, which is used in the thread
that made it.

    with kafka_python(bootstrap, "transfers") as producer:
        producer.begin()
        producer.send(topic, b"value", partition)
        producer.send_offsets("billing", topic, {0: 7})
        producer.commit()                                   # or abort()
"""

import asyncio
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AiokafkaPartition
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaProducer, OffsetAndMetadata
from kafka import TopicPartition as KafkaPythonPartition

TIMEOUT_MS = 20_000
CALL_S = 30.0


class TransactionalProducer(Protocol):
    def begin(self) -> None: ...
    def send(self, topic: str, value: bytes, partition: int) -> None: ...
    def send_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...


Maker = Callable[[str, str], AbstractContextManager[TransactionalProducer]]


class _KafkaPython:
    def __init__(self, producer: KafkaProducer) -> None:
        self._producer = producer
        self.begin = producer.begin_transaction

    def send(self, topic: str, value: bytes, partition: int) -> None:
        self._producer.send(topic, value, partition=partition)

    def send_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        positions = {
            KafkaPythonPartition(topic, index): OffsetAndMetadata(offset, "", -1) for index, offset in offsets.items()
        }
        self._producer.send_offsets_to_transaction(positions, group)

    def commit(self) -> None:
        self._producer.flush()
        self._producer.commit_transaction()

    def abort(self) -> None:
        self._producer.flush()
        self._producer.abort_transaction()


@contextmanager
def kafka_python(bootstrap: str, transactional_id: str) -> Generator[TransactionalProducer]:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS
    )
    try:
        producer.init_transactions()
        yield _KafkaPython(producer)
    finally:
        producer.close()


class _Confluent:
    def __init__(self, producer: Any, bootstrap: str) -> None:
        self._producer = producer
        self._bootstrap = bootstrap
        self.begin = producer.begin_transaction

    def send(self, topic: str, value: bytes, partition: int) -> None:
        self._producer.produce(topic, value, partition=partition)

    def send_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        consumer = ConfluentConsumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        try:
            positions = [ConfluentPartition(topic, index, offset) for index, offset in offsets.items()]
            self._producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
        finally:
            consumer.close()

    def commit(self) -> None:
        self._producer.commit_transaction(CALL_S)

    def abort(self) -> None:
        self._producer.flush(CALL_S)
        self._producer.abort_transaction(CALL_S)


@contextmanager
def confluent_kafka(bootstrap: str, transactional_id: str) -> Generator[TransactionalProducer]:
    producer = ConfluentProducer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": TIMEOUT_MS,
            "linger.ms": 0,
        }
    )
    producer.init_transactions(CALL_S)
    yield _Confluent(producer, bootstrap)


class _Aiokafka:
    def __init__(self, producer: AIOKafkaProducer, run: Callable[[Any], Any]) -> None:
        self._producer = producer
        self._run = run

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int) -> None:
        self._run(self._producer.send_and_wait(topic, value, partition=partition))

    def send_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        positions = {AiokafkaPartition(topic, index): offset for index, offset in offsets.items()}
        self._run(self._producer.send_offsets_to_transaction(positions, group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())


@contextmanager
def aiokafka(bootstrap: str, transactional_id: str) -> Generator[TransactionalProducer]:
    with asyncio.Runner() as runner:

        def run(work: Any) -> Any:
            return runner.run(asyncio.wait_for(work, CALL_S))

        async def make() -> AIOKafkaProducer:
            return AIOKafkaProducer(
                bootstrap_servers=bootstrap, transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS
            )

        producer = runner.run(make())
        run(producer.start())
        try:
            yield _Aiokafka(producer, run)
        finally:
            run(producer.stop())
