"""Which batch a record joins, which partition it gets without a key, and what memory it takes."""

import tracemalloc
from itertools import cycle
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.producer.batching.accumulator import RATIO_SAFETY
from odradek.client.producer.batching.batch import (
    BATCH_OVERHEAD_BYTES,
    PUT_OFF_BYTES,
    RUN_RECORDS,
    ProducerBatch,
    estimated_size,
)
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.batches.compression import Codec
from tests.client.core import NOW, Core, lost


# --------------------------------------------------------------------------------------------- where records join
def test_a_record_joins_the_last_batch_until_it_does_not_fit() -> None:
    core = Core()
    first = core.sent(0, 100)
    assert all(core.sent(0, 100) is first for _ in range(7))
    second = core.sent(0, 100)
    assert second is not first
    assert first.is_closed
    assert first.size <= 1000 < first.size + estimated_size(None, bytes(100), ())
    assert core.topic.partitions[0].open is second


def test_a_record_that_fits_exactly_joins() -> None:
    """By what the records before it really take."""
    core = Core(batch_size=HEADER_SIZE + 109 + 121)
    batch = core.sent(0, 100)
    assert core.sent(0, 100) is batch, "the first one takes 109 bytes, the second is estimated at 121"
    other = Core(batch_size=HEADER_SIZE + 109 + 120)
    assert other.sent(0, 100) is not other.sent(0, 100)


def test_a_batch_is_sized_for_its_first_record() -> None:
    core = Core()
    batch = core.sent(0, 3000)
    assert batch.capacity == HEADER_SIZE + estimated_size(None, bytes(3000), ())
    assert batch.is_full
    assert core.sent(0, 10) is not batch


def test_records_that_compress_make_larger_batches() -> None:
    core = Core(codec=Codec.GZIP)
    core.topic.compression_ratio = 0.25
    batch = core.sent()
    assert batch.capacity == int(1000 / (0.25 * RATIO_SAFETY))
    assert batch.expected_ratio == 0.25
    plain = Core()
    plain.topic.compression_ratio = 0.25
    assert plain.sent().capacity == 1000
    assert plain.sent().expected_ratio == 1.0


@pytest.mark.parametrize("sizes", [[100], [0], [1000], [5000, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 9000]])
def test_what_waits_as_tuples_is_few_records_or_no_more_than_a_run(sizes: list[int]) -> None:
    core = Core(batch_size=1 << 18, memory_bytes=1 << 22)
    longest = 0
    for number in range(600):
        core.sent(0, sizes[number % len(sizes)])
        pending = core.topic.partitions[0].batches[-1].pending
        beyond = pending[RUN_RECORDS - 1 : -1]  # the last one may be of any size
        assert sum(estimated_size(*record[2:]) for record in beyond) <= PUT_OFF_BYTES
        longest = max(longest, len(pending))
    assert longest >= RUN_RECORDS - 2, "a run is not made of a few"


def test_news_are_batches_that_began_or_became_full() -> None:
    core = Core(linger_ms=0)
    accumulator = core.accumulator
    assert not accumulator.has_news
    for size, has_news in ((100, True), (100, False), (900, True), (10, True), (10, False)):
        accumulator.has_news = False
        core.sent(0, size)
        assert accumulator.has_news is has_news, size
    accumulator.has_news = False
    core.drain()
    assert not accumulator.has_news, "the sender need not be told what it does itself"


def test_no_record_is_accepted_before_one_that_waits() -> None:
    """Though there is an open batch with room for it, and memory, once the claim has been granted."""
    core = Core(memory_bytes=3 * BATCH_OVERHEAD_BYTES, linger_ms=0)
    full, opened = core.sent(0, 990), core.sent(0, 10)
    queue = core.topic.partitions[0]
    claim = core.memory.queue(BATCH_OVERHEAD_BYTES + 1000, lambda: None)
    for _ in range(2):
        assert core.send(0, 10) is None
        core.topic.sticky.current = 0
        assert core.accumulator.append_sticky(core.topic, NOW, None, b"v", (), 22) is None
        assert core.accumulator.extend(queue, NOW, None, [b"v"], [30], 0, core.now_ms) == 0
        assert queue.open is opened, "nor closed, as there is room in it"
        if not claim.is_granted:
            core.accumulator.fail(full, lost())
            assert claim.is_granted
    assert core.accumulator.begin(queue, NOW, None, b"v", (), 22, core.now_ms, claim.size_bytes) is opened
    assert core.memory.limit_bytes - core.memory.free_bytes == opened.memory_bytes
    assert core.send(0, 10) is opened


def test_a_claim_is_used_for_the_open_batch_where_there_is_one() -> None:
    core = Core()
    batch = core.sent(0, 10)
    claim = core.memory.queue(BATCH_OVERHEAD_BYTES + 100, lambda: None)
    queue = core.topic.partitions[0]
    assert core.accumulator.begin(queue, NOW, None, bytes(79), (), 100, core.now_ms, claim.size_bytes) is batch
    assert core.memory.limit_bytes - core.memory.free_bytes == batch.memory_bytes
    assert core.memory.waiting == 0


def test_without_memory_no_record_is_accepted() -> None:
    core = Core(memory_bytes=BATCH_OVERHEAD_BYTES + 100)
    assert core.send(0, 80) is None, "101 bytes"
    batch = core.sent(0, 40)
    assert core.send(0, 40) is None
    assert batch.count == 1
    assert core.memory.free_bytes > 0


def test_many_at_once_begin_a_batch_where_they_have_to() -> None:
    """As one at a time would: none is open, it is full, or the first of them does not fit into it."""
    core = Core(memory_bytes=1 << 16)
    accumulator, queue = core.accumulator, core.topic.partitions[0]
    values = [bytes(79)] * 12 + [bytes(3000)] + [b""]
    ends = [1200 * (n + 1) // 12 for n in range(12)] + [4221, 4242]
    counts: list[int] = []
    at = 0
    while at < len(values):
        accumulator.has_news = False
        opened = queue.open
        count = accumulator.extend(queue, NOW, None, values, ends, at, core.now_ms)
        assert accumulator.has_news is (queue.open is not opened)
        counts.append(count)
        at += count
    assert counts == [9, 1, 2, 1, 1], "nine by their estimates, another by what they take"
    assert [batch.count for batch in accumulator.incomplete] == [10, 2, 1, 1]
    assert core.memory.limit_bytes - core.memory.free_bytes == sum(
        batch.memory_bytes for batch in accumulator.incomplete
    )


@pytest.mark.parametrize("is_open", [False, True])
def test_many_at_once_are_as_many_as_there_is_memory_for(is_open: bool) -> None:
    core = Core(memory_bytes=BATCH_OVERHEAD_BYTES + 350, linger_ms=0)
    queue = core.topic.partitions[0]
    if is_open:
        core.sent(0, 79)
    ends = [100, 200, 300, 400, 500]
    taken = core.accumulator.extend(queue, NOW, None, [bytes(79)] * 5, ends, 0, core.now_ms)
    assert taken == (2 if is_open else 3)
    assert core.memory.free_bytes == 50
    assert core.accumulator.extend(queue, NOW, None, [bytes(79)] * 5, ends, taken, core.now_ms) == 0
    assert core.memory.free_bytes == 50, "nothing is kept of what was refused"
    full = Core(memory_bytes=BATCH_OVERHEAD_BYTES + 99)
    assert full.accumulator.extend(full.topic.partitions[0], NOW, None, [bytes(79)], [100], 0, 0.0) == 0
    assert full.memory.free_bytes == full.memory.limit_bytes
    assert full.topic.partitions[0].open is None


values = st.lists(st.sampled_from([0, 1, 10, 100, 300, 900, 2500]).map(bytes), min_size=1, max_size=60)


@given(values, st.booleans(), st.booleans(), st.integers(1600, 12_000) | st.just(1 << 20), st.data())
def test_many_at_once_are_as_one_by_one(
    values: list[bytes], has_keys: bool, has_timestamps: bool, memory_bytes: int, data: st.DataObject
) -> None:
    """The same records in the same batches with the same bytes, of which the account is right; with scarce memory more
    of them, since many are encoded at once, and what they do not take is free again.
    """
    keys = [b"k%d" % n for n in range(len(values))] if has_keys else None
    times = [NOW + data.draw(st.integers(0, 50)) for _ in values] if has_timestamps else [NOW] * len(values)
    sizes = [estimated_size(keys[n] if keys else None, value, ()) for n, value in enumerate(values)]
    singly, together = Core(memory_bytes=memory_bytes), Core(memory_bytes=memory_bytes)
    accepted = 0
    for n, value in enumerate(values):
        record = (times[n], keys[n] if keys else None, value, ())
        queue = singly.topic.partitions[0]
        if not (
            singly.accumulator.append(queue, *record, sizes[n])
            or singly.accumulator.begin(queue, *record, sizes[n], 1000.0)
        ):
            break
        accepted += 1
    ends = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    queue = together.topic.partitions[0]
    at = 0
    while at < len(values):
        count = together.accumulator.extend(queue, times if has_timestamps else NOW, keys, values, ends, at, 1000.0)
        if not count:
            record = (times[at], keys[at] if keys else None, values[at], ())
            if together.accumulator.begin(queue, *record, sizes[at], 1000.0) is None:
                break
            count = 1
        at += count
    assert at == accepted or (at > accepted and memory_bytes < 1 << 20)
    for core in (singly, together):
        used = core.memory.limit_bytes - core.memory.free_bytes
        assert used == sum(batch.memory_bytes for batch in core.accumulator.incomplete)
    one_by_one, at_once = ([ended(batch) for batch in core.accumulator.incomplete] for core in (singly, together))
    if at == accepted:
        assert at_once == one_by_one
    elif one_by_one:
        *whole, last = one_by_one
        assert at_once[: len(whole)] == whole
        assert at_once[len(whole)][-1].startswith(last[-1])


def ended(batch: ProducerBatch) -> tuple[int, int, list[int], bytes]:
    """A batch that is closed now: how many records it has, its size, their timestamps and bytes."""
    batch.close()
    return batch.count, batch.size, batch.timestamps.tolist(), b"".join(batch.compressed(Codec.NONE, None))


# --------------------------------------------------------------------------------------- the sticky partition
def test_records_without_key_stay_in_a_partition_for_a_batch() -> None:
    """Then another is chosen, here one after the other: no batch is left half empty, and none follows in its place."""
    core = Core(3, random=cycle([0.0, 0.4, 0.8]).__next__)
    size = estimated_size(None, bytes(50), ())
    batches: list[ProducerBatch] = []
    for _ in range(100):
        queue = core.accumulator.sticky_queue(core.topic, size, core.leader_of)
        batch = core.sent(queue.partition, 50)
        core.topic.sticky.appended(size, queue.is_complete)
        if batch not in batches:
            batches.append(batch)
    assert [batch.partition for batch in batches] == [0, 1, 2, 0, 1, 2, 0]
    assert all(850 < batch.size <= 1000 for batch in batches[:-1])


def test_twice_a_batch_of_bytes_ends_the_stay_even_within_a_batch() -> None:
    """Records of nothing are estimated at 21 bytes and take 8: 96 of them do not fill a batch of 1000."""
    core = Core(2, random=cycle([0.0, 0.9]).__next__)
    partitions: list[int] = []
    for _ in range(100):
        batch = core.accumulator.append_sticky(core.topic, NOW, None, b"", (), 21)
        if batch is None:
            queue = core.accumulator.sticky_queue(core.topic, 21, core.leader_of)
            batch = core.sent(queue.partition, 0)
            core.topic.sticky.appended(21, queue.is_complete)
        partitions.append(batch.partition)
    assert partitions == [0] * 96 + [1] * 4


@given(values, st.integers(1600, 12_000) | st.just(1 << 20), st.integers(1, 4), st.integers(0, 100))
def test_the_short_way_of_records_without_key_ends_where_the_long_one_does(
    values: list[bytes], memory_bytes: int, partition_count: int, seed: int
) -> None:
    """The same partitions, batches and memory; it says None where a partition or a batch must be chosen."""
    long, short = (Core(partition_count, memory_bytes, random=Random(seed).random) for _ in range(2))
    short_count = 0
    for n, value in enumerate(values * 4):
        size = estimated_size(None, value, ())
        record = (NOW + n, None, value, ())
        for core in (long, short):
            batch = core.accumulator.append_sticky(core.topic, *record, size) if core is short else None
            short_count += batch is not None
            if batch is None:
                queue = core.accumulator.sticky_queue(core.topic, size, core.leader_of)
                if core is long:
                    batch = core.accumulator.append(queue, *record, size)
                batch = batch or core.accumulator.begin(queue, *record, size, 1000.0)
                if batch is not None:
                    core.topic.sticky.appended(size, queue.is_complete)
        assert short.topic.sticky.current == long.topic.sticky.current
        assert short.topic.sticky.produced_bytes == long.topic.sticky.produced_bytes
        assert short.memory.free_bytes == long.memory.free_bytes
    described = [
        [(batch.partition, batch.count, batch.size, batch.is_closed) for batch in core.accumulator.incomplete]
        for core in (long, short)
    ]
    assert described[0] == described[1]
    if memory_bytes == 1 << 20 and len(values) > 5 and max(map(len, values)) <= 100:
        assert short_count > 2 * len(values)


def test_a_batch_that_the_sticky_partition_leaves_is_news() -> None:
    """Though the record joins a batch that is no news, in the next partition."""
    core = Core(2, random=cycle([0.0, 0.9]).__next__)
    opened = core.sent(1, 10)
    size = estimated_size(None, bytes(100), ())
    while True:
        core.accumulator.has_news = False
        queue = core.accumulator.sticky_queue(core.topic, size, core.leader_of)
        batch = core.sent(queue.partition, 100)
        core.topic.sticky.appended(size, queue.is_complete)
        if batch is opened:
            break
    assert core.accumulator.has_news


def test_a_partition_that_is_gone_or_has_no_leader_is_not_chosen() -> None:
    core = Core(3)
    assert core.accumulator.sticky_queue(core.topic, 100, core.leader_of).partition == 1
    core.sent(1)
    core.topic.update(1, [0])
    assert core.accumulator.append_sticky(core.topic, NOW, None, b"v", (), 22) is None
    assert core.accumulator.sticky_queue(core.topic, 100, core.leader_of).partition == 0
    core.topic.update(3, [2])
    core.topic.sticky.current = -1
    assert core.accumulator.sticky_queue(core.topic, 100, core.leader_of).partition == 2


def test_long_queues_and_slow_nodes_get_less_once_every_partition_had_a_batch() -> None:
    """Weights 1, 3 and 4 for queues of 3, 1 and 0 batches; chance is in the middle of 8."""
    core = Core(3)
    core.leaders[2] = (9, 1)
    core.sent(1)
    for _ in range(3):
        core.sent(0, 2000)
    choose = core.accumulator.sticky_queue
    core.topic.sticky.current = -1
    assert choose(core.topic, 100, core.leader_of).partition == 1, "all are equal before"
    for batch in [core.sent(2, 2000), *core.drain(9)][1:]:
        core.accumulator.remove_in_flight(batch)
        core.accumulator.complete(batch, 0, -1)
    assert [len(queue.batches) for queue in core.topic.partitions] == [3, 1, 0]
    core.topic.sticky.current = -1
    assert choose(core.topic, 100, core.leader_of).partition == 2, "1 + 3 of 8 are before it"
    core.accumulator.slow_nodes = frozenset((9,))
    core.topic.sticky.current = -1
    assert choose(core.topic, 100, core.leader_of).partition == 1, "of 4, the first is before it"


def test_without_adaptive_partitioning_all_are_equal() -> None:
    core = Core(3, is_adaptive=False)
    for partition, count in enumerate((1, 3, 3)):
        for _ in range(count):
            core.sent(partition, 2000)
    choice = core.accumulator.sticky_queue(core.topic, 100, core.leader_of).partition
    assert choice == 1, "of 3, the middle one; by weight it were the first of 3, 1 and 1"


# --------------------------------------------------------------------------------------------------------- memory
@pytest.mark.parametrize("value_size", [10, 100, 1000])
def test_memory_counts_what_python_takes(value_size: int) -> None:
    """A megabyte of values, or 50,000 of them: what is claimed is what the interpreter allocates, give or take."""
    core = Core(memory_bytes=1 << 30, batch_size=1 << 14)
    count = min(1_000_000 // value_size, 50_000)
    tracemalloc.start()
    try:
        for n in range(count):
            value = n.to_bytes(4) * (value_size // 4 + 1)
            size = estimated_size(None, value, ())
            queue = core.topic.partitions[0]
            record = (NOW + n // 10, None, value, ())
            assert core.accumulator.append(queue, *record, size) or core.accumulator.begin(
                queue, *record, size, core.now_ms
            )
        allocated = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    claimed = core.memory.limit_bytes - core.memory.free_bytes
    assert 0.8 < allocated / claimed < 1.2
