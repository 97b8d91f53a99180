"""The producer: accepts records, and promises that each one ends.

    async with Producer("localhost:9092", linger_ms=5) as producer:
        delivery = await producer.send("orders", b"value", key=b"k")    # waits for room
        ack = await delivery                                            # Ack(topic, partition, offset, timestamp_ms)

A record goes through interceptors and serializers, gets its partition, and is accepted when its bytes fit into
`buffer_memory`. From then on it ends by an acknowledgement, an error, or `delivery_timeout_ms`, whatever its sender
does. `send`, `send_nowait` and `send_batch` share one way into the accumulator, so what one task hands over keeps its
order within a partition whichever it used.

A producer belongs to the event loop it was started in: any other use (before start, after close, from another loop,
another thread or a forked child) raises at once. Threads use `send_threadsafe`.

(Source: KafkaProducer.java; the waiting and the errors are those of its `doSend`.)
"""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from threading import get_ident
from types import TracebackType
from typing import Any, Final, Literal, NoReturn, Self, overload

from odradek.client.arguments import (
    require_all,
    require_callback,
    require_iterable,
    require_kind,
    require_topic,
    require_topics,
)
from odradek.client.cluster.cluster import Cluster
from odradek.client.configuration.signatures import config_of, configured_by
from odradek.client.errors.client_errors import (
    BatchError,
    BufferFull,
    ClientError,
    MetadataMissing,
    ProducerClosed,
    ProducerNotStarted,
    WrongLoop,
)
from odradek.client.metrics.metrics import BUFFER_AVAILABLE_BYTES, BUFFER_TOTAL_BYTES, WAITING_THREADS, client_metrics
from odradek.client.producer.accepting.bulk import Bulk, check_lengths, feed_all
from odradek.client.producer.accepting.record_intake import RecordIntake
from odradek.client.producer.accepting.record_transform import Record, RecordTransform
from odradek.client.producer.batching.accumulator import Accumulator
from odradek.client.producer.batching.batch import ProducerBatch
from odradek.client.producer.batching.limits import Limits
from odradek.client.producer.batching.memory import BufferMemory
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.hooks.interceptors import lasting
from odradek.client.producer.idempotence.idempotence import Idempotence
from odradek.client.producer.record import RecordHeaders
from odradek.client.producer.results.bulk_acks import BulkAcks
from odradek.client.producer.results.delivery import Ack, Callback, Delivery, Results, wait_for_all
from odradek.client.producer.sending.sender import Sender
from odradek.client.taking import TURN_MS, taken
from odradek.runtime.environment import Environment, ThreadFuture, tell_when_forked
from odradek.runtime.tasks import Tasks, breathe

logger = logging.getLogger(__name__)

NOWHERE: Final = 0
"""No thread's id."""
COLUMN: Final = "an iterable with an item for each record"
BACKLOG_MAX: Final = 512
"""When so much is ready to be sent, `send` gives the loop a turn. (After every batch, requests would be small: with
records of 1 KiB they took 7 µs of CPU a record, and 5 so.)"""


class Producer:
    """Sends records to any Kafka broker. The settings are those of `ProducerConfig`, by name, or one ready `config`."""

    @overload
    @configured_by(ProducerConfig)
    def __init__(self, config: ProducerConfig) -> None: ...
    @overload
    def __init__(self, *, config: ProducerConfig) -> None: ...
    def __init__(self, *values: Any, **settings: Any) -> None:
        config = self.config = config_of(ProducerConfig, values, settings)
        self._metrics = client_metrics(config.metrics, config.client_id)
        self._thread_id = NOWHERE
        """Of the loop, while records are accepted. (To ask asyncio for the running loop costs twice as much.)"""
        self._state: Literal["new", "open", "closed", "forked"] = "new"
        self._closing: asyncio.Task[None] | None = None
        self._preparation = RecordTransform.of(config)
        self._on_delivery: Callback | None = config.on_delivery
        self._is_plain = self._preparation is None and self._on_delivery is None
        self._runs_code = self._preparation is not None or config.partitioner is not None
        self._turn_began_ms: float | None = None  # the first `send` in this turn of the loop, where that runs code

    # --------------------------------------------------------------------------------------------- lifecycle
    async def start(self) -> Self:
        """Connects to the cluster. Raises ConnectionFailed or AuthenticationFailed; nothing is left behind then."""
        if self._state != "new":
            raise ProducerClosed("this producer was started before; make a new one")
        self._state = "closed"  # should anything go wrong
        config = self.config
        self._environment: Environment = config.environment()
        self._tasks = Tasks(self._environment.loop)
        self._for_threads = Tasks(self._environment.loop)  # they end with their records, also while this is closed
        self._for_threads.failed = lambda error: True  # the thread gets it
        self._cluster = Cluster(config, self._environment, self._tasks, metrics=self._metrics)
        try:
            await self._cluster.start()
        except BaseException:
            await self._cluster.close()
            await self._tasks.close()
            raise
        environment = self._environment
        self._results = Results(environment.loop, environment.monotonic_ms, self._metrics, config.client_id)
        idempotence = Idempotence() if config.is_idempotent else None
        memory = BufferMemory(config.buffer_memory)
        self._accumulator = Accumulator(Limits.of(config), memory, self._results, idempotence, environment.random)
        metrics, cluster = self._metrics, self._cluster
        self._sender = Sender(config, self._accumulator, cluster, idempotence, environment, self._tasks, metrics)
        self._acceptance = RecordIntake(config, self._accumulator, cluster, self._sender, environment, metrics)
        self._unwatch = [
            metrics.watch(BUFFER_TOTAL_BYTES, lambda: memory.limit_bytes),
            metrics.watch(BUFFER_AVAILABLE_BYTES, lambda: memory.free_bytes),
            metrics.watch(WAITING_THREADS, lambda: memory.waiting),
        ]
        self._cluster.subscribe(self._changed)
        self._sender.on_fatal = self._acceptance.refresh
        self._is_running = environment.loop.is_running
        self._thread_id = get_ident()
        self._state = "open"
        tell_when_forked(self)
        self._sender.wake()
        return self

    async def close(self) -> None:
        """Delivers what was accepted, for `close_timeout_ms` at most, fails the rest, and closes the connections.

        It may be called again. Cancelled, it waits for nothing more. Raises UndeliveredRecords for failures that
        nobody has looked at.
        """
        if self._state == "new":
            self._state = "closed"
        if self._closing is None:
            if self._state == "closed":
                return  # it never came to anything
            self._check()
            self._thread_id = NOWHERE
            self._state = "closed"
            # At once, before anybody else has a turn: what is accepted from now on would never end.
            self._acceptance.close(ProducerClosed("the producer was closed while a record waited to be accepted"))
            self._closing = self._tasks.start(self._close(), f"{self.config.client_id}: close")
        elif asyncio.get_running_loop() is not self._environment.loop:
            raise WrongLoop("producer")
        try:
            await asyncio.shield(self._closing)
        except asyncio.CancelledError:
            self._end()
            raise
        self._results.report()

    async def _close(self) -> None:
        """In a task of its own, so that a `close` that is cancelled does not leave half of it undone."""
        try:
            async with asyncio.timeout(self.config.close_timeout_ms / 1000.0):
                await self._settled()
        except TimeoutError:
            logger.warning("%s: closed before everything was delivered", self.config.client_id)
        self._end()
        await self._cluster.close()
        await self._tasks.close()
        if self._preparation is not None:
            self._preparation.close()
        for unwatch in self._unwatch:
            unwatch()

    def _end(self) -> None:
        """Fails what is left, at once."""
        self._sender.fail_all(ProducerClosed("the producer was closed before the record was acknowledged"))
        self._sender.close()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def buffer_available_bytes(self) -> int:
        """How much of `buffer_memory` is free. Raises ProducerNotStarted."""
        if self._state == "new":
            raise ProducerNotStarted
        return self._accumulator.memory.free_bytes

    # ----------------------------------------------------------------------------------------------- sending
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
            self._check()
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
            self._check()
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
        self._check()
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

    def send_threadsafe(self, topic: str, value: Any = None, **record: Any) -> ThreadFuture[Ack]:
        """Sends a record from another thread. The future has its Ack, or its error; the arguments are those of `send`.

        Raises ProducerNotStarted and ProducerClosed, and WrongLoop in a forked child.
        """
        if self._state != "open":
            raise self._wrong_state()
        return self._environment.run_threadsafe(self._send_and_wait(topic, value, record))

    async def _send_and_wait(self, topic: str, value: Any, record: dict[str, Any]) -> Ack:
        task = asyncio.current_task()
        assert task is not None
        self._for_threads.adopt(task)  # its first step: nothing is accepted before
        return await (await self.send(topic, value, **record))

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

    # ----------------------------------------------------------------------------------------------- waiting
    async def prepare(self, *topics: str) -> None:
        """Learns the partitions of these topics, so that `send_nowait` takes records for them.

        Raises MetadataTimeout after `max_block_ms`, InvalidTopic, AuthorizationError.
        """
        self._check()
        require_topics("the arguments of prepare", topics)
        for topic in topics:
            await self._acceptance.topic_waiting(topic)

    async def flush(self) -> None:
        """Sends everything accepted so far without lingering, and returns when it has ended.

        Raises UndeliveredRecords when records failed since the last flush and nobody has looked at them.
        """
        self._check()
        await self._settled()
        self._results.report()

    @overload
    async def gather(
        self, deliveries: Iterable[Delivery], *, return_exceptions: Literal[False] = False
    ) -> list[Ack]: ...
    @overload
    async def gather(
        self, deliveries: Iterable[Delivery], *, return_exceptions: Literal[True]
    ) -> list[Ack | ClientError]: ...
    async def gather(
        self, deliveries: Iterable[Delivery], *, return_exceptions: bool = False
    ) -> list[Ack] | list[Ack | ClientError]:
        """Waits for many deliveries, without a task for each, and returns their Acks in the same order.

        When all have ended, raises the first error, or has errors among the Acks with `return_exceptions`.
        """
        require_iterable("deliveries", deliveries, "an iterable of Delivery objects")
        all_of_them = await taken(deliveries)
        if set(map(type, all_of_them)) - {Delivery}:
            require_all("deliveries", all_of_them, Delivery, "Delivery objects, as send returns them when awaited")
        await wait_for_all(all_of_them)
        if not return_exceptions:
            return [delivery.result() for delivery in all_of_them]
        return [delivery.exception() or delivery.result() for delivery in all_of_them]

    async def _settled(self) -> None:
        """Returns when every record accepted so far has ended; nothing lingers meanwhile."""
        accumulator = self._accumulator
        accumulator.flushing += 1
        self._sender.wake()
        try:
            for batch in list(accumulator.incomplete):
                await batch.result.ended()
        finally:
            accumulator.flushing -= 1

    # --------------------------------------------------------------------------------------------- what else
    def _changed(self) -> None:
        """The cluster has changed: a connection, its state, or metadata."""
        self._acceptance.refresh()
        self._sender.wake()

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

    def _check(self) -> None:
        """Raises if the producer cannot be used here and now."""
        if self._state != "open":
            raise self._wrong_state()
        if get_ident() != self._thread_id:
            raise WrongLoop("producer", "in another thread than its event loop")
        if not self._is_running():
            raise WrongLoop("producer", "outside of its event loop")

    def _wrong_state(self) -> ClientError:
        if self._state == "forked":
            return WrongLoop("producer", "in a forked child")
        return ProducerNotStarted() if self._state == "new" else ProducerClosed()

    def was_forked(self) -> None:
        """In a child, which has this producer's connections and not its event loop."""
        if self._state == "open":
            self._thread_id = NOWHERE
            self._state = "forked"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Producer holds connections and cannot be pickled; make one where it is used")
