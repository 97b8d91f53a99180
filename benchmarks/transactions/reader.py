"""A reader of a whole topic, a process of its own: `python -m benchmarks.transactions.reader READING`.

READING is a `Reading` in JSON. It reads so many records, by our own consumer or librdkafka, from the beginning of all
partitions, and prints the seconds that took, behind the first that came, as a number in JSON.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self

from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ConfluentPartition

from benchmarks.load.generator import run_generator
from benchmarks.load.replies import LoadFailed
from odradek import ClientError, Consumer, TopicPartition

TOGETHER: Final = 10_000
SILENCE_S: Final = 10.0
"""So long a call waits for a record that has to be there."""

Client = Literal["odradek", "librdkafka"]


@dataclass(frozen=True, slots=True)
class Reading:
    """`records` are all that there are for this isolation level."""

    bootstrap: str
    topic: str
    client: Client
    isolation_level: Literal["read_committed", "read_uncommitted"]
    partitions: int
    records: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


def run_reader(reading: Reading) -> float:
    """Runs the process; the seconds. Raises LoadFailed."""
    return float(run_generator("benchmarks.transactions.reader", reading.to_json()))


async def read_by_odradek(reading: Reading) -> float:
    """Raises LoadFailed, ClientError."""
    async with Consumer(
        reading.bootstrap,
        auto_offset_reset="earliest",
        isolation_level=reading.isolation_level,
        receive_buffer_bytes=-1,
    ) as consumer:
        consumer.assign([TopicPartition(reading.topic, index) for index in range(reading.partitions)])
        count, began = 0, 0.0
        while count < reading.records:
            batch = await consumer.get_batch(TOGETHER, timeout_ms=SILENCE_S * 1000)
            began = began or time.perf_counter()
            if not batch:
                raise _went_silent(reading, count)
            count += len(batch)
        return _seconds(reading, count, began)


def read_by_librdkafka(reading: Reading) -> float:
    """Raises LoadFailed, KafkaException."""
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": reading.bootstrap,
            "group.id": reading.topic,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": reading.isolation_level,
            "queued.min.messages": 10_000_000,
            "fetch.queue.backoff.ms": 10,
        }
    )
    consumer.assign([ConfluentPartition(reading.topic, index, 0) for index in range(reading.partitions)])
    count, began = 0, 0.0
    while count < reading.records:
        messages: list[Any] = consumer.consume(min(TOGETHER, reading.records - count), SILENCE_S)
        began = began or time.perf_counter()
        if not messages:
            raise _went_silent(reading, count)
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaException(error)
        count += len(messages)
    seconds = _seconds(reading, count, began)
    consumer.close()
    return seconds


def _seconds(reading: Reading, count: int, began: float) -> float:
    seconds = time.perf_counter() - began
    if count != reading.records:
        raise LoadFailed(f"{reading.client} gave {count} records, and there are {reading.records}")
    return seconds


def _went_silent(reading: Reading, count: int) -> LoadFailed:
    return LoadFailed(f"{reading.client} gave {count} of {reading.records} records, and nothing more for {SILENCE_S} s")


def main(text: str) -> int:
    reading = Reading.from_json(text)
    try:
        seconds = asyncio.run(read_by_odradek(reading)) if reading.client == "odradek" else read_by_librdkafka(reading)
    except (LoadFailed, ClientError, KafkaException) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{seconds}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
