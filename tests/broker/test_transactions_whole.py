"""Whole transactions by raw protocol, of both versions: all there or not at all, for readers and for groups."""

import asyncio

import pytest

from odradek.broker.coordinator.machine import Now
from odradek.broker.handling.context import Context
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.marker_writer import MarkerOrder, MarkerWriter, Written
from odradek.broker.txn.transaction import TxnState
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.broker.groups import GROUP
from tests.broker.support import ask
from tests.broker.transactions import (
    PAYMENTS,
    Producer,
    all_loaded,
    committed,
    completed,
    described,
    machine,
    markers,
    running_transactions,
    stable_end,
    state_of,
)

pytestmark = pytest.mark.virtual_time
BOTH = pytest.mark.parametrize("is_new", [False, True], ids=["TV1", "TV2"])
FIRST, SECOND = ("orders", 0), ("orders", 1)


async def group_offset(context: Context) -> tuple[int, ErrorCode]:
    """What the group has for the first partition, for who takes stable offsets only."""
    topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
    asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=topics)], require_stable=True)
    [group] = (await ask(context, asked, 8)).groups
    [partition] = group.topics[0].partitions
    return partition.committed_offset, ErrorCode(partition.error_code)


async def begun(context: Context, *, is_new: bool) -> Producer:
    """A producer with one record in each of two partitions, and an offset of a group."""
    producer = Producer(context, is_new=is_new)
    assert await producer.init() is ErrorCode.NONE
    if not is_new:
        assert await producer.add(FIRST, SECOND) == {FIRST: ErrorCode.NONE, SECOND: ErrorCode.NONE}
    assert await producer.send(b"a") is ErrorCode.NONE
    assert await producer.send(b"b", index=1) is ErrorCode.NONE
    if not is_new:
        assert await producer.add_offsets() is ErrorCode.NONE
    assert await producer.commit_offsets({FIRST: 7}) == {FIRST: ErrorCode.NONE}
    return producer


@BOTH
async def test_nothing_of_an_open_transaction_is_read(is_new: bool) -> None:
    async with running_transactions() as context:
        await begun(context, is_new=is_new)
        assert [await committed(context, index) for index in (0, 1)] == [[], []]
        assert [await stable_end(context, index) for index in (0, 1)] == [0, 0]
        assert await group_offset(context) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        told = await described(context)
        assert (told.transaction_state, [(each.topic, each.partitions) for each in told.topics]) == (
            "Ongoing",
            [("__consumer_offsets", [context.groups.index_of(GROUP)]), ("orders", [0, 1])],
        )


@BOTH
async def test_all_of_a_committed_transaction_is_read(is_new: bool) -> None:
    async with running_transactions() as context:
        producer = await begun(context, is_new=is_new)
        assert await producer.end(commit=True) is ErrorCode.NONE
        assert await completed(context) == "CompleteCommit"
        assert [await committed(context, index) for index in (0, 1)] == [[b"a"], [b"b"]]
        assert [await stable_end(context, index) for index in (0, 1)] == [2, 2], "behind the marker"
        assert await group_offset(context) == (7, ErrorCode.NONE)
        assert (await described(context)).topics == []


@BOTH
async def test_nothing_of_an_aborted_transaction_is_read(is_new: bool) -> None:
    async with running_transactions() as context:
        producer = await begun(context, is_new=is_new)
        assert await producer.end(commit=False) is ErrorCode.NONE
        assert await completed(context) == "CompleteAbort"
        assert [await committed(context, index) for index in (0, 1)] == [[], []]
        assert [await stable_end(context, index) for index in (0, 1)] == [2, 2]
        assert await group_offset(context) == (-1, ErrorCode.NONE)


@BOTH
async def test_a_producer_goes_on_with_the_next_transaction_at_once(is_new: bool) -> None:
    """The next one is asked for before the one before is complete, as clients do."""
    async with running_transactions() as context:
        producer = await begun(context, is_new=is_new)
        first = producer.epoch
        for number, commit in enumerate((True, False, True)):
            assert await producer.end(commit=commit) is ErrorCode.NONE
            if not is_new:
                assert await producer.add(FIRST) == {FIRST: ErrorCode.NONE}
            assert await again(producer, b"%d" % number) is ErrorCode.NONE
        assert await producer.end(commit=True) is ErrorCode.NONE
        assert await completed(context) == "CompleteCommit"
        assert await committed(context) == [b"a", b"1", b"2"], "the transaction of 0 was aborted"
        assert producer.epoch == (first + 4 if is_new else first), "of KIP-890, each has an epoch of its own"


async def again(producer: Producer, value: bytes) -> ErrorCode:
    """Repeats a Produce as clients do, while the coordinator says that it may work a moment later."""
    while (code := await producer.send(value)) is ErrorCode.CONCURRENT_TRANSACTIONS:
        producer.sequences[FIRST] -= 1
        await asyncio.sleep(0.02)
    return code


@BOTH
async def test_a_second_producer_with_the_id_fences_the_first(is_new: bool) -> None:
    async with running_transactions() as context:
        first = await begun(context, is_new=is_new)
        second = Producer(context, is_new=is_new)
        assert await second.init() is ErrorCode.NONE
        assert (second.producer_id, second.epoch > first.epoch) == (first.producer_id, True)
        assert await first.send(b"late") is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await first.commit_offsets({FIRST: 9}) == {FIRST: ErrorCode.INVALID_PRODUCER_EPOCH}
        assert await first.add(FIRST) == {FIRST: ErrorCode.PRODUCER_FENCED}
        assert await first.add_offsets() is ErrorCode.PRODUCER_FENCED
        assert await first.end(commit=True) is ErrorCode.PRODUCER_FENCED
        assert await committed(context) == []
        assert await group_offset(context) == (-1, ErrorCode.NONE)


@BOTH
async def test_a_transaction_whose_time_is_up_is_aborted_and_its_producer_fenced(is_new: bool) -> None:
    async with running_transactions() as context:
        producer = Producer(context, is_new=is_new)
        await producer.init(timeout_ms=30_000)
        await producer.add(FIRST)
        assert await producer.send(b"a") is ErrorCode.NONE
        await asyncio.sleep(29.9)
        assert await state_of(context) == "Ongoing"
        await asyncio.sleep(0.2)
        assert await completed(context) == "CompleteAbort"
        assert (await committed(context), await stable_end(context)) == ([], 2)
        assert await markers(context) == [(producer.producer_id, producer.epoch + 1, True)]
        assert await producer.end(commit=True) is ErrorCode.PRODUCER_FENCED
        assert await producer.send(b"b") is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_a_topic_that_is_deleted_does_not_hold_up_the_end() -> None:
    from odradek.broker.cluster.topics import delete_topic

    async with running_transactions() as context:
        producer = await begun(context, is_new=True)
        topic = context.metadata.image.topics["orders"]
        await context.metadata.applied(await delete_topic(context.metadata.store, topic))
        assert await producer.end(commit=True) is ErrorCode.NONE
        assert await completed(context) == "CompleteCommit"


async def test_transactions_of_two_producers_in_one_partition_end_by_themselves() -> None:
    async with running_transactions() as context:
        first, second = Producer(context, "a"), Producer(context, "b")
        for producer in (first, second):
            await producer.init()
            assert await producer.send(producer.transactional_id.encode()) is ErrorCode.NONE
        await second.end(commit=True)
        await completed(context, "b")
        assert (await committed(context), await stable_end(context)) == ([], 0), "the first one is open"
        await first.end(commit=False)
        await completed(context, "a")
        assert await committed(context) == [b"b"]


@BOTH
async def test_an_end_may_be_asked_for_again_where_its_answer_is_lost(is_new: bool) -> None:
    async with running_transactions() as context:
        producer = await begun(context, is_new=is_new)
        answers = [await producer.ask_end(commit=True) for _ in range(3)]
        assert answers[0].error_code == ErrorCode.NONE
        assert answers == [answers[0]] * 3
        assert await completed(context) == "CompleteCommit"
        assert await producer.ask_end(commit=True) == answers[0]
        assert (await producer.ask_end(commit=False)).error_code == ErrorCode.INVALID_TXN_STATE


async def test_an_abort_that_the_log_refuses_is_tried_again_a_moment_later() -> None:
    """And not at once: the clock of these tests refuses to go round without end."""
    async with running_transactions() as context:
        producer = Producer(context)
        await producer.init(timeout_ms=1_000)
        assert await producer.send(b"a") is ErrorCode.NONE
        replicas = context.transactions.shards.of(PAYMENTS).partition.replicas
        replicas.isr = ()
        await asyncio.sleep(5)
        assert await stable_end(context) == 0
        replicas.isr = (0,)
        assert await completed(context) == "CompleteAbort"


async def test_a_completion_that_the_log_refuses_is_written_later_without_more_markers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running_transactions() as context:
        producer = await begun(context, is_new=True)
        replicas = context.transactions.shards.of(PAYMENTS).partition.replicas
        write = MarkerWriter.write

        async def write_and_lose_replicas(writer: MarkerWriter, order: MarkerOrder) -> Written:
            replicas.isr = ()
            return await write(writer, order)

        monkeypatch.setattr(MarkerWriter, "write", write_and_lose_replicas)
        assert await producer.end(commit=True) is ErrorCode.NONE
        await asyncio.sleep(4.9)  # between two tries
        assert await committed(context) == [b"a"]
        assert dict(machine(context).transactions)[PAYMENTS].state is TxnState.PREPARE_COMMIT
        replicas.isr = (0,)
        assert await completed(context) == "CompleteCommit"
        assert await markers(context) == [(producer.producer_id, producer.epoch, False)]


async def test_markers_from_before_a_reload_do_not_end_the_next_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine has failed, and its successor has told all partitions while the one who told them before waited."""
    write, refuses = MarkerWriter.write, True

    async def write_or_refuse(writer: MarkerWriter, order: MarkerOrder) -> Written:
        if refuses:
            return dict.fromkeys(order.partitions, KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "not now"))
        return await write(writer, order)

    def fail(failing: TransactionMachine, now: Now) -> None:
        raise RuntimeError((failing, now))

    async with running_transactions() as context:
        producer = Producer(context, is_new=False)
        await producer.init()
        await producer.add(FIRST)
        assert await producer.send(b"a") is ErrorCode.NONE
        monkeypatch.setattr(MarkerWriter, "write", write_or_refuse)
        assert await producer.end(commit=True) is ErrorCode.NONE
        await asyncio.sleep(3)
        refuses = False
        with pytest.raises(KafkaError, match="UNKNOWN_SERVER_ERROR"):
            context.transactions.shards.of(PAYMENTS).do(fail)
        await all_loaded(context)
        assert await completed(context) == "CompleteCommit"
        await producer.add(FIRST)
        assert await producer.send(b"b") is ErrorCode.NONE
        await asyncio.sleep(3)
        assert (await committed(context), await stable_end(context)) == ([b"a"], 2), "the second one is open"
