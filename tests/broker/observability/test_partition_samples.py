"""Metrics of partitions follow the transactions that are open in them."""

import pytest

from odradek.broker.handling.context import Context
from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.histogram import Histogram
from odradek.broker.observability.partition_samples import partition_samples
from odradek.runtime.metric import Metric
from tests.broker.support import append, batch
from tests.broker.transactions import Producer, completed, lead, running_transactions

pytestmark = pytest.mark.virtual_time
LATE_MS = 1_000


def told(context: Context, after_ms: int) -> dict[tuple[Metric, str], float]:
    """Of the partitions of "orders", so many ms from now, and of all together."""
    found: dict[tuple[Metric, str], float] = {}
    for row, labels, value in partition_samples(context.partitions, context.environment.now_ms() + after_ms, LATE_MS):
        assert not isinstance(value, Histogram)
        if labels[:1] in ((), ("orders",)):
            found[row, labels[1] if labels else ""] = value
    return found


async def test_an_open_transaction_ages_and_holds_readers_up() -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        await producer.send(b"a")
        await producer.send(b"b")
        append(context.partitions.find("orders", 0), batch(b"c"))
        now = told(context, 500)
        assert (now[rows.STABLE_OFFSET_AGE, "0"], now[rows.STABLE_OFFSET_LAG, "0"]) == (500, 3)
        assert (now[rows.STABLE_OFFSET_AGE, "1"], now[rows.STABLE_OFFSET_LAG, "1"]) == (0, 0)
        await producer.end(commit=True)
        await completed(context)
        now = told(context, 500)
        assert (now[rows.STABLE_OFFSET_AGE, "0"], now[rows.STABLE_OFFSET_LAG, "0"]) == (0, 0)


async def test_partitions_with_late_transactions_are_counted() -> None:
    async with running_transactions() as context:
        for number, index in enumerate((0, 0, 1)):
            producer = Producer(context, str(number))
            await producer.init()
            await producer.send(b"a", index=index)
        assert told(context, LATE_MS)[rows.LATE_TRANSACTIONS, ""] == 0
        assert told(context, LATE_MS + 1)[rows.LATE_TRANSACTIONS, ""] == 2


async def test_the_oldest_transaction_counts_until_it_ends() -> None:
    async with running_transactions() as context:
        first, second = Producer(context, "first"), Producer(context, "second")
        await first.init()
        await second.init()
        await first.send(b"a")
        environment = context.environment
        await environment.sleep(400)
        await second.send(b"b")
        assert told(context, 100)[rows.STABLE_OFFSET_AGE, "0"] == 500
        await first.end(commit=False)
        await completed(context, "first")
        assert told(context, 100)[rows.STABLE_OFFSET_AGE, "0"] < 400


async def test_a_follower_leaves_that_to_its_leader() -> None:
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init()
        await producer.send(b"a")
        await lead(context, "orders", 0, 1)
        now = told(context, LATE_MS + 1)
        assert (rows.STABLE_OFFSET_AGE, "0") not in now
        assert (rows.STABLE_OFFSET_AGE, "1") in now
        assert now[rows.LATE_TRANSACTIONS, ""] == 0
