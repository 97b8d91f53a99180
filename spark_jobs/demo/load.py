"""Flights into the broker with kafka-python: idempotent, acks=all, one partition; counted when acknowledged."""

import hashlib
from collections.abc import Iterable

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from odradek.spark_jobs.demo.steps import Completed, DemoFailed

FLUSH_TIMEOUT_S = 120.0
REPORT_EVERY = 1_000


class Digest:
    """Count and SHA-256 of records in order; equal for equal keys and values in equal order only."""

    def __init__(self) -> None:
        self.count = 0
        self._hash = hashlib.sha256()

    def add(self, key: bytes, value: bytes) -> None:
        # With their lengths, or bytes could move from one record to the next unnoticed.
        self._hash.update(b"%d,%d:%b%b" % (len(key), len(value), key, value))
        self.count += 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digest) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"{self.count:,} records, SHA-256 {self._hash.hexdigest()[:16]}…"


class Acknowledgements:
    """What came back for the records sent. kafka-python's sender thread writes, the loading thread reads."""

    def __init__(self) -> None:
        self.count = 0
        self.first_error: BaseException | None = None

    def acknowledged(self, _metadata: object) -> None:
        self.count += 1

    def failed(self, error: BaseException) -> None:
        self.first_error = self.first_error or error


def create_topics(bootstrap: str, *names: str, partitions: int = 1) -> None:
    """Creates topics of one replica."""
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1) for name in names])


def load(bootstrap: str, topic: str, records: Iterable[tuple[bytes, bytes]], completed: Completed) -> Digest:
    """Sends all records, waits for every acknowledgement, and returns the digest of what was sent."""
    sent, answers = Digest(), Acknowledgements()
    with KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=10, batch_size=128 * 1024
    ) as producer:
        for key, value in records:
            future = producer.send(topic, key=key, value=value)
            future.add_callback(answers.acknowledged).add_errback(answers.failed)
            sent.add(key, value)
            if sent.count % REPORT_EVERY == 0:
                completed(answers.count)
                if answers.first_error is not None:
                    break
        producer.flush(timeout=FLUSH_TIMEOUT_S)
    if answers.first_error is not None or answers.count != sent.count:
        raise DemoFailed(f"{sent.count:,} sent, {answers.count:,} acknowledged; first error: {answers.first_error!r}")
    return sent
