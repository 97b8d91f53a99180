"""What is committed in a topic of an exactly-once chain, read by librdkafka with read_committed, bit by bit.

    reader = CommittedReader("127.0.0.1:9092", "third", partitions=31)
    reader.catch_up()                   # up to the last stable offset of each partition, as it is now
    reader.counts[4711]                 # how often this number is there

Each `catch_up` is a consumer of its own, so that none of them lives through the end of a broker.
"""

import time
from collections import Counter
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Partition

from odradek.testing.sim.checking.numbered import decoded

RECORDS_MAX: Final = 1_000
LOOK_S: Final = 0.1
"""A call returns then, or with so many records."""
TIMEOUT_S: Final = 30.0


class CommittedReader:
    """As far as it has been read."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.topic = topic
        self.counts: Counter[int] = Counter()
        self.times_ms: list[int] = []
        """Of each record: when its producer made it, by the clock of the wall."""
        self._bootstrap = bootstrap
        self._positions = dict.fromkeys(range(partitions), 0)

    def catch_up(self) -> None:
        """Raises KafkaException; AssertionError where that takes longer than 30 s."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "log_level": 3,
            }
        )
        try:
            consumer.assign([Partition(self.topic, index, offset) for index, offset in self._positions.items()])
            self._read(consumer)
        finally:
            consumer.close()

    def _read(self, consumer: Consumer) -> None:
        waited_for, deadline = set(self._positions), time.monotonic() + TIMEOUT_S
        while waited_for:
            assert time.monotonic() < deadline, f"no end of {self.topic}, partitions {sorted(waited_for)}"
            for message in consumer.consume(RECORDS_MAX, LOOK_S):
                partition, offset, error = message.partition(), message.offset(), message.error()
                if error is None and partition is not None and offset is not None:
                    self._positions[partition] = offset + 1
                    self.counts[decoded(message.value())] += 1
                    self.times_ms.append(message.timestamp()[1])
                elif error is not None and error.code() == KafkaError._PARTITION_EOF and partition is not None:
                    waited_for.discard(partition)
                elif error is not None and not error.retriable():
                    raise KafkaException(error)
