"""Interceptors: see, and may replace, each record before it is serialized, and learn how it ended.

    on_send               before serializers and partitioner; returns the record that goes on
    on_acknowledgement    when the record ended, before callbacks; also of one that was refused before it was accepted
    close                 when the producer is closed

They are called one after the other, in the order of the setting; the next sees what the one before returned. One that
raises is logged and skipped, as in Kafka: a mistake in an interceptor must not lose records. They run in the event
loop, so they must be quick and must not be coroutine functions. (Source: ProducerInterceptors.java.)
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from odradek.client.arguments import is_coroutine_function
from odradek.client.errors.client_errors import ClientError
from odradek.client.producer.record import ProducerRecord, RecordHeaders
from odradek.client.producer.results.delivery import Ack

__all__ = ["Interceptor", "Interceptors", "are_interceptors", "lasting"]

logger = logging.getLogger(__name__)

UNKNOWN_PARTITION: Final = -1


class Interceptor:
    """To be subclassed; each method may be left as it is."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Returns the record to send: this one, or another (`record._replace(...)`)."""
        return record

    def on_acknowledgement(self, ack: Ack, error: ClientError | None) -> None:
        """`error` None: acknowledged. Else `ack` says for which topic and partition (-1: none was chosen yet)."""

    def close(self) -> None:
        """Nothing is called any more after this."""


class Interceptors:
    """The chain of one producer. It is false when there is nobody in it."""

    __slots__ = ("_chain", "_client_id", "_failures")

    def __init__(self, chain: Sequence[Interceptor], client_id: str = "") -> None:
        self._chain = tuple(chain)
        self._client_id = client_id
        self._failures: dict[tuple[int, str], int] = {}

    def __bool__(self) -> bool:
        return bool(self._chain)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        record = _rereadable(record)
        for index, interceptor in enumerate(self._chain):
            try:
                replaced: Any = interceptor.on_send(record)
                if not isinstance(replaced, ProducerRecord):
                    raise TypeError(f"on_send must return a ProducerRecord, not {type(replaced).__name__}")
                replaced = _rereadable(replaced)
            except Exception as error:  # noqa: BLE001  (whatever an interceptor does must not lose records; it is logged)
                self._failed(index, "on_send", error)
            else:
                record = replaced
        return record

    def on_acknowledgement(self, ack: Ack, error: ClientError | None = None) -> None:
        for index, interceptor in enumerate(self._chain):
            try:
                interceptor.on_acknowledgement(ack, error)
            except Exception as failure:  # noqa: BLE001  (likewise)
                self._failed(index, "on_acknowledgement", failure)

    def on_refusal(self, record: ProducerRecord, error: ClientError) -> None:
        """A record that was not accepted has ended too (`onSendError` in Kafka)."""
        partition = UNKNOWN_PARTITION if record.partition is None else record.partition
        self.on_acknowledgement(Ack(record.topic, partition, -1, -1), error)

    def close(self) -> None:
        chain, self._chain = self._chain, ()
        for interceptor in reversed(chain):
            try:
                interceptor.close()
            except Exception:
                logger.exception("%s: close of interceptor %s failed", self._client_id, type(interceptor).__name__)

    def _failed(self, index: int, method: str, error: Exception) -> None:
        """Logs the first failure, the tenth, the hundredth, …: there may be one for each record."""
        count = self._failures[index, method] = self._failures.get((index, method), 0) + 1
        if str(count).strip("0") == "1":
            name = type(self._chain[index]).__name__
            logger.error(
                "%s: %s of interceptor %s failed, which is skipped (for the %d. time)",
                self._client_id,
                method,
                name,
                count,
                exc_info=error,
            )


def lasting(headers: RecordHeaders) -> RecordHeaders:
    """Headers that can be read more than once: by interceptors, and again after a wait for room."""
    return tuple(headers) if isinstance(headers, Iterator) else headers


def _rereadable(record: ProducerRecord) -> ProducerRecord:
    headers = lasting(record.headers)
    return record if headers is record.headers else record._replace(headers=headers)


def are_interceptors(value: object) -> tuple[Interceptor, ...]:
    """The setting, checked. Raises ValueError with what it must be."""
    expected = "a list of Interceptor objects"
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(expected)
    chain: list[Interceptor] = []
    for each in value:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(each, Interceptor):
            raise ValueError(expected)
        if any(is_coroutine_function(method) for method in (each.on_send, each.on_acknowledgement, each.close)):
            raise ValueError(f"{expected} without coroutine functions, which {type(each).__name__} has")
        chain.append(each)
    return tuple(chain)
