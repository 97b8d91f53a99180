"""Members that subscribe to different topics: as even as can be, with as few moves as that allows.

Small groups are compared with every division there is, larger ones by what a better division would have.
"""

import time
from itertools import chain, product

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.consumer.assignment.unequal_subscriptions import divide_unequally
from odradek.client.topic_partition import TopicPartition
from tests.client.consumer.assignment.groups import moves, parts, shown, squares

Topics = dict[str, frozenset[str]]


@st.composite
def small_groups(draw: st.DrawFn) -> tuple[Topics, list[TopicPartition], dict[TopicPartition, str]]:
    topics_of = {
        f"m{number}": draw(st.frozensets(st.sampled_from("abc"), min_size=1))
        for number in range(draw(st.integers(2, 4)))
    }
    partitions: list[TopicPartition] = []
    for topic in sorted(frozenset[str]().union(*topics_of.values())):
        partitions += [TopicPartition(topic, number) for number in range(draw(st.integers(0, 3)))]
    partitions = partitions[:6]
    owners: dict[TopicPartition, str] = {}
    for partition in partitions:
        takers = [member_id for member_id, topics in topics_of.items() if partition.topic in topics]
        if (owner := draw(st.sampled_from([None, *takers]))) is not None:
            owners[partition] = owner
    return topics_of, partitions, owners


def best_of_all(
    topics_of: Topics, partitions: list[TopicPartition], owners: dict[TopicPartition, str]
) -> tuple[int, int]:
    takers = [[member_id for member_id, topics in topics_of.items() if each.topic in topics] for each in partitions]
    costs: list[tuple[int, int]] = []
    for chosen in product(*takers):
        division: dict[str, list[TopicPartition]] = {member_id: [] for member_id in topics_of}
        for partition, member_id in zip(partitions, chosen, strict=True):
            division[member_id].append(partition)
        costs.append((squares(division), moves(division, owners)))
    return min(costs)


@settings(max_examples=150)
@given(small_groups())
def test_no_division_is_more_even_or_as_even_with_fewer_moves(
    group: tuple[Topics, list[TopicPartition], dict[TopicPartition, str]],
) -> None:
    topics_of, partitions, owners = group
    divided = divide_unequally(topics_of, partitions, owners)
    assert sorted(each for mine in divided.values() for each in mine) == partitions
    assert (squares(divided), moves(divided, owners)) == best_of_all(topics_of, partitions, owners)


def test_a_chain_of_moves_evens_out_what_single_moves_cannot() -> None:
    """m0 has two, m1 one and m2 none; m0 can hand on to m1 alone, and m1 to m2."""
    topics_of = {"m0": frozenset("b"), "m1": frozenset("bc"), "m2": frozenset("c")}
    owners = dict.fromkeys(parts("b0 b1"), "m0") | dict.fromkeys(parts("c0"), "m1")
    divided = divide_unequally(topics_of, parts("b0 b1 c0"), owners)
    assert shown(divided) == {"m0": "b1", "m1": "b0", "m2": "c0"}


def test_a_topic_without_subscribers_is_given_to_nobody() -> None:
    assert shown(divide_unequally({"m0": frozenset("a")}, parts("a0 b0"), {})) == {"m0": "a0"}


def test_work_that_is_bounded_still_gives_a_whole_division() -> None:
    topics_of = {"m0": frozenset("ab"), "m1": frozenset("b")}
    divided = divide_unequally(topics_of, parts("a0 a1 b0 b1"), dict.fromkeys(parts("b0 b1"), "m1"), work_max=0)
    assert sorted(chain(*divided.values())) == parts("a0 a1 b0 b1")


def test_a_large_group_takes_seconds_at_most() -> None:
    """200 members, 40 topics of 50 partitions, of which each member reads some; one of them owned them all."""
    topics = [f"t{number}" for number in range(40)]
    topics_of = {
        f"m{number}": frozenset([topics[(number * 7 + step) % 40] for step in range(number % 9 + 3)])
        for number in range(200)
    }
    topics_of["m0"] = frozenset(topics)
    partitions = [TopicPartition(topic, number) for topic in topics for number in range(50)]
    began = time.process_time()
    divided = divide_unequally(topics_of, partitions, dict.fromkeys(partitions, "m0"))
    assert time.process_time() - began < 5
    assert sum(map(len, divided.values())) == 2000
    assert max(map(len, divided.values())) <= 11
