"""`uniform`, by properties for any subscriptions, and by the published examples of Kafka's UniformAssignor tests."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.group.assignors.spec import GroupSpec, MemberSpec, Partitions
from odradek.broker.group.assignors.uniform import assign_uniform

TOPICS = [bytes([index]) * 16 for index in range(5)]


def spec_of(
    members: Mapping[str, frozenset[bytes]], counts: Mapping[bytes, int], former: Mapping[str, Partitions]
) -> GroupSpec:
    return GroupSpec({name: MemberSpec(topics, former.get(name, {})) for name, topics in members.items()}, counts)


def flat(assigned: Mapping[str, Partitions]) -> dict[tuple[bytes, int], str]:
    """The owner of each partition, which has one at most."""
    pairs = [
        ((topic_id, index), name)
        for name, partitions in assigned.items()
        for topic_id, indexes in partitions.items()
        for index in indexes
    ]
    owners = dict(pairs)
    assert len(owners) == len(pairs), "a partition has two owners"
    return owners


def sizes(assigned: Mapping[str, Partitions]) -> list[int]:
    return sorted(sum(map(len, partitions.values())) for partitions in assigned.values())


FEW = settings(max_examples=40)

COUNTS = st.fixed_dictionaries({topic_id: st.integers(1, 9) for topic_id in TOPICS})
NAMES = st.lists(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=7, unique=True)


@st.composite
def alike(draw: st.DrawFn) -> GroupSpec:
    """All members have one subscription, and any former assignment, even a contradictory one."""
    topics = draw(st.frozensets(st.sampled_from(TOPICS)))
    former = st.dictionaries(st.sampled_from(TOPICS), st.frozensets(st.integers(0, 12), min_size=1), max_size=3)
    members = {name: MemberSpec(topics, draw(former)) for name in draw(NAMES)}
    return GroupSpec(members, draw(COUNTS))


@st.composite
def different(draw: st.DrawFn) -> GroupSpec:
    topics = st.frozensets(st.sampled_from(TOPICS))
    former = st.dictionaries(st.sampled_from(TOPICS), st.frozensets(st.integers(0, 12), min_size=1), max_size=3)
    members = {name: MemberSpec(draw(topics), draw(former)) for name in draw(NAMES)}
    return GroupSpec(members, draw(COUNTS))


def after(spec: GroupSpec, assigned: Mapping[str, Partitions], without: str = "") -> GroupSpec:
    members = {
        name: member._replace(assigned=assigned[name]) for name, member in spec.members.items() if name != without
    }
    return GroupSpec(members, spec.partition_counts)


@FEW
@given(st.one_of(alike(), different()))
def test_every_partition_of_a_subscribed_topic_has_one_owner_who_asked(spec: GroupSpec) -> None:
    assigned = assign_uniform(spec)
    assert assigned.keys() == spec.members.keys()
    owners = flat(assigned)
    wanted = {
        (topic_id, index)
        for member in spec.members.values()
        for topic_id in member.topics
        for index in range(spec.partition_counts[topic_id])
    }
    assert owners.keys() == wanted
    assert all(topic_id in spec.members[name].topics for (topic_id, _), name in owners.items())
    assert all(indexes for partitions in assigned.values() for indexes in partitions.values())


@FEW
@given(alike())
def test_equal_subscriptions_differ_by_one_partition_at_most(spec: GroupSpec) -> None:
    counts = sizes(assign_uniform(spec))
    assert counts[-1] - counts[0] <= 1


@FEW
@given(different())
def test_no_single_move_improves_the_balance(spec: GroupSpec) -> None:
    assigned = assign_uniform(spec)
    count = {name: sum(map(len, partitions.values())) for name, partitions in assigned.items()}
    for (topic_id, _), owner in flat(assigned).items():
        fewest = min(count[name] for name, member in spec.members.items() if topic_id in member.topics)
        assert count[owner] - fewest <= 1


@FEW
@given(st.one_of(alike(), different()))
def test_a_second_run_changes_nothing(spec: GroupSpec) -> None:
    assigned = assign_uniform(spec)
    assert assign_uniform(after(spec, assigned)) == assigned


@FEW
@given(alike(), st.data())
def test_when_a_member_leaves_only_its_partitions_move(spec: GroupSpec, data: st.DataObject) -> None:
    assigned = assign_uniform(spec)
    leaver = data.draw(st.sampled_from(sorted(spec.members)))
    owners, later = flat(assigned), flat(assign_uniform(after(spec, assigned, leaver)))
    assert all(later[one] == owner for one, owner in owners.items() if owner != leaver and one in later)


@FEW
@given(alike())
def test_when_a_member_joins_it_gets_its_share_and_nobody_else_gets_any(spec: GroupSpec) -> None:
    assigned = assign_uniform(spec)
    newcomer = MemberSpec(next(iter(spec.members.values())).topics)
    members = {"zz": newcomer, **after(spec, assigned).members}
    owners, later = flat(assigned), flat(assign_uniform(GroupSpec(members, spec.partition_counts)))
    moved = {one: owner for one, owner in later.items() if owners[one] != owner}
    assert set(moved.values()) <= {"zz"}
    assert len(moved) == len(owners) // len(members), "the smaller share, for those who have more keep it"


@FEW
@given(alike())
def test_nothing_moves_that_need_not(spec: GroupSpec) -> None:
    """Kept are as many partitions as quotas allow: the larger ones for those who have more."""
    former: dict[tuple[bytes, int], str] = {}
    for name, member in spec.members.items():
        for topic_id in member.assigned.keys() & member.topics:
            for index in member.assigned[topic_id]:
                if index < spec.partition_counts[topic_id]:
                    former.setdefault((topic_id, index), name)
    later = flat(assign_uniform(spec))
    quota, extra = divmod(len(later), len(spec.members))
    had = sorted((sum(owner == name for owner in former.values()) for name in spec.members), reverse=True)
    most = sum(min(count, quota + (place < extra)) for place, count in enumerate(had))
    assert sum(later[one] == owner for one, owner in former.items()) == most


def test_a_group_without_members_or_topics_gets_nothing() -> None:
    assert assign_uniform(GroupSpec({}, {})) == {}
    assert assign_uniform(spec_of({"a": frozenset(), "b": frozenset()}, {}, {})) == {"a": {}, "b": {}}


def test_kafkas_first_assignment_of_two_topics_to_two_members() -> None:
    """UniformHomogeneousAssignmentBuilderTest.testFirstAssignmentTwoMembersTwoTopicsNoMemberRacks: three each."""
    one, two = TOPICS[:2]
    both = frozenset((one, two))
    assigned = assign_uniform(spec_of({"A": both, "B": both}, {one: 3, two: 3}, {}))
    assert assigned == {"A": {one: {0, 1, 2}}, "B": {two: {0, 1, 2}}}


def test_kafkas_reassignment_after_partitions_were_added() -> None:
    """…testReassignmentWhenPartitionsAreAddedForTwoMembersTwoTopics: what was assigned stays, the rest is shared."""
    one, two = TOPICS[:2]
    both = frozenset((one, two))
    former = {"A": {one: frozenset((0, 2)), two: frozenset((0,))}, "B": {one: frozenset((1,)), two: frozenset((1, 2))}}
    assigned = assign_uniform(spec_of({"A": both, "B": both}, {one: 6, two: 5}, former))
    owners = flat(assigned)
    assert sizes(assigned) == [5, 6]
    assert all(
        owners[topic_id, index] == name
        for name in former
        for topic_id in former[name]
        for index in former[name][topic_id]
    )


def test_kafkas_reassignment_when_one_member_was_added() -> None:
    """…testReassignmentWhenOneMemberAddedAfterInitialAssignmentWithTwoMembersTwoTopics: each gives one to the third."""
    one, two = TOPICS[:2]
    both = frozenset((one, two))
    former = {"A": {one: frozenset((0, 2)), two: frozenset((0,))}, "B": {one: frozenset((1,)), two: frozenset((1, 2))}}
    assigned = assign_uniform(spec_of({"A": both, "B": both, "C": both}, {one: 3, two: 3}, former))
    assert assigned == {
        "A": {one: {0, 2}},
        "B": {one: {1}, two: {1}},
        "C": {two: {0, 2}},
    }


def test_kafkas_first_assignment_of_different_subscriptions() -> None:
    """UniformHeterogeneousAssignmentBuilderTest.testFirstAssignmentThreeMembersThreeTopicsDifferentSubscriptions."""
    one, two, three = TOPICS[:3]
    assigned = assign_uniform(
        spec_of(
            {"A": frozenset((one, two)), "B": frozenset((three,)), "C": frozenset((two, three))},
            {one: 3, two: 6, three: 2},
            {},
        )
    )
    assert assigned["A"][one] == {0, 1, 2}, "it alone has asked for that topic"
    assert assigned["B"] == {three: {0, 1}}, "the others have more already"
    assert sizes(assigned) == [2, 4, 5]


def test_a_topic_that_was_made_again_is_another_one() -> None:
    one, again = TOPICS[:2]
    former = {"A": {one: frozenset(range(4))}, "B": {}}
    assigned = assign_uniform(spec_of({"A": frozenset((again,)), "B": frozenset((again,))}, {again: 4}, former))
    assert assigned == {"A": {again: {0, 1}}, "B": {again: {2, 3}}}
