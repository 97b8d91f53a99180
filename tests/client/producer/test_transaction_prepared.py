"""Transactions that a producer lets go of, and `Admin.end_transaction` ends: on our own broker, in both versions."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.launch.serving import serving
from odradek.client.admin.admin import Admin
from odradek.client.admin.topics import NewTopic
from odradek.client.admin.transaction_ends import OtherOutcome
from odradek.client.consumer.consumer import Consumer
from odradek.client.errors.broker_errors import ProducerFenced
from odradek.client.errors.client_errors import BrokerError, UnsupportedVersion, WrongUse
from odradek.client.errors.transaction_errors import NotTwoPhase, TransactionFailed, TransactionOpen, TransactionOver
from odradek.client.producer.producer import Producer
from odradek.client.producer.transactions.prepared import PreparedTransaction
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

OPTIONS = {
    "transaction.state.log.num.partitions": "2",
    "offsets.topic.num.partitions": "2",
    "transaction.two.phase.commit.enable": "true",
}
OUTPUT = [TopicPartition("payments", 0), TopicPartition("payments", 1)]


@asynccontextmanager
async def running(**options: str) -> AsyncGenerator[tuple[str, Admin]]:
    """Where a broker listens, and its admin client. `options`: with underscores."""
    changed = {name.replace("_", "."): value for name, value in options.items()}
    async with (
        serving(memory=True, config=OPTIONS | changed) as broker,
        Admin(broker.bootstrap_servers, default_api_timeout_ms=10_000) as admin,
    ):
        await admin.create_topics([NewTopic("payments", 2, 1)])
        yield broker.bootstrap_servers, admin


def two_phase(servers: str) -> Producer:
    return Producer(servers, transactional_id="a", transaction_two_phase_commit_enable=True)


async def prepared(servers: str, *values: bytes) -> PreparedTransaction:
    """By a producer that is gone then."""
    async with two_phase(servers) as producer, producer.transaction() as txn:
        await txn.send_batch("payments", list(values), list(values))
        found = await txn.prepare()
    assert found is not None
    return found


async def committed(servers: str) -> list[bytes]:
    reader = Consumer(servers, auto_offset_reset="earliest", isolation_level="read_committed")
    found: list[bytes] = []
    async with reader:
        reader.assign(OUTPUT)
        ends = await reader.end_offsets(OUTPUT)
        while any([await reader.position(each) < ends[each] for each in OUTPUT]):
            batch = await reader.get_batch(timeout_ms=100)
            found += [record.value for record in batch.records]
    return sorted(found)


async def ended(admin: Admin) -> str:
    """The state when every partition has been told."""
    async with asyncio.timeout(10):
        while not (found := await admin.describe_transaction("a")).state.startswith("Complete"):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    return found.state


@pytest.mark.parametrize("commit", [True, False])
async def test_what_is_prepared_is_ended_by_another_client(version: str, commit: bool) -> None:
    async with running() as (servers, admin):
        what = await prepared(servers, b"1", b"2")
        assert await committed(servers) == [], "its producer is closed, and has left it alone"
        found = await admin.describe_transaction("a")
        assert (found.state, found.timeout_ms) == ("Ongoing", 2**31 - 1)
        assert (found.producer_id, found.producer_epoch) == what[1:]
        await admin.end_transaction(*what, commit=commit)
        assert await ended(admin) == ("CompleteCommit" if commit else "CompleteAbort")
        assert await committed(servers) == ([b"1", b"2"] if commit else [])


@pytest.mark.parametrize("commit", [True, False])
async def test_the_same_end_may_be_asked_for_again_and_the_other_is_refused(version: str, commit: bool) -> None:
    async with running() as (servers, admin):
        what = await prepared(servers, b"1")
        for _ in range(3):
            await admin.end_transaction(*what, commit=commit)
            with pytest.raises(OtherOutcome) as caught:
                await admin.end_transaction(*what, commit=not commit)
            assert caught.value.was_committed is commit
            await ended(admin)


async def test_an_end_after_the_id_has_gone_on_says_that_nobody_knows(version: str) -> None:
    async with running() as (servers, admin):
        what = await prepared(servers, b"1")
        await admin.end_transaction(*what, commit=True)
        async with two_phase(servers):
            pass
        with pytest.raises(ProducerFenced, match="has gone on without it"):
            await admin.end_transaction(*what, commit=True)
        with pytest.raises(BrokerError) as caught:
            await admin.end_transaction("other", 7, 0, commit=True)
        assert caught.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING


async def test_a_producer_that_starts_before_the_end_aborts_it(version: str) -> None:
    async with running() as (servers, admin):
        what = await prepared(servers, b"1")
        async with two_phase(servers) as producer:
            with pytest.raises(ProducerFenced):
                await admin.end_transaction(*what, commit=True)
            async with producer.transaction() as txn:
                await txn.send("payments", b"2")
        assert await committed(servers) == [b"2"]


async def test_an_operator_ends_what_nobody_comes_back_for() -> None:
    async with running() as (servers, admin):
        what = await prepared(servers, b"1")
        await admin.fence_producers(["a"])
        assert await committed(servers) == []
        with pytest.raises(ProducerFenced):
            await admin.end_transaction(*what, commit=True)


async def test_preparing_waits_for_every_acknowledgement(version: str) -> None:
    async with running() as (servers, admin), two_phase(servers) as producer:
        txn = await producer.transaction().begin()
        sent = [await txn.send("payments", b"%d" % number) for number in range(50)]
        what = await txn.prepare()
        assert what is not None
        assert all(each.done() for each in sent)
        await admin.end_transaction(*what, commit=True)
        assert len(await committed(servers)) == 50


async def test_offsets_count_when_somebody_commits(version: str) -> None:
    async with running() as (servers, admin):
        async with two_phase(servers) as producer, producer.transaction() as txn:
            await txn.send_offsets({OUTPUT[0]: 5}, "readers")
            what = await txn.prepare()
        assert what is not None
        await admin.end_transaction(*what, commit=True)
        await ended(admin)
        offsets = await admin.group_offsets("readers")
        assert {partition: each.offset for partition, each in offsets.items()} == {OUTPUT[0]: 5}


async def test_a_transaction_without_records_leaves_nothing_to_end(version: str) -> None:
    async with running() as (servers, _), two_phase(servers) as producer:
        async with producer.transaction() as txn:
            assert await txn.prepare() is None
        async with producer.transaction() as txn:
            await txn.send("payments", b"1")
        assert await committed(servers) == [b"1"]


async def test_what_is_prepared_takes_nothing_more_and_its_producer_begins_no_other() -> None:
    async with running() as (servers, _), two_phase(servers) as producer:
        txn = await producer.transaction().begin()
        await txn.send("payments", b"1")
        await txn.prepare()
        for call in (txn.prepare, txn.commit, txn.abort, lambda: txn.send("payments", b"2")):
            with pytest.raises(TransactionOver, match="is prepared"):
                await call()
        with pytest.raises(TransactionOpen, match="is prepared"):
            await producer.transaction().begin()


async def test_an_error_in_the_program_leaves_what_is_prepared(version: str) -> None:
    async with running() as (servers, admin):
        found: list[PreparedTransaction | None] = []
        with pytest.raises(KeyError):
            async with two_phase(servers) as producer, producer.transaction() as txn:
                await txn.send("payments", b"1")
                found.append(await txn.prepare())
                raise KeyError("after it")
        [what] = found
        assert what is not None
        await admin.end_transaction(*what, commit=True)
        assert await committed(servers) == [b"1"]


async def test_where_a_record_has_failed_it_is_aborted(version: str) -> None:
    async with running() as (servers, admin), two_phase(servers) as producer:
        await admin.create_topics([NewTopic("small", 1, 1, configs={"max.message.bytes": "200"})])
        with pytest.raises(TransactionFailed):
            async with producer.transaction() as txn:
                await txn.send("payments", b"1")
                await txn.send("small", bytes(1_000))
                await txn.prepare()
        assert (await admin.describe_transaction("a")).state in ("Empty", "CompleteAbort", "PrepareAbort")
        assert await committed(servers) == []


async def test_a_producer_of_one_phase_prepares_nothing() -> None:
    async with running() as (servers, _), Producer(servers, transactional_id="a") as producer:
        with pytest.raises(NotTwoPhase, match="transaction_two_phase_commit_enable=True"):
            async with producer.transaction() as txn:
                await txn.send("payments", b"1")
                await txn.prepare()
        assert await committed(servers) == []


async def test_where_brokers_have_no_two_phases_the_producer_says_what_to_do() -> None:
    async with running(transaction_two_phase_commit_enable="false") as (servers, _):
        with pytest.raises(UnsupportedVersion, match=r"transaction\.two\.phase\.commit\.enable=true"):
            await two_phase(servers).start()


async def test_a_transaction_that_is_bound_to_a_consumer_is_not_prepared() -> None:
    """Nobody would know how its consumer is to go on."""
    async with (
        running() as (servers, _),
        two_phase(servers) as producer,
        Consumer(servers, group_id="readers", topics=["payments"]) as consumer,
        producer.transaction(consumer=consumer) as txn,
    ):
        with pytest.raises(WrongUse, match="ends where that is"):
            await txn.prepare()
        assert txn.is_open
