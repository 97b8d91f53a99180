"""`Positions` driven by hand: what is asked, and what a broker answers to it."""

from collections.abc import Mapping

from odradek.client.fetching.fetch_settings import FetchSettings
from odradek.client.fetching.positions import Asked, Positions
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

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
