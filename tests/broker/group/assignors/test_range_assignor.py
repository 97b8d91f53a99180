"""`range`, by properties and by the published examples of Kafka's RangeAssignor tests."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.group.assignors.range_assignor import assign_range
from odradek.broker.group.assignors.spec import GroupSpec, MemberSpec

ONE, TWO, THREE = (bytes([index]) * 16 for index in range(3))


@st.composite
def groups(draw: st.DrawFn) -> GroupSpec:
    names = draw(st.lists(st.text("abc", min_size=1, max_size=3), max_size=6, unique=True))
    topics = st.frozensets(st.sampled_from([ONE, TWO, THREE]))
    members = {name: MemberSpec(draw(topics), instance_id=draw(st.sampled_from([None, f"i{name}"]))) for name in names}
    return GroupSpec(members, {topic_id: draw(st.integers(1, 9)) for topic_id in (ONE, TWO, THREE)})


@given(groups())
def test_every_topic_is_cut_into_ranges_that_differ_by_one_at_most(spec: GroupSpec) -> None:
    assigned = assign_range(spec)
    for topic_id, count in spec.partition_counts.items():
        parts = [
            assigned[name].get(topic_id, frozenset()) for name in spec.members if topic_id in spec.members[name].topics
        ]
        if not parts:
            continue
        assert sorted(index for part in parts for index in part) == list(range(count))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        assert all(part == frozenset(range(min(part), max(part) + 1)) for part in parts if part)
    assert all(
        topic_id in spec.members[name].topics and indexes
        for name, partitions in assigned.items()
        for topic_id, indexes in partitions.items()
    )


@given(groups())
def test_the_order_in_which_members_joined_does_not_matter(spec: GroupSpec) -> None:
    turned = GroupSpec(dict(reversed(list(spec.members.items()))), spec.partition_counts)
    assert assign_range(turned) == assign_range(spec)


def test_kafkas_first_assignment_of_two_topics_to_two_members() -> None:
    """RangeAssignorTest.testFirstAssignmentTwoMembersTwoTopicsSameSubscriptions."""
    both = MemberSpec(frozenset((ONE, THREE)))
    assert assign_range(GroupSpec({"A": both, "B": both}, {ONE: 3, THREE: 2})) == {
        "A": {ONE: {0, 1}, THREE: {0}},
        "B": {ONE: {2}, THREE: {1}},
    }


def test_kafkas_first_assignment_of_different_subscriptions() -> None:
    """RangeAssignorTest.testFirstAssignmentThreeMembersThreeTopicsDifferentSubscriptions."""
    members = {
        "A": MemberSpec(frozenset((ONE, TWO))),
        "B": MemberSpec(frozenset((THREE,))),
        "C": MemberSpec(frozenset((TWO, THREE))),
    }
    assert assign_range(GroupSpec(members, {ONE: 3, TWO: 3, THREE: 2})) == {
        "A": {ONE: {0, 1, 2}, TWO: {0, 1}},
        "B": {THREE: {0}},
        "C": {TWO: {2}, THREE: {1}},
    }


def test_more_members_than_partitions_leaves_some_with_nothing() -> None:
    """RangeAssignorTest.testFirstAssignmentNumMembersGreaterThanTotalNumPartitions."""
    both = MemberSpec(frozenset((ONE, THREE)))
    assert assign_range(GroupSpec({"A": both, "B": both, "C": both}, {ONE: 3, THREE: 2})) == {
        "A": {ONE: {0}, THREE: {0}},
        "B": {ONE: {1}, THREE: {1}},
        "C": {ONE: {2}},
    }


def test_static_members_keep_their_place_under_another_member_id() -> None:
    topics = frozenset((ONE,))
    first = {
        "z": MemberSpec(topics, instance_id="1"),
        "a": MemberSpec(topics),
        "m": MemberSpec(topics, instance_id="2"),
    }
    again = {
        "a": MemberSpec(topics),
        "k": MemberSpec(topics, instance_id="2"),
        "b": MemberSpec(topics, instance_id="1"),
    }
    before, after = (assign_range(GroupSpec(members, {ONE: 3})) for members in (first, again))
    assert (before["z"], before["m"], before["a"]) == (after["b"], after["k"], after["a"])
    assert before["z"] == {ONE: {0}}
