"""What transactional clients may send and should not: each is refused clearly, memory stays bounded, and other
transactions notice nothing."""

import asyncio
import logging
from collections import Counter

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.broker.support import ask
from tests.broker.test_groups_bad_input import GROUP_IDS, SHARE_MAX, longest_turn
from tests.broker.transactions import Producer, committed, completed, make_transaction, running_transactions, state_of

MANY = 100_000
TRANSACTION = 1


@pytest.mark.parametrize("transactional_id", GROUP_IDS, ids=lambda each: f"{len(each)}-{each[:4]!r}")
async def test_a_transactional_id_may_be_any_string(transactional_id: str) -> None:
    async with running_transactions() as context:
        find = FindCoordinatorRequest(key=transactional_id, key_type=TRANSACTION)
        assert (await ask(context, find, 3)).error_code == ErrorCode.NONE
        producer = Producer(context, transactional_id)
        assert await producer.init() is ErrorCode.NONE
        await producer.send(b"a")
        assert await producer.end(commit=True) is ErrorCode.NONE
        assert await completed(context, transactional_id) == "CompleteCommit"
        assert await committed(context) == [b"a"]


async def test_an_empty_transactional_id_is_refused() -> None:
    async with running_transactions() as context:
        assert await Producer(context, "").init() is ErrorCode.INVALID_REQUEST


async def test_of_two_producers_with_one_id_the_log_says_which_is_fenced(caplog: pytest.LogCaptureFixture) -> None:
    async with running_transactions() as context:
        first, second = Producer(context), Producer(context)
        await first.init()
        await first.send(b"of the first")
        with caplog.at_level(logging.INFO, "odradek.broker.api.init_producer_id"):
            assert await second.init() is ErrorCode.NONE
        said = f"'payments': the producer of support at unknown has producer id {second.producer_id} and epoch 2 now"
        assert said in caplog.text
        await second.send(b"of the second")
        assert await first.end(commit=True) is ErrorCode.PRODUCER_FENCED
        assert "'payments': the producer of support at unknown is fenced: another producer" in caplog.text
        assert await second.end(commit=True) is ErrorCode.NONE
        await completed(context)
        assert await committed(context) == [b"of the second"]


@pytest.mark.parametrize(("timeout_ms", "code"), [(0, "INVALID_TRANSACTION_TIMEOUT"), (900_000, "NONE")])
async def test_a_timeout_has_to_be_positive(timeout_ms: int, code: str) -> None:
    async with running_transactions() as context:
        assert (await Producer(context).init(timeout_ms=timeout_ms)).name == code


async def test_a_timeout_beyond_the_maximum_is_refused_and_no_id_is_made() -> None:
    async with running_transactions() as context:
        assert await Producer(context).init(timeout_ms=900_001) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert not any(True for shard in context.transactions.shards.all for _ in shard.machine.transactions)


async def test_a_hundred_thousand_partitions_that_there_are_not_hold_nobody_up() -> None:
    async with running_transactions() as context:
        producer = Producer(context, is_new=False)
        await producer.init()
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=producer.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=list(range(3, 3 + MANY)))],
        )
        share, answer = await longest_turn(context, add, 3)
        [topic] = answer.results_by_topic_v3_and_below
        codes = {ErrorCode(each.partition_error_code) for each in topic.results_by_partition}
        assert (codes, len(topic.results_by_partition)) == ({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, MANY)
        assert share < SHARE_MAX
        assert await state_of(context) == "Empty"


async def test_offsets_of_a_hundred_thousand_partitions_that_there_are_not_hold_nobody_up() -> None:
    async with running_transactions() as context:
        offsets = [
            TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=7, committed_metadata=None)
            for index in range(3, 3 + MANY)
        ]
        request = TxnOffsetCommitRequest(
            transactional_id="payments",
            group_id="billing",
            producer_id=7,
            producer_epoch=0,
            topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=offsets)],
        )
        share, answer = await longest_turn(context, request, 5)
        codes = Counter(ErrorCode(each.error_code) for each in answer.topics[0].partitions)
        assert codes == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: MANY}
        assert share < SHARE_MAX


async def test_a_hundred_thousand_partitions_end_and_more_than_a_batch_is_refused() -> None:
    """The topic is gone when it ends, so that it needs no markers."""
    async with running_transactions() as context:
        await make_transaction(context, "large", *(("gone", index) for index in range(MANY)))
        with pytest.raises(KafkaError) as refused:
            await make_transaction(context, "larger", *((f"gone-{index:06}", index) for index in range(MANY)))
        assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert "message.max.bytes" in refused.value.message or "max.message.bytes" in refused.value.message
        assert await state_of(context, "larger") == "Empty"
        producer = Producer(context, "large")
        async with asyncio.timeout(60):
            while (code := await producer.init()) is ErrorCode.CONCURRENT_TRANSACTIONS:
                await context.environment.sleep(10)  # between two questions, as clients have it
        assert code is ErrorCode.NONE
        assert await state_of(context, "large") == "Empty"
