"""The sticky partitioner stays, switches and chooses as KIP-794 says: by examples, properties and a simulated cluster.

Chance is a seeded generator, or a fixed number where one choice is looked at.
"""

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.producer.hooks.partitioner import NewBatchListener, Partitioner, StickyPartitioner

SIZE = 1000


def shares(partitioner: StickyPartitioner, available: Sequence[int], partition_count: int) -> dict[int, float]:
    """How often each partition is chosen."""
    times = 6000
    found = Counter(partitioner.choose(available, partition_count) for _ in range(times))
    return {partition: count / times for partition, count in found.items()}


def seeded() -> StickyPartitioner:
    return StickyPartitioner(SIZE, random.Random(794).random)


# ------------------------------------------------------------------------------------------------------ staying
def test_a_partition_must_be_chosen_first() -> None:
    partitioner = seeded()
    assert partitioner.current == -1
    assert partitioner.choose([4], 5) == 4
    assert partitioner.current == 4


def test_stays_until_a_batch_of_bytes_went_there_and_the_queue_is_complete() -> None:
    partitioner = seeded()
    partitioner.choose([0, 1], 2)
    assert not partitioner.appended(SIZE - 1, True)
    assert partitioner.current >= 0
    assert partitioner.appended(1, True)
    assert partitioner.current == -1


def test_an_incomplete_batch_delays_the_switch_until_twice_as_many_bytes() -> None:
    partitioner = seeded()
    partitioner.choose([0, 1], 2)
    assert not partitioner.appended(SIZE, False)
    assert not partitioner.appended(SIZE - 1, False)
    assert partitioner.appended(1, False)


def test_a_delayed_switch_is_completed_by_the_next_look() -> None:
    partitioner = seeded()
    partitioner.choose([0, 1], 2)
    assert not partitioner.appended(SIZE, False)
    assert partitioner.appended(0, True)


def test_a_choice_begins_to_count_anew() -> None:
    partitioner = seeded()
    partitioner.choose([0, 1], 2)
    assert partitioner.appended(5 * SIZE, True)
    partitioner.choose([0, 1], 2)
    assert partitioner.produced_bytes == 0
    assert not partitioner.appended(SIZE - 1, True)


def test_a_batch_size_of_zero_still_takes_a_byte() -> None:
    partitioner = StickyPartitioner(0, lambda: 0.0)
    partitioner.choose([0, 1], 2)
    assert not partitioner.appended(0, True)
    assert partitioner.appended(1, True)


@given(st.integers(1, 100), st.lists(st.tuples(st.integers(1, 80), st.booleans()), max_size=100))
def test_switches_at_the_first_append_that_is_due(batch_size: int, appends: list[tuple[int, bool]]) -> None:
    partitioner = StickyPartitioner(batch_size, random.Random(1).random)
    produced = 0
    for size, is_complete in appends:
        if partitioner.current < 0:
            partitioner.choose([0, 1, 2], 3)
            produced = 0
        produced += size
        is_due = produced >= 2 * batch_size or (produced >= batch_size and is_complete)
        assert partitioner.appended(size, is_complete) is is_due
        assert (partitioner.current < 0) is is_due


# ----------------------------------------------------------------------------------------------------- choosing
def test_chooses_evenly_while_nothing_is_known() -> None:
    found = shares(seeded(), [0, 2, 3], 4)
    assert found.keys() == {0, 2, 3}
    assert all(share == pytest.approx(1 / 3, abs=0.03) for share in found.values())


def test_chooses_among_all_when_none_has_a_leader() -> None:
    assert shares(seeded(), [], 3).keys() == {0, 1, 2}


def test_weights_are_inverse_to_the_length_of_the_queues() -> None:
    """Queues of 0, 3 and 1 batches: 4, 1 and 3 of 8, as BuiltInPartitioner.java has it."""
    partitioner = seeded()
    partitioner.update_load([0, 3, 1], [0, 1, 2], 3)
    found = shares(partitioner, [0, 1, 2], 3)
    assert [found[partition] for partition in (0, 1, 2)] == pytest.approx([4 / 8, 1 / 8, 3 / 8], abs=0.03)


def test_two_partitions_are_weighted_too() -> None:
    partitioner = seeded()
    partitioner.update_load([0, 3], [0, 1], 2)
    assert shares(partitioner, [0, 1], 2)[1] == pytest.approx(1 / 5, abs=0.03)


@pytest.mark.parametrize(
    ("chance", "partition"), [(0.0, 5), (0.49, 5), (0.5, 6), (0.62, 6), (0.625, 7), (1 - 2**-53, 7)]
)
def test_the_bounds_between_the_weights(chance: float, partition: int) -> None:
    partitioner = StickyPartitioner(SIZE, lambda: chance)
    partitioner.update_load([0, 3, 1], [5, 6, 7], 8)
    assert partitioner.choose(range(8), 8) == partition


def test_what_is_left_out_of_the_load_is_not_chosen_even_when_the_others_are_equal() -> None:
    """As are partitions without a leader and those of nodes that are too slow."""
    partitioner = seeded()
    partitioner.update_load([2, 2], [0, 3], 4)
    assert shares(partitioner, [0, 1, 2, 3], 4).keys() == {0, 3}
    partitioner.update_load([7], [2], 4)
    assert shares(partitioner, [0, 1, 2, 3], 4).keys() == {2}


def test_is_even_when_all_are_left_out() -> None:
    partitioner = seeded()
    partitioner.update_load([0, 9], [0, 1], 2)
    partitioner.update_load([], [], 2)
    assert shares(partitioner, [0, 1], 2)[1] == pytest.approx(1 / 2, abs=0.03)


def test_equal_queues_need_no_weights() -> None:
    partitioner = seeded()
    partitioner.update_load([4, 4, 4], [0, 1, 2], 3)
    assert shares(partitioner, [0, 2], 3).keys() == {0, 2}


def test_a_leader_lost_since_the_load_was_taken_is_not_chosen() -> None:
    partitioner = seeded()
    partitioner.update_load([0, 50], [0, 1], 2)
    assert shares(partitioner, [1], 2).keys() == {1}


def test_a_load_from_before_partitions_were_added_is_forgotten() -> None:
    partitioner = seeded()
    partitioner.update_load([0, 50], [0, 1], 2)
    assert shares(partitioner, [0, 1, 2], 3)[2] == pytest.approx(1 / 3, abs=0.03)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data(), st.integers(0, 2**32))
def test_only_partitions_that_may_be_chosen_are(sizes: list[int], data: st.DataObject, seed: int) -> None:
    count = len(sizes) + data.draw(st.integers(0, 3))
    ids = data.draw(st.permutations(range(count)))[: len(sizes)]
    available = data.draw(st.lists(st.sampled_from(range(count)), unique=True, min_size=1))
    partitioner = StickyPartitioner(SIZE, random.Random(seed).random)
    partitioner.update_load(sizes, ids, count)
    for _ in range(20):
        assert partitioner.choose(available, count) in available


# ---------------------------------------------------------------------------------------------------- at work
class SlowCluster:
    """Brokers that take batches at their own speed, and a producer that never has more than `room` batches queued."""

    def __init__(self, speeds: Sequence[float], room: int, *, is_adaptive: bool) -> None:
        self.partitioner = StickyPartitioner(SIZE, random.Random(3).random)
        self.is_adaptive = is_adaptive
        self.speeds = speeds
        self.room = room
        self.queues = [0] * len(speeds)
        self.taken = [0.0] * len(speeds)
        self.produced = [0] * len(speeds)

    def run(self, ticks: int) -> None:
        everywhere = range(len(self.speeds))
        for _ in range(ticks):
            while sum(self.queues) < self.room:
                if self.is_adaptive:
                    self.partitioner.update_load(self.queues, everywhere, len(self.queues))
                partition = self.partitioner.choose(everywhere, len(self.queues))
                assert self.partitioner.appended(SIZE, True)
                self.queues[partition] += 1
                self.produced[partition] += 1
            for partition, speed in enumerate(self.speeds):
                self.taken[partition] = min(self.taken[partition] + speed, self.queues[partition])
                whole = int(self.taken[partition])
                self.taken[partition] -= whole
                self.queues[partition] -= whole


def test_records_follow_the_speed_of_three_brokers_one_ten_times_slower() -> None:
    cluster = SlowCluster([2.0, 2.0, 0.2], room=40, is_adaptive=True)
    cluster.run(5000)
    fast, fast_too, slow = cluster.produced
    assert fast == pytest.approx(fast_too, rel=0.1)
    assert slow == pytest.approx((fast + fast_too) / 20, rel=0.25)


def test_without_adaptation_the_slowest_broker_sets_the_pace() -> None:
    adaptive = SlowCluster([2.0, 2.0, 0.2], room=40, is_adaptive=True)
    even = SlowCluster([2.0, 2.0, 0.2], room=40, is_adaptive=False)
    adaptive.run(5000)
    even.run(5000)
    assert even.produced[2] == pytest.approx(even.produced[0], rel=0.1)
    assert sum(adaptive.produced) > 4 * sum(even.produced)


# -------------------------------------------------------------------------------------------------- the user's
class Mine:
    def partition(
        self, topic: str, key: bytes | None, value: bytes | None, partition_count: int, available: Sequence[int]
    ) -> int:
        return available[len(value or b"") % len(available)]


class MineToo(Mine):
    def on_new_batch(self, topic: str, partition: int) -> None:
        pass


def test_a_partitioner_may_listen_for_new_batches_and_need_not() -> None:
    for mine in (Mine(), MineToo()):
        partitioner: Partitioner = mine
        assert partitioner.partition("orders", None, b"abc", 3, [1, 2]) == 2
    assert not isinstance(Mine(), NewBatchListener)
    assert isinstance(MineToo(), NewBatchListener)
