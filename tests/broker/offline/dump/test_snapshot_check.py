"""What a snapshot says of a producer is compared with the log, field by field; what the log cannot say is let pass."""

from struct import pack

import pytest

from odradek.broker.log.producers import ProducedBatch, Producers, ProducerState
from odradek.broker.log.snapshots import encode_snapshot
from odradek.broker.offline.dump.findings import Inconsistency
from odradek.broker.offline.dump.replay import Replay
from odradek.broker.offline.dump.snapshot_check import check_snapshot
from odradek.broker.offline.dump.stored import Stored
from odradek.protocol.batches.batch import read_header
from tests.broker.log.compacted_logs import T0, data_batch, marker_batch
from tests.broker.offline.dump.damages import (
    LAST,
    SECOND,
    Case,
    Damage,
    add,
    check_cases,
    cut,
    entry,
    inconsistency,
    notes,
    put,
    remove,
    replace,
)
from tests.broker.offline.dump.laid_down import ORDERS, sample_disk, sample_log

END = f"{ORDERS}/{18:020d}.snapshot"
EPOCH, LAST_SEQUENCE, LAST_OFFSET, OFFSET_DELTA, TIMESTAMP, COORDINATOR_EPOCH, TXN = 8, 10, 14, 22, 26, 34, 38
"""Where the fields of an entry stand."""

CASES: dict[str, Case] = {
    "a version": (put(END, 0, ">h", 2), f"{END}: version 2; only 1 is known"),
    "the checksum": (put(END, 20, ">b", 99), f"{END}: it does not have the checksum that it carries"),
    "cut": (cut(END, 9), f"{END}: 9 bytes are too few for a snapshot"),
    "bytes too many": (add(END, b"x"), f"{END}: it does not have the checksum"),
    "a producer twice": (entry(END, 1, 0, ">q", 1), f"{END}: producer 1 stands in it twice"),
    "a transaction twice": (entry(END, 0, TXN, ">q", 17), f"{END}: transaction from offset 17 stands in it twice"),
    "epoch": (
        entry(END, 0, EPOCH, ">h", 1),
        f"{END}, position 10: producer 1: a epoch of 1, by the log it is 0",
    ),
    "last sequence": (entry(END, 1, LAST_SEQUENCE, ">i", 5), f"{END}, position 56: producer 8: a last_sequence of 5, "),
    "an earlier last offset": (
        entry(END, 1, LAST_OFFSET, ">q", 9),
        "producer 8: its last batch ends with 9, in the log with 17",
    ),
    "a later last offset": (
        entry(END, 2, LAST_OFFSET, ">q", 17),
        f"{END}, position 102: producer 9: its last batch ends with 17, in the log its last one ends with 13",
    ),
    "a batch of nobody": (
        entry(END, 2, 0, ">q", 77),
        "producer 77: its last batch ends with 13, in the log of it there is none",
    ),
    "offset delta": (entry(END, 0, OFFSET_DELTA, ">i", 0), "a offset_delta of 0, by the log it is 1"),
    "timestamp": (entry(END, 0, TIMESTAMP, ">q", T0), f"a timestamp_ms of {T0}, by the log it is {T0 + 106}"),
    "coordinator epoch": (entry(END, 1, COORDINATOR_EPOCH, ">i", 8), "a coordinator_epoch of 8, by the log it is 7"),
    "an open transaction": (entry(END, 1, TXN, ">q", -1), "a current_txn_first_offset of -1, by the log it is 17"),
    "no open transaction": (entry(END, 2, TXN, ">q", 13), "a current_txn_first_offset of 13, by the log it is -1"),
    "an earlier batch": (entry(END, 3, 4 + 8 + 4, ">i", 1), "producer 1: no batch in the log is ProducedBatch(base_s"),
    "an older snapshot": (
        entry(f"{SECOND}.snapshot", 2, TXN, ">q", -1),
        f"{SECOND}.snapshot, position 102: producer 9",
    ),
}


@pytest.mark.parametrize(("damage", "told"), CASES.values(), ids=CASES.keys())
def test_an_entry_that_is_not_true_is_found(damage: Damage, told: str) -> None:
    check_cases(damage, told)


def test_any_snapshot_may_be_missing() -> None:
    for paths in ([f"{SECOND}.snapshot"], [f"{LAST}.snapshot", END], [f"{SECOND}.snapshot", f"{LAST}.snapshot", END]):
        disk = sample_disk()
        remove(*paths)(disk)
        assert notes(disk) == []


def test_a_producer_that_is_missing_is_a_note() -> None:
    disk = sample_disk()
    state = ProducerState(0)
    state.batches.append(ProducedBatch(3, 4, 15, 16, T0 + 106))
    state.last_timestamp_ms = T0 + 106
    replace(END, encode_snapshot(Producers([(1, state)])))(disk)
    text = "2 producers of the log are not in it, 8 for one: they expired, or it lost them"
    assert notes(disk) == [f"{END}: {text}"]


# -- what a log cannot say --------------------------------------------------------------------------------------------


def replay_of(*batches: bytes, first_offset: int = 0) -> Replay:
    replay = Replay(first_offset)
    for data in batches:
        replay.take(Stored(0, read_header(data), memoryview(data)))
    return replay


def fault_of(replay: Replay, producer_id: int, **fields: int) -> str | None:
    """What is told of a snapshot with one producer that never appended, but for these fields of its entry."""
    wanted = {
        "epoch": 0,
        "last_sequence": -1,
        "last_offset": -1,
        "offset_delta": 0,
        "timestamp_ms": T0,
        "coordinator_epoch": -1,
        "current_txn_first_offset": -1,
    } | fields
    assert len(wanted) == 7
    entries = pack(">iqhiqiqiq", 1, producer_id, *wanted.values())
    state = encode_snapshot(Producers())
    assert len(state) == 10
    from odradek.protocol.batches.crc32c import crc32c

    try:
        check_snapshot("path", state[:2] + crc32c(entries).to_bytes(4, "big") + entries, replay)
    except Inconsistency as found:
        return found.text
    return None


def test_batches_before_the_log_are_believed_unless_a_snapshot_knew_them() -> None:
    beheaded = replay_of(data_batch(10, (b"k", b"v")), first_offset=10)
    assert fault_of(beheaded, 7, last_sequence=3, last_offset=9) is None
    assert beheaded.is_complete, "from this snapshot on everything is known"
    told = "producer 8: its last batch ends with 9, in the log of it there is none"
    assert fault_of(beheaded, 8, last_sequence=3, last_offset=9) == told
    beheaded = replay_of(data_batch(10, (b"k", b"v")), first_offset=10)
    told = "producer 7: its last batch ends with 10, in the log of it there is none"
    assert fault_of(beheaded, 7, last_sequence=3, last_offset=10) == told


def test_a_transaction_that_began_before_the_log_is_believed() -> None:
    batch = data_batch(10, (b"k", b"v"), producer=(7, 0, 3), is_transactional=True)
    known = {"last_sequence": 3, "last_offset": 10}
    for first_offset, is_told in ((4, False), (10, False), (11, True), (-1, True)):
        fault = fault_of(replay_of(batch, first_offset=10), 7, current_txn_first_offset=first_offset, **known)
        assert (fault is not None) is is_told
    fault = fault_of(replay_of(batch, first_offset=10), 7, current_txn_first_offset=4, coordinator_epoch=5, **known)
    assert fault is None, "a marker before the log had it"
    marker = marker_batch(11, 7, 0, is_commit=True)
    fault = fault_of(replay_of(batch, marker, first_offset=10), 7, coordinator_epoch=5, **known)
    assert fault == "producer 7: a coordinator_epoch of 5, by the log it is 7"


def compacted(*batches: bytes) -> Replay:
    """A replay that has met a gap at offset 3 and 4."""
    return replay_of(data_batch(0, (b"k", b"v"), (b"l", b"v"), (b"m", b"v")), *batches)


def test_batches_that_compaction_took_are_believed() -> None:
    kept = data_batch(5, (b"k", b"v"), producer=(7, 0, 3))
    assert fault_of(compacted(kept), 8, last_sequence=0, last_offset=4) is None
    told = "producer 8: its last batch ends with 2, in the log of it there is none"
    assert fault_of(compacted(kept), 8, last_sequence=0, last_offset=2) == told
    assert fault_of(compacted(kept), 7, last_sequence=3, last_offset=5, timestamp_ms=T0 + 9) is None
    told = "producer 7: a last_sequence of 4, by the log it is 3"
    assert fault_of(compacted(kept), 7, last_sequence=4, last_offset=5) == told
    assert fault_of(compacted(kept), 7, epoch=1) is None, "a marker raised its epoch, and is gone"
    told = "producer 7: its last batch ends with -1, in the log with 5"
    assert fault_of(compacted(kept), 7, epoch=0) == told
    told = "producer 7: a timestamp_ms of 1700000000009, by the log it is 1700000000000"
    uncompacted = replay_of(data_batch(0, (b"k", b"v"), producer=(7, 0, 3)))
    assert fault_of(uncompacted, 7, last_sequence=3, last_offset=0, timestamp_ms=T0 + 9) == told


def test_the_sample_has_what_is_compared() -> None:
    assert {read_header(data).producer_id for data in sample_log().appended} == {-1, 1, 8, 9}
    disk = sample_disk()
    remove(END)(disk)
    assert notes(disk) == []
    entry(f"{LAST}.snapshot", 1, COORDINATOR_EPOCH, ">i", 9)(disk)
    assert "producer 8: a coordinator_epoch of 9, by the log it is 7" in inconsistency(disk)
