"""What must hold in the world of `accumulator_world.py`: after each step, of what is ready, and of what is drained."""

from collections.abc import Sequence

from odradek.client.producer.batching.batch import ProducerBatch
from odradek.client.producer.batching.queues import PartitionQueue
from odradek.client.producer.idempotence.idempotence import Key
from tests.client.accumulator_records import KEYS, LINGER_MS, Arrivals


class Checks(Arrivals):
    """Says for itself where every batch is and what may be sent, and compares."""

    def in_flight(self) -> list[ProducerBatch]:
        """What sockets and threads hold."""
        on_wire = [sent.batch for requests in self.connections for request in requests for sent in request.batches]
        return on_wire + [batch for batches in self.compressing.values() for batch in batches]

    def queued(self) -> dict[Key, list[ProducerBatch]]:
        """The batches that have not ended and are not in flight, by partition, in order."""
        in_flight = set(self.in_flight())
        queued: dict[Key, list[ProducerBatch]] = {}
        for batch in sorted(self.accumulator.incomplete, key=lambda batch: batch.order):
            if batch not in in_flight:
                queued.setdefault(batch.key, []).append(batch)
        return queued

    def muted(self) -> set[Key]:
        muted = {batch.key for batches in self.compressing.values() for batch in batches}
        if self.start.in_flight_max == 1:
            muted |= {batch.key for batch in self.in_flight()}
        return muted

    def ready_at(self, batches: Sequence[ProducerBatch]) -> float:
        """When the first batch of a queue may be sent."""
        first = batches[0]
        is_urgent = self.accumulator.flushing > 0 or self.memory.is_exhausted
        if first.attempts and self.leaders[first.key] == first.attempt_leader:
            return first.retry_at_ms
        if is_urgent or len(batches) > 1 or first.is_closed or first.size >= first.capacity:
            return 0.0
        return first.created_ms + LINGER_MS

    def check_ready(self, nodes: dict[int, list[PartitionQueue]], next_ms: float, unknown: set[str]) -> None:
        expected: dict[int, set[Key]] = {}
        ready: set[int] = set()
        next_at_ms = [float("inf")]
        muted = self.muted()
        for key, batches in self.queued().items():
            node = self.leaders[key][0]
            if node >= 0 and key not in muted:
                expected.setdefault(node, set()).add(key)
                at_ms = self.ready_at(batches)
                if at_ms <= self.now_ms:
                    ready.add(node)
                else:
                    next_at_ms.append(at_ms)
        assert {node: {queue.key for queue in queues} for node, queues in nodes.items()} == {
            node: expected[node] for node in ready
        }
        assert next_ms == min(next_at_ms)
        assert unknown == {key[0] for key in self.queued() if self.leaders[key][0] < 0}

    def check_drained(
        self,
        node: int,
        queues: list[PartitionQueue],
        before: dict[Key, list[ProducerBatch]],
        drained: list[ProducerBatch],
    ) -> None:
        keys = [batch.key for batch in drained]
        assert len(set(keys)) == len(keys), "two batches of a partition in a request"
        assert set(keys) <= {queue.key for queue in queues}
        size = sum(batch.sent_bytes for batch in drained)
        assert len(drained) == 1 or size <= self.start.request_size
        in_flight = self.in_flight()
        for batch in drained:
            first = before[batch.key][0]
            assert batch.order[: len(first.order)] == first.order, "not the first of its queue, nor a part of it"
            assert batch.is_closed
            assert batch.in_flight
            assert not batch.is_queued
            assert self.leaders[batch.key] == (node, batch.attempt_leader[1] if batch.attempt_leader else None)
            if first.attempts:
                assert batch is first, "a batch that was sent before was cut"
            if batch.is_part or self.start.in_flight_max == 1:
                assert batch.key not in {each.key for each in in_flight}
            assert batch.has_sequence is (self.idempotence is not None)
        for queue in queues:
            self.skipped[queue.key] = 0 if queue.key in keys else self.skipped[queue.key] + bool(drained)
            if self.idempotence is None and self.may_be_drained(queue.key, before, in_flight):
                assert self.skipped[queue.key] <= len(KEYS), "a partition starves"

    def may_be_drained(self, key: Key, before: dict[Key, list[ProducerBatch]], in_flight: list[ProducerBatch]) -> bool:
        """Whether nothing but room in the request keeps a partition from being drained."""
        first = before[key][0]
        is_backing_off = (
            first.attempts > 0 and first.retry_at_ms > self.now_ms and first.attempt_leader == self.leaders[key]
        )
        is_alone = key not in {batch.key for batch in in_flight}
        is_whole = not first.is_part and self.accumulator.topics[key[0]].size_limit is None
        may = not is_backing_off and (is_alone or is_whole)
        if not may:
            self.skipped[key] = 0
        return may

    def check(self) -> None:
        """What holds after every step."""
        memory, accumulator = self.memory, self.accumulator
        in_flight = self.in_flight()
        for batch in in_flight:
            assert batch.in_flight
            assert batch.encoded is not None or batch in {one for some in self.compressing.values() for one in some}
        assert {batch for batch in accumulator.incomplete if batch.in_flight} == {
            batch for batch in in_flight if not batch.result.is_done
        }
        held = sum(batch.memory_bytes for batch in accumulator.incomplete)
        held += sum(batch.memory_bytes for batch in in_flight if batch.result.is_done)
        held += sum(waiter.claimed_bytes for waiter in self.waiters if waiter.is_woken)
        assert memory.limit_bytes - memory.free_bytes == held
        assert memory.waiting == len(self.waiters)
        if not any(batch.is_part for batch in (*accumulator.incomplete, *in_flight)):
            assert memory.free_bytes >= 0
        if accumulator.incomplete:
            assert accumulator.next_deadline_ms <= min(batch.deadline_ms for batch in accumulator.incomplete)
        for queues in accumulator.topics.values():
            for queue in queues.partitions:
                assert list(queue.batches) == self.queued().get(queue.key, [])
                assert queue.open is None or (queue.open is queue.batches[-1] and not queue.open.is_closed)
