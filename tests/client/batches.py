"""Batches and results for tests that need no loop: nobody awaits them."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import cast

from odradek.client.producer.batching.batch import ProducerBatch, estimated_size
from odradek.client.producer.results.produce_results import ProduceResult, Results
from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.records import Record

TOPIC = "orders"
NOW = 1_700_000_000_000


def results() -> Results:
    """Of a producer whose loop never runs and whose clock stands."""
    return Results(cast(asyncio.AbstractEventLoop, object()), lambda: 0.0)


def new_batch(capacity: int = 1 << 20, order: tuple[int, ...] = (7,)) -> ProducerBatch:
    """An open batch, begun at 1000 ms and due at 9000 ms."""
    return ProducerBatch(ProduceResult(results(), TOPIC, 3), capacity, order, 1000.0, 9000.0)


def append(batch: ProducerBatch, record: Record) -> None:
    """Appends a record, whose offset has to be its place."""
    assert record.offset == batch.count
    size = estimated_size(record.key, record.value, record.headers)
    batch.append(record.timestamp_ms, record.key, record.value, record.headers, size)


def filled(records: Iterable[Record], encode_after: Iterable[int] = ()) -> ProducerBatch:
    """An open batch of these records; after so many of them, those that wait are encoded."""
    batch = new_batch()
    counts = set(encode_after)
    for record in records:
        append(batch, record)
        if batch.count in counts:
            batch.encode_pending()
    return batch


def closed(records: Iterable[Record], encode_after: Iterable[int] = ()) -> ProducerBatch:
    batch = filled(records, encode_after)
    batch.close()
    return batch


def sealed(batch: ProducerBatch, codec: Codec = Codec.NONE, level: int | None = None) -> bytes:
    """What would be sent of a closed batch."""
    batch.seal(batch.compressed(codec, level), codec)
    assert batch.encoded is not None
    return batch.encoded


def records_of(*values: bytes, apart_ms: int = 1) -> Sequence[Record]:
    """Records without keys."""
    return [Record(n, NOW + n * apart_ms, None, value) for n, value in enumerate(values)]
