"""Offset checkpoints are compared with the partitions; after a crash they may lag behind."""

import pytest

from tests.broker.offline.dump.damages import Case, Damage, check_cases, checkpoint, inconsistency, notes, replace
from tests.broker.offline.dump.laid_down import DATA_DIR, HIGH_WATERMARKS, RECOVERY_POINTS, sample_disk

LOG_STARTS = f"{DATA_DIR}/log-start-offset-checkpoint"
CLEANED = f"{DATA_DIR}/cleaner-offset-checkpoint"

ALWAYS: dict[str, Case] = {
    "behind the end": (
        checkpoint(HIGH_WATERMARKS, ("others", 1, 0), ("orders", 0, 19)),
        f"{HIGH_WATERMARKS}, line 4: orders-0 has offset 19, and its log ends at 18",
    ),
    "a recovery point behind the end": (checkpoint(RECOVERY_POINTS, ("orders", 0, 19)), "has offset 19, and its log e"),
    "a log start behind the end": (checkpoint(LOG_STARTS, ("others", 1, 1)), f"{LOG_STARTS}, line 3: others-1 has off"),
    "compacted behind the end": (checkpoint(CLEANED, ("others", 1, 1)), f"{CLEANED}, line 3: others-1 has offset 1"),
    "a negative offset": (checkpoint(LOG_STARTS, ("orders", 0, -1)), f"{LOG_STARTS}, line 3: '-1' is no number"),
    "twice": (
        checkpoint(LOG_STARTS, ("orders", 0, 1), ("orders", 0, 2)),
        f"{LOG_STARTS}, line 4: orders-0 stands in it twice",
    ),
    "a count": (replace(LOG_STARTS, b"0\n2\norders 0 1\n"), f"{LOG_STARTS} should say in line 2 that 1 entries follow"),
    "words": (replace(LOG_STARTS, b"0\n1\norders 0\n"), f"{LOG_STARTS}, line 3: 2 words instead of 3"),
    "no number": (replace(LOG_STARTS, b"0\n1\norders 0 x\n"), f"{LOG_STARTS}, line 3: 'x' is no number"),
}
AFTER_A_CLEAN_STOP: dict[str, Case] = {
    "no such partition": (
        checkpoint(HIGH_WATERMARKS, ("gone", 3, 0)),
        f"{HIGH_WATERMARKS}, line 3: there is no partition gone-3",
    ),
    "a recovery point before the end": (
        checkpoint(RECOVERY_POINTS, ("orders", 0, 17)),
        f"{RECOVERY_POINTS}, line 3: orders-0 is flushed up to 17 and ends at 18, though the stop was clean",
    ),
}


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(("damage", "told"), ALWAYS.values(), ids=ALWAYS.keys())
def test_what_can_never_be_is_found(damage: Damage, told: str, is_clean: bool) -> None:
    check_cases(damage, told, is_clean=is_clean)


@pytest.mark.parametrize(("damage", "told"), AFTER_A_CLEAN_STOP.values(), ids=AFTER_A_CLEAN_STOP.keys())
def test_what_cannot_be_after_a_clean_stop_is_found(damage: Damage, told: str) -> None:
    check_cases(damage, told)


def test_after_a_crash_a_checkpoint_lags_behind() -> None:
    disk = sample_disk(is_clean=False)
    checkpoint(RECOVERY_POINTS, ("orders", 0, 3))(disk)
    checkpoint(HIGH_WATERMARKS, ("gone", 3, 0), ("orders", 0, 0))(disk)
    assert notes(disk) == [f"{HIGH_WATERMARKS}: line 3: there is no partition gone-3 (any more)"]


def test_a_mark_of_a_clean_stop_holds_for_recovery_points_alone() -> None:
    """A high watermark, a log start or the end of what was compacted may be anywhere in the log."""
    disk = sample_disk()
    for path in (HIGH_WATERMARKS, LOG_STARTS, CLEANED):
        checkpoint(path, ("orders", 0, 7))(disk)
    replace(f"{DATA_DIR}/other-offset-checkpoint", b"")(disk)
    assert notes(disk) == []
    checkpoint(f"{DATA_DIR}/other-offset-checkpoint", ("orders", 0, 99))(disk)
    assert "orders-0 has offset 99" in inconsistency(disk)
