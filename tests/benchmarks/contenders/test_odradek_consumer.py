"""Odradek's adapter where nothing comes: silence fails the run.

(That the real one reads everything is shown where whole runs are.)
"""

from typing import cast

import pytest

from benchmarks.contenders.job import ContenderFailed
from benchmarks.contenders.odradek_consumer import take_batches
from odradek import Consumer, ConsumerBatch, TopicPartition
from odradek.client.consumer.records import PartitionRecords


class FakeConsumer:
    """Has a batch of three records, and nothing after it."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._batches = [
            ConsumerBatch(
                [
                    PartitionRecords(
                        TopicPartition("t", 0), [5, 6, 7], [10, 20, 30], [b"a\x01"] * 3, [b"b\x02"] * 3, None, 8
                    )
                ]
            )
        ]

    async def get_batch(self, max_records: int, timeout_ms: float) -> ConsumerBatch:
        assert timeout_ms > 0
        self.asked.append(max_records)
        return self._batches.pop() if self._batches else ConsumerBatch([])


async def test_all_four_fields_are_added_up_and_no_more_is_asked_for_than_is_wanted() -> None:
    fake = FakeConsumer()
    assert await take_batches(cast("Consumer", fake), 3) == (5 + 6 + 7) + (10 + 20 + 30) + 3 * 1 + 3 * 2
    assert fake.asked == [3]


async def test_silence_fails_the_run() -> None:
    fake = FakeConsumer()
    with pytest.raises(ContenderFailed, match="Odradek gave 3 of 20000 records"):
        await take_batches(cast("Consumer", fake), 20_000)
    assert fake.asked == [10_000, 10_000]
