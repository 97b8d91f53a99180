"""What may be committed: the unbroken run of what is done, from the beginning of what was handed out, and no more."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.consumer.done_offsets import Committable, DoneOffsets
from odradek.client.topic_partition import TopicPartition

P, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


def reading(offset: int = 0) -> DoneOffsets:
    done = DoneOffsets()
    done.assigned(P, offset)
    return done


def test_nothing_is_done_before_the_program_says_so() -> None:
    done = reading(5)
    done.handed_out(P, [5, 6, 7], 8, 1)
    assert done.committable(P) == Committable(5)
    assert done.pending_count(P) == 3


def test_records_done_out_of_order_count_when_those_before_are_done() -> None:
    done = reading()
    done.handed_out(P, [0, 1, 2], 3, 4)
    assert done.done(P, 1)
    assert done.committable(P) == Committable(0)
    assert done.done(P, 0)
    assert done.committable(P) == Committable(2, 4)
    assert done.done(P, 2)
    assert done.committable(P) == Committable(3, 4)


def test_a_record_is_done_once_and_only_one_that_was_handed_out() -> None:
    done = reading()
    done.handed_out(P, [0, 2], 3)
    assert [done.done(P, offset) for offset in (1, 2, 2, 3, 0, 0)] == [False, True, False, False, True, False]
    assert not done.done(OTHER, 0)
    assert done.committable(P) == Committable(3)


def test_the_lowest_that_was_handed_out_is_known_until_it_is_assigned_anew() -> None:
    done = reading(5)
    assert done.lowest(P) is None
    for offsets in ([5, 6], [3, 4], [7]):
        done.handed_out(P, offsets, offsets[-1] + 1)
    assert (done.lowest(P), done.lowest(OTHER)) == (3, None)
    done.assigned(P, 7)
    assert done.lowest(P) is None


def test_all_below_an_offset_is_done_at_once_and_early_ones_stay() -> None:
    done = reading()
    done.handed_out(P, [0, 1, 2, 3], 4)
    done.handed_out(P, [4, 5], 6)
    assert done.done(P, 5)
    done.done_below(P, 2)
    assert done.committable(P) == Committable(2)
    done.done_below(P, 5)
    assert done.committable(P) == Committable(6)
    assert done.pending_count(P) == 0


def test_offsets_without_records_belong_to_the_record_before() -> None:
    done = reading()
    done.passed(P, 4)
    assert done.committable(P) == Committable(4)
    done.handed_out(P, [6, 7], 8)
    done.passed(P, 20)
    done.done_below(P, 7)
    assert done.committable(P) == Committable(7)
    done.done(P, 7)
    assert done.committable(P) == Committable(20)


def test_a_beginning_that_is_not_known_is_not_committed() -> None:
    done = reading(-1)
    assert done.committable(P) is None
    done.handed_out(P, [9], 10)
    assert done.committable(P) == Committable(9)


def test_what_is_read_again_from_before_begins_again() -> None:
    done = reading()
    done.handed_out(P, [0, 1, 2], 3)
    done.done_below(P, 2)
    done.handed_out(P, [1, 2], 3)
    assert done.committable(P) == Committable(1)
    assert done.pending_count(P) == 2


def test_of_a_partition_that_was_taken_away_nothing_counts() -> None:
    done = reading()
    done.handed_out(P, [0], 1)
    done.revoked(P)
    assert not done.done(P, 0)
    done.handed_out(P, [1], 2)
    done.done_below(P, 2)
    done.passed(P, 9)
    assert (done.committable(P), P in done, done.pending_count(P)) == (None, False, 0)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("hand out"), st.lists(st.integers(1, 3), min_size=1, max_size=5), st.integers(0, 2)),
        st.tuples(st.just("pass"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("done"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("done below"), st.integers(0, 60), st.just(0)),
    ),
    max_size=40,
)


@given(ACTIONS)
def test_the_committable_offset_follows_the_first_record_that_is_not_done(
    actions: list[tuple[str, list[int] | int, int]],
) -> None:
    """Beside a set of all records that are pending; the offset never goes back."""
    done = reading()
    pending: set[int] = set()
    end = committed = 0
    for action, what, gap in actions:
        match action, what:
            case "hand out", list():
                offsets = [end + sum(what[: index + 1]) - 1 for index in range(len(what))]
                end = offsets[-1] + 1 + gap
                done.handed_out(P, offsets, end)
                pending.update(offsets)
            case "pass", int():
                end += what
                done.passed(P, end)
            case "done", int():
                assert done.done(P, what) is (what in pending)
                pending.discard(what)
            case _, int():
                done.done_below(P, what)
                pending = {each for each in pending if each >= what}
            case _:
                raise AssertionError(action)
        found = done.committable(P)
        assert found is not None
        assert found.offset == min(pending, default=end)
        assert found.offset >= committed
        committed = found.offset
        assert done.pending_count(P) == len(pending)
