"""`cooperative-sticky`: a partition that moves is withheld until its owner has let go, and the group settles."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.consumer.assignment.assignor import Member, TopicLayout
from odradek.client.consumer.assignment.cooperative_sticky_assignor import CooperativeStickyAssignor
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.assignor_user_data import encode_cooperative_user_data
from tests.client.consumer.assignment.groups import (
    check_all_are_assigned,
    layouts,
    member,
    member_lists,
    parts,
    shown,
    topic_sets,
)

ROUNDS_MAX = 3
"""What moves is given up in the first, given to its new owner in the second; the third changes nothing."""


def assigned(*members: Member, **counts: int) -> dict[str, str]:
    return shown(CooperativeStickyAssignor().assign(members, layouts(**counts)))


def owning(member_id: str, owned: str, generation: int = 5) -> Member:
    return replace(member(member_id, "a"), owned=tuple(parts(owned)), generation=generation)


def test_what_moves_is_withheld_from_its_new_owner() -> None:
    assert assigned(owning("m0", "a0 a1"), member("m1", "a"), a=2) == {"m0": "a0", "m1": ""}


def test_what_nobody_owns_is_given_at_once() -> None:
    assert assigned(owning("m0", "a0"), member("m1", "a"), a=2) == {"m0": "a0", "m1": "a1"}


def test_who_has_the_newest_claim_keeps_its_partition() -> None:
    assert assigned(owning("m0", "a0", 5), owning("m1", "a0", 4), a=1) == {"m0": "a0", "m1": ""}


def test_what_two_claim_in_one_generation_is_given_to_neither() -> None:
    assert assigned(owning("m0", "a0", 5), owning("m1", "a0", 5), a=1) == {"m0": "", "m1": ""}


def test_without_subscription_version_2_the_user_data_has_the_generation() -> None:
    old = replace(owning("m1", "a0", -1), user_data=encode_cooperative_user_data(6))
    assert assigned(owning("m0", "a0", 5), old, a=1) == {"m0": "", "m1": "a0"}


def test_it_tells_the_generation_of_its_last_assignment() -> None:
    assignor = CooperativeStickyAssignor()
    assert assignor.user_data({"a"}) == encode_cooperative_user_data(-1)
    assignor.on_assignment(parts("a0"), 8)
    assert assignor.user_data({"a"}) == encode_cooperative_user_data(8)


@given(member_lists(), topic_sets(), st.data())
def test_nothing_is_given_before_it_is_let_go_and_the_group_settles(
    members: list[Member], topics: dict[str, TopicLayout], data: st.DataObject
) -> None:
    """From any claims: nobody gets what another claims with the same right, and nobody loses what it may keep."""
    every = [
        TopicPartition(topic, number) for topic, layout in topics.items() for number in range(layout.partition_count)
    ]
    claims = st.lists(st.sampled_from(every), unique=True) if every else st.just(list[TopicPartition]())
    generations = st.integers(3, 5)
    members = [replace(each, owned=tuple(data.draw(claims)), generation=data.draw(generations)) for each in members]
    given_now: dict[str, list[TopicPartition]] = {}
    for _ in range(ROUNDS_MAX):
        given_now = CooperativeStickyAssignor().assign(members, topics)
        for taker in members:
            for partition in set(given_now[taker.member_id]) - set(taker.owned):
                assert not any(partition in other.owned for other in members if other is not taker)
        members = [replace(each, owned=tuple(given_now[each.member_id]), generation=6) for each in members]
    check_all_are_assigned(given_now, members, topics)
    again = CooperativeStickyAssignor().assign(members, topics)
    assert {key: sorted(mine) for key, mine in again.items()} == {key: sorted(mine) for key, mine in given_now.items()}
