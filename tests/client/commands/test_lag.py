"""The lag of a group: between its offset and the end, within what the log has, and never negative."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.admin.group_offsets import CommittedOffset
from odradek.client.admin.groups import GroupDescription, MemberDescription
from odradek.client.commands.lag import lag_between, partitions_of, position_of, progress_of
from odradek.client.topic_partition import TopicPartition

OFFSET = st.integers(0, 2**63 - 1)
P0, P1, P2, OTHER = (TopicPartition(*each) for each in (("orders", 0), ("orders", 1), ("orders", 2), ("payments", 0)))


def test_the_lag_is_what_lies_between_the_offset_and_the_end() -> None:
    assert lag_between(3, 0, 10) == 7
    assert lag_between(10, 0, 10) == 0


def test_what_was_before_the_log_start_does_not_count() -> None:
    assert lag_between(3, 6, 10) == 4


def test_an_offset_behind_the_end_is_no_negative_lag() -> None:
    assert lag_between(12, 0, 10) == 0
    assert lag_between(12, 14, 10) == 0


@given(OFFSET, OFFSET, OFFSET)
def test_it_is_never_negative_nor_more_than_the_log_has(committed: int, start: int, size: int) -> None:
    assert 0 <= lag_between(committed, start, start + size) <= size


def member(member_id: str, *partitions: TopicPartition) -> MemberDescription:
    return MemberDescription(member_id, None, "app", "host", partitions=partitions)


def group(*members: MemberDescription) -> GroupDescription:
    return GroupDescription("a", "classic", "Stable", "consumer", "range", 0, members)


def test_partitions_are_those_with_an_offset_and_those_that_somebody_reads() -> None:
    first = member("m-1", P1, P2)
    committed = {OTHER: CommittedOffset(2), P1: CommittedOffset(5)}
    found = progress_of(group(first), committed, {P1: 1, OTHER: 4}, {P1: 9, P2: 3, OTHER: 7})
    assert [(each.partition, each.start, each.end, each.lag, each.member) for each in found] == [
        (P1, 1, 9, 4, first),
        (P2, None, 3, None, first),
        (OTHER, 4, 7, 3, None),
    ]
    assert [position_of(found[index]) for index in (0, 2)] == [5, 4]
    assert partitions_of([group(first, member("m-2", P0))], {"a": committed}) == [P0, P1, P2, OTHER]


def test_without_an_end_there_is_no_lag() -> None:
    """Of a topic that was deleted the offsets are left for a while."""
    (found,) = progress_of(group(), {P0: CommittedOffset(2)}, {}, {})
    assert (found.start, found.end, found.lag) == (None, None, None)


def test_members_whose_assignments_are_opaque_read_nothing_that_is_known() -> None:
    opaque = MemberDescription("m", None, "worker", "host", assignment=b"\0", partitions=None)
    assert progress_of(group(opaque), {}, {}, {}) == []
