"""confluent-kafka: `produce` with a delivery callback for each record, `poll(0)` every 1,000, `flush` at the end.

librdkafka's threads do the rest. Its queue is made large enough never to be full, and keys are hashed as Java does.
"""

from importlib.metadata import version

from confluent_kafka import KafkaError, KafkaException, Message, Producer, libversion

from benchmarks.contenders.client_load import Pair
from benchmarks.contenders.job import (
    BATCH_BYTES,
    DELIVERY_TIMEOUT_S,
    LINGER_MS,
    Client,
    ContenderFailed,
    Job,
    Stopwatch,
    Timing,
)

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


def client() -> Client:
    note = f"on librdkafka {libversion()[0]}"
    return Client("confluent-kafka", version("confluent-kafka"), {"produce": produce}, note)
