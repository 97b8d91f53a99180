"""The sender: takes ready batches from the accumulator to their leaders and does with each what the answer says.

It is a callback of the event loop, not a task: `wake` has `run` called once in this turn of the loop, however many
records came in it, and a timer has it called at the next moment at which something is due. So one awaited send costs
one turn, and nothing runs while nothing is to be done: with all brokers down, only the cluster's own backoff ticks.

    expire what is over its time → resolve sequences, ask for a producer id → ready → drain → compress → send

Requests leave in the order in which they were drained: while a batch over 64 KiB is compressed in a thread, nothing
else is drained for its node, and its partition stays muted even if the leader moves meanwhile.

What an answer means for a batch stands in `settlement`. (Source: Sender.java.)
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from odradek.client.cluster.cluster import Cluster
from odradek.client.errors.client_errors import (
    ClientError,
    DeliveryTimeout,
    PartitionVanished,
    UnsupportedVersion,
    broker_error,
)
from odradek.client.metrics.metrics import (
    BATCH_SIZE,
    COMPRESSION_RATE,
    POSSIBLE_LOSS_TOTAL,
    PRODUCER_EPOCH_BUMP_TOTAL,
    RECORD_QUEUE_TIME,
    RECORDS_PER_REQUEST,
    Metrics,
)
from odradek.client.network.backoff import Backoff
from odradek.client.network.connection import Connection
from odradek.client.producer.batching.accumulator import Accumulator
from odradek.client.producer.batching.batch import ProducerBatch
from odradek.client.producer.batching.queues import PartitionQueue
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.idempotence.idempotence import Idempotence
from odradek.client.producer.sending.compression import is_compressed_in_thread
from odradek.client.producer.sending.settlement import Answer, Settlement
from odradek.client.producer.transactions.machine import TransactionMachine
from odradek.client.producer.transactions.messages import V2_PRODUCE
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.batches.compression import Codec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)

TRANSACTION_TIMEOUT_MS: Final = 2**31 - 1
"""Of an idempotent producer without transactions, which has none."""
RETRY_MIN_MS: Final = 2.0
"""A node that cannot take a request is asked again after so long at the earliest: more than a timer may be early."""
ZSTD_SINCE: Final = 7
"""The version of Produce from which on zstd may be sent (KIP-110)."""
RIGHTS: Final = frozenset((ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
"""Refusals of a producer id that somebody may cure meanwhile. Any other is fatal (InitProducerIdHandler)."""


class Sender:
    """The way of batches from the accumulator to the brokers and back."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        cluster: Cluster,
        idempotence: Idempotence | None,
        environment: Environment,
        tasks: Tasks,
        metrics: Metrics,
        transactions: TransactionMachine | None = None,
    ) -> None:
        self.on_fatal: Callable[[], None] = lambda: None
        """Called when records are failed by `fatal_error`."""
        self.on_refusal: Callable[[ClientError], None] = lambda error: None
        """Called when records are failed because their transaction was."""
        self._config = config
        self._accumulator = accumulator
        self._cluster = cluster
        self._idempotence = idempotence
        self._environment = environment
        self._tasks = tasks
        self._metrics = metrics
        self._transactions = transactions
        self._settlement = Settlement(
            config, accumulator, cluster, idempotence, metrics, transactions, environment.random
        )
        self._codec = config.codec
        self._level = config.compression_level
        self._is_scheduled = False
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = float("inf")
        self._compressing: set[int] = set()  # nodes whose next request is being made in a thread
        self._blocked_since_ms: dict[int, float] = {}  # nodes that could not take what was ready
        self._is_asking_for_id = False
        self._ask_id_at_ms = 0.0  # not before, after a refusal
        self._id_refusals = 0  # in a row
        self._id_backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, environment.random)
        self._reported_bumps = 0

    @property
    def fatal_error(self) -> ClientError | None:
        """Nothing can be sent any more: authentication failed, or the cluster refused the producer as such."""
        in_transactions = None if self._transactions is None else self._transactions.fatal_error
        return in_transactions or self._settlement.fatal_error or self._cluster.fatal_error

    def wake(self) -> None:
        """Has `run` called in this turn of the loop."""
        if not self._is_scheduled and not self._is_closed:
            self._is_scheduled = True
            self._environment.loop.call_soon(self.run)

    def close(self) -> None:
        """Nothing is sent from now on."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def run(self, not_before_ms: float = 0.0) -> None:
        """One round. It ends with the timer set to the moment at which another one is due by itself."""
        self._is_scheduled = False
        if self._is_closed:
            return
        accumulator = self._accumulator
        accumulator.has_news = False
        accumulator.backlog = 0
        # A timer may ring up to a millisecond early (uvloop counts whole ones). What it was set for is due then: to set
        # it again for the rest would ring it over and over within that millisecond.
        now_ms = max(self._environment.monotonic_ms(), not_before_ms)
        self._expire(now_ms)
        if (error := self.fatal_error) is not None:
            self.on_fatal()
            self.fail_all(error)
            return
        if self._transactions is not None and (refusal := self._transactions.refusal) is not None:
            self.on_refusal(refusal)
            self.fail_unsent(refusal)
        next_ms = accumulator.next_deadline_ms
        state = self._idempotence
        if state is not None:
            next_ms = min(next_ms, self._resolve_sequences(state, now_ms))
        if state is None or state.has_producer_id:
            next_ms = min(next_ms, self._send_ready(now_ms))
        self._set_timer(next_ms)

    def fail_all(self, error: ClientError) -> None:
        """Ends every batch by this error."""
        for batch in list(self._accumulator.incomplete):
            self._settlement.give_up(batch, error)

    def fail_unsent(self, error: ClientError) -> None:
        """Ends every batch that is not on the wire by this error."""
        for batch in [each for each in self._accumulator.incomplete if not each.in_flight]:
            self._settlement.give_up(batch, error)

    # ------------------------------------------------------------------------------------------------ rounds
    def _expire(self, now_ms: float) -> None:
        for batch in self._accumulator.expired(now_ms):
            was_sent = batch.in_flight or batch.attempts > 0
            error = DeliveryTimeout(
                batch.topic,
                batch.partition,
                self._config.delivery_timeout_ms,
                was_sent=was_sent,
                last_error=batch.last_error,
            )
            self._settlement.give_up(batch, error)

    def _resolve_sequences(self, state: Idempotence, now_ms: float) -> float:
        """Does what is due in the idempotence state. Returns when to look again, without an event before."""
        state.advance()
        if state.bump_count > self._reported_bumps:
            self._metrics.count(PRODUCER_EPOCH_BUMP_TOTAL, state.bump_count - self._reported_bumps)
            self._reported_bumps = state.bump_count
        for gap in state.take_events():
            logger.warning("%s: %s", self._config.client_id, gap)
            self._metrics.count(POSSIBLE_LOSS_TOTAL, 1, gap.topic)
        if not state.needs_producer_id or self._is_asking_for_id:
            return float("inf")
        if self._id_refusals and not self._accumulator.incomplete:
            return float("inf")  # the next record asks again: somebody may have given the producer its rights by then
        if now_ms < self._ask_id_at_ms:
            return self._ask_id_at_ms
        self._is_asking_for_id = True
        self._tasks.start(self._obtain_producer_id(state), f"{self._config.client_id}: InitProducerId")
        return float("inf")

    def _send_ready(self, now_ms: float) -> float:
        """Sends what is ready to the nodes that can take it. Returns when to look again, without an event before."""
        ready = self._accumulator.ready(self._cluster.metadata.leader_of, now_ms)
        next_ms = ready.next_ms
        if ready.unknown_leaders:
            self._find_leaders(ready.unknown_leaders, now_ms)
        if self._blocked_since_ms:
            for node_id in self._blocked_since_ms.keys() - ready.nodes.keys():
                self._unblocked(node_id)  # nothing waits for it any more, and nothing would, were it still passed over
        for node_id, queues in ready.nodes.items():
            next_ms = min(next_ms, self._send_to(node_id, queues, now_ms))
        return next_ms

    def _find_leaders(self, topics: set[str], now_ms: float) -> None:
        for topic in topics:
            self._fail_vanished(topic)
            self._cluster.metadata.use(topic, now_ms)
            self._cluster.metadata.request_update(topic)

    def _fail_vanished(self, topic: str) -> None:
        """Fails what waits for partitions of a topic that was made anew with fewer."""
        known = self._cluster.metadata.topic(topic)
        if known is None or not known.replaces_another:
            return
        for queue in self._accumulator.topics[topic].partitions[known.partition_count :]:
            for batch in list(queue.batches):
                error = PartitionVanished(topic, queue.partition, known.partition_count, batch.count)
                self._settlement.give_up(batch, error)

    def _send_to(self, node_id: int, queues: Sequence[PartitionQueue], now_ms: float) -> float:
        """Sends a request to a node, if it can take one. Returns when to try again, without an event before."""
        if node_id in self._compressing:
            return float("inf")  # the end of it wakes us
        connection = self._cluster.connection(node_id)
        if connection is None:
            self._blocked(node_id, now_ms)
            # Not at once, even where it is due by now: the cluster has its own clock, see `run`.
            return max(self._cluster.retry_at_ms(node_id), now_ms + RETRY_MIN_MS)
        if connection.in_flight >= self._config.max_in_flight_requests_per_connection:
            self._blocked(node_id, now_ms)
            return float("inf")  # an answer wakes us
        self._unblocked(node_id)
        batches = self._accumulator.drain(queues, self._cluster.metadata.leader_of, now_ms)
        if batches:
            self._prepare(connection, batches)
            self.wake()  # there may be more
        return float("inf")

    def _blocked(self, node_id: int, now_ms: float) -> None:
        """A node cannot take what is ready. After a while the partitioner passes over its partitions (KIP-794)."""
        limit_ms = self._config.partitioner_availability_timeout_ms
        since_ms = self._blocked_since_ms.setdefault(node_id, now_ms)
        if limit_ms and now_ms - since_ms > limit_ms:
            self._accumulator.slow_nodes |= {node_id}

    def _unblocked(self, node_id: int) -> None:
        if self._blocked_since_ms.pop(node_id, None) is not None and node_id in self._accumulator.slow_nodes:
            self._accumulator.slow_nodes -= {node_id}

    def _set_timer(self, at_ms: float) -> None:
        """Has `run` called at this moment. A timer that rings before is left to set the next one: most moments pass by.

        (Each batch that begins lingers; to set a timer for each costs more than to ring once in a while for nothing.)
        """
        if self._timer is not None:
            if self._timer_ms <= at_ms < float("inf"):
                return
            self._timer.cancel()
            self._timer = None
        self._timer_ms = at_ms
        if at_ms < float("inf"):
            self._timer = self._environment.loop.call_at(at_ms / 1000.0, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self.run(self._timer_ms)

    # ----------------------------------------------------------------------------------------------- sending
    def _prepare(self, connection: Connection, batches: list[ProducerBatch]) -> None:
        """Compresses and seals what is not sealed yet, in a thread where that takes long, then writes the request."""
        unsealed = [batch for batch in batches if batch.encoded is None]
        if is_compressed_in_thread(self._codec, (batch.size for batch in unsealed)):
            self._compressing.add(connection.node_id)
            for batch in batches:
                self._accumulator.mute(batch)
            name = f"{self._config.client_id}: compress for node {connection.node_id}"
            self._tasks.start(self._prepare_in_thread(connection, batches, unsealed), name)
            return
        try:
            payloads = self._compressed(unsealed)
        except Exception as why:
            logger.exception("%s: compressing failed", self._config.client_id)
            self._fail_unsealed(unsealed, why)
        else:
            self._seal(unsealed, payloads)
        self._write(connection, batches)

    async def _prepare_in_thread(
        self, connection: Connection, batches: list[ProducerBatch], unsealed: list[ProducerBatch]
    ) -> None:
        try:
            payloads = await self._environment.run_blocking(self._compressed, unsealed)
        except asyncio.CancelledError:  # by the closing of the producer, which has ended them
            for batch in batches:
                self._accumulator.remove_in_flight(batch)
            raise
        except Exception as why:
            logger.exception("%s: compressing failed", self._config.client_id)
            self._fail_unsealed(unsealed, why)
        else:
            self._seal(unsealed, payloads)
        finally:
            self._compressing.discard(connection.node_id)
        for batch in batches:
            self._accumulator.unmute(batch)
        self._write(connection, batches)
        self.wake()

    def _compressed(self, batches: Sequence[ProducerBatch]) -> list[Sequence[bytes]]:
        return [batch.compressed(self._codec, self._level) for batch in batches]

    def _seal(self, batches: Sequence[ProducerBatch], payloads: Sequence[Sequence[bytes]]) -> None:
        for batch, payload in zip(batches, payloads, strict=True):
            if self._codec is not Codec.NONE:
                before_bytes = batch.size - HEADER_SIZE
                payload_bytes = sum(map(len, payload))
                self._accumulator.topics[batch.topic].observe_ratio(payload_bytes, before_bytes)
                self._metrics.observe(COMPRESSION_RATE, payload_bytes / before_bytes, batch.topic)
            batch.seal(payload, self._codec)
            self._metrics.observe(BATCH_SIZE, batch.sent_bytes, batch.topic)
            self._metrics.observe(RECORD_QUEUE_TIME, self._environment.monotonic_ms() - batch.created_ms)

    def _fail_unsealed(self, batches: Sequence[ProducerBatch], why: Exception) -> None:
        """Ends batches that could not be compressed. `_write` leaves them out then."""
        for batch in batches:
            error = ClientError(
                f"{batch.count} record(s) for {batch.topic}-{batch.partition} could not be compressed with "
                f"{self._codec.name.lower()}: {type(why).__name__}: {why}",
                hint="Send them again; if that fails too, choose another compression_type.",
            )
            error.__cause__ = why
            self._settlement.give_up(batch, error)

    def _write(self, connection: Connection, batches: list[ProducerBatch]) -> None:
        """Sends one request with these batches, without those that have ended while they were compressed."""
        now_ms = self._environment.monotonic_ms()
        sent: list[ProducerBatch] = []
        topics: dict[str, list[PartitionProduceData]] = {}
        for batch in batches:
            if batch.result.is_done:
                self._accumulator.remove_in_flight(batch)
                continue
            assert batch.encoded is not None
            sent.append(batch)
            data = PartitionProduceData(index=batch.partition, records=batch.encoded)
            topics.setdefault(batch.topic, []).append(data)
        if not sent:
            return
        for topic in topics:
            self._cluster.metadata.use(topic, now_ms)
        timeout_ms = self._config.request_timeout_ms
        request = ProduceRequest(
            transactional_id=self._config.transactional_id,
            acks=self._config.acks,
            timeout_ms=timeout_ms,
            topic_data=[TopicProduceData(name=topic, partition_data=data) for topic, data in topics.items()],
        )
        self._metrics.observe(RECORDS_PER_REQUEST, sum(batch.count for batch in sent))
        answered = partial(self._answered, connection, sent)
        try:
            version = self._produce_version(connection)
            if version < ZSTD_SINCE and self._codec is Codec.ZSTD:
                raise UnsupportedVersion("Produce", f"broker {connection.node_id}", (ZSTD_SINCE, 11), (3, version))
        except ClientError as error:
            self._environment.loop.call_soon(answered, error)
            return
        expects_response = self._config.acks != 0
        connection.send(request, version, answered, timeout_ms=timeout_ms, expects_response=expects_response)

    def _produce_version(self, connection: Connection) -> int:
        """Topics are named, so up to 12; that adds partitions to a transaction. Raises UnsupportedVersion."""
        is_added = self._transactions is not None and self._transactions.uses_v2
        version = connection.version_of(ProduceRequest, V2_PRODUCE if is_added else V2_PRODUCE - 1)
        if is_added and version < V2_PRODUCE:
            raise UnsupportedVersion("Produce", connection.broker, (V2_PRODUCE, V2_PRODUCE), (3, version))
        return version

    def _answered(self, connection: Connection, batches: list[ProducerBatch], answer: Answer) -> None:
        self._settlement.apply_answer(connection.node_id, batches, answer, self._environment.monotonic_ms())
        self.wake()

    # ------------------------------------------------------------------------------------------ producer id
    async def _obtain_producer_id(self, state: Idempotence) -> None:
        """Asks for a producer id until there is one, or it is refused. Batches end by their own timeout meanwhile."""
        failures = 0
        try:
            while not self._is_closed:
                error = await self._ask_for_producer_id(state)
                if error is None:
                    self._id_refusals = 0
                    return
                if not error.retriable:
                    self._id_was_refused(error)
                    return
                await self._environment.sleep(self._id_backoff.after_ms(failures))
                failures += 1
        finally:
            self._is_asking_for_id = False
            self.wake()

    async def _ask_for_producer_id(self, state: Idempotence) -> ClientError | None:
        """Asks once. Returns why there is no id; None: there is one now."""
        request = InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS, producer_id=-1, producer_epoch=-1
        )
        try:
            answer = await self._cluster.ask(request, timeout_ms=self._config.request_timeout_ms)
        except ClientError as error:
            return error
        if answer.error_code:
            return broker_error(answer.error_code, "", "InitProducerId, which idempotence needs,")
        state.set_producer_id(answer.producer_id, answer.producer_epoch)
        return None

    def _id_was_refused(self, error: ClientError) -> None:
        if self._is_closed or self.fatal_error is not None:
            return  # this is why
        if not self._id_refusals:
            logger.error("%s: without a producer id nothing can be sent: %s", self._config.client_id, error)
        if error.code not in RIGHTS:
            self._settlement.fatal_error = error  # `run` does the rest
            return
        self._ask_id_at_ms = self._environment.monotonic_ms() + self._id_backoff.after_ms(self._id_refusals)
        self._id_refusals += 1
        self.fail_all(error)
