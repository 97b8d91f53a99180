"""Which partition takes a record without a key, and what a partitioner of the user's must be able to do.

Records without a key stick to one partition of their topic until a batch's worth of bytes went there, so that batches
fill up; then another one is chosen at random (KIP-794). While that many bytes do not end with a complete batch, the
switch waits for one, but no longer than for twice as many: otherwise each switch would leave a fraction of a batch.

The choice is adaptive: a partition whose queue is long, because its broker is slow, is chosen less often. With queues
of 0, 3 and 1 batches, the weights are what is missing to the longest plus one: 4, 1 and 3. Before every partition has
had a batch nothing is known of some, and all are equal; so they are when all queues are of one length. Partitions
without a leader are never chosen while others have one; nor, with `partitioner_availability_timeout_ms`, are those of
a node that has not taken ready batches for so long.

Pure: chance is an argument. (Source: BuiltInPartitioner.java and RecordAccumulator.partitionReady.)
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final, Protocol, runtime_checkable

__all__ = ["NewBatchListener", "Partitioner", "StickyPartitioner"]

NONE: Final = -1


class Partitioner(Protocol):
    """A user's own: asked for every record that does not name its partition, whether it has a key or not."""

    def partition(
        self, topic: str, key: bytes | None, value: bytes | None, partition_count: int, available: Sequence[int]
    ) -> int:
        """Returns a partition from 0 to below `partition_count`; those in `available` have a leader.

        Key and value are serialized. An answer out of range, or an error, fails this record only.
        """
        ...


@runtime_checkable
class NewBatchListener(Protocol):
    """A partitioner that wants to know when its choice would begin a new batch. It is asked again afterwards."""

    def on_new_batch(self, topic: str, partition: int) -> None: ...


class StickyPartitioner:
    """The partitions of one topic, of which one is the `current`."""

    __slots__ = ("_batch_size", "_loads", "_random", "current", "produced_bytes")

    def __init__(self, batch_size: int, random: Callable[[], float]) -> None:
        """`random` returns numbers from 0 to below 1."""
        self.current = NONE
        """The partition that takes the next record, or -1: one must be chosen."""
        self.produced_bytes = 0
        """What went to the current partition since it was chosen."""
        self._batch_size = max(1, batch_size)
        self._random = random
        self._loads: tuple[list[int], Sequence[int], int] | None = None  # running sum of weights, their partitions, of

    def choose(self, available: Sequence[int], partition_count: int) -> int:
        """Makes a partition the current one and returns it. `available`: those with a leader."""
        self.produced_bytes = 0
        self.current = self._weighted(available, partition_count)
        if self.current == NONE:
            count = len(available) or partition_count
            index = int(self._random() * count)
            self.current = available[index] if available else index
        return self.current

    def appended(self, size_bytes: int, queue_is_complete: bool) -> bool:
        """Counts what was appended to the current partition. True: it is no longer the current one.

        `queue_is_complete`: no batch in its queue takes more records, so that a switch leaves no fraction behind. A
        call with 0 bytes completes a switch that has waited for that.
        """
        self.produced_bytes += size_bytes
        due = self._batch_size if queue_is_complete else 2 * self._batch_size
        if self.produced_bytes < due:
            return False
        self.current = NONE
        return True

    def update_load(self, queue_sizes: Sequence[int], partition_ids: Sequence[int], partition_count: int) -> None:
        """Takes the lengths of queues, in batches, for the partitions that may be chosen.

        Those without a leader and those of nodes that are too slow are left out; `partition_count` counts them too.
        To be called when every partition has had a batch, not before, and not at all where the choice is not adaptive.
        """
        self._loads = None
        if not queue_sizes:
            return
        longest = max(queue_sizes)
        if len(queue_sizes) == partition_count and min(queue_sizes) == longest:
            return
        self._loads = (list(accumulate(longest + 1 - size for size in queue_sizes)), partition_ids, partition_count)

    def _weighted(self, available: Sequence[int], partition_count: int) -> int:
        """A partition by its weight. -1: nothing is known, or what is known does not hold any more."""
        if self._loads is None:
            return NONE
        sums, partitions, known_count = self._loads
        if known_count != partition_count:
            return NONE
        partition = partitions[bisect_right(sums, int(self._random() * sums[-1]))]
        return partition if partition in available else NONE
