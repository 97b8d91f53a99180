"""A program that is started for one record, which kafka-python sends with acks=all: to the servers it is told, or to
three brokers of the test kit that it starts."""

import sys

from kafka import KafkaProducer

TOPIC = "first"
TIMEOUT_S = 30.0


def send(servers: str) -> None:
    """Says so when the record is acknowledged. Raises KafkaError."""
    with KafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        producer.send(TOPIC, b"first").get(TIMEOUT_S)
        print("acknowledged", flush=True)


def main() -> None:
    if servers := sys.argv[1:]:
        send(*servers)
        return
    from odradek.testing import cluster  # not at the top: who is told servers needs none of it

    with cluster(3, topics=[TOPIC]) as kafka:
        send(kafka.bootstrap_servers)


if __name__ == "__main__":
    main()
