"""A history survives being written as JSON and read again, whatever is in it."""

import pytest

from odradek.testing.sim.checking.group_history import (
    Assigned,
    CommitAnswered,
    CommitAsked,
    MemberGone,
    OffsetsRead,
    Revoked,
)
from odradek.testing.sim.checking.history import (
    Acknowledged,
    Failed,
    Happened,
    History,
    Phase,
    Placed,
    Polled,
    PollFailed,
    Record,
    ReplicaSeen,
    Sent,
)

RECORDS: list[Record] = [
    Phase(0.0, "safety"),
    Happened(0.5, "start", "b1"),
    Sent(1.0, "p1", "p1/1", 1, "orders", 0, -1, is_idempotent=True),
    Sent(1.0, "p1", "p1/1", 2, "orders", None, 0),
    Acknowledged(2.5, 1, "orders", 0, 41),
    Failed(3.0, 2, "MetadataTimeout", is_definite=True),
    Placed(3.5, "r1", "orders", 0, 0, "start"),
    Polled(4.0, 3.5, "r1", "orders", 0, 41, [(41, 1), (43, 7)]),
    Polled(4.5, 4.0, "r1", "orders", 0, 44, [], high_watermark=44),
    PollFailed(5.0, 4.5, "r1", "orders", "ConnectionFailed"),
    ReplicaSeen(6.0, "b1", 1, "orders", 0, 3, True, 0, 44, 44, [1], [1, 2]),
    Assigned(7.0, "m1", "orders", [0, 2], 5, "i1"),
    CommitAsked(7.5, "m1", 3, "orders", [(0, 44), (2, 0)], 5),
    CommitAnswered(8.0, "m1", 3, "ILLEGAL_GENERATION", 6),
    Revoked(8.5, "m1", "orders", [0, 2], is_lost=True),
    MemberGone(9.0, "m1", "killed"),
    OffsetsRead(9.5, 9.0, "b1", "orders", [(0, 44), (1, -1)]),
]


def test_what_is_written_is_read_again() -> None:
    history = History(RECORDS)
    text = history.to_json()
    assert len(text.splitlines()) == len(RECORDS)
    assert History.from_json(text).records == RECORDS


def test_records_are_found_by_their_class() -> None:
    assert [sent.value for sent in History(RECORDS).of(Sent)] == [1, 2]


def test_time_does_not_go_back() -> None:
    history = History(RECORDS)
    with pytest.raises(AssertionError, match="time"):
        history.add(Phase(1.0, "end"))
