"""What VerifiableConsumer prints becomes the records of a member."""

import json

import pytest

from odradek.testing.sim.checking.group_history import Assigned, CommitAnswered, CommitAsked, MemberGone, Revoked
from odradek.testing.sim.checking.history import Placed, Polled
from tests.cluster.java_member import Events

AHEAD_MS = 1_000.0
PARTITIONS = [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 2}]


def printed(*events: tuple[float, str, dict[str, object]]) -> bytes:
    """As lines, stamped so long after the time of the records."""
    stamped = ({"timestamp": at_ms + AHEAD_MS, "name": name, **more} for at_ms, name, more in events)
    return b"".join(json.dumps(each).encode() + b"\n" for each in stamped)


def record(partition: int, offset: int, number: int) -> tuple[float, str, dict[str, object]]:
    return 20.0, "record_data", {"topic": "t", "partition": partition, "offset": offset, "value": f"{number} ..."}


def test_each_event_is_one_of_its_records() -> None:
    events = Events("java.1", "t", AHEAD_MS)
    assert not events.has_started
    assert events.records_of(printed((5.0, "startup_complete", {}))) == []
    assert events.has_started
    told = printed(
        (10.0, "partitions_revoked", {"partitions": []}),
        (11.0, "partitions_assigned", {"partitions": PARTITIONS}),
        record(2, 40, 7),
        record(2, 41, 8),
        (21.0, "records_consumed", {"count": 2, "partitions": []}),
        (22.0, "offsets_committed", {"offsets": [], "success": True}),
        (30.0, "records_consumed", {"count": 0, "partitions": []}),
        (31.0, "offsets_committed", {"offsets": [], "success": True}),
    )
    assert events.records_of(told) == [
        Assigned(11.0, "java.1", "t", [0, 2]),
        Placed(21.0, "java.1", "t", 2, 40, "start"),
        Polled(21.0, 5.0, "java.1", "t", 2, 40, [(40, 7), (41, 8)]),
        CommitAsked(21.0, "java.1", 1, "t", [(2, 42)]),
        CommitAnswered(22.0, "java.1", 1),
    ]
    ended = printed(
        (40.0, "shutdown_requested", {}),
        (41.0, "partitions_revoked", {"partitions": PARTITIONS}),
        (42.0, "shutdown_complete", {}),
    )
    assert events.records_of(ended) == [Revoked(41.0, "java.1", "t", [0, 2]), MemberGone(42.0, "java.1", "left")]


def test_a_commit_that_fails_says_why() -> None:
    events = Events("java.1", "t", AHEAD_MS)
    told = printed(
        (11.0, "partitions_assigned", {"partitions": PARTITIONS}),
        record(0, 0, 1),
        (21.0, "records_consumed", {"count": 1, "partitions": []}),
        (22.0, "offsets_committed", {"offsets": [], "success": False, "error": "rebalanced"}),
    )
    assert events.records_of(told)[-1] == CommitAnswered(22.0, "java.1", 1, "rebalanced")


def test_an_event_that_is_not_known_is_no_event() -> None:
    with pytest.raises(ValueError, match="not known here: surprise"):
        Events("java.1", "t", AHEAD_MS).records_of(printed((1.0, "surprise", {})))
