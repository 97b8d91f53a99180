"""`RecordCalls`: how a program hands records over, to a producer or to one of its transactions.

`send`, `send_nowait` and `send_batch` share one way into the accumulator, so what one task hands over keeps its order
within a partition whichever it used. Who inherits them says when they may be used (`_check_sending`), and sets
`_thread_id` while they may: to ask that costs every record as little as it can.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from threading import get_ident
from typing import Any, Final

from odradek.client.arguments import require_callback, require_iterable, require_kind, require_topic
from odradek.client.errors.client_errors import BatchError, BufferFull, ClientError, MetadataMissing
from odradek.client.producer.accepting.bulk import Bulk, check_lengths, feed_all
from odradek.client.producer.accepting.record_intake import RecordIntake
from odradek.client.producer.accepting.record_transform import Record, RecordTransform
from odradek.client.producer.batching.accumulator import Accumulator
from odradek.client.producer.batching.batch import ProducerBatch
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.hooks.interceptors import lasting
from odradek.client.producer.record import RecordHeaders
from odradek.client.producer.results.bulk_acks import BulkAcks
from odradek.client.producer.results.delivery import Callback, Delivery
from odradek.client.producer.sending.sender import Sender
from odradek.client.taking import TURN_MS
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import breathe

__all__ = ["BACKLOG_MAX", "NOWHERE", "RecordCalls"]

NOWHERE: Final = 0
"""No thread's id."""
COLUMN: Final = "an iterable with an item for each record"
BACKLOG_MAX: Final = 512
"""When so much is ready to be sent, `send` gives the loop a turn. (After every batch, requests would be small: with
records of 1 KiB they took 7 µs of CPU a record, and 5 so.)"""


class RecordCalls(ABC):
    """See the module."""

    _accumulator: Accumulator
    _acceptance: RecordIntake
    _sender: Sender
    _environment: Environment
    _is_running: Callable[[], bool]

    def __init__(self, config: ProducerConfig, preparation: RecordTransform | None) -> None:
        self._thread_id = NOWHERE
        """Of the loop, while records are accepted. (To ask asyncio for the running loop costs twice as much.)"""
        self._preparation = preparation
        self._on_delivery: Callback | None = config.on_delivery
        self._is_plain = preparation is None and self._on_delivery is None
        self._runs_code = preparation is not None or config.partitioner is not None
        self._turn_began_ms: float | None = None  # the first `send` in this turn of the loop, where that runs code

    @abstractmethod
    def _check_sending(self) -> None:
        """Raises if nothing may be sent here and now."""

    async def send(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        headers: RecordHeaders = (),
        timestamp_ms: int | None = None,
        on_delivery: Callback | None = None,
    ) -> Delivery:
        """Waits until there is room for the record, `max_block_ms` at most, and returns its Delivery.

        Once it has returned the record goes out, even if the caller is cancelled; where it is cancelled itself, nothing
        of the record is sent. `on_delivery(delivery)` is called when the record ends, in the caller's context.
        Raises BufferExhausted, MetadataTimeout (both retriable), RecordTooLarge, SerializationError, InvalidPartition,
        InvalidTopic, AuthorizationError, AuthenticationFailed; TypeError for an `on_delivery` that is a coroutine
        function, which nobody would await, and for a topic or partition that is none.
        """
        if get_ident() != self._thread_id or not self._is_running():
            self._check_sending()
        if on_delivery is not None:
            require_callback("on_delivery", on_delivery, "delivery")
        if self._accumulator.backlog >= BACKLOG_MAX or (self._runs_code and self._is_turn_due()):
            # A caller who never waits would fill the whole buffer before the first batch left. This is the place for
            # it: after the record is accepted, a cancellation here would leave the caller without its Delivery.
            await breathe()
        if headers:
            headers = lasting(headers)
        if self._preparation is not None:
            topic, value, key, partition, headers, timestamp_ms = self._preparation.prepared(
                topic, value, key, partition, headers, timestamp_ms
            )
        try:
            batch = self._acceptance.accept(topic, value, key, partition, headers, timestamp_ms)
        except (BufferFull, MetadataMissing):
            batch = await self._accept_waiting(topic, value, key, partition, headers, timestamp_ms)
        except ClientError as error:
            self._refused((topic, value, key, partition, headers, timestamp_ms), error)
            raise
        delivery = Delivery(batch.result, batch.count - 1)
        if on_delivery is not None or not self._is_plain:
            self._watch(delivery, on_delivery)
        return delivery

    def send_nowait(
        self,
        topic: str,
        value: Any = None,
        *,
        key: Any = None,
        partition: int | None = None,
        headers: RecordHeaders = (),
        timestamp_ms: int | None = None,
        on_delivery: Callback | None = None,
    ) -> Delivery:
        """Accepts the record at once, or raises BufferFull or MetadataMissing where `send` would wait.

        It never overtakes a `send` that waits. `await prepare(topic)` makes a topic known. Give the loop a turn now
        and then: nothing is sent while the caller does not.
        """
        if get_ident() != self._thread_id or not self._is_running():
            self._check_sending()
        if on_delivery is not None:
            require_callback("on_delivery", on_delivery, "delivery")
        if self._preparation is not None:
            topic, value, key, partition, headers, timestamp_ms = self._preparation.prepared(
                topic, value, key, partition, headers, timestamp_ms
            )
        try:
            batch = self._acceptance.accept(topic, value, key, partition, headers, timestamp_ms)
        except ClientError as error:
            self._refused((topic, value, key, partition, headers, timestamp_ms), error)
            raise
        delivery = Delivery(batch.result, batch.count - 1)
        if on_delivery is not None or not self._is_plain:
            self._watch(delivery, on_delivery)
        return delivery

    async def send_batch(
        self,
        topic: str,
        values: Iterable[Any],
        keys: Iterable[Any] | None = None,
        *,
        partition: int | None = None,
        timestamps_ms: Iterable[int] | None = None,
        headers: Iterable[RecordHeaders] | None = None,
    ) -> BulkAcks:
        """Sends many records and returns when all have ended: their acknowledgements, in the order of `values`.

        Any iterables do; they are taken in slices, as `buffer_memory` has room. The end of a bulk does not linger, but
        of one of up to 64 records. Cancelled, it takes no more; what was accepted goes out.

        Raises BatchError when records failed, or when it had to stop (also because an iterable raised an error, or
        ended before the others), with what became of each record, after all have ended; ValueError, and nothing is
        sent, when the iterables are known beforehand not to be equally long; TypeError for arguments of a wrong kind.
        """
        self._check_sending()
        require_topic("topic", topic)
        if partition is not None:
            require_kind("partition", partition, int, "a whole number or None")
        require_iterable("values", values, COLUMN)
        given = {"values": values, "keys": keys, "timestamps_ms": timestamps_ms, "headers": headers}
        columns = {name: column for name, column in given.items() if column is not None}
        for name, column in columns.items():
            require_iterable(name, column, COLUMN)
        check_lengths(columns)
        watch = None if self._is_plain else partial(self._watch, on_delivery=None)
        bulk = Bulk(self._acceptance, topic, partition, self._preparation, watch)
        stopped: Exception | None = None
        try:
            await feed_all(bulk, columns)
        except Exception as why:  # noqa: BLE001  (whatever it was: what was accepted ends, and the caller hears of it)
            stopped = why
        bulk.end()
        self._sender.wake()
        await bulk.acks.ended()
        errors = bulk.errors()
        if stopped is not None or errors:
            raise BatchError(bulk.acks, errors, bulk.unsent, stopped) from stopped
        return bulk.acks

    async def _accept_waiting(
        self, topic: str, value: Any, key: Any, partition: int | None, headers: RecordHeaders, timestamp_ms: int | None
    ) -> ProducerBatch:
        try:
            return await self._acceptance.accept_waiting(topic, value, key, partition, headers, timestamp_ms)
        except ClientError as error:
            self._refused((topic, value, key, partition, headers, timestamp_ms), error)
            raise

    def _refused(self, record: Record, error: ClientError) -> None:
        if self._preparation is not None:
            self._preparation.refused(record, error)

    def _is_turn_due(self) -> bool:
        """Whether sends have kept the loop for so long that it should have a turn: they run code of the program's."""
        now_ms = self._environment.monotonic_ms()
        if self._turn_began_ms is not None:
            return now_ms - self._turn_began_ms >= TURN_MS
        self._turn_began_ms = now_ms
        self._environment.loop.call_soon(self._turn_has_ended)
        return False

    def _turn_has_ended(self) -> None:
        self._turn_began_ms = None

    def _watch(self, delivery: Delivery, on_delivery: Callback | None) -> None:
        """Has interceptors and callbacks called when the record ends, the interceptors first."""
        if self._preparation is not None:
            self._preparation.watch(delivery)
        if self._on_delivery is not None:
            delivery.add_done_callback(self._on_delivery)
        if on_delivery is not None:
            delivery.add_done_callback(on_delivery)
