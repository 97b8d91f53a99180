"""What a topic's queues know: they follow metadata without losing a batch, and the compression ratio as Java does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.producer.batching.batch import ProducerBatch
from odradek.client.producer.batching.queues import PartitionQueue, TopicQueues
from odradek.client.producer.hooks.partitioner import StickyPartitioner
from tests.client.batches import append, new_batch, records_of


def new_topic() -> TopicQueues:
    return TopicQueues("orders", StickyPartitioner(1000, lambda: 0.0))


# ----------------------------------------------------------------------------------------------------- partitions
def test_partitions_are_added_as_metadata_says() -> None:
    topic = new_topic()
    assert (topic.partitions, topic.partition_count, topic.available) == ([], 0, ())
    topic.update(2, [1])
    first = list(topic.partitions)
    assert [queue.key for queue in first] == [("orders", 0), ("orders", 1)]
    assert [queue.partition for queue in first] == [0, 1]
    topic.update(3, [0, 2])
    assert topic.partitions[:2] == first
    assert (topic.partition_count, len(topic.partitions), list(topic.available)) == (3, 3, [0, 2])


def test_a_topic_that_was_made_anew_with_fewer_partitions_keeps_the_queues() -> None:
    """Their batches end by themselves; should the partitions come back, so do their queues."""
    topic = new_topic()
    topic.update(3, [0, 1, 2])
    last = topic.partitions[2]
    topic.update(1, [0])
    assert (topic.partition_count, len(topic.partitions)) == (1, 3)
    topic.update(3, [0, 1, 2])
    assert topic.partitions[2] is last


def begin(queue: PartitionQueue) -> ProducerBatch:
    batch = new_batch(capacity=100)
    queue.open = batch
    queue.batches.append(batch)
    return batch


def test_a_queue_is_complete_while_no_batch_of_it_takes_records() -> None:
    topic = new_topic()
    topic.update(1, [0])
    queue = topic.partitions[0]
    assert queue.is_complete
    batch = begin(queue)
    append(batch, records_of(b"v")[0])
    assert not queue.is_complete
    batch.size = batch.capacity
    assert queue.is_complete


# -------------------------------------------------------------------------------------------------- compression ratio
@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        pytest.param([0.5], [0.995], id="better by a small step"),
        pytest.param([0.5] * 3, [0.995, 0.990, 0.985], id="step by step"),
        pytest.param([0.998], [0.998], id="not beyond what was seen"),
        pytest.param([1.2], [1.2], id="worse at once"),
        pytest.param([1.01], [1.05], id="worse by a large step at least"),
        pytest.param([1.0], [1.0], id="as it was"),
        pytest.param([0.99, 0.5, 0.995], [0.995, 0.990, 1.040], id="there and back"),
    ],
)
def test_the_ratio_improves_slowly_and_worsens_quickly(observed: list[float], expected: list[float]) -> None:
    topic = new_topic()
    seen: list[float] = []
    for ratio in observed:
        topic.observe_ratio(round(10_000 * ratio), 10_000)
        seen.append(topic.compression_ratio)
    assert seen == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(7, 10**6)), max_size=40))
def test_the_ratio_stays_between_the_best_and_a_step_over_the_worst(observed: list[tuple[int, int]]) -> None:
    topic = new_topic()
    for compressed_bytes, bytes_before in observed:
        topic.observe_ratio(compressed_bytes, bytes_before)
        assert topic.compression_ratio >= compressed_bytes / bytes_before
    ratios = [1.0, *(after / before for after, before in observed)]
    assert min(ratios) <= topic.compression_ratio <= max(ratios) + 0.05
