"""The rules of `roundrobin`. Equality with Java: test_built_in_like_java.py."""

from odradek.client.consumer.assignment.round_robin_assignor import RoundRobinAssignor, assign_round_robin
from tests.client.consumer.assignment.groups import layouts, member, shown


def test_partitions_are_dealt_in_turn_over_topics() -> None:
    members = [member("m0", "a b"), member("m1", "a b")]
    assert shown(assign_round_robin(members, layouts(b=3, a=3))) == {"m0": "a0 a2 b1", "m1": "a1 b0 b2"}


def test_who_does_not_subscribe_is_passed_over() -> None:
    """The example of RoundRobinAssignor.java: one partition of a, two of b, three of c."""
    members = [member("m0", "a"), member("m1", "a b"), member("m2", "a b c")]
    assert shown(assign_round_robin(members, layouts(a=1, b=2, c=3))) == {"m0": "a0", "m1": "b0", "m2": "b1 c0 c1 c2"}


def test_it_tells_nothing_of_its_member() -> None:
    assignor = RoundRobinAssignor()
    assignor.on_assignment([], 5)
    assert assignor.user_data({"a"}) is None
