"""`sticky`: what a member owned comes by user data, and the second assignment changes nothing."""

from dataclasses import replace

from hypothesis import given

from odradek.client.consumer.assignment.assignor import Member, TopicLayout
from odradek.client.consumer.assignment.claims import Claims
from odradek.client.consumer.assignment.sticky_assignor import StickyAssignor, divide
from odradek.client.consumer.assignment.user_data import decode_previous_assignment
from tests.client.consumer.assignment.groups import layouts, member, member_lists, parts, shown, topic_sets


def told(members: list[Member], assignors: dict[str, StickyAssignor]) -> list[Member]:
    """The members as they join, with the user data of their assignors."""
    return [replace(each, user_data=assignors[each.member_id].user_data(each.topics)) for each in members]


@given(member_lists(), topic_sets())
def test_an_assignment_stays_as_long_as_nothing_changes(members: list[Member], topics: dict[str, TopicLayout]) -> None:
    assignors = {each.member_id: StickyAssignor() for each in members}
    first = StickyAssignor().assign(told(members, assignors), topics)
    for member_id, assignor in assignors.items():
        assignor.on_assignment(first[member_id], 1)
    second = StickyAssignor().assign(told(members, assignors), topics)
    assert {key: sorted(mine) for key, mine in first.items()} == {key: sorted(mine) for key, mine in second.items()}


def test_a_member_that_has_never_been_assigned_tells_nothing() -> None:
    assert StickyAssignor().user_data({"a"}) is None


def test_the_last_assignment_is_told_with_its_generation() -> None:
    assignor = StickyAssignor()
    assignor.on_assignment(parts("a1 b0"), 7)
    assert decode_previous_assignment(assignor.user_data({"a"})) == (tuple(parts("a1 b0")), 7)


def test_who_missed_a_rebalance_does_not_take_back_what_went_to_another() -> None:
    late, other = StickyAssignor(), StickyAssignor()
    late.on_assignment(parts("a0 a1"), 3)
    other.on_assignment(parts("a0 a1"), 4)
    members = told([member("m0", "a"), member("m1", "a")], {"m0": late, "m1": other})
    assert shown(StickyAssignor().assign(members, layouts(a=2))) == {"m0": "a1", "m1": "a0"}


def test_topics_that_do_not_exist_do_not_make_subscriptions_unequal() -> None:
    members = [member("m0", "a missing"), member("m1", "a")]
    assert shown(divide(members, layouts(a=3), Claims({}, {}))) == {"m0": "a0 a2", "m1": "a1"}


def test_a_group_without_members_gets_nothing() -> None:
    assert divide([], layouts(a=3), Claims({}, {})) == {}
