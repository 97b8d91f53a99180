"""Who holds readers up for too long is named in the log, with what to do about it."""

import asyncio
from typing import Any

import pytest

from odradek.broker.handling.context import Context
from odradek.broker.txn.late_warnings import LOOKED_AT_TOGETHER, LOOKED_EVERY_MS, LateWarnings
from odradek.broker.txn.stored import stored_record, tombstone
from odradek.broker.txn.transaction import WITHOUT_TIMEOUT_MS, Transaction, TxnState
from odradek.protocol.errors import ErrorCode
from odradek.runtime.tasks import Tasks
from tests.broker.support import append, batch, make_topic
from tests.broker.transactions import NO_ID, PAYMENTS, Producer, completed, machine, running_transactions
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time
LATE_MS = 20 * 60_000
"""`transaction.max.timeout.ms` and five minutes."""


def warnings(context: Context) -> LateWarnings:
    return LateWarnings(context.partitions, context.transactions.shards, context.config, context.environment)


def jump(context: Context, by_ms: int) -> None:
    """Only the wall clock: no time-out rings."""
    environment = context.environment
    assert isinstance(environment, VirtualEnvironment)
    environment.jump_ms(by_ms)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name.endswith("late_warnings")]


async def opened(context: Context) -> Producer:
    """With a transaction in orders-0, and what stands behind it."""
    producer = Producer(context)
    await producer.init()
    assert await producer.send(b"a") is ErrorCode.NONE
    append(context.partitions.find("orders", 0), batch(b"b", b"c"))
    return producer


def change(context: Context, **fields: Any) -> None:
    """What the coordinator has of it, behind its back."""
    of = machine(context)
    transaction: Transaction = dict(of.transactions)[PAYMENTS]._replace(**fields)
    of.replay(*stored_record(PAYMENTS, transaction, 1), NO_ID)


async def test_a_transaction_that_is_late_is_named_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    async with running_transactions() as context:
        producer = await opened(context)
        jump(context, LATE_MS)
        await warnings(context).look()
        assert lines(caplog) == []
        jump(context, 1)
        await warnings(context).look()
        [line] = lines(caplog)
        assert line == (
            "orders-0: readers of read_committed wait at offset 0, 3 offsets behind, for a transaction that is open "
            f"since 2023-11-14T22:13:20Z, 20 minutes: producer id {producer.producer_id}, epoch 0, transactional id "
            "'payments', which is Ongoing; `odradek transactions describe payments` shows it, `odradek transactions "
            "abort --transactional-id payments --execute` ends it"
        )
        assert caplog.records[-1].levelname == "WARNING"


async def test_one_that_ends_in_time_is_not(caplog: pytest.LogCaptureFixture) -> None:
    async with running_transactions() as context:
        producer = await opened(context)
        jump(context, LATE_MS + 1)
        await producer.end(commit=True)
        await completed(context)
        await warnings(context).look()
        assert lines(caplog) == []


async def test_it_is_named_with_all_its_partitions_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with running_transactions() as context:
        producer = await opened(context)
        for index in (1, 2):
            await producer.send(b"a", index=index)
        jump(context, LATE_MS + 1)
        late = warnings(context)
        for _ in range(2):
            await late.look()
        [line] = lines(caplog)
        assert line.startswith("orders-0 and 2 other partitions: ")


async def test_one_in_two_phases_is_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    async with running_transactions() as context:
        await opened(context)
        change(context, timeout_ms=WITHOUT_TIMEOUT_MS)
        jump(context, LATE_MS + 1)
        await warnings(context).look()
        [line] = lines(caplog)
        assert "in two phases and without a time-out: what decides about it has to end it" in line


async def test_one_that_is_decided_is_left_to_its_coordinator(caplog: pytest.LogCaptureFixture) -> None:
    async with running_transactions() as context:
        await opened(context)
        change(context, state=TxnState.PREPARE_COMMIT)
        jump(context, LATE_MS + 1)
        await warnings(context).look()
        [line] = lines(caplog)
        assert line.endswith("which is PrepareCommit: its end is decided, and the marker is tried again until the "
                             "partition takes it")  # fmt: skip
        assert "abort" not in line


async def test_one_whose_coordinator_has_it_elsewhere_hangs(caplog: pytest.LogCaptureFixture) -> None:
    async with running_transactions() as context:
        await opened(context)
        change(context, partitions=frozenset([("orders", 1)]))
        jump(context, LATE_MS + 1)
        await warnings(context).look()
        [line] = lines(caplog)
        assert line.endswith("without this partition: it hangs, and `odradek transactions abort orders-0 "
                             "--start-offset 0` ends it")  # fmt: skip


async def test_one_that_is_not_coordinated_here_says_where_to_look(caplog: pytest.LogCaptureFixture) -> None:
    async with running_transactions() as context:
        producer = await opened(context)
        machine(context).replay(*tombstone(PAYMENTS), NO_ID)
        jump(context, LATE_MS + 1)
        await warnings(context).look()
        [line] = lines(caplog)
        assert f"`odradek transactions list --producer-id {producer.producer_id}` names it" in line
        assert line.endswith("`odradek transactions abort orders-0 --start-offset 0` ends it")


async def test_many_partitions_are_looked_at_in_turns(caplog: pytest.LogCaptureFixture) -> None:
    async with running_transactions() as context:
        await opened(context)
        await make_topic(context, "many", 2 * LOOKED_AT_TOGETHER)
        async with asyncio.timeout(5):
            while sum(partition.topic == "many" for partition in context.partitions) < 2 * LOOKED_AT_TOGETHER:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.001)
        jump(context, LATE_MS + 1)
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        tasks = Tasks(context.environment.loop)
        tasks.start(count(), "count turns")
        await warnings(context).look()
        await tasks.close()
        assert turns >= 2
        assert len(lines(caplog)) == 1


async def test_it_looks_every_minute(caplog: pytest.LogCaptureFixture) -> None:
    async with running_transactions() as context:
        await opened(context)
        jump(context, LATE_MS)
        tasks = Tasks(context.environment.loop)
        tasks.start(warnings(context).run(), "warn")
        await asyncio.sleep((LOOKED_EVERY_MS - 1) / 1000)
        assert lines(caplog) == []
        await asyncio.sleep(0.002)
        assert len(lines(caplog)) == 1
        await tasks.close()
