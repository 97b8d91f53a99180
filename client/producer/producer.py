"""The producer: accepts records, and promises that each one ends.

    async with Producer("localhost:9092", linger_ms=5) as producer:
        delivery = await producer.send("orders", b"value", key=b"k")    # waits for room
        ack = await delivery                                            # Ack(topic, partition, offset, timestamp_ms)

A record goes through interceptors and serializers, gets its partition, and is accepted when its bytes fit into
`buffer_memory`. From then on it ends by an acknowledgement, an error, or `delivery_timeout_ms`, whatever its sender
does. `send`, `send_nowait` and `send_batch` share one way into the accumulator, so what one task hands over keeps its
order within a partition whichever it used.

With a `transactional_id` it sends nothing but in transactions (`transaction`), of which it has one at a time.

A producer belongs to the event loop it was started in: any other use (before start, after close, from another loop,
another thread or a forked child) raises at once. Threads use `send_threadsafe`.

(Source: KafkaProducer.java; the waiting and the errors are those of its `doSend`.)
"""

import asyncio
import logging
from collections.abc import Iterable
from threading import get_ident
from types import TracebackType
from typing import Any, Literal, NoReturn, Self, overload

from odradek.client.arguments import require_all, require_iterable, require_topics
from odradek.client.cluster.cluster import Cluster
from odradek.client.configuration.signatures import config_of, configured_by
from odradek.client.errors.client_errors import ClientError, ProducerClosed, ProducerNotStarted, WrongLoop
from odradek.client.errors.transaction_errors import NoTransaction, NoTransactionalId
from odradek.client.metrics.metrics import BUFFER_AVAILABLE_BYTES, BUFFER_TOTAL_BYTES, WAITING_THREADS, client_metrics
from odradek.client.offset_commit import BindableConsumer
from odradek.client.producer.accepting.record_intake import RecordIntake
from odradek.client.producer.accepting.record_transform import RecordTransform
from odradek.client.producer.batching.accumulator import Accumulator
from odradek.client.producer.batching.limits import Limits
from odradek.client.producer.batching.memory import BufferMemory
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.idempotence.idempotence import Idempotence
from odradek.client.producer.record_calls import NOWHERE, RecordCalls
from odradek.client.producer.results.delivery import Ack, Delivery, Results, wait_for_all
from odradek.client.producer.sending.sender import Sender
from odradek.client.producer.transaction import Transaction, Transactions
from odradek.client.producer.transaction_session import TransactionSession, made_machine
from odradek.client.taking import taken
from odradek.runtime.environment import Environment, ThreadFuture, tell_when_forked
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)


class Producer(RecordCalls):
    """Sends records to any Kafka broker. The settings are those of `ProducerConfig`, by name, or one ready `config`."""

    @overload
    @configured_by(ProducerConfig)
    def __init__(self, config: ProducerConfig) -> None: ...
    @overload
    def __init__(self, *, config: ProducerConfig) -> None: ...
    def __init__(self, *values: Any, **settings: Any) -> None:
        config = self.config = config_of(ProducerConfig, values, settings)
        super().__init__(config, RecordTransform.of(config))
        self._metrics = client_metrics(config.metrics, config.client_id)
        self._state: Literal["new", "open", "closed", "forked"] = "new"
        self._closing: asyncio.Task[None] | None = None
        self._own_thread_id = NOWHERE
        """Of the loop, while it is open. (With transactions, `_thread_id` is never set: they send.)"""
        self._transactions: Transactions | None = None

    # --------------------------------------------------------------------------------------------- lifecycle
    async def start(self) -> Self:
        """Connects to the cluster. Raises ConnectionFailed or AuthenticationFailed; nothing is left behind then.

        With a `transactional_id` it gets its producer id, too, and so ends what another producer had begun under it,
        for which it waits up to `max_block_ms`. Raises then also RequestTimedOut and the coordinator's refusal.
        """
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
        self._assemble()
        if self._transactions is not None:
            try:
                await self._transactions.session.initialize()
            except BaseException:
                self._end()
                await self._taken_down()
                raise
        self._own_thread_id = get_ident()
        if self._transactions is None:
            self._thread_id = self._own_thread_id
        self._state = "open"
        tell_when_forked(self)
        self._sender.wake()
        return self

    def _assemble(self) -> None:
        config, environment, metrics, cluster = self.config, self._environment, self._metrics, self._cluster
        self._results = Results(environment.loop, environment.monotonic_ms, metrics, config.client_id)
        machine = made_machine(config, environment)
        idempotence = None
        if config.is_idempotent:
            idempotence = Idempotence(None if machine is None else machine.may_send)
        memory = BufferMemory(config.buffer_memory)
        self._accumulator = Accumulator(Limits.of(config), memory, self._results, idempotence, environment.random)
        self._sender = Sender(
            config, self._accumulator, cluster, idempotence, environment, self._tasks, metrics, machine
        )
        self._acceptance = self._made_intake()
        if machine is not None:
            assert idempotence is not None
            session = TransactionSession(
                config,
                environment,
                cluster,
                self._tasks,
                machine,
                idempotence,
                self._accumulator,
                self._sender,
                self._settled,
            )
            self._transactions = Transactions(
                config,
                session,
                self._preparation,
                self._accumulator,
                self._sender,
                environment,
                self._made_intake,
                self._check,
            )
        self._unwatch = [
            metrics.watch(BUFFER_TOTAL_BYTES, lambda: memory.limit_bytes),
            metrics.watch(BUFFER_AVAILABLE_BYTES, lambda: memory.free_bytes),
            metrics.watch(WAITING_THREADS, lambda: memory.waiting),
        ]
        cluster.subscribe(self._changed)
        self._sender.on_fatal = self._refresh
        if self._transactions is not None:
            self._sender.on_refusal = self._transactions.refuse
        self._is_running = environment.loop.is_running

    def _made_intake(self) -> RecordIntake:
        config, metrics = self.config, self._metrics
        return RecordIntake(config, self._accumulator, self._cluster, self._sender, self._environment, metrics)

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
            self._thread_id = self._own_thread_id = NOWHERE
            self._state = "closed"
            # At once, before anybody else has a turn: what is accepted from now on would never end.
            closed = ProducerClosed("the producer was closed while a record waited to be accepted")
            self._acceptance.close(closed)
            if self._transactions is not None:
                self._transactions.close(closed)
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
                if self._transactions is not None:
                    await self._transactions.session.close()
                await self._settled()
        except TimeoutError:
            logger.warning("%s: closed before everything was delivered", self.config.client_id)
        self._end()
        await self._taken_down()

    async def _taken_down(self) -> None:
        await self._cluster.close()
        await self._tasks.close()
        if self._preparation is not None:
            self._preparation.close()
        for unwatch in self._unwatch:
            unwatch()

    def _end(self) -> None:
        """Fails what is left, at once."""
        if self._transactions is not None:
            self._transactions.session.end()
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

    # ------------------------------------------------------------------------------------------ transactions
    def transaction(self, *, consumer: BindableConsumer | None = None) -> Transaction:
        """A transaction of this producer, which has a `transactional_id`. `async with` begins and ends it.

        With a consumer of a group, from this call on the producer's transactions alone commit for it: it commits
        nothing by itself, neither in the background (whatever `enable_auto_commit` says) nor when it gives partitions
        up or is closed. Each commit takes all that it has handed out so far; after an abort it goes back to what its
        group has committed. Nothing may have been read with it before.

        Raises NoTransactionalId, NoGroup, WrongUse, ConsumerClosed, TypeError.
        """
        self._check()
        if self._transactions is None:
            raise NoTransactionalId
        return Transaction(self._transactions, consumer)

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
        self._refresh()
        self._sender.wake()

    def _refresh(self) -> None:
        self._acceptance.refresh()
        if self._transactions is not None:
            self._transactions.refresh()

    def _check_sending(self) -> None:
        self._check()
        if self._transactions is not None:
            raise NoTransaction(self._transactions.session.transactional_id)

    def _check(self) -> None:
        """Raises if the producer cannot be used here and now."""
        if self._state != "open":
            raise self._wrong_state()
        if get_ident() != self._own_thread_id:
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
            self._thread_id = self._own_thread_id = NOWHERE
            self._state = "forked"
            if self._transactions is not None:
                self._transactions.was_forked()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Producer holds connections and cannot be pickled; make one where it is used")
