"""The accumulator: accepted records in batches, a queue for each partition, and what may be sent when.

Pure: it takes `now_ms` (monotonic) and is drained; it knows no loop, clock or socket. What it needs to know of the
cluster comes as a callable, `leader_of(topic, partition) -> (node id or -1, leader epoch)`.

    append               a record joins the last batch of its partition, or begins one
    ready                which nodes have something to send now, and when to look again
    drain                takes at most one batch of each partition for one request to a node, in rotation
    requeue, split       a batch goes back to its queue, in order of its sequence, whole or in parts
    complete, fail       a batch ends; its memory is released once nobody holds its bytes

A batch is ready when it is full, has lingered, when somebody waits for memory, while flushing and closing, and when its
backoff is over. As in Kafka, a node that is ready for one partition is given batches of its other partitions too.
A partition sends nothing while it is muted: one batch in flight at a time where
`max_in_flight_requests_per_connection` is 1, and none beside a batch that a thread is still compressing.

(Source: RecordAccumulator.java.)
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.client.errors.client_errors import ClientError
from odradek.client.network.backoff import Backoff
from odradek.client.producer.batching.batch import BATCH_OVERHEAD_BYTES, ProducerBatch
from odradek.client.producer.batching.limits import Limits
from odradek.client.producer.batching.memory import BufferMemory
from odradek.client.producer.batching.queues import PartitionQueue, TopicQueues
from odradek.client.producer.hooks.partitioner import StickyPartitioner
from odradek.client.producer.idempotence.idempotence import Idempotence
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.records import Headers

if TYPE_CHECKING:  # it knows the event loop, which this module does not
    from odradek.client.producer.results.produce_results import Results

__all__ = ["Accumulator", "Ready"]

LeaderOf = Callable[[str, int], tuple[int, int]]

BATCH_WEIGHT: Final = 128
"""A batch costs the sender as much as so many records cost who sends them."""
RATIO_SAFETY: Final = 1.05
"""A batch is filled as if its records compressed a little worse than those before (CompressionRatioEstimator.java)."""
LIMIT_TOLERANCE: Final = 4 / 3
"""A batch that waits is cut when it is so much larger than the limit, which is half of what was refused: so halves that
are not quite equal, or compress a little worse, are not cut again before the broker has seen one."""


class Ready(NamedTuple):
    """What `ready` found: partitions that may be drained, by node, when to look again, and topics without a leader."""

    nodes: dict[int, list[PartitionQueue]]
    next_ms: float
    unknown_leaders: set[str]


class Accumulator:
    """All that was accepted and has not ended."""

    def __init__(
        self,
        limits: Limits,
        memory: BufferMemory,
        results: "Results",
        idempotence: Idempotence | None,
        random: Callable[[], float],
    ) -> None:
        self.limits = limits
        self.memory = memory
        self.idempotence = idempotence
        self.topics: dict[str, TopicQueues] = {}
        self.incomplete: dict[ProducerBatch, PartitionQueue] = {}
        """Every batch that has not ended, queued or in flight."""
        self.flushing = 0
        """How many flushes are under way; closing counts as one."""
        self.has_news = False
        """A batch was begun or closed since somebody set this to False: the sender should look."""
        self.backlog = 0
        """How much became ready since somebody set this to 0: records, but no batch counts less than BATCH_WEIGHT."""
        self.next_deadline_ms = float("inf")
        """No batch exceeds its delivery timeout before."""
        self.on_landed: Callable[[], None] = lambda: None
        """Called when nothing is in flight any more."""
        self._backoff = Backoff(limits.retry_backoff_ms, limits.retry_backoff_max_ms, random)
        self._results = results
        self._random = random
        self._active: dict[PartitionQueue, None] = {}  # queues with batches, in the order in which they may send
        self._in_flight: dict[ProducerBatch, PartitionQueue] = {}
        self._begun = 0
        self.slow_nodes: frozenset[int] = frozenset()
        """Nodes that have not taken ready batches for `partitioner_availability_timeout_ms`."""

    # --------------------------------------------------------------------------------------------- accepting
    def topic(self, name: str) -> TopicQueues:
        """The queues of a topic, which begin empty."""
        topic = self.topics.get(name)
        if topic is None:
            sticky = StickyPartitioner(self.limits.batch_size, self._random)
            topic = self.topics[name] = TopicQueues(name, sticky)
        return topic

    def append(
        self,
        queue: PartitionQueue,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size: int,
    ) -> ProducerBatch | None:
        """Adds a record of this `estimated_size` to the open batch of a partition, where it is the last one then.

        None: there is no open batch, or it has no room, or there is no memory. `begin` knows what to do.
        """
        batch = queue.open
        memory = self.memory
        if batch is None or batch.size + size > batch.encode_at or size > memory.free_bytes or memory.waiting:
            return None
        memory.free_bytes -= size
        batch.pending.append((batch.count, timestamp_ms, key, value, headers))
        batch.count += 1
        batch.size += size
        return batch

    def append_sticky(
        self,
        topic: TopicQueues,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size: int,
    ) -> ProducerBatch | None:
        """The same for a record that goes where those without a key go. None too where `sticky_queue` must choose.

        What `append` does stands here again: every record without a key comes this way, and a call costs a twentieth.
        """
        sticky = topic.sticky
        if not 0 <= sticky.current < topic.partition_count:
            return None
        queue = topic.partitions[sticky.current]
        batch = queue.open
        memory = self.memory
        if batch is None or batch.size + size > batch.encode_at or size > memory.free_bytes or memory.waiting:
            return None
        memory.free_bytes -= size
        batch.pending.append((batch.count, timestamp_ms, key, value, headers))
        batch.count += 1
        batch.size += size
        sticky.produced_bytes += size
        if sticky.produced_bytes >= self.limits.batch_size:
            sticky.appended(0, queue.is_complete)
        return batch

    def extend(
        self,
        queue: PartitionQueue,
        timestamps_ms: Sequence[int] | int,
        keys: Sequence[bytes] | None,
        values: Sequence[bytes],
        ends: Sequence[int],
        at: int,
        now_ms: float,
    ) -> int:
        """Adds as many records, from index `at` on, as fit into the open batch, or into a new one; returns how many.

        `ends[i]` is the sum of the sizes of all records up to i. 0: there is no memory for the first one.
        """
        memory = self.memory
        if memory.waiting:
            return 0
        before = ends[at - 1] if at else 0
        size = ends[at] - before
        batch = queue.open
        if batch is None or batch.size + size > batch.encode_at:
            batch = self.room(queue, size)
        if batch is None:
            if size + BATCH_OVERHEAD_BYTES > memory.free_bytes:
                return 0
            memory.free_bytes -= BATCH_OVERHEAD_BYTES
            batch = self._open(queue, size, now_ms)
        end = bisect_right(ends, before + min(batch.capacity - batch.size, memory.free_bytes), at)
        if end == at:
            return 0
        if isinstance(timestamps_ms, Sequence):
            timestamps_ms = timestamps_ms[at:end]
        size = ends[end - 1] - before
        memory.free_bytes -= size
        self._account(batch.extend(timestamps_ms, None if keys is None else keys[at:end], values[at:end], size))
        return end - at

    def begin(
        self,
        queue: PartitionQueue,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size: int,
        now_ms: float,
        claimed_bytes: int = 0,
    ) -> ProducerBatch | None:
        """Adds a record to the open batch, or to a new one where it does not fit. None: there is no memory for it.

        `claimed_bytes`: of a claim that was granted, for `size + BATCH_OVERHEAD_BYTES`; what is too much is released.
        """
        batch = self.room(queue, size)
        needed = size if batch is not None else size + BATCH_OVERHEAD_BYTES
        if claimed_bytes:
            self.memory.use(claimed_bytes, needed)
        elif not self.memory.try_claim(needed):
            return None
        if batch is None:
            batch = self._open(queue, size, now_ms)
        batch.append(timestamp_ms, key, value, headers, size)
        return batch

    def room(self, queue: PartitionQueue, size: int) -> ProducerBatch | None:
        """The open batch, when a record of this size fits. One that it does not fit is closed."""
        batch = queue.open
        if batch is None:
            return None
        if batch.size + size <= batch.capacity and batch.put_off_encoding():
            return batch
        self._account(batch.encode_pending())
        if batch.size + size <= batch.capacity:
            return batch
        self.close_open(queue)
        return None

    def close_open(self, queue: PartitionQueue) -> None:
        """Has the open batch of a partition sent without lingering, if there is one."""
        batch = queue.open
        if batch is not None:
            self._close(queue, batch)
            self.has_news = True
            self.backlog += max(batch.count, BATCH_WEIGHT)

    def sticky_queue(self, topic: TopicQueues, size: int, leader_of: LeaderOf) -> PartitionQueue:
        """The partition for a record without a key: that of the records before it, or the next one (KIP-794)."""
        sticky = topic.sticky
        partition = sticky.current
        if 0 <= partition < topic.partition_count:
            queue = topic.partitions[partition]
            batch = queue.open
            if batch is not None and batch.size + size <= batch.encode_at:
                return queue
            # Where the batch is complete now, a switch that waited for that is due.
            if self.room(queue, size) is not None or not sticky.appended(0, True):
                return queue
        self._update_load(topic, leader_of)
        return topic.partitions[sticky.choose(topic.available, topic.partition_count)]

    def _open(self, queue: PartitionQueue, size: int, now_ms: float) -> ProducerBatch:
        limits = self.limits
        topic = queue.topic
        capacity = limits.batch_size if topic.size_limit is None else min(limits.batch_size, topic.size_limit)
        ratio = 1.0
        if limits.codec is not Codec.NONE:
            ratio = topic.compression_ratio
            capacity = int(capacity / (ratio * RATIO_SAFETY))
        capacity = max(capacity, HEADER_SIZE + size)
        self._begun += 1
        result = self._results.begin(topic.name, queue.partition)
        batch = ProducerBatch(result, capacity, (self._begun,), now_ms, now_ms + limits.delivery_timeout_ms)
        batch.expected_ratio = ratio
        batch.is_transactional = limits.is_transactional
        batch.is_queued = True
        queue.has_begun = True
        queue.batches.append(batch)
        queue.open = batch
        self.incomplete[batch] = queue
        self._active[queue] = None
        self.next_deadline_ms = min(self.next_deadline_ms, batch.deadline_ms)
        self.has_news = True
        return batch

    def _close(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self._account(batch.close())
        if queue.open is batch:
            queue.open = None

    def _account(self, shrunk_bytes: int) -> None:
        """Encoding showed the true size of records: memory is given back for their estimates, or the lack taken."""
        if shrunk_bytes > 0:
            self.memory.release(shrunk_bytes)
        elif shrunk_bytes:
            self.memory.take(-shrunk_bytes)

    # ----------------------------------------------------------------------------------------------- sending
    def ready(self, leader_of: LeaderOf, now_ms: float) -> Ready:
        """Which partitions may be drained now. A node is ready when one of its partitions is, then with all of them."""
        urgent = self.flushing > 0 or self.memory.is_exhausted
        queues: dict[int, list[PartitionQueue]] = {}
        ready: set[int] = set()
        unknown: set[str] = set()
        next_ms = float("inf")
        for queue in self._active:
            node_id, epoch = leader_of(queue.topic.name, queue.partition)
            if node_id < 0:
                unknown.add(queue.topic.name)
            elif not queue.is_muted:
                queues.setdefault(node_id, []).append(queue)
                at_ms = self._ready_at(queue, (node_id, epoch), urgent)
                if at_ms <= now_ms:
                    ready.add(node_id)
                else:
                    next_ms = min(next_ms, at_ms)
        return Ready({node_id: queues[node_id] for node_id in queues if node_id in ready}, next_ms, unknown)

    def _ready_at(self, queue: PartitionQueue, leader: tuple[int, int], urgent: bool) -> float:
        batch = queue.batches[0]
        if batch.attempts and not _has_moved(batch, leader):
            return batch.retry_at_ms
        if urgent or batch.is_full:  # as it is where another batch has begun behind it
            return batch.created_ms
        return batch.created_ms + self.limits.linger_ms

    def drain(self, queues: Sequence[PartitionQueue], leader_of: LeaderOf, now_ms: float) -> list[ProducerBatch]:
        """The batches of one request to the node that leads these partitions, at most one of each."""
        drained: list[ProducerBatch] = []
        size = 0
        for queue in queues:
            if queue.is_muted or not queue.batches:
                continue
            leader = leader_of(queue.topic.name, queue.partition)
            batch = queue.batches[0]
            if batch.attempts and batch.retry_at_ms > now_ms and not _has_moved(batch, leader):
                continue
            batch = self._cut_to_limit(queue)
            if batch.is_part and queue.in_flight_count:
                continue  # parts go one by one: the answer to the first tells how small the others have to be
            if drained and size + batch.sent_bytes > self.limits.max_request_size:
                break
            if self.idempotence is not None and not self.idempotence.may_drain(queue.key, batch):
                continue
            self._take(queue, batch, leader)
            drained.append(batch)
            size += batch.sent_bytes
        return drained

    def _take(self, queue: PartitionQueue, batch: ProducerBatch, leader: tuple[int, int]) -> None:
        self._pop(queue)
        if self.idempotence is not None and not batch.has_sequence:
            self.idempotence.assign(queue.key, batch)
        batch.in_flight = True
        batch.attempt_leader = leader
        self._in_flight[batch] = queue
        queue.in_flight_count += 1
        queue.is_muted = self.limits.is_serial
        # In rotation: a partition that has sent goes behind those that have not.
        del self._active[queue]
        if queue.batches:
            self._active[queue] = None

    def _pop(self, queue: PartitionQueue) -> ProducerBatch:
        """Takes the first batch out of its queue; no record joins it any more."""
        batch = queue.batches.popleft()
        batch.is_queued = False
        self._close(queue, batch)
        return batch

    def _cut_to_limit(self, queue: PartitionQueue) -> ProducerBatch:
        """The first batch, after it was split for as long as it is larger than what the broker is known to refuse."""
        while self._is_over_limit(queue.topic, queue.batches[0]):
            batch = self._pop(queue)
            self._replace(queue, batch, batch.split())
        return queue.batches[0]

    def _is_over_limit(self, topic: TopicQueues, batch: ProducerBatch) -> bool:
        """One that was sent before may be in the log as a whole: only the broker can say that it is to be split."""
        if topic.size_limit is None or batch.count < 2 or batch.attempt_leader is not None:
            return False
        return batch.expected_ratio * batch.size > LIMIT_TOLERANCE * topic.size_limit

    # ----------------------------------------------------------------------------------------------- afterwards
    def requeue(self, batch: ProducerBatch, now_ms: float, backoff: Backoff | None = None) -> None:
        """Puts a batch that has landed back into its queue, to be sent again after a backoff; None: as usual."""
        queue = self.incomplete[batch]
        batch.attempts += 1
        batch.retry_at_ms = now_ms + (backoff or self._backoff).after_ms(batch.attempts - 1)
        self._insert(queue, batch)

    def split(self, batch: ProducerBatch) -> None:
        """Puts two halves of a landed batch that the broker found too large into its queue, and learns from it."""
        queue = self.incomplete[batch]
        topic = queue.topic
        limit = (batch.sent_bytes + 1) // 2
        topic.size_limit = limit if topic.size_limit is None else min(topic.size_limit, limit)
        if self.limits.codec is not Codec.NONE:
            topic.compression_ratio = batch.compression_ratio
        self._replace(queue, batch, batch.split())

    def complete(self, batch: ProducerBatch, base_offset: int, log_append_time_ms: int) -> None:
        """Ends a batch: its records are acknowledged. Nothing happens where it has ended before."""
        if not batch.result.is_done:
            self._forget(batch)
            batch.result.complete(base_offset, log_append_time_ms)

    def fail(
        self, batch: ProducerBatch, error: ClientError, record_errors: dict[int, ClientError] | None = None
    ) -> None:
        """Ends a batch: its records are not acknowledged. Nothing happens where it has ended before."""
        if not batch.result.is_done:
            if not batch.is_closed:
                self._close(self.incomplete[batch], batch)
            self._forget(batch)
            batch.result.fail(error, record_errors)

    def remove_in_flight(self, batch: ProducerBatch) -> None:
        """No socket and no thread holds the bytes of this batch any more: it was answered, or its connection closed."""
        queue = self._in_flight.pop(batch)
        batch.in_flight = False
        queue.in_flight_count -= 1
        if self.limits.is_serial:
            queue.is_muted = queue.in_flight_count > 0
        if batch.result.is_done:
            self._release(batch)
        if not self._in_flight:
            self.on_landed()

    @property
    def is_idle(self) -> bool:
        """Whether all that was accepted has ended, and nothing is in flight."""
        return not self.incomplete and not self._in_flight

    def mute(self, batch: ProducerBatch) -> None:
        """Nothing else is drained from the partition of a batch in flight, until `unmute`."""
        self._in_flight[batch].is_muted = True

    def unmute(self, batch: ProducerBatch) -> None:
        self._in_flight[batch].is_muted = self.limits.is_serial

    def expired(self, now_ms: float) -> list[ProducerBatch]:
        """The batches whose delivery timeout is over; each must be failed."""
        if now_ms < self.next_deadline_ms:
            return []
        found = [batch for batch in self.incomplete if batch.deadline_ms <= now_ms]
        rest = (batch.deadline_ms for batch in self.incomplete if batch.deadline_ms > now_ms)
        self.next_deadline_ms = min(rest, default=float("inf"))
        return found

    def forget_limits(self, topic: str) -> None:
        """The topic's metadata was refreshed: its limit may have changed."""
        if topic in self.topics:
            self.topics[topic].size_limit = None

    def _replace(self, queue: PartitionQueue, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        if self.idempotence is not None and batch.has_sequence:
            self.idempotence.split(queue.key, batch, parts)
        for part in parts:
            self.incomplete[part] = queue
            self.memory.take(part.memory_bytes)
            self._insert(queue, part)
        del self.incomplete[batch]
        self._release(batch)

    def _insert(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Puts a batch where it belongs by the order in which batches were begun, which is that of sequences too."""
        position = 0
        while position < len(queue.batches) and queue.batches[position].order < batch.order:
            position += 1
        queue.batches.insert(position, batch)
        batch.is_queued = True
        self._active[queue] = None

    def _forget(self, batch: ProducerBatch) -> None:
        queue = self.incomplete.pop(batch)
        if batch.is_queued:
            batch.is_queued = False
            queue.batches.remove(batch)
            if not queue.batches:
                del self._active[queue]
        if not batch.in_flight:
            self._release(batch)

    def _release(self, batch: ProducerBatch) -> None:
        """Frees what a batch takes, once: when it has ended and nobody holds its bytes any more."""
        batch.drop_bytes()
        self.memory.release(batch.memory_bytes)

    def _update_load(self, topic: TopicQueues, leader_of: LeaderOf) -> None:
        """Tells the partitioner how long the queues are, once every partition has had a batch (KIP-794)."""
        queues = topic.partitions[: topic.partition_count]
        if not self.limits.is_adaptive or not all(queue.has_begun for queue in queues):
            return
        partitions = list(topic.available)
        if self.slow_nodes:
            partitions = [each for each in partitions if leader_of(topic.name, each)[0] not in self.slow_nodes]
        topic.sticky.update_load([len(queues[each].batches) for each in partitions], partitions, topic.partition_count)


def _has_moved(batch: ProducerBatch, leader: tuple[int, int]) -> bool:
    """Whether the partition has another leader than at the last attempt: then there is no backoff (KIP-580)."""
    return batch.attempt_leader is not None and batch.attempt_leader != leader
