"""Retention by hand at the edges of each rule, and at random against Kafka's loops written out.

The log of most tests has four segments of 100 bytes, ten offsets and ten seconds each.
"""

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.log.retention import UNLIMITED, Retention, deletable
from odradek.broker.log.segment_facts import SegmentFacts

NOW = 1_700_000_000_000
HOUR = 3_600_000


def segments(*sizes: int, newest_ms: int = NOW) -> list[SegmentFacts]:
    return [
        SegmentFacts(10 * number, size, largest_timestamp_ms=newest_ms - 10_000 * (len(sizes) - 1 - number))
        for number, size in enumerate(sizes)
    ]


FOUR = segments(100, 100, 100, 100)


def decide(
    log: Sequence[SegmentFacts] = FOUR,
    *,
    log_start_offset: int = 0,
    high_watermark: int = 40,
    log_end_offset: int = 40,
    deletes: bool = True,
    retention_bytes: int = UNLIMITED,
    retention_ms: int = UNLIMITED,
    now_ms: int = NOW,
) -> Retention:
    return deletable(
        log,
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        log_end_offset=log_end_offset,
        deletes=deletes,
        retention_bytes=retention_bytes,
        retention_ms=retention_ms,
        now_ms=now_ms,
    )


def test_without_limits_everything_stays() -> None:
    assert decide(now_ms=NOW + 10**12) == Retention(0, False, (), None)


def test_what_lies_before_the_log_start_goes_whatever_the_policy_is() -> None:
    for log_start_offset, count in ((0, 0), (9, 0), (10, 1), (29, 2), (30, 3), (40, 3)):
        for deletes in (False, True):
            retention = decide(log_start_offset=log_start_offset, deletes=deletes)
            assert (retention.segment_count, retention.must_roll) == (count, False), "never the active one"
    assert decide(log_start_offset=20).reasons == ("2 segments, 0 to 10, before the log start offset 20",)


def test_by_size_goes_what_leaves_as_much_as_is_to_be_kept() -> None:
    for retention_bytes, count in ((401, 0), (400, 0), (301, 0), (300, 1), (299, 1), (200, 2), (1, 3), (0, 4)):
        retention = decide(retention_bytes=retention_bytes)
        assert (retention.segment_count, retention.must_roll) == (count, count == 4)
    assert decide(retention_bytes=250).reasons == ("segment 0: retention.bytes=250, 300 bytes are left",)


def test_by_time_goes_what_is_older_than_the_limit() -> None:
    for passed_ms, count in ((0, 1), (1, 2), (10_000, 2), (10_001, 3), (20_000, 3), (20_001, 4)):
        retention = decide(retention_ms=20_000, now_ms=NOW + passed_ms)
        assert (retention.segment_count, retention.must_roll) == (count, count == 4)
    assert decide(retention_ms=30_000).segment_count == 0, "as old as the limit"
    assert decide(retention_ms=29_999).segment_count == 1
    (reason,) = decide(retention_ms=15_000).reasons
    assert reason == f"2 segments, 0 to 10,: retention.ms=15000, the newest is of {NOW - 20_000} ms"


def test_limits_are_nothing_to_a_log_that_is_only_compacted() -> None:
    assert decide(retention_bytes=0, retention_ms=0, deletes=False, now_ms=NOW + 10**12).segment_count == 0


def test_nothing_goes_that_the_high_watermark_has_not_passed() -> None:
    for high_watermark, count in ((0, 0), (9, 0), (10, 1), (39, 3), (40, 4)):
        assert decide(high_watermark=high_watermark, retention_ms=0, now_ms=NOW + HOUR).segment_count == count
        assert decide(high_watermark=high_watermark, retention_bytes=0).segment_count == count
    assert decide(high_watermark=15, log_start_offset=30).segment_count == 1


def test_an_empty_active_segment_stays() -> None:
    log = [*FOUR[:3], SegmentFacts(30, 0, modified_ms=0)]
    retention = decide(log, log_end_offset=30, high_watermark=30, retention_ms=0, retention_bytes=0, now_ms=NOW + HOUR)
    assert (retention.segment_count, retention.must_roll) == (3, False)


def test_the_rules_follow_one_another_and_each_says_why() -> None:
    retention = decide(log_start_offset=12, retention_bytes=200, retention_ms=5_000)
    assert retention.segment_count == 3
    assert [reason.partition(" ")[2] for reason in retention.reasons] == [
        "0 before the log start offset 12",
        "10: retention.bytes=200, 200 bytes are left",
        f"20: retention.ms=5000, the newest is of {NOW - 10_000} ms",
    ]


def test_without_timestamps_the_files_own_time_counts() -> None:
    log = [SegmentFacts(0, 100, modified_ms=NOW - 5), SegmentFacts(10, 100, largest_timestamp_ms=0, modified_ms=NOW)]
    assert decide(log, retention_ms=5, high_watermark=20, log_end_offset=20).segment_count == 0
    assert decide(log, retention_ms=4, high_watermark=20, log_end_offset=20).segment_count == 2, "0 is a timestamp"


def test_a_timestamp_far_in_the_future_keeps_its_segment_and_all_behind_and_warns() -> None:
    log = [FOUR[0], FOUR[1]._replace(largest_timestamp_ms=NOW + HOUR + 1), *FOUR[2:]]
    retention = decide(log, retention_ms=0, now_ms=NOW)
    assert retention.segment_count == 1
    assert retention.warning is not None
    assert f"segment 10 has a record of {NOW + HOUR + 1} ms" in retention.warning
    later = decide(log, retention_ms=0, now_ms=NOW + 1)
    assert later.warning is None, "an hour is what a client may be ahead"
    assert decide(log, retention_ms=0, now_ms=NOW - 10**6).warning == retention.warning, "the same while it lasts"
    assert decide(log, now_ms=NOW).warning is None, "without limit by time nothing would go anyway"
    assert decide(log, retention_ms=0, deletes=False).warning is None


def test_a_clock_that_jumped_back_deletes_nothing_and_warns() -> None:
    retention = decide(retention_ms=1, now_ms=NOW - 30 * 24 * HOUR)
    assert retention.segment_count == 0
    assert retention.warning is not None
    assert "Correct the clock" in retention.warning
    files = [SegmentFacts(0, 100, modified_ms=NOW)]
    warning = decide(files, high_watermark=9, log_end_offset=9, retention_ms=1, now_ms=NOW - 2 * HOUR).warning
    assert warning is not None
    assert "no timestamps, and a file" in warning


def test_what_goes_warns_no_more() -> None:
    log = [FOUR[0]._replace(largest_timestamp_ms=NOW * 2), *FOUR[1:]]
    assert decide(log, retention_ms=10**9, retention_bytes=300).warning is None


# ------------------------------------------------------------------------------------------------- Kafka's own loops


def deletable_by_kafka(
    log: list[SegmentFacts],
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    retention_bytes: int,
    retention_ms: int,
    now_ms: int,
) -> tuple[int, bool]:
    """UnifiedLog.deleteOldSegments, step by step on a list that gets shorter: how many went, and whether the active one
    was rolled."""
    log = list(log)
    count, rolled = 0, False

    def delete_while(predicate: Callable[[SegmentFacts, SegmentFacts | None], bool]) -> None:
        nonlocal count, rolled, log_start_offset
        going = 0
        for number, segment in enumerate(log):
            following = log[number + 1] if number + 1 < len(log) else None
            upper_bound = log_end_offset if following is None else following.base_offset
            is_last_and_empty = following is None and segment.size_bytes == 0
            if not (high_watermark >= upper_bound and predicate(segment, following)) or is_last_and_empty:
                break
            going += 1
        if going and going == len(log):
            log.append(SegmentFacts(log_end_offset, 0, modified_ms=now_ms))
            rolled = True
        if going:
            log_start_offset = max(log_start_offset, log[going].base_offset)
            del log[:going]
            count += going

    delete_while(lambda _, following: following is not None and following.base_offset <= log_start_offset)
    size_bytes = sum(segment.size_bytes for segment in log)
    if retention_bytes >= 0 and size_bytes >= retention_bytes:
        difference = size_bytes - retention_bytes

        def is_excess(segment: SegmentFacts, _: SegmentFacts | None) -> bool:
            nonlocal difference
            if difference - segment.size_bytes < 0:
                return False
            difference -= segment.size_bytes
            return True

        delete_while(is_excess)
    if retention_ms >= 0:
        delete_while(lambda segment, _: now_ms - segment.timestamp_ms > retention_ms)
    return count, rolled


@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    times=st.lists(st.integers(0, 9), min_size=6, max_size=6),
    bounds=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    retention_bytes=st.integers(-1, 12),
    retention_ms=st.integers(-1, 10),
    now_ms=st.integers(0, 20),
)
def test_it_decides_as_kafka_does(
    sizes: list[int],
    times: list[int],
    bounds: tuple[int, int],
    retention_bytes: int,
    retention_ms: int,
    now_ms: int,
) -> None:
    """Sizes, ages and limits so small that they meet often."""
    log_end_offset = 10 * len(sizes) - (10 if sizes[-1] == 0 else 0)
    log_start_offset, high_watermark = sorted(min(bound, log_end_offset) for bound in bounds)
    log = [
        SegmentFacts(10 * number, size, largest_timestamp_ms=time_ms - 1, modified_ms=4)
        for number, (size, time_ms) in enumerate(zip(sizes, times, strict=False))
    ]
    found = deletable(
        log,
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        log_end_offset=log_end_offset,
        deletes=True,
        retention_bytes=retention_bytes,
        retention_ms=retention_ms,
        now_ms=now_ms,
    )
    expected = deletable_by_kafka(
        log, log_start_offset, high_watermark, log_end_offset, retention_bytes, retention_ms, now_ms
    )
    assert (found.segment_count, found.must_roll) == expected
    assert (found.segment_count > 0) == bool(found.reasons)
