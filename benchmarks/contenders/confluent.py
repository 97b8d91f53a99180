"""confluent-kafka: `produce` with a callback for each record, `poll(0)` every 1,000, `flush`; and `consume(n)`.

librdkafka's threads do the rest. Its queue is made large enough never to be full, and keys are hashed as Java does.

Of what waits to be read it keeps 64 MiB, which is its default and ours. By default it keeps no more than 100,000
records of a partition either, and rests for a second where that is reached: it reads 176,000 records/s of 100 B then,
instead of 445,000 to 728,000. So there is no such limit here, and it rests for 10 ms.
"""

from importlib.metadata import version
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition, libversion

from benchmarks.contenders.client_load import PARTITION_COUNT, Pair
from benchmarks.contenders.job import (
    BATCH_BYTES,
    DELIVERY_TIMEOUT_S,
    LINGER_MS,
    Client,
    ContenderFailed,
    Job,
    Reading,
    Stopwatch,
    Timing,
)
from benchmarks.contenders.reading import BATCH_RECORDS, SILENCE_S, group_of, read, went_silent

POLL_EVERY = 1000


def produce(job: Job) -> Timing:
    warm, timed = job.load.split()
    producer = Producer(
        {
            "bootstrap.servers": job.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": LINGER_MS,
            "batch.size": BATCH_BYTES,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 10_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    produce_all(producer, job.load.topic, warm)
    with Stopwatch() as watch:
        produce_all(producer, job.load.topic, timed)
    return watch.timing


def produce_all(producer: Producer, topic: str, records: list[Pair]) -> None:
    delivered = 0

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        nonlocal delivered
        if error is not None:
            raise KafkaException(error)
        delivered += 1

    for number, (value, key) in enumerate(records):
        producer.produce(topic, value, key, on_delivery=on_delivery)
        if number % POLL_EVERY == 0:
            producer.poll(0)
    producer.flush(DELIVERY_TIMEOUT_S)
    if delivered != len(records):
        raise ContenderFailed(f"confluent-kafka delivered {delivered} of {len(records)} records")


def consume(job: Job) -> Reading:
    consumer = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": group_of(job),
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "queued.min.messages": 10_000_000,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([TopicPartition(job.load.topic, number) for number in range(PARTITION_COUNT)])
    reading = read(job.load, lambda wanted: take_many(consumer, wanted))
    consumer.close()
    return reading


def take_many(consumer: Consumer, wanted: int) -> int:
    count = total = 0
    while count < wanted:
        messages: list[Any] = consumer.consume(min(BATCH_RECORDS, wanted - count), SILENCE_S)
        if not messages:
            raise went_silent("confluent-kafka", count, wanted)
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaException(error)
            total += message.offset() + message.timestamp()[1] + message.key()[-1] + message.value()[-1]
        count += len(messages)
    return total


def client() -> Client:
    note = f"on librdkafka {libversion()[0]}"
    return Client(
        "confluent-kafka", version("confluent-kafka"), {"produce": produce}, note, consuming={"consume": consume}
    )
