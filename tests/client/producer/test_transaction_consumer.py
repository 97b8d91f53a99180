"""Transactions with a consumer of their own on a scripted cluster, in virtual time: what it is told, and when.

The consumer writes down what it is told, as the words of `heard`.
"""

import asyncio
from collections.abc import Callable, Mapping

import pytest

from odradek.client.errors.broker_errors import ProducerFenced
from odradek.client.errors.client_errors import ClientError, RequestTimedOut
from odradek.client.errors.transaction_errors import CommitOutcomeUnknown, TransactionFailed, TransactionOpen
from odradek.client.offset_commit import Committed, OffsetsToCommit, TransactionOwner
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.client.broker_faults import late, never
from tests.client.coordinator_handlers import coordinated
from tests.client.producing import TOPIC, begun, producing, turns
from tests.client.transaction_driver import Member, Offset

pytestmark = pytest.mark.virtual_time

ID = "payments"
INPUT = TopicPartition("input", 0)
both_versions = pytest.mark.parametrize("uses_v2", [False, True], ids=["v1", "v2"])


class Source:
    """A consumer and its binding in one, which has handed out everything below `position`."""

    group_id = "billing"

    def __init__(self) -> None:
        self.position = 0
        self.heard: list[str] = []
        self.offsets: dict[TopicPartition, int] = {}
        self.refusal: ClientError | None = None
        self.late: ClientError | None = None
        self.owner: TransactionOwner | None = None
        self.fail: Callable[[ClientError], None] | None = None

    def bind_to_transactions(self, owner: TransactionOwner) -> "Source":
        self.owner = owner
        return self

    async def ready(self, timeout_ms: float) -> None:
        if self.late is not None:
            raise self.late

    def opened(self, fail: Callable[[ClientError], None]) -> None:
        self.heard.append("opened")
        self.fail = fail

    def offsets_for_transaction(self, last: object | None = None) -> OffsetsToCommit:
        if self.refusal is not None:
            raise self.refusal
        return OffsetsToCommit(Member(), {INPUT: Offset(self.position)} if self.position else {})

    def committed_by_transaction(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        self.offsets |= {partition: each.offset for partition, each in offsets.items()}

    def committed(self) -> None:
        self.heard.append("committed")

    def aborted(self, cause: ClientError | None) -> None:
        self.heard.append("aborted" if cause is None or cause.code is None else cause.code.name)

    def unsettled(self, error: ClientError) -> None:
        self.heard.append("unsettled")


# -------------------------------------------------------------------------------------------------------------- commits
@both_versions
async def test_a_commit_takes_all_that_was_handed_out(uses_v2: bool) -> None:
    source = Source()
    with coordinated(uses_v2=uses_v2) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            for number in (1, 2):
                async with producer.transaction(consumer=source) as txn:
                    source.position = number * 10
                    await txn.send(TOPIC, b"%d" % number)
                assert source.offsets == {INPUT: number * 10}
        assert coordinator.visible("billing") == [("input", 0, 10), ("input", 0, 20)]
        [first, _] = cluster.requests(TxnOffsetCommitRequest)
        assert (first.group_id, first.member_id, first.generation_id) == ("billing", "member-1", 4)
    assert source.heard == ["opened", "committed"] * 2


async def test_offsets_are_sent_while_records_are_and_not_behind_them() -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            async with producer.transaction(consumer=source):  # finds out who coordinates the group
                source.position = 10
            cluster.on(ProduceRequest, late(500))
            txn = await producer.transaction(consumer=source).begin()
            source.position = 20
            delivery = await txn.send(TOPIC, b"1")
            committing = begun(txn.commit())
            await asyncio.sleep(0.1)
            assert (cluster.count(TxnOffsetCommitRequest), delivery.done()) == (2, False)
            await committing
        assert coordinator.visible("billing") == [("input", 0, 10), ("input", 0, 20)]


async def test_what_the_program_names_itself_is_all_that_is_committed() -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            async with producer.transaction(consumer=source) as txn:
                source.position = 10
                await txn.send_offsets({INPUT: 7}, Member())
            assert source.offsets == {INPUT: 7}
            async with producer.transaction(consumer=source) as txn:  # another group is none of its business
                await txn.send_offsets({INPUT: 3}, "reports")
        assert coordinator.visible("billing") == [("input", 0, 7), ("input", 0, 10)]


async def test_what_is_read_after_the_offsets_were_sent_is_committed_too() -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer, producer.transaction(consumer=source) as txn:
            source.position = 10
            await txn.send_offsets(source)
            source.position = 20
        assert coordinator.visible("billing")[-1] == ("input", 0, 20)
    assert source.offsets == {INPUT: 20}


async def test_a_consumer_that_is_not_read_is_asked_nothing_of_brokers() -> None:
    source = Source()
    with coordinated() as (cluster, _):
        async with producing(cluster, transactional_id=ID) as producer, producer.transaction(consumer=source):
            pass
        assert cluster.count(EndTxnRequest) == 0
    assert source.heard == ["opened", "committed"]


# --------------------------------------------------------------------------------------------------------------- aborts
@both_versions
async def test_an_abort_is_told_whoever_wanted_it(uses_v2: bool) -> None:
    source = Source()
    with coordinated(uses_v2=uses_v2) as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            with pytest.raises(KeyError):
                async with producer.transaction(consumer=source) as txn:
                    source.position = 10
                    await (await txn.send(TOPIC, b"1"))
                    raise KeyError
            async with producer.transaction(consumer=source) as txn:
                await (await txn.send(TOPIC, b"2"))
                await txn.abort()
            coordinator.refuses(ProduceRequest, ErrorCode.INVALID_RECORD)
            with pytest.raises(TransactionFailed):
                async with producer.transaction(consumer=source) as txn:
                    await txn.send(TOPIC, b"3")
        assert coordinator.visible("billing") == coordinator.visible(TOPIC) == []
    assert source.heard == ["opened", "aborted", "opened", "aborted", "opened", "INVALID_RECORD"]
    assert source.offsets == {}


async def test_offsets_that_are_refused_abort_it_and_the_consumer_hears_why() -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            coordinator.refuses(TxnOffsetCommitRequest, ErrorCode.ILLEGAL_GENERATION)
            with pytest.raises(TransactionFailed, match="ILLEGAL_GENERATION"):
                async with producer.transaction(consumer=source) as txn:
                    source.position = 10
                    await txn.send(TOPIC, b"1")
        assert coordinator.visible(TOPIC) == []
    assert source.heard == ["opened", "ILLEGAL_GENERATION"]


async def test_a_consumer_that_cannot_tell_its_offsets_makes_an_abort_of_it() -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            for names_its_own in (False, True):
                source.refusal = ClientError("taken away")
                with pytest.raises(TransactionFailed, match="taken away"):
                    async with producer.transaction(consumer=source) as txn:
                        await txn.send(TOPIC, b"1")
                        if names_its_own:
                            await txn.send_offsets({INPUT: 7}, Member())
        assert coordinator.visible(TOPIC) == coordinator.visible("billing") == []
    assert source.heard == ["opened", "aborted"] * 2


async def test_partitions_that_are_lost_fail_the_transaction_at_once() -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            with pytest.raises(TransactionFailed, match="was lost"):
                async with producer.transaction(consumer=source) as txn:
                    await (await txn.send(TOPIC, b"1"))
                    assert source.fail is not None
                    source.fail(ClientError("input-0 was lost"))
                    await turns(2)
                    with pytest.raises(TransactionFailed, match="was lost"):
                        await txn.send(TOPIC, b"2")
        assert coordinator.model.decisions == [False]


async def test_closing_the_producer_takes_back_what_is_open() -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            txn = await producer.transaction(consumer=source).begin()
            await (await txn.send(TOPIC, b"1"))
            assert source.owner is not None
            assert not source.owner.is_closed
        assert source.owner.is_closed
        assert coordinator.model.decisions == [False]
    assert source.heard == ["opened", "aborted"]


# ---------------------------------------------------------------------------------------------- a commit nobody answers
async def test_after_a_commit_without_an_answer_the_consumer_waits_for_it() -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID, max_block_ms=5_000, request_timeout_ms=2_000) as producer:
            rule = cluster.on(EndTxnRequest, never(), times=None)
            txn = producer.transaction(consumer=source)
            with pytest.raises(CommitOutcomeUnknown):
                async with txn:
                    source.position = 10
                    await txn.send(TOPIC, b"1")
            assert (source.heard, source.offsets) == (["opened", "unsettled"], {})
            rule.cancel()
            await txn.commit()
            assert (source.heard[2:], source.offsets) == (["committed"], {INPUT: 10})
        assert coordinator.visible("billing") == [("input", 0, 10)]


@pytest.mark.parametrize("is_committed", [True, False])
async def test_the_next_transaction_begins_by_asking_what_became_of_the_last(is_committed: bool) -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID, max_block_ms=5_000, request_timeout_ms=2_000) as producer:
            rule = cluster.on(EndTxnRequest, never(applies=is_committed), times=None)
            with pytest.raises(CommitOutcomeUnknown):
                async with producer.transaction(consumer=source) as txn:
                    source.position = 10
                    await txn.send(TOPIC, b"1")
            following = producer.transaction(consumer=source)
            began_ms = cluster.now_ms()
            with pytest.raises(CommitOutcomeUnknown):
                await following.begin()
            assert cluster.now_ms() - began_ms == pytest.approx(5_000, abs=100)
            rule.cancel()
            if not is_committed:
                coordinator.refuses(EndTxnRequest, ErrorCode.TRANSACTION_ABORTABLE)
            async with following as txn:
                assert source.heard[-2:] == [*(["committed"] if is_committed else ["TRANSACTION_ABORTABLE"]), "opened"]
                source.position = 20
                await txn.send(TOPIC, b"2")
        first = [b"1"] if is_committed else []
        assert coordinator.visible(TOPIC) == [*first, b"2"]
        assert source.heard.count("unsettled") == 2


async def test_a_commit_under_way_in_another_task_is_no_commit_without_an_answer() -> None:
    source = Source()
    with coordinated() as (cluster, _):
        async with producing(cluster, transactional_id=ID) as producer:
            cluster.on(EndTxnRequest, late(500))
            txn = await producer.transaction(consumer=source).begin()
            await txn.send(TOPIC, b"1")
            committing = begun(txn.commit())
            await asyncio.sleep(0.1)
            with pytest.raises(TransactionOpen, match="being committed"):
                await producer.transaction(consumer=source).begin()
            await committing
    assert source.heard == ["opened", "committed"]


@pytest.mark.parametrize(("after_s", "heard"), [(0.1, "aborted"), (0.7, "unsettled")])
async def test_a_commit_that_is_cancelled_is_an_abort_or_not_known_yet(after_s: float, heard: str) -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            cluster.on(ProduceRequest, late(500))
            cluster.on(EndTxnRequest, late(500))
            txn = await producer.transaction(consumer=source).begin()
            await txn.send(TOPIC, b"1")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(txn.commit(), after_s)
            assert source.heard == ["opened", heard]
            async with producer.transaction(consumer=source) as following:
                await following.send(TOPIC, b"2")
        assert coordinator.visible(TOPIC) == ([b"2"] if heard == "aborted" else [b"1", b"2"])


async def test_a_fatal_error_takes_back_what_was_handed_out() -> None:
    source = Source()
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            coordinator.refuses(EndTxnRequest, ErrorCode.PRODUCER_FENCED)
            with pytest.raises(ProducerFenced):
                async with producer.transaction(consumer=source) as txn:
                    await txn.send(TOPIC, b"1")
    assert source.heard == ["opened", "aborted"]


# ------------------------------------------------------------------------------------------------------ what is refused
async def test_a_commit_of_the_consumers_own_is_waited_for_before_it_begins() -> None:
    source = Source()
    source.late = RequestTimedOut("OffsetCommit", "the coordinator of billing", 5_000)
    with coordinated() as (cluster, coordinator):
        async with producing(cluster, transactional_id=ID) as producer:
            txn = producer.transaction(consumer=source)
            with pytest.raises(RequestTimedOut, match="OffsetCommit"):
                await txn.begin()
            source.late = None
            async with txn:
                await txn.send(TOPIC, b"1")
        assert coordinator.visible(TOPIC) == [b"1"]


async def test_what_is_no_consumer_is_refused_by_name() -> None:
    with coordinated() as (cluster, _):
        async with producing(cluster, transactional_id=ID) as producer:
            with pytest.raises(TypeError, match="consumer must be a consumer of odradek"):
                producer.transaction(consumer=object())  # type: ignore[arg-type]  # pyright: ignore
