"""Does with clusters what it is told by lines, and answers each by a line of JSON: the seconds that it took.

    start BROKERS CLIENT             a new cluster with one topic, until all replicas have its first record
    kill                             the leader of three brokers, until kafka-python's next record is acknowledged
    reset BROKERS TOPICS PARTITIONS  a cluster with so many topics, each of so many partitions and with a record

All modules are imported before the first line is read. Each line has a cluster of its own.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence

import confluent_kafka
import kafka as kafka_python

from odradek.testing.contents import Contents
from odradek.testing.kafka import Kafka
from odradek.testing.kafka_cluster import cluster

TOPIC = "t"
QUIET_S = 0.1
TIMEOUT_S = 30.0


def start(brokers: int, client: str) -> float:
    """Raises KeyError for a client that is not in `FIRST_RECORDS`, and what the client raises."""
    first_record = FIRST_RECORDS[client]
    began_s = time.perf_counter()
    with cluster(brokers, topics=[TOPIC]) as kafka:
        return first_record(kafka.bootstrap_servers) - began_s


def confluent_record(servers: str) -> float:
    """When its record was acknowledged, by `perf_counter`. Raises KafkaException, TimeoutError."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "acks": "all"})
    errors: list[confluent_kafka.KafkaError | None] = []
    producer.produce(TOPIC, b"first", on_delivery=lambda error, _message: errors.append(error))
    deadline_s = time.perf_counter() + TIMEOUT_S
    while not errors:
        producer.poll(0.005)
        if time.perf_counter() > deadline_s:
            raise TimeoutError(f"confluent-kafka's record was not acknowledged within {TIMEOUT_S:g} s")
    acknowledged_s = time.perf_counter()
    if errors[0] is not None:
        raise confluent_kafka.KafkaException(errors[0])
    return acknowledged_s


def kafka_python_record(servers: str) -> float:
    """The same. Raises KafkaError."""
    with kafka_python.KafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        producer.send(TOPIC, b"first").get(TIMEOUT_S)
        return time.perf_counter()


FIRST_RECORDS: dict[str, Callable[[str], float]] = {
    "confluent-kafka": confluent_record,
    "kafka-python": kafka_python_record,
}


def kill() -> float:
    """Raises KafkaError."""
    with (
        cluster(3, topics=[TOPIC]) as kafka,
        kafka_python.KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all") as producer,
    ):
        producer.send(TOPIC, b"before").get(TIMEOUT_S)
        leader = kafka.brokers[kafka.run(leader_id)]
        began_s = time.perf_counter()
        leader.kill()
        producer.send(TOPIC, b"after").get(TIMEOUT_S)
        return time.perf_counter() - began_s


async def leader_id(contents: Contents) -> int:
    described = await (await contents.admin()).describe_topic(TOPIC)
    leader = described.partitions[0].leader
    assert leader is not None, "it has acknowledged a record"
    return leader


def reset(brokers: int, topics: int, partitions: int) -> float:
    """Of a cluster that was reset once before, so that whatever is made at the first use is there."""
    with cluster(brokers) as kafka:
        fill(kafka, topics, partitions)
        kafka.reset()
        fill(kafka, topics, partitions)
        time.sleep(QUIET_S)  # what is measured is a cluster that does nothing else
        began_s = time.perf_counter()
        kafka.reset()
        return time.perf_counter() - began_s


def fill(kafka: Kafka, topics: int, partitions: int) -> None:
    for number in range(topics):
        kafka.create_topic(f"{TOPIC}-{number}", partitions)
        kafka.produce(f"{TOPIC}-{number}", [b"a record"])


def done(words: Sequence[str]) -> float:
    """Seconds that a line's work took. Raises ValueError for a line that it does not know."""
    match words:
        case ["start", brokers, client]:
            return start(int(brokers), client)
        case ["kill"]:
            return kill()
        case ["reset", brokers, topics, partitions]:
            return reset(int(brokers), int(topics), int(partitions))
        case _:
            raise ValueError(f"{' '.join(words)!r} is none of the lines that the worker knows: see the module")


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(done(line.split())), flush=True)


if __name__ == "__main__":
    main()
