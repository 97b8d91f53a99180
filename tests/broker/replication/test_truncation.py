"""Where a follower cuts its log for what its leader answers. Tables, and no logs."""

import pytest

from odradek.broker.replication.follower_state import FetchPosition
from odradek.broker.replication.truncation import Restart, Truncate, after_out_of_range, truncation_offset
from odradek.protocol.errors import ErrorCode, KafkaError

# Our log: epoch 1 from 0, epoch 3 from 10, epoch 6 from 20, the end at 30.
STARTS = [(1, 0), (3, 10), (6, 20)]
AT = FetchPosition(7, 30, 6, 0)


def own_end(epoch: int) -> tuple[int, int]:
    """The largest of our epochs up to this one, and its end."""
    known = [number for number, _ in STARTS if number <= epoch]
    following = [start for number, start in STARTS if number > epoch]
    return (known[-1] if known else epoch), (following[0] if following else 30)


@pytest.mark.parametrize(
    ("leader_end", "offset"),
    [
        ((6, 25), 25),  # it has our last epoch, and less of it
        ((6, 20), 20),
        ((3, 15), 15),  # it has none of epoch 6, and less of epoch 3 than we
        ((3, 20), 20),
        ((3, 28), 20),  # it has more of epoch 3: that is to be fetched
        ((5, 28), 20),  # we know no epoch 5: what comes before it is compared next
        ((2, 28), 10),
        ((1, 4), 4),
        ((0, 4), 0),  # older than all that we have
        ((0, 0), 0),
    ],
)
def test_where_the_log_is_cut(leader_end: tuple[int, int], offset: int) -> None:
    assert truncation_offset(leader_end, AT, own_end) == offset


@pytest.mark.parametrize("leader_end", [(7, 10), (6, 30), (6, 31), (-1, 10), (3, -1)])
def test_what_no_leader_answers_cuts_nothing(leader_end: tuple[int, int]) -> None:
    with pytest.raises(KafkaError) as caught:
        truncation_offset(leader_end, AT, own_end)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_a_leader_that_has_deleted_our_offset() -> None:
    assert after_out_of_range(AT, 31, 50) == Restart(31)
    assert after_out_of_range(AT, 30, 50) == Restart(30), "all that we have"
    assert after_out_of_range(FetchPosition(7, 0, -1, 0), 31, 50) == Restart(31)


def test_a_leader_that_ends_before_a_log_without_epochs() -> None:
    assert after_out_of_range(FetchPosition(7, 30, -1, 30), 5, 12) == Truncate(12)


@pytest.mark.parametrize(
    ("asked", "start", "end"), [(AT, 5, 12), (AT, 0, 50), (AT, 29, 30), (FetchPosition(7, 30, -1, 30), 0, 30)]
)
def test_records_are_not_thrown_away_for_what_is_not_understood(asked: FetchPosition, start: int, end: int) -> None:
    with pytest.raises(KafkaError) as caught:
        after_out_of_range(asked, start, end)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
