"""Batches in flight in the loop that runs, with a delivery for each record: what the tests of deliveries begin with."""

import asyncio
from array import array
from collections.abc import Awaitable, Callable

import pytest

from odradek.client.errors.client_errors import ClientError, ConnectionFailed
from odradek.client.metrics.metrics import UNOBSERVED_ERROR_TOTAL, client_metrics
from odradek.client.producer.results.delivery import Ack, Delivery
from odradek.client.producer.results.produce_results import ProduceResult, Results
from tests.client.recorded_metrics import RecordedMetrics

NOW = 1_700_000_000_000


class CountedResults(Results):
    """Results of the loop that runs, of which a test may ask what they have told their metrics."""

    def __init__(self) -> None:
        self._recorded = RecordedMetrics()
        super().__init__(asyncio.get_running_loop(), lambda: 0.0, client_metrics(self._recorded, "test"), "test")

    @property
    def lost_count(self) -> float:
        """Records that failed while nobody waited for them."""
        return self._recorded.total(UNOBSERVED_ERROR_TOTAL)


class Batch:
    """A batch in flight: its result, and deliveries of its records."""

    def __init__(self, count: int, owner: CountedResults | None = None) -> None:
        self.owner = owner or CountedResults()
        self.result = ProduceResult(self.owner, "orders", 3)
        self.result.count = count
        self.result.timestamps = array("q", [NOW + n for n in range(count)])
        self.deliveries = [Delivery(self.result, n) for n in range(count)]

    def complete(self, base_offset: int = 100) -> None:
        self.result.complete(base_offset, -1)

    def fail(self) -> None:
        self.result.fail(lost())

    def split(self, *counts: int) -> list[ProduceResult]:
        parts = self.result.split(counts)
        start = 0
        for part in parts:
            part.timestamps = array("q", [NOW + start + n for n in range(part.count)])
            start += part.count
        return parts

    def later(self, end: Callable[[], object], delay_s: float = 1.0) -> None:
        asyncio.get_running_loop().call_later(delay_s, end)


def lost() -> ClientError:
    return ConnectionFailed("broker 1 (localhost:9092)")


def ack(index: int) -> Ack:
    return Ack("orders", 3, 100 + index, NOW + index)


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def raises_lost(waits: Awaitable[object]) -> None:
    with pytest.raises(ConnectionFailed):
        await waits
