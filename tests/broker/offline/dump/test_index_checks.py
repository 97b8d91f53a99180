"""Index entries that the log does not bear out are found; those that older versions of Kafka wrote are notes, and so is
what may be missing: any entry, and the last of a time index while its segment takes batches, or did when it crashed.
"""

from struct import pack

import pytest

from odradek.broker.offline.dump.findings import Inconsistency
from odradek.broker.offline.dump.index_checks import TimeIndexCheck
from odradek.broker.offline.dump.stored import Stored
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from tests.broker.log.compacted_logs import T0
from tests.broker.offline.dump.damages import (
    FIRST,
    LAST,
    SECOND,
    Case,
    Damage,
    add,
    both,
    check_cases,
    cut,
    inconsistency,
    notes,
    put,
    remove,
    replace,
)
from tests.broker.offline.dump.laid_down import RECOVERY_POINTS, sample_disk

FIRST_INDEX, FIRST_TIMES = f"{FIRST}.index", f"{FIRST}.timeindex"
LAST_INDEX, LAST_TIMES = f"{LAST}.index", f"{LAST}.timeindex"

CASES: dict[str, Case] = {
    "no offset index": (remove(FIRST_INDEX), f"{FIRST_INDEX}: it is missing"),
    "no time index": (remove(FIRST_TIMES), f"{FIRST_TIMES}: it is missing"),
    "an offset entry is cut": (cut(FIRST_INDEX, 20), f"{FIRST_INDEX}, position 16: entry 2 is cut: 4 bytes of 8"),
    "a time entry is cut": (cut(FIRST_TIMES, 20), f"{FIRST_TIMES}, position 12: entry 1 is cut: 8 bytes of 12"),
    "offsets not in order": (
        put(FIRST_INDEX, 8, ">i", 3),
        f"{FIRST_INDEX}, position 8: entry 1 is (3, 263), behind (3, 154): both numbers must increase",
    ),
    "positions not in order": (put(FIRST_INDEX, 12, ">i", 154), "entry 1 is (5, 154), behind (3, 154)"),
    "timestamps not in order": (put(FIRST_TIMES, 12, ">q", T0 + 21), f"entry 1 is ({T0 + 21}, 5), behind ({T0 + 21}, "),
    "no batch there": (
        put(FIRST_INDEX, 4, ">i", 155),
        f"{FIRST_INDEX}, position 0: entry 0 says that offset 3 is at 155, where no batch starts; the next one does at",
    ),
    "behind the end": (
        add(FIRST_INDEX, pack(">ii", 7, 768)),
        f"{FIRST_INDEX}, position 24: entry 3 says that offset 7 is at 768, and the log ends at 591",
    ),
    "an offset before": (put(FIRST_INDEX, 0, ">i", 2), "offset 2 is at 154, and the batch there ends with 3"),
    "an offset within a later batch": (
        replace(FIRST_INDEX, pack(">iiii", 4, 154, 6, 392)),
        f"{FIRST_INDEX}, position 0: entry 0 says that offset 4 is at 154, and neither the batch there nor one append",
    ),
    "an offset of the next entry's batch": (
        replace(FIRST_INDEX, pack(">iiii", 5, 154, 6, 263)),
        "entry 0 says that offset 5 is at 154, and neither the batch there nor one appended with it ends so",
    ),
    "an offset of the next segment": (
        replace(FIRST_INDEX, pack(">ii", 9, 154)),
        "entry 0 says that offset 9 is at 154, and neither the batch there nor one appended with it ends so",
    ),
    "a timestamp": (
        put(FIRST_TIMES, 0, ">q", T0 + 20),
        f"entry 0 says that {T0 + 20} is the largest timestamp up to offset 3, and the largest timestamp of its batch "
        f"is {T0 + 21}",
    ),
    "an offset of another timestamp": (put(FIRST_TIMES, 8, ">i", 4), "offset 4, and the largest timestamp of its ba"),
    "an offset within its batch": (put(LAST_TIMES, 0, ">qi", T0 + 106, 0), "offset 15, and its batch ends with 16"),
    "a timestamp that is not the largest": (
        replace(f"{SECOND}.timeindex", pack(">qi", T0 + 98, 6)),
        f"entry 0 says that {T0 + 98} is the largest timestamp up to offset 14, and a batch before it has {T0 + 500}",
    ),
    "a time behind the end": (put(LAST_TIMES, 8, ">i", 5), f"{LAST_TIMES}, position 0: entry 0 names offset 20, and "),
    "no last time in a closed segment": (
        cut(FIRST_TIMES, 36),
        f"{FIRST_TIMES}, position 36: entry 3 is missing: the last one should have the largest timestamp of the segmen",
    ),
    "no last time after a clean stop": (replace(LAST_TIMES, b""), f"{LAST_TIMES}, position 0: entry 0 is missing"),
}


@pytest.mark.parametrize(("damage", "told"), CASES.values(), ids=CASES.keys())
def test_an_entry_that_is_not_true_is_found(damage: Damage, told: str) -> None:
    check_cases(damage, told)


@pytest.mark.parametrize(
    "damage",
    [
        replace(FIRST_INDEX, b""),
        replace(FIRST_INDEX, pack(">ii", 5, 263)),
        replace(FIRST_TIMES, pack(">qi", T0 + 49, 7)),
        add(LAST_INDEX, bytes(800)),
        add(LAST_TIMES, bytes(1200)),
    ],
)
def test_entries_may_be_missing_and_zeros_may_follow(damage: Damage) -> None:
    disk = sample_disk()
    damage(disk)
    assert notes(disk) == []


def test_the_last_time_may_be_missing_in_a_segment_that_takes_batches() -> None:
    disk = sample_disk(is_clean=False)
    replace(LAST_TIMES, b"")(disk)
    assert notes(disk) == []


def test_the_last_time_may_be_missing_where_a_roll_was_interrupted() -> None:
    """A crash after the new segment was made, and before the one before it was completed."""
    interrupted = both(replace(f"{LAST}.log", b""), remove(f"{LAST[:-2]}18.snapshot", f"{LAST}.index", LAST_TIMES))
    disk = sample_disk(is_clean=False)
    both(interrupted, remove(RECOVERY_POINTS, "data/replication-offset-checkpoint"))(disk)
    both(replace(LAST_INDEX, b""), replace(LAST_TIMES, b""))(disk)
    replace("data/orders-0/leader-epoch-checkpoint", b"0\n2\n3 0\n5 8\n")(disk)
    replace(f"{SECOND}.timeindex", b"")(disk)
    assert notes(disk) == []
    replace(FIRST_TIMES, b"")(disk)
    assert f"{FIRST_TIMES}, position 0: entry 0 is missing" in inconsistency(disk)


def test_an_entry_of_a_follower_of_an_older_kafka_is_a_note() -> None:
    disk = sample_disk()
    replace(FIRST_INDEX, pack(">iiii", 5, 154, 6, 392))(disk)
    text = "entry 0 names the last offset of a later batch, as Kafka's followers once wrote them"
    assert notes(disk) == [f"{FIRST_INDEX}: {text}"]


def test_an_entry_for_a_record_of_an_older_kafka_is_a_note() -> None:
    times = (T0, T0 + 9, T0 + 9, T0 + 5)
    data = build_batch([Record(offset, timestamp_ms, None, b"", ()) for offset, timestamp_ms in enumerate(times)])
    stored = Stored(0, read_header(data), memoryview(data))
    for offset, is_true in ((0, False), (1, True), (2, True), (3, True)):
        check = TimeIndexCheck("path", pack(">qi", T0 + 9, offset), 0)
        if is_true:
            check.take(stored)
            check.finish(4, is_complete=True)
            assert [note.text.partition(",")[0] for note in check.notes] == [
                "entry 0 names the record with the timestamp"
            ] * (offset != 3)
        else:
            with pytest.raises(Inconsistency, match="its batch ends with 3"):
                check.take(stored)


def test_a_row_of_zeros_is_true_where_the_log_says_so() -> None:
    """A record from 1970 at the base offset: its entry is all zeros."""
    data = build_batch([Record(0, 0, None, b"", ())])
    for content, is_true in ((bytes(12), True), (b"", False)):
        check = TimeIndexCheck("path", content, 0)
        check.take(Stored(0, read_header(data), memoryview(data)))
        if is_true:
            check.finish(1, is_complete=True)
        else:
            with pytest.raises(Inconsistency, match="entry 0 is missing"):
                check.finish(1, is_complete=True)
