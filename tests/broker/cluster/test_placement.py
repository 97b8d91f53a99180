"""Placement: replicas apart, racks apart, leaders even; what is given by hand is checked in Kafka's words."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.cluster import placement
from odradek.broker.cluster.placement import UsableBroker, place, widened
from odradek.protocol.errors import ErrorCode, KafkaError

BROKERS = st.lists(
    st.builds(UsableBroker, st.integers(0, 99), st.sampled_from([None, "a", "b", "c"]), st.booleans()),
    min_size=1,
    max_size=9,
    unique_by=lambda broker: broker.broker_id,
).filter(lambda brokers: any(not broker.is_fenced for broker in brokers))


@given(st.data(), BROKERS, st.integers(0, 40), st.integers(0, 10**9), st.integers(0, 10**9))
def test_every_placement_is_sound(
    data: st.DataObject, brokers: list[UsableBroker], partition_count: int, start: int, shift: int
) -> None:
    """Distinct brokers, an unfenced leader, as many racks as there can be, of a rack the fenced brokers last."""
    replication_factor = data.draw(st.integers(1, len(brokers)))
    by_id = {broker.broker_id: broker for broker in brokers}
    unfenced = [broker for broker in brokers if not broker.is_fenced]
    assignments = place(partition_count, replication_factor, brokers, start, shift)
    assert len(assignments) == partition_count
    for replicas in assignments:
        assert len(replicas) == len(set(replicas)) == replication_factor
        assert not by_id[replicas[0]].is_fenced
        racks = {broker.rack for broker in brokers}
        assert len({by_id[broker_id].rack for broker_id in replicas}) == min(len(racks), replication_factor)
        spare_racks = {broker.rack for broker in unfenced if broker.broker_id not in replicas}
        assert not any(by_id[broker_id].is_fenced and by_id[broker_id].rack in spare_racks for broker_id in replicas)
        if len(racks) == 1:
            chosen_unfenced = sum(not by_id[broker_id].is_fenced for broker_id in replicas)
            assert chosen_unfenced == min(replication_factor, len(unfenced))


def test_leaders_and_followers_are_even() -> None:
    """60 partitions on 6 brokers: each leads 10, and each place in the list is every broker's as often."""
    assignments = place(60, 3, [UsableBroker(number) for number in range(6)], start=4, shift=3)
    for position in range(3):
        assert set(Counter(replicas[position] for replicas in assignments).values()) == {10}
    partners = Counter(replicas[1] for replicas in assignments if replicas[0] == 0)
    assert set(partners.values()) == {2}, "the load of a leader that fails goes to all the others"


def test_racks_are_used_in_turn() -> None:
    brokers = [UsableBroker(number, "abc"[number // 3]) for number in range(9)]
    for replicas in place(36, 3, brokers):
        assert sorted(number // 3 for number in replicas) == [0, 1, 2]
    for replicas in place(9, 6, brokers):
        assert Counter(number // 3 for number in replicas) == {0: 2, 1: 2, 2: 2}


def test_a_rack_that_is_down_as_a_whole_gets_its_replica() -> None:
    """It is back soon, and the placement stays: two replicas on one rack would stay so (StripedReplicaPlacer)."""
    brokers = [UsableBroker(number, "abc"[number // 2], is_fenced=number >= 4) for number in range(6)]
    for replicas in place(12, 3, brokers):
        assert sorted(number // 2 for number in replicas) == [0, 1, 2]
        assert replicas[0] < 4
        assert replicas[2] >= 4, "nor is it asked for before others that are there"


def test_start_decides_where_a_topic_of_one_partition_lies() -> None:
    brokers = [UsableBroker(number) for number in (5, 1, 3)]
    assert [place(1, 1, brokers, start)[0] for start in range(4)] == [(1,), (3,), (5,), (1,)]


def refused(code: ErrorCode, message: str) -> "pytest.RaisesExc[KafkaError]":
    return pytest.RaisesExc(KafkaError, check=lambda error: (error.code, error.message) == (code, message))


@given(
    st.lists(st.sets(st.integers(0, 7), min_size=1, max_size=4).map(tuple), min_size=1, max_size=12),
    st.integers(1, 5),
    st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=8),
)
def test_widening_keeps_what_is_there_and_adds_what_can_be_had(
    present: list[tuple[int, ...]], replication_factor: int, properties: list[tuple[str | None, bool]]
) -> None:
    brokers = [UsableBroker(number, rack, is_fenced) for number, (rack, is_fenced) in enumerate(properties)]
    after = widened(present, replication_factor, brokers)
    known = {broker.broker_id for broker in brokers}
    for before, replicas in zip(present, after, strict=True):
        added = {*replicas} - {*before}
        assert {*before} <= {*replicas}
        assert added or replicas == before
        assert len(set(replicas)) == len(replicas)
        assert {*added} <= known
        assert len(replicas) == max(len(before), min(replication_factor, len(known | {*before})))


def test_widening_is_even_and_uses_racks_in_turn() -> None:
    brokers = [UsableBroker(number, "ab"[number % 2]) for number in range(4)]
    after = widened([(0,)] * 6, 2, brokers)
    assert sorted(map(sorted, after)) == [[0, 1]] * 3 + [[0, 3]] * 3, "on the other rack"


def test_widening_spreads_the_preferred_leaders_over_brokers_that_are_there() -> None:
    brokers = [UsableBroker(0), UsableBroker(1), UsableBroker(2, is_fenced=True)]
    assert Counter(replicas[0] for replicas in widened([(0,)] * 6, 3, brokers)) == {0: 3, 1: 3}
    two = widened([(0,)] * 6, 2, brokers[:2])
    all_three = [UsableBroker(number) for number in range(3)]
    assert Counter(replicas[0] for replicas in widened(two, 3, all_three)) == {0: 2, 1: 2, 2: 2}
    assert widened([(2, 1, 0)] * 4, 3, all_three) == ((2, 1, 0),) * 4, "nothing is added, and nothing moves"


def test_too_few_brokers() -> None:
    message = "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered."
    with refused(ErrorCode.INVALID_REPLICATION_FACTOR, message):
        place(1, 3, [UsableBroker(1), UsableBroker(2, is_fenced=True)])
    for replication_factor in (1, 2):  # in Kafka's order
        with refused(ErrorCode.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced."):
            place(1, replication_factor, [UsableBroker(1, is_fenced=True)])


@pytest.mark.parametrize("count", [0, -2])
def test_counts_that_are_no_counts(count: int) -> None:
    with refused(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."):
        placement.check_counts(count, 1)
    with refused(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ):
        placement.check_counts(1, count)
    placement.check_counts(1, 1)


def test_no_request_makes_too_many_partitions() -> None:
    placement.check_counts(10_000, 3)
    placement.check_partitions_per_request(10_000)
    for check in (
        lambda: placement.check_counts(10_001, 1),
        lambda: placement.check_partitions_per_request(10_001),
        lambda: placement.check_new_topic_assignments({index: [1] for index in range(10_001)}, [1]),
    ):
        with pytest.raises(KafkaError, match="Excessively large number of partitions per request") as caught:
            check()
        assert caught.value.code is ErrorCode.POLICY_VIOLATION


def test_partitions_only_grow() -> None:
    with refused(ErrorCode.INVALID_PARTITIONS, "Topic already has 3 partition(s)."):
        placement.check_increase("t", 3, 3)
    for count in (2, 0, -1):
        message = f"The topic t currently has 3 partition(s); {count} would not be an increase."
        with refused(ErrorCode.INVALID_PARTITIONS, message):
            placement.check_increase("t", 3, count)
    placement.check_increase("t", 3, 4)


CONSECUTIVE = "partitions should be a consecutive 0-based integer sequence"
MANUAL = "The manual partition assignment includes"


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ({0: [1], 2: [1]}, CONSECUTIVE),
        ({1: [1]}, CONSECUTIVE),
        ({-1: [1], 0: [1]}, CONSECUTIVE),
        ({0: []}, f"{MANUAL} an empty replica list."),
        ({0: [1, 1]}, f"{MANUAL} the broker 1 more than once."),
        ({0: [7]}, f"{MANUAL} broker 7, but no such broker is registered."),
        ({0: [-1]}, f"{MANUAL} broker -1, but no such broker is registered."),
        (
            {0: [1], 1: [1, 2]},
            f"{MANUAL} a partition with 2 replica(s), but this is not consistent with previous partitions, which "
            "have 1 replica(s).",
        ),
    ],
)
def test_wrong_assignments_of_a_new_topic(assignments: dict[int, list[int]], message: str) -> None:
    with refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message):
        placement.check_new_topic_assignments(assignments, [1, 2, 3])


def test_right_assignments_are_kept() -> None:
    assert placement.check_new_topic_assignments({1: [2, 3], 0: [1, 2]}, [1, 2, 3]) == ((1, 2), (2, 3))
    assert placement.check_added_assignments([[3, 1]], 1, 2, [1, 2, 3]) == ((3, 1),)


def test_wrong_assignments_of_added_partitions() -> None:
    for given_count, added_count in ((1, 2), (2, 1)):
        message = (
            f"Attempted to add {added_count} additional partition(s), but only {given_count} assignment(s) were "
            "specified."
        )
        with refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message):
            placement.check_added_assignments([[1]] * given_count, added_count, 1, [1])
    with refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{MANUAL} an empty replica list."):
        placement.check_added_assignments([[]], 1, 1, [1])
    with pytest.raises(KafkaError, match="not consistent with previous partitions"):
        placement.check_added_assignments([[1, 2]], 1, 1, [1, 2])
