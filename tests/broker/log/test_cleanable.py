"""What may be compacted, which log is next, and which segments become one: each rule by hand at its edges, and the
grouping at random against its own promises."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.log.cleanable import Cleanable, cleanable, dirtiest, grouped
from odradek.broker.log.segment_facts import RELATIVE_OFFSET_MAX, SegmentFacts

NOW = 1_700_000_000_000
NO_LAG = 1 << 62

# Ten offsets each, and ten seconds apart; the last one is active.
LOG = [
    SegmentFacts(10 * number, 100 + number, NOW - 10_000 * (4 - number), NOW - 10_000 * (4 - number) + 5_000)
    for number in range(5)
]


def decide(
    checkpoint: int | None = None,
    log: Sequence[SegmentFacts] = LOG,
    *,
    log_start_offset: int = 0,
    last_stable_offset: int = 50,
    deletes: bool = False,
    min_compaction_lag_ms: int = 0,
    max_compaction_lag_ms: int = NO_LAG,
    now_ms: int = NOW,
) -> Cleanable:
    return cleanable(
        log,
        checkpoint,
        log_start_offset=log_start_offset,
        log_end_offset=50,
        last_stable_offset=last_stable_offset,
        deletes=deletes,
        min_compaction_lag_ms=min_compaction_lag_ms,
        max_compaction_lag_ms=max_compaction_lag_ms,
        now_ms=now_ms,
    )


def limits(found: Cleanable) -> tuple[int, int]:
    return found.first_dirty_offset, found.first_uncleanable_offset


# ------------------------------------------------------------------------------------------------------------ the range


def test_a_log_that_was_never_cleaned_is_dirty_from_its_start_to_the_active_segment() -> None:
    found = decide()
    assert limits(found) == (0, 40)
    assert (found.clean_bytes, found.cleanable_bytes, found.ratio) == (0, 406, 1.0)
    assert not found.resets_checkpoint
    assert limits(decide(log_start_offset=10, log=LOG[1:])) == (10, 40)


def test_the_checkpoint_parts_clean_from_dirty() -> None:
    found = decide(20)
    assert limits(found) == (20, 40)
    assert (found.clean_bytes, found.cleanable_bytes) == (100 + 101, 102 + 103)
    assert found.ratio == 205 / 406


def test_a_segment_that_is_dirty_in_part_is_counted_on_both_sides_as_kafka_does() -> None:
    found = decide(25)
    assert limits(found) == (25, 40)
    assert (found.clean_bytes, found.cleanable_bytes) == (100 + 101 + 102, 102 + 103)


def test_a_log_whose_dirty_part_is_active_has_nothing_to_clean() -> None:
    for checkpoint in (40, 45, 50):
        found = decide(checkpoint)
        assert limits(found) == (checkpoint, 40)
        assert (found.cleanable_bytes, found.ratio) == (0, 0.0)
        assert not found.is_due(0.0)


def test_an_empty_log_has_nothing_to_clean() -> None:
    found = decide(None, [SegmentFacts(50, 0)], log_start_offset=50)
    assert (limits(found), found.ratio, found.is_due(0.0)) == ((50, 50), 0.0, False)


def test_nothing_is_cleaned_that_is_not_stable() -> None:
    """The segment that holds the last stable offset is left out as a whole."""
    for last_stable_offset, end in ((0, 0), (9, 0), (10, 10), (29, 20), (30, 30), (40, 40), (50, 40)):
        assert limits(decide(last_stable_offset=last_stable_offset)) == (0, end)
    held_back = decide(25, last_stable_offset=5)
    assert (limits(held_back), held_back.cleanable_bytes) == ((25, 20), 0)


def test_segments_with_young_records_stay_uncleaned() -> None:
    for lag_ms, end in ((0, 40), (4_999, 40), (5_000, 40), (5_001, 30), (15_000, 30), (15_001, 20), (10**9, 0)):
        assert limits(decide(min_compaction_lag_ms=lag_ms)) == (0, end)
    old_behind = [LOG[0]._replace(largest_timestamp_ms=NOW), *LOG[1:]]
    assert limits(decide(None, old_behind, min_compaction_lag_ms=1)) == (0, 0), "none is jumped over"
    assert limits(decide(10, old_behind, min_compaction_lag_ms=1)) == (10, 40), "the clean part has been judged"


def test_without_a_lag_no_timestamp_matters() -> None:
    log = [segment._replace(largest_timestamp_ms=NOW + 10**9) for segment in LOG]
    for lag_ms in (0, -1):
        assert limits(decide(None, log, min_compaction_lag_ms=lag_ms)) == (0, 40)


def test_without_timestamps_a_segment_is_as_young_as_its_file() -> None:
    log = [LOG[0]._replace(largest_timestamp_ms=-1, modified_ms=NOW), *LOG[1:]]
    assert limits(decide(None, log, min_compaction_lag_ms=1)) == (0, 0)
    assert limits(decide(None, [log[0]._replace(modified_ms=NOW - 1), *log[1:]], min_compaction_lag_ms=1)) == (0, 40)


# ------------------------------------------------------------------------------------------------------- the checkpoint


def test_a_checkpoint_before_the_log_start_moves_there() -> None:
    found = decide(5, LOG[1:], log_start_offset=10)
    assert (limits(found), found.resets_checkpoint) == ((10, 40), True)
    assert found.warning is not None
    assert "checkpoint 5 lies before the log start 10" in found.warning
    at_start = decide(10, LOG[1:], log_start_offset=10)
    assert (limits(at_start), at_start.resets_checkpoint, at_start.warning) == ((10, 40), False, None)
    both = decide(5, LOG[1:], log_start_offset=10, deletes=True)
    assert (limits(both), both.resets_checkpoint, both.warning) == ((10, 40), True, None)


def test_behind_a_checkpoint_after_the_log_end_all_is_dirty() -> None:
    assert limits(decide(50)) == (50, 40)
    for deletes in (False, True):
        found = decide(51, deletes=deletes)
        assert (limits(found), found.resets_checkpoint) == ((0, 40), True)
        assert found.warning is not None
        assert "checkpoint 51 lies behind the log end 50" in found.warning


# ---------------------------------------------------------------------------------------------------------- what is due


def test_dirty_records_wait_no_longer_than_the_longest_lag() -> None:
    """By the first timestamp of the oldest dirty segment: here 40 seconds old, from offset 10 on 30."""
    for lag_ms, delay_ms in ((40_001, 0), (40_000, 0), (39_999, 1), (0, 40_000)):
        found = decide(max_compaction_lag_ms=lag_ms)
        assert (found.delay_ms, found.must_clean_now) == (delay_ms, delay_ms > 0)
    assert decide(10, max_compaction_lag_ms=0).delay_ms == 30_000
    assert decide(40, max_compaction_lag_ms=0).delay_ms == 0, "the active one waits"
    shuffled = [LOG[1], LOG[0]._replace(base_offset=15), *LOG[2:]]
    assert decide(10, shuffled, max_compaction_lag_ms=0).delay_ms == 40_000, "the oldest, not the first"
    unknown = [segment._replace(first_timestamp_ms=-1) for segment in LOG]
    assert decide(None, unknown, max_compaction_lag_ms=0).delay_ms == 0


def test_a_log_is_due_by_its_ratio_or_by_its_age() -> None:
    half = decide(20)
    assert half.is_due(0.5)
    assert not half.is_due(half.ratio), "more than the ratio"
    late = decide(20, max_compaction_lag_ms=0)
    assert late.is_due(1.0)
    nothing = decide(20, max_compaction_lag_ms=0, last_stable_offset=20)
    assert nothing.delay_ms > 0
    assert not nothing.is_due(1.0), "there is nothing that it could clean"


def test_the_dirtiest_of_the_logs_that_are_due_is_next() -> None:
    clean, half, dirty = decide(40), decide(20), decide(0)
    late = decide(30, max_compaction_lag_ms=0)
    assert dirtiest([]) is None
    assert dirtiest([("clean", clean, 0.0), ("half", half, 0.6)]) is None
    assert dirtiest([("half", half, 0.5), ("dirty", dirty, 0.5), ("clean", clean, 0.0)]) == "dirty"
    assert dirtiest([("dirty", dirty, 1.0), ("half", half, 0.5)]) == "half", "each by its own topic's limit"
    assert dirtiest([("late", late, 0.9), ("half", half, 0.9)]) == "late"
    assert dirtiest([("late", late, 0.9), ("half", half, 0.1)]) == "half", "as Kafka: the ratio decides"
    assert dirtiest([("one", half, 0.1), ("other", half, 0.1)]) == "one"


# ----------------------------------------------------------------------------------------------------------- the groups


def group(
    log: Sequence[SegmentFacts] = LOG,
    *,
    end_offset: int = 40,
    first_uncleanable_offset: int = 40,
    segment_bytes: int = 1000,
    segment_index_bytes: int = 1000,
) -> list[list[int]]:
    """Base offsets."""
    groups = grouped(
        log,
        end_offset=end_offset,
        first_uncleanable_offset=first_uncleanable_offset,
        segment_bytes=segment_bytes,
        segment_index_bytes=segment_index_bytes,
    )
    return [[segment.base_offset for segment in segments] for segments in groups]


def test_segments_become_one_as_long_as_it_is_no_larger_than_allowed() -> None:
    assert group() == [[0, 10, 20, 30]]
    assert group(segment_bytes=100 + 101) == [[0, 10], [20], [30]]
    assert group(segment_bytes=102 + 103) == [[0, 10], [20, 30]]
    assert group(segment_bytes=1) == [[0], [10], [20], [30]], "one that is too large stands alone"


def test_indexes_may_not_get_too_large_either() -> None:
    assert group([f._replace(offset_index_bytes=8) for f in LOG], segment_index_bytes=16) == [[0, 10], [20, 30]]
    assert group([f._replace(time_index_bytes=12) for f in LOG], segment_index_bytes=35) == [[0, 10], [20, 30]]


def test_only_segments_before_the_end_are_taken() -> None:
    assert group(end_offset=0) == []
    assert group(end_offset=1) == [[0]]
    assert group(end_offset=20) == [[0, 10]]
    assert group(end_offset=21) == [[0, 10, 20]], "the one in which the map ended, too"


def test_offsets_of_a_group_fit_into_an_index() -> None:
    """A segment's last offset is known from the next one's base, or from where cleaning ends."""
    far = RELATIVE_OFFSET_MAX
    log = [SegmentFacts(0, 1), SegmentFacts(10, 1), SegmentFacts(far + 1, 1), SegmentFacts(2 * far, 1)]
    assert group(log, end_offset=far + 2, first_uncleanable_offset=far + 2) == [[0, 10], [far + 1]]
    assert group(log[:2], end_offset=11, first_uncleanable_offset=far + 1) == [[0, 10]]
    assert group(log[:2], end_offset=11, first_uncleanable_offset=far + 2) == [[0], [10]]
    empty = [log[0], SegmentFacts(far, 0), SegmentFacts(2 * far, 0), SegmentFacts(3 * far, 1)]
    assert group(empty, end_offset=2 * far + 1, first_uncleanable_offset=3 * far) == [[0, far, 2 * far]], "has none"


facts = st.builds(
    SegmentFacts,
    base_offset=st.integers(0, 4 * RELATIVE_OFFSET_MAX),
    size_bytes=st.integers(0, 50),
    offset_index_bytes=st.integers(0, 20),
    time_index_bytes=st.integers(0, 20),
)


@given(st.lists(facts, min_size=1, max_size=12, unique_by=lambda f: f.base_offset), st.integers(1, 100))
def test_groups_keep_the_order_and_their_limits_and_none_could_take_the_next_one(
    segments: list[SegmentFacts], segment_bytes: int
) -> None:
    log = sorted(segments)
    end = log[-1].base_offset + 1
    groups = grouped(
        log, end_offset=end, first_uncleanable_offset=end, segment_bytes=segment_bytes, segment_index_bytes=30
    )
    assert [segment for members in groups for segment in members] == log
    ends = dict(pairwise([segment.base_offset for segment in log] + [end]))

    def fits(members: list[SegmentFacts]) -> bool:
        last = members[-1]
        return (
            sum(member.size_bytes for member in members) <= segment_bytes
            and sum(member.offset_index_bytes for member in members) <= 30
            and sum(member.time_index_bytes for member in members) <= 30
            and (last.size_bytes == 0 or ends[last.base_offset] - 1 - members[0].base_offset <= RELATIVE_OFFSET_MAX)
        )

    assert all(fits(members) for members in groups if len(members) > 1)
    assert not any(fits([*members, following[0]]) for members, following in pairwise(groups))
