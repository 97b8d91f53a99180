"""What is read of each partition, driven by hand: from where, how far, what is due, and what errors come to."""

import pytest

from odradek.client.errors.client_errors import AuthorizationError, ClientError, ConnectionFailed, RequestTimedOut
from odradek.client.fetching.fetch_settings import Start
from odradek.client.fetching.fetched import CorruptRecords
from odradek.client.fetching.list_offsets import EARLIEST, LATEST, ListedOffset
from odradek.client.fetching.position import PASSING, STALE_METADATA
from odradek.client.fetching.positions import OffsetOutOfRange
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse
from tests.client.fetch_answers import A0, A1, B0, NO_EPOCHS, NO_IDS, ask, batch, fetch, positions, response, taken


# ---------------------------------------------------------------------------------------------------- placing
def test_a_start_by_offset_is_fetched_from_there_at_once() -> None:
    reading = positions()
    reading.assign(A0, Start.at_offset(7))
    assert reading.unplaced(0) == []
    asked = ask(reading)
    [topic] = asked.request.topics
    assert (topic.topic, topic.partitions[0].partition, topic.partitions[0].fetch_offset) == ("a", 0, 7)
    assert reading.fetchable(0) == [], "it is under way"


@pytest.mark.parametrize(
    ("start", "timestamp"), [(Start.earliest(), EARLIEST), (Start.latest(), LATEST), (Start(None, 99), 99)]
)
def test_other_starts_wait_for_list_offsets(start: Start, timestamp: int) -> None:
    reading = positions()
    reading.assign(A0, start)
    assert reading.fetchable(0) == []
    [position] = reading.unplaced(0)
    assert position.start.timestamp == timestamp
    position.is_asked = True
    assert reading.unplaced(0) == []
    reading.placed(position, ListedOffset(12), 0)
    assert reading[A0].position == 12
    assert reading.fetchable(0) == [position]


def test_a_time_after_all_records_means_the_end() -> None:
    reading = positions()
    reading.assign(A0, Start(None, 10**12))
    [position] = reading.unplaced(0)
    position.is_asked = True
    reading.placed(position, ListedOffset(-1), 0)
    [again] = reading.unplaced(0)
    assert again.start == Start.latest()


def test_placing_that_fails_for_a_while_is_tried_again_and_for_good_is_raised() -> None:
    reading = positions(retry_backoff_ms=100)
    for partition in (A0, B0):
        reading.assign(partition, Start.earliest())
    first, second = reading.unplaced(0)
    first.is_asked = second.is_asked = True
    reading.placed(first, ConnectionFailed("broker 1"), 0)
    reading.placed(second, AuthorizationError(29, what="ListOffsets of b-0"), 0)
    assert reading.unplaced(99) == []
    assert reading.unplaced(100) == [first]
    with pytest.raises(AuthorizationError):
        reading.take()
    assert reading.take() is None, "an error is raised once"


# ---------------------------------------------------------------------------------------------------- fetching
def test_the_next_fetch_follows_buffered_records_and_the_position_follows_taken_ones() -> None:
    reading = positions()
    reading.assign(A0, Start.at_offset(0))
    fetch(reading, {A0: batch(0, 3)})
    assert ask(reading).request.topics[0].partitions[0].fetch_offset == 3
    assert reading[A0].position == 0
    assert taken(reading) == [0, 1, 2]
    assert (reading[A0].position, reading.buffered_bytes) == (3, 0)


def test_nothing_is_asked_for_while_the_buffer_is_full_and_what_is_under_way_counts() -> None:
    one = batch(0, 1, 1000)
    reading = positions(buffer_bytes=2 * len(one), fetch_max_bytes=len(one) + 1)
    for partition in (A0, B0):
        reading.assign(partition, Start.at_offset(0))
    first = reading.ask([reading[A0]], NO_EPOCHS, NO_IDS)
    assert first.request.max_bytes == len(one) + 1
    second = reading.ask([reading[B0]], NO_EPOCHS, NO_IDS)
    assert second.request.max_bytes == len(one) - 1
    assert reading.room_bytes == 0
    reading.fetched(first, response({A0: one}), 0)
    reading.fetched(second, response({B0: one}), 0)  # one whole batch comes in any case
    assert (reading.room_bytes, reading.fetchable(0)) == (0, [])
    assert reading.take() is not None
    assert reading.fetchable(0) == [], "its bytes wait until the chunk is read to its end"
    assert taken(reading) == [0]
    assert len(reading.fetchable(0)) == 2


def test_who_got_records_is_asked_for_last() -> None:
    reading = positions()
    for partition in (A0, A1, B0):
        reading.assign(partition, Start.at_offset(0))
    fetch(reading, {A0: batch(0, 1), A1: b"", B0: b""})
    assert [position.partition for position in reading.fetchable(0)] == [A1, B0, A0]


def test_what_a_fetch_can_bring_takes_the_room_of_others_and_no_more() -> None:
    reading = positions(buffer_bytes=1_000, max_partition_fetch_bytes=300)
    for partition in (A0, A1, B0):
        reading.assign(partition, Start.at_offset(0))
    assert reading.ask([reading[A0], reading[A1]], NO_EPOCHS, NO_IDS).request.max_bytes == 600
    assert reading.ask([reading[B0]], NO_EPOCHS, NO_IDS).request.max_bytes == 300
    assert reading.room_bytes == 100


@pytest.mark.parametrize("name", ["fetch_max_bytes", "max_partition_fetch_bytes"])
def test_with_a_limit_of_nothing_a_batch_at_a_time_is_asked_for(name: str) -> None:
    """Kafka allows 0, and a broker answers one batch in any case (KIP-74)."""
    reading = positions(**{name: 0})
    reading.assign(A0, Start.at_offset(0))
    assert ask(reading).request.max_bytes == 1


def test_who_finds_no_room_beside_the_others_is_the_next_to_be_asked_for() -> None:
    """Also where those have no records, and wait for them at their brokers over and over."""
    reading = positions(buffer_bytes=300, max_partition_fetch_bytes=300)
    for partition in (A0, A1, B0):
        reading.assign(partition, Start.at_offset(0))
    seen: list[TopicPartition] = []
    for _ in range(6):
        first = reading.fetchable(0)[0]
        seen.append(first.partition)
        asked = reading.ask([first], NO_EPOCHS, NO_IDS)
        assert reading.fetchable(0) == []
        reading.fetched(asked, response({first.partition: b""}), 0)
    assert seen == [A0, A1, B0] * 2


def test_an_end_is_reached_through_a_gap_and_nothing_behind_it_is_handed_out() -> None:
    reading = positions()
    reading.assign(A0, Start.at_offset(0), end_offset=5)
    fetch(reading, {A0: batch(0, 3) + batch(8, 2)})
    assert not reading.is_finished
    assert taken(reading) == [0, 1, 2]
    assert (reading.is_finished, reading.fetchable(0)) == (True, [])


def test_an_empty_range_is_finished_at_once() -> None:
    reading = positions()
    reading.assign(A0, Start.at_offset(5), end_offset=5)
    assert (reading.is_finished, reading.fetchable(0), reading.next_ms(0)) == (True, [], float("inf"))


def test_answers_that_come_after_a_new_assignment_or_a_release_are_dropped() -> None:
    reading = positions()
    reading.assign(A0, Start.at_offset(0))
    reading.assign(B0, Start.at_offset(0))
    asked = ask(reading)
    reading.assign(A0, Start.at_offset(50))
    reading.release(B0)
    reading.fetched(asked, response({A0: batch(0, 3), B0: batch(0, 1)}), 0)
    assert (taken(reading), reading[A0].fetch_offset, reading.room_bytes) == ([], 50, reading.settings.buffer_bytes)
    late = ask(reading)
    reading.assign(A0, Start.at_offset(60))
    reading.not_fetched(late, AuthorizationError(29), 0)
    assert (reading.take(), reading[A0].is_stopped) == (None, False)


def test_what_was_fetched_before_a_new_assignment_is_dropped() -> None:
    reading = positions()
    for partition in (A0, B0):
        reading.assign(partition, Start.at_offset(0))
    fetch(reading, {A0: batch(0, 3), B0: batch(0, 1)})
    reading.assign(A0, Start.at_offset(1))
    assert (taken(reading), reading[A0].position, reading.buffered_bytes) == ([0], 1, 0)


# ------------------------------------------------------------------------------------------------------ errors
@pytest.mark.parametrize("code", sorted(set(ErrorCode) - {ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE}))
def test_every_error_code_is_retried_after_a_backoff_or_raised(code: ErrorCode) -> None:
    reading = positions(retry_backoff_ms=100, retry_backoff_max_ms=1000)
    reading.assign(A0, Start.at_offset(4))
    fetch(reading, {A0: int(code)})
    if code in PASSING:
        assert (taken(reading), reading.fetchable(99), reading.next_ms(0)) == ([], [], 100)
        assert [position.fetch_offset for position in reading.fetchable(100)] == [4]
    else:
        with pytest.raises(ClientError, match="Fetch of a-0 at offset 4"):
            reading.take()
        assert (reading.fetchable(10**9), reading.is_finished) == ([], True)
    assert reading.metadata_is_stale == (code in STALE_METADATA)


def test_codes_are_retried_as_kafkas_own_consumer_does() -> None:
    """FetchCollector.handleInitializeErrors: what it does not throw for."""
    kafka = "NOT_LEADER_OR_FOLLOWER REPLICA_NOT_AVAILABLE KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH OFFSET_NOT_AVAILABLE"
    kafka += " UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID"
    refreshing = {ErrorCode[name] for name in kafka.split()}
    assert refreshing <= STALE_METADATA
    assert {ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR} <= PASSING - STALE_METADATA
    assert not PASSING & {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE}


def test_a_number_that_is_no_error_code_is_retried_like_an_unknown_error() -> None:
    reading = positions()
    reading.assign(A0, Start.at_offset(4))
    fetch(reading, {A0: 999})
    assert reading.take() is None
    assert reading.fetchable(10_000) != []


def test_the_backoff_grows_with_each_failure_and_a_success_ends_it() -> None:
    reading = positions(retry_backoff_ms=100, retry_backoff_max_ms=1000)
    reading.assign(A0, Start.at_offset(0))
    now_ms = 0.0
    waits: list[float] = []
    for _ in range(6):
        fetch(reading, {A0: 6}, now_ms)
        waits.append(reading.next_ms(now_ms) - now_ms)
        now_ms = reading.next_ms(now_ms)
    assert waits == [100, 200, 400, 800, 1000, 1000]
    fetch(reading, {A0: batch(0, 1)}, now_ms)
    fetch(reading, {A0: 6}, now_ms)
    assert reading.next_ms(now_ms) == now_ms + 100


def test_errors_that_last_too_long_are_raised_behind_what_was_fetched() -> None:
    reading = positions(retry_timeout_ms=1_000, retry_backoff_max_ms=300)
    reading.assign(A0, Start.at_offset(0))
    fetch(reading, {A0: batch(0, 2)})
    now_ms = 5_000.0
    while now_ms < 6_000:
        fetch(reading, {A0: 6}, now_ms)
        now_ms = reading.next_ms(now_ms)
    assert now_ms == 6_000, "the end of the patience is something to look at, too"
    reading.blocked(reading[A0], RequestTimedOut("Fetch", "broker 1", 5), now_ms)
    assert reading.take() is not None
    with pytest.raises(RequestTimedOut):
        reading.take()
    assert reading.is_finished


def test_only_errors_without_a_break_last_too_long() -> None:
    reading = positions(retry_timeout_ms=1_000)
    reading.assign(A0, Start.at_offset(0))
    for now_ms in (0.0, 900.0, 1_800.0, 2_700.0):
        fetch(reading, {A0: 6}, now_ms)
        fetch(reading, {A0: b""}, now_ms + 200)
    assert (reading.take(), reading[A0].is_stopped) == (None, False)


def test_while_there_is_no_room_not_asking_is_not_failing() -> None:
    """One answer says that the leader has moved, and fills the buffer; the reader goes on a minute later."""
    one = batch(0, 1, 1000)
    reading = positions(retry_timeout_ms=1_000, buffer_bytes=len(one))
    for partition in (A0, B0):
        reading.assign(partition, Start.at_offset(0))
    fetch(reading, {A0: int(ErrorCode.NOT_LEADER_OR_FOLLOWER), B0: one}, 5_000)
    assert reading.fetchable(5_000) == []
    assert reading.fetchable(30_000) == []
    assert reading.next_ms(30_000) == float("inf"), "nothing is due before there is room"
    assert taken(reading) == [0]
    assert reading[A0] in reading.fetchable(65_000)
    for now_ms in (65_000.0, 65_999.0):
        reading.blocked(reading[A0], ConnectionFailed("broker 2"), now_ms)
    assert (reading.take(), reading[A0].is_stopped) == (None, False)
    assert reading.next_ms(65_999) == 66_000, "from here on the time counts again"
    reading.blocked(reading[A0], ConnectionFailed("broker 2"), 66_000)
    with pytest.raises(ConnectionFailed):
        reading.take()


def test_a_start_offset_is_asked_without_buffer_room_and_fails_after_the_timeout() -> None:
    one = batch(0, 1, 1000)
    reading = positions(retry_timeout_ms=1_000, buffer_bytes=len(one))
    reading.assign(B0, Start.at_offset(0))
    fetch(reading, {B0: one})
    reading.assign(A0, Start.latest())
    for now_ms in (0.0, 999.0):
        assert reading.fetchable(now_ms) == []
        reading.blocked(reading[A0], ConnectionFailed("broker 2"), now_ms)
        assert not reading[A0].is_stopped
    assert reading.next_ms(999) == 1_000
    reading.blocked(reading[A0], ConnectionFailed("broker 2"), 1_000)
    assert reading[A0].is_stopped


def test_without_a_bound_errors_are_retried_for_ever() -> None:
    reading = positions(retry_timeout_ms=None)
    reading.assign(A0, Start.at_offset(0))
    for now_ms in (0.0, 1e6, 1e12):
        fetch(reading, {A0: 6}, now_ms)
    assert (reading.take(), reading[A0].is_stopped) == (None, False)


def test_a_partition_that_is_left_out_of_the_answer_is_asked_for_again() -> None:
    reading = positions()
    for partition in (A0, B0):
        reading.assign(partition, Start.at_offset(0))
    fetch(reading, {B0: batch(0, 1)})
    assert taken(reading) == [0]
    assert [position.partition for position in reading.fetchable(0)] == [B0]
    assert [position.partition for position in reading.fetchable(1_000)] == [A0, B0]


def test_what_was_not_asked_for_is_ignored() -> None:
    reading = positions()
    reading.assign(A0, Start.at_offset(0))
    fetch(reading, {A0: batch(0, 1), B0: batch(0, 1)})
    assert taken(reading) == [0]


def test_each_raise_of_an_error_that_ended_many_partitions_is_a_copy_of_its_own() -> None:
    reading = positions()
    for partition in (A0, A1, B0):
        reading.assign(partition, Start.at_offset(0))
    kept = AuthorizationError(29, what="Fetch")
    reading.not_fetched(ask(reading), kept, 0)
    raised: list[ClientError] = []
    for _ in range(3):
        with pytest.raises(AuthorizationError, match="Fetch failed with") as caught:
            reading.take()
        raised.append(caught.value)
    assert len({id(error) for error in (kept, *raised)}) == 4
    assert kept.__traceback__ is None


def test_an_error_of_the_whole_answer_counts_for_every_partition() -> None:
    reading = positions()
    for partition in (A0, B0):
        reading.assign(partition, Start.at_offset(0))
    reading.fetched(ask(reading), FetchResponse(error_code=70, responses=[]), 0)
    assert (reading.fetchable(0), len(reading.fetchable(1_000))) == ([], 2)
    assert reading.room_bytes == reading.settings.buffer_bytes


@pytest.mark.parametrize(("policy", "timestamp"), [("earliest", EARLIEST), ("latest", LATEST)])
def test_an_offset_out_of_range_is_placed_anew_behind_what_was_fetched(policy: str, timestamp: int) -> None:
    reading = positions(auto_offset_reset=policy)
    reading.assign(A0, Start.at_offset(0))
    fetch(reading, {A0: batch(0, 2)})
    fetch(reading, {A0: 1})
    [position] = reading.unplaced(0)
    assert position.start.timestamp == timestamp
    position.is_asked = True
    reading.placed(position, ListedOffset(100), 0)
    assert position.position == 0, "what was fetched before is handed out first"
    assert taken(reading) == [0, 1]
    assert (position.position, position.fetch_offset) == (100, 100)
    assert reading.notices == [f"a-0 has no offset 2: reading goes on at its {policy} offset"]


def test_without_a_policy_it_is_raised() -> None:
    reading = positions(auto_offset_reset="none")
    reading.assign(A0, Start.at_offset(77))
    fetch(reading, {A0: 1})
    with pytest.raises(OffsetOutOfRange, match="a-0 from offset 77") as caught:
        reading.take()
    assert (caught.value.partition, caught.value.offset) == (A0, 77)


def test_behind_damage_nothing_of_the_partition_is_handed_out() -> None:
    reading = positions()
    for partition in (A0, B0):
        reading.assign(partition, Start.at_offset(0))
    damaged = bytearray(batch(1, 1))
    damaged[-1] ^= 1
    fetch(reading, {A0: batch(0, 1) + bytes(damaged) + batch(2, 1), B0: batch(0, 1)})
    fetch(reading, {A0: batch(3, 1), B0: b""})
    assert reading.take() is not None
    with pytest.raises(CorruptRecords):
        reading.take()
    assert (reading[A0].position, taken(reading), reading.buffered_bytes) == (1, [0], 0)
    assert [position.partition for position in reading.fetchable(0)] == [B0]
    reading.assign(A0, Start.at_offset(2))
    fetch(reading, {A0: batch(2, 2), B0: b""})
    assert taken(reading) == [2, 3]


def test_after_malformed_bytes_nothing_more_is_fetched() -> None:
    reading = positions()
    reading.assign(A0, Start.at_offset(0))
    fetch(reading, {A0: b"x" * 100})
    assert (reading.fetchable(0), reading.is_finished) == ([], False)
    with pytest.raises(CorruptRecords):
        reading.take()
    assert reading.is_finished
