"""Logs laid side by side: replicas that are equal where they must be, and leaders that have all that could be read."""

from typing import Any

import pytest

from odradek.testing.sim.checking.finding import Anomaly, Finding
from odradek.testing.sim.checking.history import ReplicaSeen
from odradek.testing.sim.checking.replica_logs import Readable, ReplicaLog, replicas_differ
from tests.broker.log.compacted_logs import T0, data_batch, marker_batch

FIRST = data_batch(0, (b"a", b"1"), (b"b", b"2"))
SECOND = data_batch(2, (b"a", b"3"))
THIRD = data_batch(3, (b"c", b"4"))
B_OF_FIRST = data_batch(1, (b"b", b"2"), timestamp_ms=T0 + 1)
"""What compaction leaves of the first batch."""
A_OF_FIRST = data_batch(0, (b"a", b"1"))
OTHER_SECOND = data_batch(2, (b"a", b"5"))
MARKER = marker_batch(3, 7, 0, is_commit=True)


def log(
    *batches: bytes,
    end: int = 4,
    high_watermark: int = 4,
    start: int = 0,
    compacted: int = 0,
    machine: str = "broker-1",
    leader_epoch: int = 1,
) -> ReplicaLog:
    seen = ReplicaSeen(
        at_ms=1_000.0 + leader_epoch,
        machine=machine,
        incarnation=1,
        topic="t",
        partition=0,
        leader_epoch=leader_epoch,
        is_leader=machine == "broker-1",
        log_start_offset=start,
        log_end_offset=end,
        high_watermark=high_watermark,
        in_sync=[1, 2],
        maximal_in_sync=[1, 2],
    )
    return ReplicaLog(seen, batches, compacted)


def follower(*batches: bytes, **more: Any) -> ReplicaLog:
    return log(*batches, machine="broker-2", **more)


def found(leader: ReplicaLog, other: ReplicaLog) -> tuple[int | None, str] | None:
    findings = list(replicas_differ(leader, [other]))
    assert len(findings) <= 1
    if not findings:
        return None
    (finding,) = findings
    assert finding.anomaly is Anomaly.REPLICAS_DIFFER
    assert "broker-2 follows" in str(finding)
    return finding.offset, finding.text


# -- side by side -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leader", "other"),
    [
        (log(FIRST, SECOND, THIRD), follower(FIRST, SECOND, THIRD)),
        (log(FIRST, SECOND, high_watermark=2), follower(FIRST, OTHER_SECOND)),
        (log(FIRST, SECOND, THIRD, high_watermark=2), follower(FIRST)),
        (log(FIRST, SECOND), follower(SECOND, start=2)),
        (log(SECOND, start=2), follower(FIRST, SECOND)),
        (log(FIRST, SECOND, start=1), follower(data_batch(0, (b"a", b"9"), (b"b", b"2")), SECOND)),
        (log(FIRST, high_watermark=1), follower(OTHER_SECOND)),
        (log(high_watermark=0), follower(FIRST, high_watermark=0)),
    ],
    ids=[
        "equal",
        "other batches above the high watermark",
        "fewer batches above it",
        "a later log start",
        "an earlier log start",
        "a log start within a batch",
        "a high watermark within a batch",
        "nothing",
    ],
)
def test_replicas_that_may_be_so(leader: ReplicaLog, other: ReplicaLog) -> None:
    assert found(leader, other) is None


def test_a_batch_that_is_another_is_shown_with_its_first_byte() -> None:
    assert found(log(FIRST, SECOND, THIRD), follower(FIRST, OTHER_SECOND, THIRD)) == (
        2,
        "the batches differ: 70 and 70 bytes, from byte 17 on "
        f"{SECOND[17:33].hex()} and {OTHER_SECOND[17:33].hex()}; "
        "broker-1 leads with high watermark 4, broker-2 follows",
    )


def test_a_batch_that_only_one_has_is_named() -> None:
    for leader, other, who in (
        (log(FIRST, SECOND), follower(FIRST), "the leader"),
        (log(FIRST), follower(FIRST, SECOND), "the follower"),
    ):
        difference = found(leader, other)
        assert difference is not None
        assert difference[0] == 2
        assert f"only {who} has a batch there" in difference[1]


def test_another_epoch_in_the_header_is_a_difference() -> None:
    patched = SECOND[:12] + (9).to_bytes(4, "big") + SECOND[16:]
    difference = found(log(FIRST, SECOND), follower(FIRST, patched))
    assert difference is not None
    assert "from byte 15 on" in difference[1]


def test_compaction_may_take_what_was_superseded_and_nothing_else() -> None:
    whole = log(FIRST, SECOND, THIRD)
    assert found(whole, follower(B_OF_FIRST, SECOND, THIRD, compacted=2)) is None
    assert found(log(B_OF_FIRST, SECOND, THIRD, compacted=2), follower(FIRST, SECOND, THIRD)) is None

    difference = found(whole, follower(A_OF_FIRST, SECOND, THIRD, compacted=2))
    assert difference is not None
    assert difference[0] == 1
    assert "only the leader has Record(offset=1" in difference[1]
    difference = found(log(A_OF_FIRST, SECOND, THIRD, compacted=2), follower(FIRST, SECOND, THIRD))
    assert difference is not None
    assert "only the follower has Record(offset=1" in difference[1]
    difference = found(whole, follower(data_batch(1, (b"b", b"9")), SECOND, THIRD, compacted=2))
    assert difference is not None
    assert "the records differ" in difference[1]
    assert found(whole, follower(B_OF_FIRST, OTHER_SECOND, THIRD, compacted=2)) is not None, "behind compaction's end"


def test_compaction_may_take_a_tombstone() -> None:
    tombstone = data_batch(0, (b"z", None))
    assert found(log(tombstone, SECOND), follower(SECOND, compacted=2)) is None


def test_compaction_takes_no_record_without_a_key() -> None:
    one, another = data_batch(0, (None, b"x")), data_batch(2, (None, b"y"))
    assert found(log(one, another), follower(another, compacted=2)) is not None


@pytest.mark.parametrize("is_commit", [False, True])
def test_compaction_may_take_records_of_an_aborted_transaction_alone(is_commit: bool) -> None:
    sent = data_batch(0, (b"a", b"1"), producer=(7, 0, 0), is_transactional=True)
    marker = marker_batch(1, 7, 0, is_commit=is_commit)
    difference = found(log(sent, marker, end=2, high_watermark=2), follower(marker, compacted=2, end=2))
    assert (difference is not None) is is_commit


def test_a_newer_record_of_an_aborted_transaction_supersedes_nothing() -> None:
    sent = data_batch(2, (b"b", b"9"), producer=(7, 0, 0), is_transactional=True)
    aborted = sent, marker_batch(3, 7, 0, is_commit=False)
    without = follower(A_OF_FIRST, *aborted, compacted=2)
    assert found(log(FIRST, *aborted), without) is not None


def test_compaction_may_take_a_marker() -> None:
    assert found(log(FIRST, SECOND, MARKER), follower(FIRST, SECOND, compacted=4)) is None
    readable = saw(log(FIRST, SECOND, MARKER))
    assert list(readable.elected(log(FIRST, SECOND, compacted=4), is_clean=True)) == []


def test_compaction_may_rewrite_a_batch_that_could_be_read() -> None:
    saw(log(FIRST, SECOND), log(A_OF_FIRST, SECOND, compacted=2))


def test_what_was_read_from_a_compacted_log_has_to_stay() -> None:
    readable = saw(log(B_OF_FIRST, SECOND, compacted=2))
    assert list(readable.elected(log(FIRST, SECOND), is_clean=True)) == [], "one that is not compacted yet"
    finding = one(list(readable.elected(log(SECOND, THIRD, compacted=3), is_clean=True)))
    assert "the record at 1 is missing" in finding.text


# -- over time --------------------------------------------------------------------------------------------------------


def one(findings: list[Finding]) -> Finding:
    (finding,) = findings
    assert finding.anomaly is Anomaly.READABLE_LOST
    assert [event.at_ms for _, event in finding.events] == sorted(event.at_ms for _, event in finding.events)
    return finding


def saw(*logs: ReplicaLog) -> Readable:
    readable = Readable("t", 0)
    for each in logs:
        assert list(readable.saw(each)) == []
    return readable


@pytest.mark.parametrize(
    "new_leader",
    [
        log(FIRST, SECOND, THIRD),
        log(FIRST, SECOND),
        log(SECOND, start=2),
        log(B_OF_FIRST, SECOND, start=1),
        log(B_OF_FIRST, SECOND, compacted=2),
        log(A_OF_FIRST, B_OF_FIRST, SECOND),
    ],
    ids=[
        "all of it",
        "all that was readable",
        "a later log start",
        "a log start within a batch",
        "compacted",
        "the same records in other batches",
    ],
)
def test_a_leader_that_has_what_could_be_read(new_leader: ReplicaLog) -> None:
    readable = saw(log(FIRST, SECOND, THIRD, high_watermark=3))
    assert list(readable.elected(new_leader, is_clean=True)) == []


def test_a_leader_that_lacks_what_could_be_read() -> None:
    readable = saw(log(FIRST, SECOND, high_watermark=2), log(FIRST, SECOND, THIRD))
    finding = one(list(readable.elected(log(FIRST, end=2, machine="broker-2", leader_epoch=2), is_clean=True)))
    assert finding.offset == 2
    assert "broker-2, leader in epoch 2: the record at 2 is missing, where the log ends at 2" in finding.text


def test_a_leader_that_has_something_else_there() -> None:
    readable = saw(log(FIRST, SECOND))
    finding = one(list(readable.elected(log(FIRST, OTHER_SECOND, leader_epoch=2), is_clean=True)))
    assert finding.offset == 2
    assert "the record at 2 is another" in finding.text
    assert "b'5'" in finding.text


def test_a_superseded_record_has_to_be_there_where_nothing_was_compacted() -> None:
    readable = saw(log(FIRST, SECOND))
    assert "the record at 0 is missing" in one(list(readable.elected(log(B_OF_FIRST, SECOND), is_clean=True))).text


def test_compaction_that_took_too_much() -> None:
    readable = saw(log(FIRST, SECOND))
    finding = one(list(readable.elected(log(A_OF_FIRST, SECOND, compacted=2), is_clean=True)))
    assert "the record at 1 is missing" in finding.text


def test_a_leader_without_a_control_batch() -> None:
    readable = saw(log(FIRST, SECOND, MARKER))
    assert list(readable.elected(log(FIRST, SECOND, MARKER), is_clean=True)) == []
    assert list(readable.elected(log(start=4), is_clean=True)) == [], "it was deleted"
    assert "control batch" in one(list(readable.elected(log(FIRST, SECOND), is_clean=True))).text


def test_a_leader_that_changes_its_own_log() -> None:
    readable = saw(log(FIRST, SECOND))
    finding = one(list(readable.saw(log(FIRST, OTHER_SECOND))))
    assert finding.offset == 2
    assert "other bytes now" in finding.text


def test_an_unclean_election_may_lose_and_counts_from_then_on() -> None:
    readable = saw(log(FIRST, SECOND, THIRD))
    assert list(readable.elected(log(FIRST, end=2), is_clean=False)) == []
    assert list(readable.saw(log(FIRST, OTHER_SECOND, high_watermark=3))) == []
    assert one(list(readable.elected(log(FIRST, SECOND), is_clean=True))).offset == 2
    assert list(readable.elected(log(FIRST), is_clean=True)) == [], "it was reported"


def test_an_unclean_election_may_bring_the_same_records_of_another_epoch() -> None:
    """A producer's batch that one leader never replicated, and that it sent to the next one again."""
    again = bytearray(SECOND)
    again[15] += 1
    readable = saw(log(FIRST, SECOND))
    assert list(readable.elected(log(FIRST, bytes(again)), is_clean=False)) == []
    assert list(readable.saw(log(FIRST, bytes(again)))) == []
    assert one(list(readable.saw(log(FIRST, SECOND)))).offset == 2, "what it has counts from then on"
