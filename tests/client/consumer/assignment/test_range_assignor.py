"""The rules of `range` one by one, with racks and without. Equality with Java: test_built_in_like_java.py."""

from odradek.client.consumer.assignment.assignor import Member, TopicLayout
from odradek.client.consumer.assignment.range_assignor import RangeAssignor, assign_ranges
from tests.client.consumer.assignment.groups import layouts, member, shown


def test_the_first_members_get_one_partition_more_of_each_topic() -> None:
    members = [member("m0", "a b"), member("m1", "a b")]
    assert shown(assign_ranges(members, layouts(a=3, b=3))) == {"m0": "a0 a1 b0 b1", "m1": "a2 b2"}


def test_only_subscribers_share_a_topic() -> None:
    members = [member("m0", "a"), member("m1", "a b"), member("m2", "b")]
    assert shown(assign_ranges(members, layouts(a=2, b=3))) == {"m0": "a0", "m1": "a1 b0 b1", "m2": "b2"}


def test_a_static_member_keeps_its_place_under_another_member_id() -> None:
    before = assign_ranges([member("x", "a", "i1"), member("y", "a", "i2")], layouts(a=2))
    after = assign_ranges([member("z", "a", "i1"), member("y", "a", "i2")], layouts(a=2))
    assert before["x"] == after["z"] and before["y"] == after["y"]


def racked(*racks: str) -> TopicLayout:
    """`racked("12", "2")`: partition 0 in racks 1 and 2, partition 1 in rack 2."""
    return TopicLayout(len(racks), tuple(frozenset(each) for each in racks))


def in_racks(topics: str, *racks: str) -> list[Member]:
    return [member(f"m{number}", topics, rack=rack or None) for number, rack in enumerate(racks)]


def test_partitions_go_to_members_in_the_racks_of_their_replicas() -> None:
    assert shown(assign_ranges(in_racks("a", "1", "2"), {"a": racked("2", "1")})) == {"m0": "a1", "m1": "a0"}


def test_balance_comes_before_racks() -> None:
    assert shown(assign_ranges(in_racks("a", "1", "2"), {"a": racked("1", "1")})) == {"m0": "a0", "m1": "a1"}


def test_racks_do_not_count_where_every_rack_has_every_partition() -> None:
    assert shown(assign_ranges(in_racks("a", "2", "1"), {"a": racked("12", "12")})) == {"m0": "a0", "m1": "a1"}


def test_a_member_without_a_rack_takes_any_partition() -> None:
    assert shown(assign_ranges(in_racks("a", "", "1"), {"a": racked("1", "2")})) == {"m0": "a0", "m1": "a1"}


def test_topics_that_are_divided_alike_stay_so_with_racks() -> None:
    """Partition 0 of both could only be at home in different members: neither is moved."""
    topics = {"a": racked("2", "1"), "b": racked("1", "2")}
    assert shown(assign_ranges(in_racks("a b", "1", "2"), topics)) == {"m0": "a0 b0", "m1": "a1 b1"}


def test_topics_with_equal_racks_move_together() -> None:
    topics = {"a": racked("2", "1"), "b": racked("2", "1")}
    assert shown(assign_ranges(in_racks("a b", "1", "2"), topics)) == {"m0": "a1 b1", "m1": "a0 b0"}


def test_it_tells_nothing_of_its_member() -> None:
    assignor = RangeAssignor()
    assignor.on_assignment([], 5)
    assert assignor.user_data({"a"}) is None
