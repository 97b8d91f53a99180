"""What is read of each partition, driven by Hypothesis against a broker of forty lines: nothing is lost, doubled or
reordered within a partition, the buffer keeps its bound, and every partition comes to its end."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.errors.client_errors import ConnectionFailed, RequestTimedOut
from odradek.client.fetching.fetch_settings import Start
from odradek.client.fetching.list_offsets import ListedOffset
from odradek.client.fetching.positions import Asked, Position, Positions
from odradek.client.topic_partition import TopicPartition
from tests.client.fetch_answers import NO_EPOCHS, NO_IDS, ask, batch, positions, response


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
