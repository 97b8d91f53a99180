"""The way of one record into the accumulator: its size, its partition, its memory, and the waits for what is missing.

`accept` is what a record costs when nothing is missing: a few look-ups, an append, no await and no object but its
tuple. It raises MetadataMissing or BufferFull where it would have to wait; `accept_waiting` waits, no longer than
`max_block_ms` altogether. A record is accepted when `accept` returns, and not a moment before: who is cancelled while
waiting leaves nothing behind. After `close` nothing is accepted, whoever has waited or waits.

The partition of a record is, in this order: its own; what the user's partitioner says; by the key, murmur2 over all
partitions; else the sticky one (KIP-794). (Source: KafkaProducer.java `doSend`, `waitOnMetadata`, `partition`.)
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from odradek.client.arguments import require_kind, require_topic
from odradek.client.cluster.cluster import Cluster
from odradek.client.errors.client_errors import (
    BufferExhausted,
    BufferFull,
    ClientError,
    InvalidPartition,
    MetadataMissing,
    PartitionerFailed,
    RecordTooLarge,
    SerializationError,
)
from odradek.client.metrics.metrics import BUFFER_EXHAUSTED_TOTAL, BUFFERPOOL_WAIT_TIME, METADATA_WAIT_TIME, Metrics
from odradek.client.producer.batching.accumulator import Accumulator
from odradek.client.producer.batching.batch import (
    BATCH_OVERHEAD_BYTES,
    RECORD_OVERHEAD_BYTES,
    ProducerBatch,
    estimated_size,
)
from odradek.client.producer.batching.queues import PartitionQueue, TopicQueues
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.hooks.partitioner import NewBatchListener
from odradek.client.producer.hooks.serialization import encoded_headers, require_bytes
from odradek.client.producer.record import RecordHeaders
from odradek.client.producer.sending.sender import Sender
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.batches.records import Headers
from odradek.protocol.murmur2 import partition_for_key
from odradek.runtime.environment import NS_PER_MS, Environment


class RecordIntake:
    """Accepts the records of one producer, after interceptors and serializers."""

    def __init__(
        self,
        config: ProducerConfig,
        accumulator: Accumulator,
        cluster: Cluster,
        sender: Sender,
        environment: Environment,
        metrics: Metrics,
    ) -> None:
        self._config = config
        self.accumulator = accumulator
        self._cluster = cluster
        self._sender = sender
        self._metadata = cluster.metadata
        self.leader_of = cluster.metadata.leader_of
        self._environment = environment
        self.now_ns = environment.now_ns
        self.monotonic_ms = environment.monotonic_ms
        self._topics: dict[str, TopicQueues] = {}  # those whose metadata is known
        self._waits: dict[asyncio.Timeout, None] = {}  # for memory and for metadata, each with its limit
        self._closed_by: ClientError | None = None
        self._partitioner = config.partitioner
        self.has_partitioner = config.partitioner is not None
        listener: object = config.partitioner
        self._on_new_batch = listener.on_new_batch if isinstance(listener, NewBatchListener) else None
        self._metrics = metrics
        self.ignores_keys = config.partitioner_ignore_keys
        self.size_max = min(config.max_request_size, config.buffer_memory - BATCH_OVERHEAD_BYTES) - HEADER_SIZE
        self._metadata_version = -1

    # ----------------------------------------------------------------------------------------------- accepting
    def accept(  # noqa: C901 (what every record costs: one way, few calls)
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        headers: RecordHeaders,
        timestamp_ms: int | None,
        claimed_bytes: int = 0,
    ) -> ProducerBatch:
        """Accepts a record and returns the batch in which it is the last one.

        `claimed_bytes`: memory that it waited for, see `Accumulator.begin`; an error leaves that to the caller.
        Raises RecordTooLarge, InvalidPartition, what the user's partitioner raises, and, where waiting helps,
        MetadataMissing and BufferFull.
        """
        try:
            queues = self._topics.get(topic)
        except TypeError:
            require_topic("topic", topic)  # it cannot be hashed
            raise
        if queues is None:
            queues = self._find(topic)
        size = RECORD_OVERHEAD_BYTES
        if type(value) is bytes:
            size += len(value)
        elif value is not None:
            value = require_bytes(topic, "value", value)
            size += len(value)
        if key is not None:
            if type(key) is not bytes:
                key = require_bytes(topic, "key", key)
            size += len(key)
        encoded: Headers = ()
        if headers:
            encoded = encoded_headers(topic, headers)
            size = estimated_size(key, value, encoded)
        if size > self.size_max:
            raise self._too_large(topic, size)
        if timestamp_ms is None:
            timestamp_ms = self.now_ns() // NS_PER_MS
        elif not are_timestamps((timestamp_ms,)):
            why = "it must be a whole number from 0 to 2^63-1, milliseconds since 1970"
            raise SerializationError(topic, "timestamp_ms", timestamp_ms, why)
        accumulator = self.accumulator
        if partition is None and self._partitioner is None and (key is None or self.ignores_keys):
            batch = (
                None if claimed_bytes else accumulator.append_sticky(queues, timestamp_ms, key, value, encoded, size)
            )
            if batch is None:
                queue = accumulator.sticky_queue(queues, size, self.leader_of)
                if not claimed_bytes:
                    batch = accumulator.append(queue, timestamp_ms, key, value, encoded, size)
                batch = batch or self._begin(queue, timestamp_ms, key, value, encoded, size, claimed_bytes)
                queues.sticky.appended(size, queue.is_complete)
            return batch
        if partition is None and self._partitioner is None and key is not None:
            queue = queues.partitions[partition_for_key(key, queues.partition_count)]
        else:
            queue = self._chosen(queues, partition, key, value, size)
        batch = None if claimed_bytes else accumulator.append(queue, timestamp_ms, key, value, encoded, size)
        return batch or self._begin(queue, timestamp_ms, key, value, encoded, size, claimed_bytes)

    def _begin(
        self,
        queue: PartitionQueue,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size: int,
        claimed_bytes: int,
    ) -> ProducerBatch:
        """Accepts a record that does not fit into the open batch, and wakes the sender where it has news.

        Raises BufferFull.
        """
        now_ms = self.monotonic_ms()
        batch = self.accumulator.begin(queue, timestamp_ms, key, value, headers, size, now_ms, claimed_bytes)
        if batch is None:
            self._sender.wake()  # it sends what lingers when memory is short
            memory = self.accumulator.memory
            raise BufferFull(size + BATCH_OVERHEAD_BYTES, memory.free_bytes, memory.waiting)
        self.tell(queue, now_ms)
        return batch

    def tell(self, queue: PartitionQueue, now_ms: float) -> None:
        """After records were accepted, perhaps in a new batch: wakes the sender where it has news."""
        self._metadata.use(queue.topic.name, now_ms)
        if self.accumulator.has_news:
            self._sender.wake()

    async def accept_waiting(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        headers: RecordHeaders,
        timestamp_ms: int | None,
    ) -> ProducerBatch:
        """The same, after waiting for metadata and for memory, `max_block_ms` at most.

        `headers` may be read more than once. Raises MetadataTimeout, BufferExhausted, and what `accept` raises but for
        the two.
        """
        deadline_ms = self.monotonic_ms() + self._config.max_block_ms
        claimed_bytes = 0
        while True:
            try:
                return self.accept(topic, value, key, partition, headers, timestamp_ms, claimed_bytes)
            except MetadataMissing:
                self._give_back(claimed_bytes)
                claimed_bytes = 0
                await self._wait_for_topic(topic, deadline_ms)
            except BufferFull as full:
                claimed_bytes = await self.claim(full.size_bytes, topic, deadline_ms)
            except BaseException:
                self._give_back(claimed_bytes)
                raise

    async def topic_waiting(self, topic: str) -> TopicQueues:
        """The queues of a topic, after waiting for its metadata. Raises MetadataTimeout."""
        deadline_ms = self.monotonic_ms() + self._config.max_block_ms
        while True:
            try:
                return self._topics.get(topic) or self._find(topic)
            except MetadataMissing:
                await self._wait_for_topic(topic, deadline_ms)

    async def _wait_for_topic(self, topic: str, deadline_ms: float) -> None:
        began_ms = self.monotonic_ms()
        limit = asyncio.timeout(None)
        self._waits[limit] = None
        try:
            async with limit:
                await self._cluster.wait_for_topic(topic, deadline_ms)
        except TimeoutError:
            self._check_open()
            raise
        finally:
            del self._waits[limit]
        self._metrics.observe(METADATA_WAIT_TIME, self.monotonic_ms() - began_ms)

    async def accept_in(
        self, queue: PartitionQueue, timestamp_ms: int, key: bytes | None, value: bytes | None, size: int
    ) -> ProducerBatch:
        """Accepts a plain record in this partition, after waiting for memory, and wakes the sender where it has news.

        Raises BufferExhausted.
        """
        now_ms = self.monotonic_ms()
        deadline_ms = now_ms + self._config.max_block_ms
        claimed_bytes = 0
        while True:
            batch = self.accumulator.begin(queue, timestamp_ms, key, value, (), size, now_ms, claimed_bytes)
            if batch is not None:
                self.tell(queue, now_ms)
                return batch
            claimed_bytes = await self.claim(size + BATCH_OVERHEAD_BYTES, queue.topic.name, deadline_ms)
            now_ms = self.monotonic_ms()

    async def claim(self, size_bytes: int, topic: str, deadline_ms: float) -> int:
        """Waits for memory in a fair queue and returns its size. Raises BufferExhausted at the deadline.

        Nothing is left behind when it raises, or is cancelled.
        """
        memory = self.accumulator.memory
        began_ms = self.monotonic_ms()
        granted = self._environment.loop.create_future()

        def wake() -> None:
            if not granted.done():
                granted.set_result(None)

        limit = asyncio.timeout_at(deadline_ms / 1000.0)
        claim = memory.queue(size_bytes, wake)
        self._waits[limit] = None
        self._sender.wake()  # it sends what lingers when memory is short
        try:
            async with limit:
                await granted
            self._check_open()
        except BaseException as why:
            memory.cancel(claim)
            if isinstance(why, TimeoutError):
                self._check_open()
                self._metrics.count(BUFFER_EXHAUSTED_TOTAL, 1)
                raise BufferExhausted(topic, size_bytes, memory.limit_bytes, self._config.max_block_ms) from None
            raise
        finally:
            del self._waits[limit]
            self._metrics.observe(BUFFERPOOL_WAIT_TIME, self.monotonic_ms() - began_ms)
        return size_bytes

    def close(self, error: ClientError) -> None:
        """Accepts nothing from now on, and ends every wait: each record is told this error.

        It costs accepted records nothing: without topics, each one has to be looked up by `_find`.
        """
        self._closed_by = error
        self._topics.clear()
        for limit in self._waits:
            if not limit.expired():
                limit.reschedule(self._environment.loop.time())

    def _check_open(self) -> None:
        if self._closed_by is not None:
            raise self._closed_by.fresh() from None

    def _give_back(self, claimed_bytes: int) -> None:
        if claimed_bytes:
            self.accumulator.memory.give_back(claimed_bytes)

    # ------------------------------------------------------------------------------------------------ topics
    def _find(self, name: str) -> TopicQueues:
        """The queues of a topic that is accepted for the first time, or again after its metadata was gone.

        What is no topic's name is never known, so that it is told of here, at no cost to others. Raises TypeError.
        """
        require_topic("topic", name)
        self._check_open()
        if (error := self._sender.fatal_error) is not None:
            raise error.fresh()
        known = self._metadata.topic(name)
        if known is None:
            self._metadata.use(name, self.monotonic_ms())
            if (error := self._metadata.error_of(name)) is not None:
                raise error
            raise MetadataMissing(name)
        queues = self.accumulator.topic(name)
        queues.update(known.partition_count, known.available)
        self._topics[name] = queues
        return queues

    def refresh(self) -> None:
        """Takes over newer metadata: numbers of partitions, those with a leader, topics that are gone."""
        if self._sender.fatal_error is not None:
            self._topics.clear()  # so that each record is told by `_find`
        elif self._metadata_version != self._metadata.version:
            self._metadata_version = self._metadata.version
            for name in list(self._topics):
                known = self._metadata.topic(name)
                if known is None:
                    del self._topics[name]
                else:
                    self._topics[name].update(known.partition_count, known.available)
                    self.accumulator.forget_limits(name)

    # -------------------------------------------------------------------------------------------- partitions
    def own_partition(self, queues: TopicQueues, partition: int) -> PartitionQueue:
        try:
            if 0 <= partition < queues.partition_count:
                return queues.partitions[partition]
        except TypeError:
            require_kind("partition", partition, int, "a whole number or None")
            raise
        self._cluster.metadata.request_update()  # somebody may have added partitions
        raise InvalidPartition(queues.name, partition, queues.partition_count)

    def _chosen(
        self, queues: TopicQueues, partition: int | None, key: bytes | None, value: bytes | None, size: int
    ) -> PartitionQueue:
        """The record's own partition, or the one that the user's partitioner chooses.

        The partitioner is asked again when its choice begins a new batch.
        """
        if partition is not None:
            return self.own_partition(queues, partition)
        queue = self._ask_partitioner(queues, key, value)
        if self._on_new_batch is not None and self.accumulator.room(queue, size) is None:
            self._sender.wake()  # the batch that it did not fit into may go, even if the partitioner fails now
            try:
                self._on_new_batch(queues.name, queue.partition)
            except Exception as why:
                raise PartitionerFailed(queues.name, _name_of(self._partitioner), why) from why
            queue = self._ask_partitioner(queues, key, value)
        return queue

    def _ask_partitioner(self, queues: TopicQueues, key: bytes | None, value: bytes | None) -> PartitionQueue:
        assert self._partitioner is not None
        count = queues.partition_count
        try:
            chosen: Any = self._partitioner.partition(queues.name, key, value, count, queues.available)
        except Exception as why:
            raise PartitionerFailed(queues.name, _name_of(self._partitioner), why) from why
        if not isinstance(chosen, int) or not 0 <= chosen < count:
            raise InvalidPartition(queues.name, chosen, count, _name_of(self._partitioner))
        return queues.partitions[chosen]

    def _too_large(self, topic: str, size: int) -> RecordTooLarge:
        config = self._config
        if size + HEADER_SIZE > config.max_request_size:
            return RecordTooLarge(topic, size, config.max_request_size, "max_request_size")
        return RecordTooLarge(topic, size, config.buffer_memory, "buffer_memory")


def are_timestamps(timestamps_ms: Sequence[int]) -> bool:
    """Whether Kafka takes all of these (at least one): ProducerRecord.java refuses those before 1970 too."""
    return set(map(type, timestamps_ms)) == {int} and min(timestamps_ms) >= 0 and max(timestamps_ms) < 1 << 63


def _name_of(partitioner: object) -> str:
    return type(partitioner).__name__
