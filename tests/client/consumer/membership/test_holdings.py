"""What a member owns, until it is said to be given up."""

from odradek.client.consumer.membership.holdings import Holdings
from tests.client.consumer.assignment.groups import parts

A0, A1, B0 = parts("a0 a1 b0")


def held() -> Holdings:
    holdings = Holdings()
    holdings.add((A0, A1))
    return holdings


def test_a_partition_is_owned_until_it_is_given_up() -> None:
    holdings = held()
    assert holdings.begin_giving_up((A0,)) == {A0}
    assert holdings.owned == {A0, A1} and holdings.being_given_up == {A0}
    holdings.give_up((A0,))
    assert holdings.owned == {A1} and not holdings.being_given_up


def test_the_consumer_is_told_once() -> None:
    holdings = held()
    holdings.begin_giving_up((A0,))
    assert holdings.begin_giving_up((A0, A1, B0)) == {A1}
    assert holdings.lose() == {A0, A1}
    assert holdings.lose() == frozenset()


def test_nothing_is_given_up_that_the_member_was_not_told_to() -> None:
    holdings = held()
    holdings.begin_giving_up((A0,))
    holdings.give_up((A0, A1, B0))
    assert holdings.owned == {A1}
