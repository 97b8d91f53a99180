"""What resets come to: each kind of them, the bounds of the log, and files as Kafka's own tool writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.admin.group_offsets import CommittedOffset
from odradek.client.commands.reset_plan import Ends, Move, Reset, To, moved, parse_reset_file, planned
from odradek.client.topic_partition import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
OFFSET = st.integers(0, 2**62)


@pytest.mark.parametrize(
    ("reset", "ends", "after", "note"),
    [
        (Reset(To.EARLIEST), Ends(3, 9), 3, ""),
        (Reset(To.LATEST), Ends(3, 9), 9, ""),
        (Reset(To.OFFSET, 5), Ends(3, 9), 5, ""),
        (Reset(To.OFFSET, 9), Ends(3, 9), 9, ""),
        (Reset(To.OFFSET, 10), Ends(3, 9), 9, "10 is behind the end"),
        (Reset(To.OFFSET, 0), Ends(3, 9), 3, "0 is before the start"),
        (Reset(To.TIME, 1_000), Ends(3, 9, by_time=4), 4, ""),
        (Reset(To.TIME, 1_000), Ends(3, 9, by_time=11), 9, ""),
        (Reset(To.TIME, 1_000), Ends(3, 9, by_time=-1), 9, "no record is as young: the end"),
        (Reset(To.SHIFT, -2), Ends(3, 9), 5, ""),
        (Reset(To.SHIFT, 2), Ends(3, 9), 9, ""),
        (Reset(To.SHIFT, 3), Ends(3, 9), 9, "10 is behind the end"),
        (Reset(To.SHIFT, -9), Ends(3, 9), 3, "-2 is before the start"),
        (Reset(To.FILE), Ends(3, 9, written=4), 4, ""),
        (Reset(To.FILE), Ends(3, 9, written=1), 3, "1 is before the start"),
    ],
)
def test_where_an_offset_comes_to(reset: Reset, ends: Ends, after: int, note: str) -> None:
    assert moved(reset, P0, 7, ends) == Move(P0, 7, after, note)


@given(st.sampled_from(To), st.integers(-(2**62), 2**62), OFFSET, OFFSET, OFFSET, st.integers(-1, 2**62))
def test_it_is_always_an_offset_that_the_log_has(
    to: To, value: int, before: int, start: int, size: int, by_time: int
) -> None:
    found = by_time if by_time < start else max(start, by_time)  # no record is before the start
    ends = Ends(start, start + size, found if found >= start else -1, abs(value))
    assert start <= moved(Reset(to, value), P0, before, ends).after <= start + size


def test_partitions_come_in_their_order_with_what_they_had() -> None:
    ends = {P1: Ends(0, 9), P0: Ends(2, 9)}
    assert planned(Reset(To.EARLIEST), ends, {P1: CommittedOffset(5)}) == ([Move(P0, None, 2), Move(P1, 5, 0)], [])


def test_what_has_no_offset_cannot_be_shifted() -> None:
    moves, refused = planned(Reset(To.SHIFT, 1), {P0: Ends(0, 9), P1: Ends(0, 9)}, {P1: CommittedOffset(5)})
    assert moves == [Move(P1, 5, 6)]
    assert refused == ["orders-0 has no offset that could be shifted: leave it out, or name an offset for it"]


# ------------------------------------------------------------------------------------------------------------ the file
def test_files_are_read_as_kafkas_own_tool_writes_them() -> None:
    """For one group without its name, for several with it; a name with a comma in quotation marks."""
    assert parse_reset_file(["orders,0,5", '"orders",1,6', ""], ["a"]) == {"a": {P0: 5, P1: 6}}
    written = ['"a,b",orders,0,5', "c,orders,0,6", "c,orders,1,7"]
    assert parse_reset_file(written, ["c", "a,b"]) == {"c": {P0: 6, P1: 7}, "a,b": {P0: 5}}
    assert parse_reset_file(["a,orders,0,5"], ["a"]) == {"a": {P0: 5}}


@pytest.mark.parametrize(
    ("lines", "groups", "said"),
    [
        (["orders,0"], ["a"], "line 1: write topic,partition,offset"),
        (["orders,0,5"], ["a", "b"], "line 1: write group,topic,partition,offset"),
        (["orders,0,5", "orders,x,5"], ["a"], "line 2: a topic, and the numbers of a partition and an offset"),
        (["orders,0,-5"], ["a"], "line 1: a topic, and the numbers"),
        ([",0,5"], ["a"], "line 1: a topic, and the numbers"),
        ([f"orders,0,{2**63}"], ["a"], "line 1: a topic, and the numbers"),
        (["orders,²,5"], ["a"], "line 1: a topic, and the numbers"),
        (["b,orders,0,5"], ["a"], "line 1: the group b is not named"),
        (["orders,0,5", "orders,0,6"], ["a"], "line 2: orders-0 comes twice"),
        ([], ["a"], "it has no line of the group a"),
        (["a,orders,0,5"], ["a", "b"], "it has no line of the group b"),
    ],
)
def test_a_line_that_is_none_is_told_with_its_number(lines: list[str], groups: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_reset_file(lines, groups)
