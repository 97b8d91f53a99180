"""Where the logs of partitions start and end, asked by librdkafka, which shares no code with us.

Its `get_watermark_offsets` fails when a lead has moved since its metadata is from, which on a busy machine happens
whenever a broker was late with its heartbeats; a consumer that reads asks again by itself.
"""

import time
from collections.abc import Iterable
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

ANSWER_TIMEOUT_S: Final = 30.0
PAUSE_S: Final = 0.05
MOVED: Final = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})


def watermarks(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """The start of the log and its high watermark. Raises KafkaException, also where nobody leads for 30 s."""
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while True:
        try:
            return consumer.get_watermark_offsets(TopicPartition(topic, partition), ANSWER_TIMEOUT_S)
        except KafkaException as raised:
            if raised.args[0].code() not in MOVED or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_S)  # librdkafka asks for newer metadata meanwhile


def log_ends(bootstrap: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """The high watermark of each partition. Raises KafkaException."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    try:
        return {partition: watermarks(consumer, topic, partition)[1] for partition in partitions}
    finally:
        consumer.close()
