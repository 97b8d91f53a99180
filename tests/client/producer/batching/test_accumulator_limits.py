"""A batch that the broker finds too large is split, and what is too large for it is learned: by few requests.

Played in the world of `accumulator_world.py` against a broker with a small `max.message.bytes`, with sizes as they are
by default: batches of 64 KiB and limits of 2 KiB.
"""

import pytest

from odradek.client.producer.batching.batch import BATCH_OVERHEAD_BYTES, ProducerBatch
from odradek.protocol.batches.batch import HEADER_SIZE
from odradek.protocol.batches.compression import Codec
from tests.client.accumulator_world import Start, World
from tests.client.core import Core
from tests.client.producer.batching.test_accumulator_histories import check_end

KEY = ("one", 0)
LIMIT = 2048
IN_FLIGHT = [(True, 5), (False, 5), (False, 1)]
"""Whether idempotent, and how many requests in flight."""


def new_world(*, is_idempotent: bool = True, in_flight_max: int = 5, codec: Codec = Codec.NONE) -> World:
    start = Start(
        is_idempotent,
        in_flight_max,
        codec,
        is_compressible=False,
        memory_batches=100_000,
        batch_size=64 * 1024,
        request_size=1 << 20,
    )
    world = World(start)
    world.obtain_id()
    world.limits["one"] = LIMIT
    return world


def play(world: World) -> None:
    """Until all has ended: requests are pipelined as far as they may be, then answered one by one."""
    for _ in range(10_000):
        world.run()
        world.compressed(0)
        world.handle(0)
        world.receive(0)
        world.check()
        if not world.accumulator.incomplete:
            check_end(world)
            return
        world.now_ms += 1
    raise AssertionError("it does not come to an end")


def outcomes(world: World) -> list[bool]:
    """Of each record, whether it was acknowledged."""
    return [record.outcomes[0] is not None for record in world.records.values()]


def fill_batch(world: World, value_size: int) -> int:
    """As many records as fit into one batch."""
    while len(world.accumulator.incomplete) < 2:
        assert world.send(*KEY, value_size, may_wait=False)
    (_, second) = world.accumulator.incomplete
    assert second.count == 1
    return len(world.records) - 1


# ------------------------------------------------------------------------------------------------ down to the limit
@pytest.mark.parametrize(("is_idempotent", "in_flight_max"), IN_FLIGHT)
@pytest.mark.parametrize("value_size", [4096, 4000])
def test_a_batch_of_records_that_are_each_too_large_fails_within_twenty_requests(
    is_idempotent: bool, in_flight_max: int, value_size: int
) -> None:
    """15 or 16 records in 64 KiB: each has to be refused alone, and the way there is short."""
    world = new_world(is_idempotent=is_idempotent, in_flight_max=in_flight_max)
    for _ in range(65_000 // value_size):
        assert world.send(*KEY, value_size, may_wait=False)
    assert len(world.accumulator.incomplete) == 1
    world.accumulator.flushing = 1
    play(world)
    assert outcomes(world) == [False] * len(world.records)
    assert world.request_count <= 20


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize(("is_idempotent", "in_flight_max"), IN_FLIGHT)
def test_a_batch_of_small_records_is_refused_at_most_seven_times(
    is_idempotent: bool, in_flight_max: int, codec: Codec
) -> None:
    """About 600 of 100 bytes in 64 KiB; then all are acknowledged, in order."""
    world = new_world(is_idempotent=is_idempotent, in_flight_max=in_flight_max, codec=codec)
    fill_batch(world, 100)
    play(world)
    assert outcomes(world) == [True] * len(world.records)
    assert world.brokers[KEY].units == list(world.records)
    assert 1 <= world.refused_count <= 7
    assert world.request_count <= 80


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_records_that_compress_well_are_not_sent_in_crumbs(codec: Codec) -> None:
    """500 kB become some kilobytes: the ratio of the batch that was refused tells how large its parts may be."""
    start = Start(True, codec=codec, memory_batches=100_000, batch_size=64 * 1024, request_size=1 << 20)
    world = World(start)
    world.obtain_id()
    world.accumulator.topic("one").compression_ratio = 0.1
    for _ in range(500):
        assert world.send(*KEY, 1000, may_wait=False)
    world.accumulator.flushing = 1
    world.run()
    world.compressed(0)
    (request,) = world.connections[0]
    (sent,) = request.batches
    assert len(sent.content.units) == 500
    world.limits["one"] = sent.size_bytes // 3
    play(world)
    assert outcomes(world) == [True] * 500
    assert world.request_count <= 8, "the whole, a half, and four to six parts"
    # Later batches are begun with the same expectation.
    assert world.send(*KEY, 10, may_wait=False)
    (later,) = world.accumulator.incomplete
    assert later.capacity > 2 * world.limits["one"]


def test_one_record_too_large_among_small_ones_fails_alone() -> None:
    world = new_world()
    for n in range(300):
        assert world.send(*KEY, 5000 if n == 100 else 100, may_wait=False)
    play_with_linger(world)
    assert [n for n, is_acknowledged in enumerate(outcomes(world)) if not is_acknowledged] == [100]
    assert world.request_count <= 60


def play_with_linger(world: World) -> None:
    world.now_ms += 1000
    play(world)


# ----------------------------------------------------------------------------------------------------- what is learned
def test_later_batches_are_begun_within_the_limit_and_older_ones_are_cut_unsent() -> None:
    """Three batches wait when the first is refused; nothing larger is sent from then on."""
    world = new_world(in_flight_max=1)
    for _ in range(3):
        fill_batch_more(world)
    play(world)
    assert outcomes(world) == [True] * len(world.records)
    refused = world.refused_count
    assert refused <= 7
    limit = world.accumulator.topics["one"].size_limit
    assert limit is not None
    assert limit <= LIMIT
    for _ in range(100):
        assert world.send(*KEY, 100, may_wait=False)
    assert max(batch.size for batch in world.accumulator.incomplete) <= limit
    play_with_linger(world)
    assert world.refused_count == refused


def fill_batch_more(world: World) -> None:
    """Records until one more batch has begun."""
    count = len(world.accumulator.incomplete)
    while len(world.accumulator.incomplete) == count:
        assert world.send(*KEY, 100, may_wait=False)


def test_a_record_larger_than_what_was_learned_is_sent_alone() -> None:
    """It may be the limit was learned too small: only the broker can say."""
    world = new_world()
    world.accumulator.topics["one"].size_limit = 100
    assert world.send(*KEY, 1000, may_wait=False)
    assert world.send(*KEY, 1000, may_wait=False)
    assert [batch.count for batch in world.accumulator.incomplete] == [1, 1]
    play_with_linger(world)
    assert outcomes(world) == [True, True]


def test_the_limit_is_forgotten_when_metadata_is_refreshed() -> None:
    world = new_world()
    fill_batch(world, 100)
    play_with_linger(world)
    topic = world.accumulator.topics["one"]
    assert topic.size_limit is not None
    world.accumulator.forget_limits("three")
    assert topic.size_limit is not None
    world.accumulator.forget_limits("one")
    assert topic.size_limit is None
    world.accumulator.forget_limits("unknown")
    world.limits["one"] = 10**6
    refused, requests = world.refused_count, world.request_count
    fill_batch(world, 100)
    play_with_linger(world)
    assert world.refused_count == refused
    assert world.request_count == requests + 2


def test_a_larger_batch_that_is_refused_later_does_not_raise_the_limit() -> None:
    """As one that was in flight when a smaller one was refused."""
    core = Core(linger_ms=0)
    core.sent(0, 850)
    assert core.sent(0, 10).count == 2
    batch = core.drained()
    core.topic.size_limit = 300
    core.accumulator.remove_in_flight(batch)
    core.accumulator.split(batch)
    assert core.topic.size_limit == 300


def test_what_was_refused_shows_how_well_the_topic_compresses() -> None:
    core = Core(linger_ms=0, codec=Codec.GZIP)
    for _ in range(5):
        batch = core.sent(0, 150)
    (batch,) = core.accumulator.drain(core.topic.partitions, core.leader_of, core.now_ms)
    batch.seal(batch.compressed(Codec.GZIP, None), Codec.GZIP)
    ratio = batch.compression_ratio
    assert ratio < 0.2
    core.accumulator.remove_in_flight(batch)
    core.accumulator.split(batch)
    assert core.topic.compression_ratio == ratio
    assert core.topic.size_limit == (batch_bytes(ratio, batch) + 1) // 2


def batch_bytes(ratio: float, batch: ProducerBatch) -> int:
    """What was sent of a batch that has been split since."""
    return round(ratio * (batch.size - HEADER_SIZE)) + HEADER_SIZE


def test_another_topic_is_not_limited() -> None:
    world = new_world()
    fill_batch(world, 100)
    play_with_linger(world)
    assert world.accumulator.topics["three"].size_limit is None


@pytest.mark.parametrize(("count", "request_count"), [(2, 3), (3, 4), (4, 6), (5, 7)])
def test_halves_are_sent_as_they_are_equal_or_not(count: int, request_count: int) -> None:
    """Records of which two are too much: the whole, halves of more than one record until one is refused, and each."""
    world = new_world(in_flight_max=1)
    for _ in range(count):
        assert world.send(*KEY, 1100, may_wait=False)
    world.accumulator.flushing = 1
    play(world)
    assert outcomes(world) == [True] * count
    assert world.request_count == request_count


# -------------------------------------------------------------------------------------------------- what is not cut
@pytest.mark.parametrize("is_idempotent", [True, False])
def test_a_batch_that_was_sent_before_is_not_cut(is_idempotent: bool) -> None:
    """It may be in the log, and a broker that has it knows it only as a whole: parts would be there twice.

    The answer to the first batch is lost; meanwhile the topic's limit is learned from another partition.
    """
    world = World(Start(is_idempotent, memory_batches=30))
    world.obtain_id()
    for _ in range(3):
        world.send("three", 1, 80, may_wait=False)
    world.now_ms += 20
    world.run()
    world.handle(0)
    assert world.brokers["three", 1].units == [0, 1, 2]
    world.disconnect(0)
    world.limits["three"] = 200
    world.accumulator.topics["three"].size_limit = 200
    world.now_ms += 1000
    world.run()
    (request,) = world.connections[0]
    assert [sent.content.units for sent in request.batches] == [(0, 1, 2)]
    play(world)
    assert outcomes(world) == [True] * 3
    assert world.brokers["three", 1].units == [0, 1, 2] * (1 if is_idempotent else 2)


def test_parts_go_one_by_one_even_where_more_may_be_in_flight() -> None:
    world = new_world(is_idempotent=False)
    fill_batch(world, 100)
    world.run()
    assert [len(request.batches) for request in world.connections[0]] == [1]
    while world.refused_count < 2:
        world.handle(0)
        world.receive(0)
        world.run()
        in_flight = [sent.batch for request in world.connections[0] for sent in request.batches]
        assert len([batch for batch in in_flight if batch.is_part]) <= 1
    play(world)


def test_parts_are_as_old_as_the_whole_and_free_its_memory() -> None:
    world = new_world()
    fill_batch(world, 100)
    world.run()
    (batch, *_) = list(world.accumulator.incomplete)
    used = world.memory.limit_bytes - world.memory.free_bytes
    world.now_ms += 300
    world.handle(0)
    world.receive(0)
    parts = [each for each in world.accumulator.incomplete if each.is_part]
    assert len(parts) == 2
    assert {(part.created_ms, part.deadline_ms) for part in parts} == {(batch.created_ms, batch.deadline_ms)}
    assert batch.encoded is None
    assert batch not in world.accumulator.incomplete
    growth = world.memory.limit_bytes - world.memory.free_bytes - used
    # Offsets begin at 0 in each part, so some take a byte less.
    assert BATCH_OVERHEAD_BYTES - batch.count <= growth <= BATCH_OVERHEAD_BYTES
    play(world)
