"""What is read of each partition, driven by hand and by Hypothesis against a broker of forty lines: nothing is lost,
doubled or reordered within a partition, the buffer keeps its bound, and every partition comes to its end."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.errors import AuthorizationError, ClientError, ConnectionFailed, RequestTimedOut
from client.fetching.fetch_settings import FetchSettings, Start
from client.fetching.fetched import CorruptRecords
from client.fetching.list_offsets import EARLIEST, LATEST, ListedOffset
from client.fetching.positions import PASSING, STALE_METADATA, Asked, OffsetOutOfRange, Position, Positions
from client.topic_partition import TopicPartition
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.records import Record, build_batch

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
NO_EPOCHS: Mapping[TopicPartition, int] = {}
NO_IDS: Mapping[str, bytes] = {}


def positions(**settings: object) -> Positions:
    return Positions(FetchSettings(**settings), lambda: 0.5)  # type: ignore[arg-type]


def batch(first: int, count: int, size: int = 1) -> bytes:
    return build_batch([Record(first + index, 0, None, b"v" * size) for index in range(count)], base_offset=first)


def response(answers: Mapping[TopicPartition, bytes | int]) -> FetchResponse:
    """Records, or an error code, by partition."""
    topics: dict[str, list[PartitionData]] = {}
    for partition, answer in answers.items():
        error_code, records = (answer, b"") if isinstance(answer, int) else (0, answer)
        topics.setdefault(partition.topic, []).append(
            PartitionData(
                partition_index=partition.partition, error_code=error_code, high_watermark=-1, records=records
            )
        )
    return FetchResponse(
        responses=[FetchableTopicResponse(topic=name, partitions=parts) for name, parts in topics.items()]
    )


def ask(reading: Positions, now_ms: float = 0.0) -> Asked:
    return reading.ask(reading.fetchable(now_ms), NO_EPOCHS, NO_IDS)


def fetch(reading: Positions, answers: Mapping[TopicPartition, bytes | int], now_ms: float = 0.0) -> None:
    reading.fetched(ask(reading, now_ms), response(answers), now_ms)


def taken(reading: Positions) -> list[int]:
    """The offsets of all that waits."""
    found: list[int] = []
    while (read := reading.take()) is not None:
        found += [record.offset for record in read.records]
    return found


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
    ("start", "timestamp"), [(Start.earliest(), EARLIEST), (Start.latest(), LATEST), (Start.at_time(99), 99)]
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
    reading.assign(A0, Start.at_time(10**12))
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
def test_the_next_fetch_goes_on_behind_what_waits_and_the_position_follows_what_is_taken() -> None:
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


# -------------------------------------------------------------------------------------------------- all together
class Log:
    """One partition of a broker: batches by their last offsets."""

    def __init__(self, shape: list[tuple[int, int]]) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.offsets: list[int] = []
        end = 0
        for gap, count in shape:
            first = end + gap
            self.batches.append((first + count - 1, batch(first, count)))
            self.offsets += range(first, first + count)
            end = first + count
        self.end = end

    def answer(self, offset: int, limit: int) -> bytes | int:
        if offset > self.end:
            return 1
        answer = b""
        for last, data in self.batches:
            if last >= offset:
                if answer and len(answer) + len(data) > limit:
                    break
                answer += data
        return answer


SHAPES = st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=8), min_size=1, max_size=3)


@settings(deadline=None)
@given(SHAPES, st.data())
def test_every_partition_is_read_to_its_end_whatever_happens_on_the_way(
    shapes: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    """Fetches answered late, with errors, in part, or not at all, while records are taken between."""
    logs = {TopicPartition("t", index): Log(shape) for index, shape in enumerate(shapes)}
    largest = max([len(each) for log in logs.values() for _, each in log.batches], default=0)
    reading = positions(buffer_bytes=300, retry_timeout_ms=None, auto_offset_reset="earliest")
    for partition, log in logs.items():
        start = data.draw(st.sampled_from([Start.earliest(), Start.at_offset(0), Start.at_offset(log.end)]))
        reading.assign(partition, start, log.end)
    starts = {position.partition: max(0, position.fetch_offset) for position in reading}
    read: dict[TopicPartition, list[int]] = {partition: [] for partition in logs}
    under_way: list[Asked] = []
    now_ms = 0.0
    for _ in range(400):
        if reading.is_finished:
            break
        for position in reading.unplaced(now_ms):
            position.is_asked = True
            failed = data.draw(st.booleans())
            reading.placed(position, ConnectionFailed("broker 1") if failed else ListedOffset(0), now_ms)
        fetchable = reading.fetchable(now_ms)
        if fetchable:
            count = data.draw(st.integers(1, len(fetchable)))
            under_way.append(reading.ask(fetchable[:count], NO_EPOCHS, NO_IDS))
        if len(under_way) > data.draw(st.integers(0, 1)):
            asked = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
            settle(reading, asked, logs, now_ms, data)
        assert reading.buffered_bytes <= 300 + len(logs) * largest
        if data.draw(st.booleans()) and (got := reading.take()) is not None:
            read[TopicPartition(got.topic, got.partition)] += [record.offset for record in got.records]
        now_ms += data.draw(st.sampled_from([0.0, 50.0, 1_000.0]))
    else:
        while under_way:
            asked = under_way.pop()
            reading.fetched(asked, response(healthy(asked, logs)), now_ms)
        finish(reading, logs, read, now_ms)
    expected = {
        partition: [offset for offset in log.offsets if offset >= starts[partition]] for partition, log in logs.items()
    }
    assert read == expected
    assert (under_way, reading.buffered_bytes, reading.room_bytes) == ([], 0, 300)


def settle(
    reading: Positions, asked: Asked, logs: Mapping[TopicPartition, Log], now_ms: float, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(["whole", "errors", "lost"]))
    if kind == "lost":
        reading.not_fetched(asked, RequestTimedOut("Fetch", "broker 1", 5), now_ms)
        return
    answers = healthy(asked, logs)
    if kind == "errors":
        answers = {each: data.draw(st.sampled_from([answer, 6, b""])) for each, answer in answers.items()}
    reading.fetched(asked, response(answers), now_ms)


def healthy(asked: Asked, logs: Mapping[TopicPartition, Log]) -> dict[TopicPartition, bytes | int]:
    """What a broker answers that keeps the limit, but for the first batch of all (KIP-74)."""
    left = asked.request.max_bytes
    answers: dict[TopicPartition, bytes | int] = {}
    for position in asked.positions:
        answer = logs[position.partition].answer(offset_of(asked, position), left)
        if isinstance(answer, bytes):
            if len(answer) > left < asked.request.max_bytes:
                answer = b""
            left -= len(answer)
        answers[position.partition] = answer
    return answers


def offset_of(asked: Asked, position: Position) -> int:
    return next(
        each.fetch_offset
        for topic in asked.request.topics
        for each in topic.partitions
        if (topic.topic, each.partition) == position.partition
    )


def finish(
    reading: Positions, logs: Mapping[TopicPartition, Log], read: dict[TopicPartition, list[int]], now_ms: float
) -> None:
    """A healthy broker ends it within a bounded number of questions."""
    for _ in range(200):
        now_ms += 1_000
        for position in reading.unplaced(now_ms):
            position.is_asked = True
            reading.placed(position, ListedOffset(0), now_ms)
        if reading.fetchable(now_ms):
            asked = ask(reading, now_ms)
            reading.fetched(asked, response(healthy(asked, logs)), now_ms)
        while (got := reading.take()) is not None:
            read[TopicPartition(got.topic, got.partition)] += [record.offset for record in got.records]
        if reading.is_finished:
            return
    raise AssertionError("it does not come to an end")
