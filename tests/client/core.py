"""A producer's core for examples: an accumulator with one topic, whose leaders and clock the test moves."""

from collections.abc import Callable
from typing import Any, cast

from odradek.client.errors.client_errors import ConnectionFailed
from odradek.client.producer.batching.accumulator import Accumulator, Ready
from odradek.client.producer.batching.batch import ProducerBatch, estimated_size
from odradek.client.producer.batching.limits import Limits
from odradek.client.producer.batching.memory import BufferMemory
from odradek.client.producer.batching.queues import PartitionQueue
from odradek.client.producer.idempotence.idempotence import Idempotence
from odradek.client.producer.results.produce_results import Results
from odradek.protocol.batches.compression import Codec

INFINITY = float("inf")
LIMITS = Limits(
    batch_size=1000,
    linger_ms=10,
    delivery_timeout_ms=5000,
    retry_backoff_ms=100,
    retry_backoff_max_ms=1000,
    max_request_size=5000,
)
NOW = 1_700_000_000_000


class Core:
    """An accumulator with one topic, a clock that the test moves, and leaders that it sets."""

    def __init__(
        self,
        partition_count: int = 1,
        memory_bytes: int = 1 << 20,
        idempotence: Idempotence | None = None,
        random: Callable[[], float] = lambda: 0.5,
        **limits: Any,
    ) -> None:
        self.now_ms = 1000.0
        self.memory = BufferMemory(memory_bytes)
        self.results = Results(cast(Any, None), lambda: self.now_ms)
        chosen = LIMITS._replace(**limits)
        self.accumulator = Accumulator(chosen, self.memory, self.results, idempotence, random)
        self.topic = self.accumulator.topic("orders")
        self.topic.update(partition_count, range(partition_count))
        self.leaders: dict[int, tuple[int, int]] = dict.fromkeys(range(partition_count), (0, 1))

    def leader_of(self, topic: str, partition: int) -> tuple[int, int]:
        assert topic == "orders"
        return self.leaders[partition]

    def send(self, partition: int = 0, value_size: int = 10) -> ProducerBatch | None:
        """Accepts a record, as `accept` does."""
        queue = self.topic.partitions[partition]
        value = bytes(value_size)
        size = estimated_size(None, value, ())
        return self.accumulator.append(queue, NOW, None, value, (), size) or self.accumulator.begin(
            queue, NOW, None, value, (), size, self.now_ms
        )

    def sent(self, partition: int = 0, value_size: int = 10) -> ProducerBatch:
        batch = self.send(partition, value_size)
        assert batch is not None
        return batch

    def ready(self) -> Ready:
        return self.accumulator.ready(self.leader_of, self.now_ms)

    def ready_partitions(self) -> dict[int, list[int]]:
        return {node: [queue.partition for queue in queues] for node, queues in self.ready().nodes.items()}

    def drain(self, node: int = 0) -> list[ProducerBatch]:
        """What the node is given, sealed as for a socket; nothing where it is not ready."""
        queues: list[PartitionQueue] = self.ready().nodes.get(node, [])
        batches = self.accumulator.drain(queues, self.leader_of, self.now_ms)
        for batch in batches:
            if batch.encoded is None:
                batch.seal(batch.compressed(Codec.NONE, None), Codec.NONE)
        return batches

    def drained(self) -> ProducerBatch:
        (batch,) = self.drain()
        return batch


def lost() -> ConnectionFailed:
    return ConnectionFailed("broker 1")
