"""The device's own time is measured on a file that is gone afterwards, and told with what it is good for."""

from pathlib import Path

from benchmarks.host.device import SyncTimes, flush_count, measure_sync, parse_flushes


def test_every_append_is_timed_and_nothing_is_left(tmp_path: Path) -> None:
    times = measure_sync(tmp_path, appends=5)
    assert len(times.seconds) == 5
    assert min(times.seconds) > 0
    assert list(tmp_path.iterdir()) == []


def test_a_device_that_is_too_fast_says_so() -> None:
    slow = SyncTimes((0.0001, 0.0002, 0.0009))
    assert slow.is_slow_enough
    assert str(slow) == "fdatasync after an append of 1024 bytes takes 0.200 ms [0.100–0.900]: 5,000/s"
    fast = SyncTimes((0.0001, 0.000199, 0.0009))
    assert not fast.is_slow_enough
    assert "TOO FAST" in str(fast)


def test_flushes_are_the_sixteenth_field_which_old_kernels_lack() -> None:
    assert parse_flushes(" ".join(str(number) for number in range(17))) == 15
    assert parse_flushes(" ".join(str(number) for number in range(15))) is None


def test_appends_that_are_synced_flush_the_device_where_that_is_counted(tmp_path: Path) -> None:
    before = flush_count(tmp_path)
    measure_sync(tmp_path, appends=5)
    after = flush_count(tmp_path)
    assert (before is None) is (after is None)
    if before is not None and after is not None:
        assert after >= before
