"""What happens to a record before it is accepted: interceptors, then serializers. Producers with neither have none.

Interceptors also learn how each record ended: when it was refused before it was accepted, and otherwise before the
record's callbacks are called. (Source: KafkaProducer.java `doSend`.)
"""

from typing import Any

from odradek.client.errors.client_errors import ClientError
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.hooks.interceptors import Interceptors
from odradek.client.producer.hooks.serialization import serialized
from odradek.client.producer.record import ProducerRecord, RecordHeaders
from odradek.client.producer.results.delivery import Ack, Delivery

__all__ = ["Record", "RecordTransform"]

Record = tuple[str, Any, Any, int | None, RecordHeaders, int | None]
"""Topic, value, key, partition, headers and timestamp in ms, as `RecordIntake.accept` takes them."""


class RecordTransform:
    """The interceptors and serializers of one producer."""

    def __init__(self, config: ProducerConfig) -> None:
        self.interceptors = Interceptors(config.interceptors, config.client_id)
        self._key_serializer = config.key_serializer
        self._value_serializer = config.value_serializer

    @staticmethod
    def of(config: ProducerConfig) -> "RecordTransform | None":
        """None where nothing is to be done."""
        if config.interceptors or config.key_serializer is not None or config.value_serializer is not None:
            return RecordTransform(config)
        return None

    def prepared(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        headers: RecordHeaders,
        timestamp_ms: int | None,
    ) -> Record:
        """The record that interceptors and serializers make of this one. Raises SerializationError."""
        if self.interceptors:
            record = ProducerRecord(topic, value, key, partition, headers, timestamp_ms)
            topic, value, key, partition, headers, timestamp_ms = self.interceptors.on_send(record)
        try:
            if self._key_serializer is not None:
                key = serialized(self._key_serializer, "key_serializer", topic, key)
            if self._value_serializer is not None:
                value = serialized(self._value_serializer, "value_serializer", topic, value)
        except ClientError as error:
            self.refused((topic, value, key, partition, headers, timestamp_ms), error)
            raise
        return topic, value, key, partition, headers, timestamp_ms

    def refused(self, record: Record, error: ClientError) -> None:
        """Tells interceptors that a record was not accepted."""
        if self.interceptors:
            self.interceptors.on_refusal(ProducerRecord(*record), error)

    def watch(self, delivery: Delivery) -> None:
        """Has interceptors told how an accepted record ended, which does not count as a look at it."""
        if self.interceptors:
            delivery.add_watcher(self._ended)

    def _ended(self, delivery: Delivery) -> None:
        error = delivery.peek()
        if error is None:
            self.interceptors.on_acknowledgement(delivery.result(), None)
        else:
            self.interceptors.on_acknowledgement(Ack(delivery.topic, delivery.partition, -1, -1), error)

    def close(self) -> None:
        self.interceptors.close()
