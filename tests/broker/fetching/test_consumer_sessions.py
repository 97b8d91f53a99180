"""KIP-227 sessions: epochs, what is told again and what is not, the turn of busy partitions, eviction."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.fetching.consumer_sessions import (
    EPOCH_MAX,
    EVICTION_MS,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    FetchSessions,
    PartitionKey,
)
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import EpochEndOffset, FetchPartition, PartitionData


def key(index: int) -> PartitionKey:
    return "orders", ZERO_UUID, index


def request(index: int, fetch_offset: int = 0) -> FetchPartition:
    return FetchPartition(partition=index, fetch_offset=fetch_offset, partition_max_bytes=1024)


def answer(index: int, high_watermark: int = 0, records: bytes = b"", error: int = 0, start: int = 0) -> PartitionData:
    return PartitionData(
        partition_index=index, error_code=error, high_watermark=high_watermark, log_start_offset=start, records=records
    )


def sessions(slots: int = 10) -> FetchSessions:
    numbers = count(1)
    return FetchSessions(slots, lambda: next(numbers))


def session_of(indexes: list[int]) -> tuple[FetchSessions, FetchSession]:
    table = sessions()
    session = table.create(False, 0.0)
    assert session is not None
    session.update({key(index): request(index) for index in indexes}, [])
    return table, session


def test_epochs_count_up_and_wrap_to_one() -> None:
    table, session = session_of([0])
    assert table.resolve(session.session_id, 1, False, 0.0) is session
    assert session.epoch == 2
    session.epoch = EPOCH_MAX
    assert table.resolve(session.session_id, EPOCH_MAX, False, 0.0) is session
    assert session.epoch == 1


@pytest.mark.parametrize(
    ("session_id", "epoch", "uses_ids", "code"),
    [
        (99, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (1, 7, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (1, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_what_does_not_fit_is_refused(session_id: int, epoch: int, uses_ids: bool, code: ErrorCode) -> None:
    table, _ = session_of([0])
    with pytest.raises(KafkaError) as raised:
        table.resolve(session_id, epoch, uses_ids, 0.0)
    assert raised.value.code == code


@pytest.mark.parametrize("epoch", [INITIAL_EPOCH, FINAL_EPOCH])
def test_a_full_fetch_closes_the_session_named_with_it(epoch: int) -> None:
    table, session = session_of([0])
    assert table.resolve(session.session_id, epoch, False, 0.0) is None
    assert len(table) == 0


def test_only_news_are_told() -> None:
    _, session = session_of([0, 1])
    first = {key(0): answer(0), key(1): answer(1)}
    assert list(session.filter(first)) == [key(0), key(1)], "the first answer tells everything"
    assert session.filter(first) == {}
    assert list(session.filter({key(0): answer(0, high_watermark=3), key(1): answer(1)})) == [key(0)]
    assert list(session.filter({key(0): answer(0, high_watermark=3), key(1): answer(1, start=2)})) == [key(1)]
    assert list(session.filter({key(1): answer(1, start=2, records=b"batch")})) == [key(1)]


def test_an_error_is_told_and_the_recovery_from_it_too() -> None:
    _, session = session_of([0])
    session.filter({key(0): answer(0, high_watermark=5)})
    failed = answer(0, high_watermark=-1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, start=-1)
    assert list(session.filter({key(0): failed})) == [key(0)]
    assert list(session.filter({key(0): failed})) == [key(0)], "it is told for as long as it lasts"
    assert list(session.filter({key(0): answer(0, high_watermark=5)})) == [key(0)]


@pytest.mark.parametrize(("replica", "diverging"), [(2, None), (0, None), (-1, EpochEndOffset(epoch=1, end_offset=4))])
def test_what_ends_a_wait_is_told_although_the_high_watermark_is_known(
    replica: int, diverging: EpochEndOffset | None
) -> None:
    """Else the client asks the same again at once, and again (Kafka's CachedPartition.maybeUpdateResponseData)."""
    _, session = session_of([0])
    session.filter({key(0): answer(0, high_watermark=5)})
    told = answer(0, high_watermark=5)
    told.preferred_read_replica, told.diverging_epoch = replica, diverging
    assert list(session.filter({key(0): told})) == [key(0)]
    assert list(session.filter({key(0): told})) == [key(0)], "for as long as it is so"
    assert session.filter({key(0): answer(0, high_watermark=5)}) == {}


def test_partitions_with_records_move_to_the_end() -> None:
    _, session = session_of([0, 1, 2])
    session.filter({key(0): answer(0, records=b"x"), key(1): answer(1), key(2): answer(2)})
    assert list(session.partitions) == [key(1), key(2), key(0)]


def test_partitions_are_added_changed_and_forgotten() -> None:
    _, session = session_of([0, 1])
    session.update({key(1): request(1, fetch_offset=9), key(5): request(5)}, [key(0)])
    assert list(session.partitions) == [key(1), key(5)]
    assert session.partitions[key(1)].request.fetch_offset == 9


def test_a_full_cache_evicts_only_what_was_idle_for_long() -> None:
    table = sessions(slots=2)
    first = table.create(False, 0.0)
    second = table.create(False, 1.0)
    assert first is not None
    assert second is not None
    assert table.create(False, EVICTION_MS - 1) is None
    table.resolve(first.session_id, 1, False, EVICTION_MS)  # used again: the second is the oldest now
    assert table.create(False, EVICTION_MS + 1) is not None
    with pytest.raises(KafkaError):
        table.resolve(second.session_id, 1, False, EVICTION_MS + 1)


def test_no_slots_means_no_sessions() -> None:
    assert sessions(slots=0).create(False, 0.0) is None


@given(
    st.lists(
        st.dictionaries(
            st.integers(0, 4), st.tuples(st.integers(0, 3), st.integers(0, 1), st.sampled_from([0, 3])), max_size=5
        ),
        max_size=20,
    )
)
def test_a_client_that_keeps_what_it_is_told_knows_everything(
    rounds: list[dict[int, tuple[int, int, int]]],
) -> None:
    """The client's copy, built from the filtered answers, equals the broker's state after each round."""
    _, session = session_of(list(range(5)))
    state = {index: answer(index) for index in range(5)}
    copy: dict[int, tuple[int, int, int]] = {}
    for changes in [{}, *rounds]:
        for index, (high_watermark, start, error) in changes.items():
            state[index] = answer(index, high_watermark=high_watermark, start=start, error=error)
        told = session.filter({key(index): data for index, data in state.items()})
        for data in told.values():
            copy[data.partition_index] = (data.high_watermark, data.log_start_offset, data.error_code)
        assert copy == {
            index: (data.high_watermark, data.log_start_offset, data.error_code) for index, data in state.items()
        }
