"""Plans over drawn clusters: balanced, on the racks that placement would use, and none with fewer moves."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from odradek.client.commands.spreading.plan import plan
from odradek.client.topic_partition import TopicPartition

Present = dict[TopicPartition, tuple[int, ...]]


class Drawn(NamedTuple):
    """Partitions on any brokers, and the brokers that they are to be spread over."""

    present: Present
    racks: dict[int, str | None]


def layouts(
    racks: st.SearchStrategy[Sequence[str | None]],
    *,
    factor: int | None,
    topics: int,
    partitions: int,
    leaving: Sequence[int] = (90, 91),
) -> st.SearchStrategy[Drawn]:
    """`racks`: one for each broker. `factor`: of all partitions; None: of each topic another one. `leaving`: brokers
    that have replicas and are to have none."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Drawn:
        chosen = draw(racks)
        everybody = [*range(len(chosen)), *leaving]
        present: Present = {}
        for number in range(draw(st.integers(1, topics))):
            its = draw(st.integers(1, len(chosen))) if factor is None else min(factor, len(chosen))
            for index in range(draw(st.integers(1, partitions))):
                order = draw(st.permutations(everybody))
                present[TopicPartition(f"t{number}", index)] = tuple(order[:its])
        return Drawn(present, dict(enumerate(chosen)))

    return drawn()


def of_no_rack(most: int) -> st.SearchStrategy[Sequence[str | None]]:
    return st.integers(1, most).map(lambda count: [None] * count)


def racks_of_one_size(most: int) -> st.SearchStrategy[Sequence[str | None]]:
    return st.tuples(st.integers(1, most), st.integers(1, most)).map(
        lambda drawn: [f"rack-{index % drawn[0]}" for index in range(drawn[0] * drawn[1])]
    )


def any_racks(most: int) -> st.SearchStrategy[Sequence[str | None]]:
    return st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=most)


def is_even(counts: Iterable[int]) -> bool:
    found = list(counts)
    return max(found) - min(found) <= 1


def loads(replicas: Iterable[Sequence[int]], brokers: Iterable[int]) -> list[int]:
    counted = Counter(itertools.chain.from_iterable(replicas))
    return [counted[broker] for broker in brokers]


def leads(replicas: Iterable[Sequence[int]], brokers: Iterable[int]) -> list[int]:
    counted = Counter(each[0] for each in replicas)
    return [counted[broker] for broker in brokers]


def moves(before: Mapping[TopicPartition, Sequence[int]], after: Mapping[TopicPartition, Sequence[int]]) -> int:
    """Replicas that have to be copied."""
    return sum(len(set(after[each]) - set(before[each])) for each in before)


def by_topic(after: Mapping[TopicPartition, Sequence[int]]) -> list[list[Sequence[int]]]:
    topics: dict[str, list[Sequence[int]]] = {}
    for each, replicas in after.items():
        topics.setdefault(each.topic, []).append(replicas)
    return list(topics.values())


def topics_and_all(after: Mapping[TopicPartition, Sequence[int]]) -> list[list[Sequence[int]]]:
    return [*by_topic(after), list(after.values())]


def check_kept(drawn: Drawn, after: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Every partition has as many replicas as before, on different ones of the brokers."""
    assert after.keys() == drawn.present.keys()
    for each, replicas in after.items():
        assert len(set(replicas)) == len(replicas) == len(drawn.present[each])
        assert set(replicas) <= drawn.racks.keys()


def best_rack_counts(factor: int, racks: Iterable[str | None]) -> list[int]:
    """How many replicas the racks have where each is given to the rack that is used least."""
    sizes = Counter(rack or "" for rack in racks)
    used = dict.fromkeys(sizes, 0)
    for _ in range(factor):
        rack = min((rack for rack in sizes if used[rack] < sizes[rack]), key=lambda rack: used[rack])
        used[rack] += 1
    return sorted(used.values())


def check_racks(drawn: Drawn, after: Mapping[TopicPartition, Sequence[int]]) -> None:
    names = {rack or "" for rack in drawn.racks.values()}
    for replicas in after.values():
        counted = Counter(drawn.racks[broker] or "" for broker in replicas)
        assert sorted(counted[name] for name in names) == best_rack_counts(len(replicas), drawn.racks.values())


@given(drawn=layouts(of_no_rack(6), factor=3, topics=4, partitions=9))
def test_brokers_get_as_many_replicas_and_leaders_give_or_take_one(drawn: Drawn) -> None:
    """Of each topic and of all together, where all partitions have as many replicas."""
    after = plan(drawn.present, drawn.racks)
    check_kept(drawn, after)
    for replicas in topics_and_all(after):
        assert is_even(loads(replicas, drawn.racks))
        assert is_even(leads(replicas, drawn.racks))


@given(drawn=layouts(of_no_rack(5), factor=None, topics=5, partitions=6))
def test_topics_of_different_factors_are_spread_together(drawn: Drawn) -> None:
    after = plan(drawn.present, drawn.racks)
    check_kept(drawn, after)
    for replicas in by_topic(after):
        assert is_even(loads(replicas, drawn.racks))
        assert is_even(leads(replicas, drawn.racks))
    assert is_even(loads(after.values(), drawn.racks))


@given(drawn=layouts(racks_of_one_size(3), factor=2, topics=3, partitions=8))
def test_racks_of_one_size_leave_brokers_as_even_as_without(drawn: Drawn) -> None:
    after = plan(drawn.present, drawn.racks)
    check_kept(drawn, after)
    check_racks(drawn, after)
    for replicas in topics_and_all(after):
        assert is_even(loads(replicas, drawn.racks))
        assert is_even(leads(replicas, drawn.racks))


@given(drawn=layouts(any_racks(6), factor=None, topics=4, partitions=6))
def test_replicas_are_on_as_many_racks_as_placement_would_use(drawn: Drawn) -> None:
    after = plan(drawn.present, drawn.racks)
    check_kept(drawn, after)
    check_racks(drawn, after)
    for rack in set(drawn.racks.values()):
        its = [broker for broker in drawn.racks if drawn.racks[broker] == rack]
        assert is_even(loads(after.values(), its)), "brokers of one rack differ by one at most"


@given(drawn=layouts(any_racks(6), factor=None, topics=4, partitions=6))
def test_a_plan_for_what_a_plan_came_to_moves_nothing(drawn: Drawn) -> None:
    after = plan(drawn.present, drawn.racks)
    again = plan(after, drawn.racks)
    assert moves(after, again) == 0
    assert leads(again.values(), drawn.racks) == leads(after.values(), drawn.racks)
    assert again == after


def assignments(present: Present, brokers: Sequence[int]) -> Iterator[dict[TopicPartition, tuple[int, ...]]]:
    """All that there are, whichever replica leads."""
    choices = [itertools.combinations(brokers, len(replicas)) for replicas in present.values()]
    for chosen in itertools.product(*choices):
        yield dict(zip(present, chosen, strict=True))


def fewest_moves(drawn: Drawn) -> int:
    """Of all balanced assignments."""
    brokers = list(drawn.racks)
    return min(
        moves(drawn.present, each)
        for each in assignments(drawn.present, brokers)
        if all(is_even(loads(replicas, brokers)) for replicas in topics_and_all(each))
    )


@given(drawn=layouts(of_no_rack(4), factor=None, topics=3, partitions=2, leaving=()))
def test_no_balanced_assignment_has_fewer_moves(drawn: Drawn) -> None:
    """All assignments of small clusters are tried."""
    assert moves(drawn.present, plan(drawn.present, drawn.racks)) == fewest_moves(drawn)


@given(drawn=layouts(of_no_rack(4), factor=None, topics=3, partitions=2, leaving=(90,)))
def test_what_a_broker_gives_up_costs_a_move_more_at_most(drawn: Drawn) -> None:
    """Beyond the fewest moves, for each replica of the broker that leaves."""
    given_up = sum(90 in replicas for replicas in drawn.present.values())
    assert moves(drawn.present, plan(drawn.present, drawn.racks)) <= fewest_moves(drawn) + given_up


@given(drawn=layouts(any_racks(4), factor=None, topics=3, partitions=2))
def test_no_other_leaders_of_these_replicas_are_more_even(drawn: Drawn) -> None:
    """Among those that are even within each topic, whatever the factors and racks: all are tried."""
    after = plan(drawn.present, drawn.racks)
    brokers = list(drawn.racks)

    def spread(leaders: Iterable[int]) -> int:
        return sum(count * count for count in loads([[each] for each in leaders], brokers))

    within = {topic: spread(each[0] for each in its) for topic, its in enumerate(by_topic(after))}
    best = min(
        spread(chosen)
        for chosen in itertools.product(*after.values())
        if {
            topic: spread(each[0] for each in its)
            for topic, its in enumerate(by_topic({each: (leader,) for each, leader in zip(after, chosen, strict=True)}))
        }
        == within
    )
    assert spread(each[0] for each in after.values()) == best


def test_one_broker_gives_half_of_each_topic_to_a_second_one() -> None:
    present = {TopicPartition(topic, index): (1,) for topic in ("a", "b", "__consumer_offsets") for index in range(4)}
    after = plan(present, {1: "rack-1", 2: "rack-2"})
    assert moves(present, after) == 6
    for replicas in by_topic(after):
        assert loads(replicas, (1, 2)) == [2, 2]


def test_what_is_left_of_a_larger_number_stays_where_it_was() -> None:
    present = {TopicPartition("t", index): (1, 2, 3) for index in range(3)}
    after = plan(present, dict.fromkeys((1, 2), None), dict.fromkeys(present, 1))
    assert moves(present, after) == 0
    assert sorted(len(replicas) for replicas in after.values()) == [1, 1, 1]
    assert is_even(loads(after.values(), (1, 2)))


@pytest.mark.parametrize("brokers", [2, 12])
def test_thousands_of_partitions_take_a_moment(brokers: int) -> None:
    """What is shown is that it ends well within the time limit of a test."""
    present = {TopicPartition(f"t{number}", index): (1,) for number in range(300) for index in range(1 + number % 20)}
    after = plan(present, dict.fromkeys(range(1, brokers + 1)))
    assert is_even(loads(after.values(), range(1, brokers + 1)))
    assert is_even(leads(after.values(), range(1, brokers + 1)))
