"""The leader epochs of the batches and of the checkpoint are compared; what the checkpoint may lack after a crash, and
where it may begin, is shown too.
"""

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from tests.broker.offline.dump.damages import (
    EPOCHS,
    FIRST,
    LAST,
    Case,
    Damage,
    check_cases,
    checkpoint,
    inconsistency,
    notes,
    put,
    remove,
    replace,
)
from tests.broker.offline.dump.laid_down import sample_disk

SAMPLE = ((3, 0), (5, 8), (6, 18))

CASES: dict[str, Case] = {
    "a batch goes back": (
        put(f"{FIRST}.log", 154 + 12, ">i", 2),
        f"{FIRST}.log, position 154, offset 3: leader epoch 2, where a batch before has 3",
    ),
    "a batch is ahead": (put(f"{FIRST}.log", 482 + 12, ">i", 5), f"offset 7: leader epoch 5, where {EPOCHS} says 3"),
    "the last batch is ahead": (put(f"{LAST}.log", 130 + 12, ">i", 6), f"leader epoch 6, where {EPOCHS} says 5"),
    "the last batch has a new one": (put(f"{LAST}.log", 130 + 12, ">i", 7), f"leader epoch 7, where {EPOCHS} says 5"),
    "no epoch": (put(f"{FIRST}.log", 12, ">i", -1), f"offset 0: leader epoch -1, where {EPOCHS} says 3"),
    "a start too early": (checkpoint(EPOCHS, (3, 0), (5, 7)), f"offset 7: leader epoch 3, where {EPOCHS} says 5"),
    "a start too late": (
        checkpoint(EPOCHS, (3, 0), (5, 9)),
        f"offset 8: leader epoch 5, where {EPOCHS} says 3 and the",
    ),
    "a start within a batch": (
        checkpoint(EPOCHS, (3, 0), (4, 1), (5, 8)),
        "leader epoch 3, where {} says 3 and then 4",
    ),
    "an epoch that began before": (
        checkpoint(EPOCHS, (4, 8), (5, 10)),
        f"offset 8: leader epoch 5, where {EPOCHS} says 4",
    ),
    "a first entry of a smaller epoch": (
        checkpoint(EPOCHS, (2, 8)),
        f"leader epoch 3, where {EPOCHS} begins later, wi",
    ),
    "a start behind the end": (
        checkpoint(EPOCHS, (3, 0), (5, 8), (6, 19)),
        f"{EPOCHS}, line 5: epoch 6 begins at offset 19, and the log ends at 18",
    ),
    "epochs not in order": (checkpoint(EPOCHS, (3, 0), (3, 8)), f"{EPOCHS}, line 4: EpochEntry(epoch=3, start_offset="),
    "starts not in order": (
        checkpoint(EPOCHS, (3, 0), (5, 0)),
        "follows EpochEntry(epoch=3, start_offset=0): both num",
    ),
    "a negative epoch": (checkpoint(EPOCHS, (-1, 0)), f"{EPOCHS}, line 3: "),
    "a missing epoch after a clean stop": (
        checkpoint(EPOCHS, (3, 0)),
        f"offset 8: leader epoch 5, which {EPOCHS} lacks, though the broker stopped cleanly",
    ),
    "no epoch after a clean stop": (checkpoint(EPOCHS), f"offset 0: leader epoch 3, which {EPOCHS} lacks, though"),
    "no checkpoint after a clean stop": (remove(EPOCHS), f"offset 0: leader epoch 3, which {EPOCHS} lacks, though"),
    "a count": (replace(EPOCHS, b"0\n2\n3 0\n"), f"{EPOCHS} should say in line 2 that 1 entries follow"),
    "a version": (replace(EPOCHS, b"1\n1\n3 0\n"), f"{EPOCHS} has version '1', only 0 is known"),
    "no number": (replace(EPOCHS, b"0\n1\n3 x\n"), f"{EPOCHS}, line 3: 'x' is no number"),
    "no text": (replace(EPOCHS, b"\xff"), f"{EPOCHS} is not text"),
}


@pytest.mark.parametrize(("damage", "told"), CASES.values(), ids=CASES.keys())
def test_what_does_not_agree_is_found(damage: Damage, told: str) -> None:
    check_cases(damage, told.format(EPOCHS))


def crashed(*entries: tuple[int, int]) -> MemoryDisk:
    disk = sample_disk(is_clean=False)
    checkpoint(EPOCHS, *entries)(disk)
    return disk


def test_after_a_crash_the_newest_epochs_may_be_missing() -> None:
    note = f"{EPOCHS}: epoch 5, which begins at offset 8, is not in it yet: the next start adds it"
    assert notes(crashed((3, 0))) == [note]
    first = f"{EPOCHS}: epoch 3, which begins at offset 0, is not in it yet: the next start adds it"
    assert notes(crashed()) == [first, note]
    assert notes(crashed((3, 0), (4, 8))) == [note], "the leader of epoch 4 was given nothing"
    assert f"offset 8: leader epoch 5, where {EPOCHS} says 4" in inconsistency(crashed((3, 0), (4, 8), (6, 9)))
    disk = crashed((3, 0), (5, 8))
    put(f"{LAST}.log", 12, ">i", 4)(disk)
    assert "leader epoch 4, where a batch before has 5" in inconsistency(disk)


@pytest.mark.parametrize(
    "entries",
    [((3, 3), (5, 8)), ((3, 1), (5, 8)), ((5, 8),), ((5, 9),), ((5, 18),), ((1, 0), (2, 1), (3, 3), (5, 8))[2:]],
)
def test_the_first_entry_may_begin_where_records_were_deleted(entries: tuple[tuple[int, int], ...]) -> None:
    disk = sample_disk()
    checkpoint(EPOCHS, *entries)(disk)
    assert notes(disk) == []


def test_epochs_without_a_batch_are_no_fault() -> None:
    disk = sample_disk()
    checkpoint(EPOCHS, (3, 0), (5, 8), (9, 18))(disk)
    assert notes(disk) == []
