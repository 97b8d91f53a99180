"""Assignors by name, and what holds for each of them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.consumer.assignment.assignor import Member, RebalanceProtocol, TopicLayout
from odradek.client.consumer.assignment.built_in import BUILT_IN, DEFAULT_NAMES, assignors
from odradek.client.consumer.assignment.range_assignor import RangeAssignor
from tests.client.consumer.assignment.groups import check_all_are_assigned, member_lists, topic_sets


def test_each_name_is_that_of_its_assignor() -> None:
    assert {name: made().name for name, made in BUILT_IN.items()} == {name: name for name in BUILT_IN}


def test_the_defaults_are_those_of_java() -> None:
    assert DEFAULT_NAMES == ("range", "cooperative-sticky")


def test_only_cooperative_sticky_is_cooperative() -> None:
    cooperative = [name for name, made in BUILT_IN.items() if RebalanceProtocol.COOPERATIVE in made().protocols]
    assert cooperative == ["cooperative-sticky"]


def test_an_assignor_of_the_user_is_taken_as_it_is() -> None:
    own = RangeAssignor()
    assert assignors([own, "sticky"])[0] is own


def test_an_unknown_name_is_an_error_that_lists_the_others() -> None:
    with pytest.raises(ValueError, match="'rangy'; built in are range, roundrobin"):
        assignors(["rangy"])


@pytest.mark.parametrize("name", BUILT_IN)
@given(members=member_lists(), topics=topic_sets(), data=st.data())
def test_all_partitions_are_assigned_once_in_any_order_of_members(
    name: str, members: list[Member], topics: dict[str, TopicLayout], data: st.DataObject
) -> None:
    assignment = BUILT_IN[name]().assign(members, topics)
    check_all_are_assigned(assignment, members, topics)
    shuffled: Sequence[Member] = data.draw(st.permutations(members))
    again = BUILT_IN[name]().assign(shuffled, dict(reversed(topics.items())))
    assert {key: sorted(value) for key, value in again.items()} == {
        key: sorted(value) for key, value in assignment.items()
    }


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_group_whose_topics_do_not_exist_gets_nothing(name: str) -> None:
    members = [Member("m0", frozenset(("a",))), Member("m1", frozenset(("a", "b")))]
    assert BUILT_IN[name]().assign(members, {}) == {"m0": [], "m1": []}
