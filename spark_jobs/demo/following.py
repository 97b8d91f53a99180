"""A reader that follows a topic while it is written: a thread with a consumer of kafka-python, without a group."""

import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from kafka import KafkaConsumer, TopicPartition

Place = tuple[int, int]
"""Partition and offset."""


class Following:
    """Reads from the beginning until the block ends. `found`: the value at each place, in the order of reading."""

    def __init__(self, bootstrap: str, topic: str, partitions: Iterable[int]) -> None:
        self.found: dict[Place, bytes] = {}
        self.first_error: BaseException | None = None
        """What ended the reading before its time, such as an offset that came twice."""
        self._bootstrap = bootstrap
        self._partitions = [TopicPartition(topic, index) for index in partitions]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="following")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def is_over(self) -> bool:
        """Whether it reads no more."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._read()
        except Exception as error:  # noqa: BLE001 - whatever it was, the demo tells it
            self.first_error = error

    def _read(self) -> None:
        expected = dict.fromkeys(self._partitions, 0)
        with KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None, fetch_max_bytes=8 << 20) as consumer:
            consumer.assign(self._partitions)
            consumer.seek_to_beginning(*self._partitions)
            while not self._ended.is_set():
                for partition, records in consumer.poll(timeout_ms=200, max_records=10_000).items():
                    for record in records:
                        if record.offset != expected[partition]:
                            raise ValueError(f"offset {record.offset:,} where {expected[partition]:,} was expected")
                        expected[partition] += 1
                        self.found[partition.partition, record.offset] = record.value or b""
