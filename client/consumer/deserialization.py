"""Deserializers for keys and values, and what becomes of a record that one of them refuses.

A deserializer is any callable `(topic, data) -> object`; it gets bytes or None, as they stand in the log, and a whole
column is given to it value by value. What it raises is a DeserializationError that names partition and offset. With
`skip_bad_records` such records are left out, and one line in the log says how many; else the records before are handed
out, and the error is raised when it is the record's turn: again and again, until the program seeks behind it.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from odradek.client.consumer.records import PartitionRecords
from odradek.client.errors.base import ClientError
from odradek.client.fetching.positions import Taken
from odradek.client.topic_partition import TopicPartition

__all__ = ["Deserialization", "DeserializationError", "Deserializer"]

logger = logging.getLogger(__name__)

Deserializer = Callable[[str, bytes | None], Any]
"""Takes the topic and a key or value."""


class DeserializationError(ClientError):
    """A key or value could not be read; the deserializer's own error is the `__cause__`.

    `setting`: "key_deserializer" or "value_deserializer". (Source: RecordDeserializationException.java, KIP-334.)
    """

    def __init__(self, partition: TopicPartition, offset: int, setting: str, why: Exception) -> None:
        part = setting.removesuffix("_deserializer")
        super().__init__(
            f"the {part} of record {offset} of {partition} cannot be read by {setting}: {type(why).__name__}: {why}",
            hint=f"To go on behind it, seek to {offset + 1}; skip_bad_records leaves such records out.",
        )
        self.partition = partition
        self.offset = offset
        self.setting = setting


class Deserialization:
    """The deserializers of one consumer."""

    def __init__(self, key: Deserializer | None, value: Deserializer | None, *, skips: bool, name: str) -> None:
        """`name`: of the consumer, for the log."""
        self._key = key
        self._value = value
        self._skips = skips
        self._name = name

    def read(self, taken: Taken) -> tuple[PartitionRecords | None, DeserializationError | None]:
        """The records, up to before the first that cannot be read, and why that one cannot; or without those."""
        columns = taken.columns
        keys: Sequence[Any] = columns.keys
        values: Sequence[Any] = columns.values
        topic = taken.partition.topic
        try:
            if self._key is not None:
                key = self._key
                keys = [key(topic, each) for each in columns.keys]
            if self._value is not None:
                value = self._value
                values = [value(topic, each) for each in columns.values]
        except Exception:  # noqa: BLE001  (a deserializer raises what it likes; which record it was is looked for below)
            return self._read_singly(taken)
        return _records(taken, columns.offsets, columns.timestamps_ms, keys, values, columns.headers), None

    def _read_singly(self, taken: Taken) -> tuple[PartitionRecords | None, DeserializationError | None]:
        columns = taken.columns
        good: list[int] = []
        keys: list[Any] = []
        values: list[Any] = []
        first: DeserializationError | None = None
        for index, offset in enumerate(columns.offsets):
            try:
                key, value = self._pair(taken, index, offset)
            except DeserializationError as error:
                first = first or error
                if not self._skips:
                    break
                continue
            good.append(index)
            keys.append(key)
            values.append(value)
        if self._skips and first is not None:
            left_out = len(columns) - len(good)
            logger.warning("%s: %d record(s) were left out; the first: %s", self._name, left_out, first)
            first = None
        if not good:
            return None, first
        headers = None if columns.headers is None else [columns.headers[index] for index in good]
        offsets = [columns.offsets[index] for index in good]
        timestamps_ms = [columns.timestamps_ms[index] for index in good]
        found = _records(taken, offsets, timestamps_ms, keys, values, headers)
        if first is not None:
            found.next_offset = first.offset
        return found, first

    def _pair(self, taken: Taken, index: int, offset: int) -> tuple[Any, Any]:
        """Key and value of one record. Raises DeserializationError."""
        key, value = taken.columns.keys[index], taken.columns.values[index]
        topic = taken.partition.topic
        setting = "key_deserializer"
        try:
            read_key = key if self._key is None else self._key(topic, key)
            setting = "value_deserializer"
            return read_key, value if self._value is None else self._value(topic, value)
        except Exception as error:
            raise DeserializationError(taken.partition, offset, setting, error) from error


def _records(
    taken: Taken,
    offsets: Sequence[int],
    timestamps_ms: Sequence[int],
    keys: Sequence[Any],
    values: Sequence[Any],
    headers: Sequence[Any] | None,
) -> PartitionRecords:
    return PartitionRecords(
        taken.partition, offsets, timestamps_ms, keys, values, headers, taken.next_offset, taken.leader_epoch
    )
