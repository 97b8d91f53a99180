"""Requests that wait while their rights are taken away: refused before their answer leaves, whatever they have waited
for."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, Resource, ResourceType, of_group, of_topic
from odradek.broker.api import delete_records, txn_offset_commit
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.reauthorization import REPEATABLE, REPEATED_MAX
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.replicas import Replicas
from odradek.broker.served import SERVED
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.broker.api.fetching import BY_ID, BY_NAME, INITIAL, request, wanted, with_records
from tests.broker.groups import GROUP, Member, commit, generation, running_groups
from tests.broker.support import append, ask, batch, call, make_topic, running_broker
from tests.broker.transactions import Denying

READ_GROUP = (Operation.READ, of_group(GROUP))
BEAT = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="a")


class Gate:
    """A handler in place of another: it asks for rights, waits until it is let go, and answers or fails."""

    def __init__(self, *needs: tuple[Operation, Resource], answer: Any = None, error: KafkaError | None = None) -> None:
        self.needs = needs
        self.answer = answer
        self.error = error
        self.handled: int = 0
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def handle(self, context: Context, call: Call, request: Any) -> Any:
        del request
        self.handled += 1
        for operation, resource in self.needs:
            context.require(call, operation, resource)
        self.entered.set()
        await self.opened.wait()
        if self.error is not None:
            raise self.error
        return self.answer


@asynccontextmanager
async def gated(sent: Request[Any], gate: Gate) -> AsyncGenerator[tuple[Context, Denying, "asyncio.Task[Any]"]]:
    """A request that has got as far as the gate."""
    access = Denying()
    async with running_broker(access=access) as context:
        api = context.served[sent.api_key]
        context.served = {**context.served, sent.api_key: replace(api, handle=gate.handle)}
        task = asyncio.ensure_future(ask(context, sent, api.served[1]))
        await asyncio.wait_for(gate.entered.wait(), 5)
        yield context, access, task


async def through(gate: Gate, task: "asyncio.Task[Any]") -> Any:
    gate.opened.set()
    return await asyncio.wait_for(task, 5)


# -- in general -----------------------------------------------------------------------------------------------------


async def test_what_was_granted_and_is_not_any_more_refuses_the_answer() -> None:
    gate = Gate(READ_GROUP, answer=HeartbeatResponse())
    async with gated(BEAT, gate) as (context, access, task):
        access.revoke(READ_GROUP)
        answer = await through(gate, task)
        assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert context.metrics.apis["Heartbeat"].errors == {ErrorCode.GROUP_AUTHORIZATION_FAILED: 1}
        assert gate.handled == 1, "what a request does it does once"


async def test_other_changes_of_rights_concern_nobody() -> None:
    gate = Gate(READ_GROUP, answer=HeartbeatResponse())
    async with gated(BEAT, gate) as (_, access, task):
        access.revoke((Operation.READ, of_group("another")), (Operation.DELETE, of_group(GROUP)))
        assert (await through(gate, task)).error_code == ErrorCode.NONE


async def test_nor_does_an_error_leave_that_the_caller_may_not_learn_of_any_more() -> None:
    gate = Gate(READ_GROUP, error=KafkaError(ErrorCode.NOT_COORDINATOR))
    async with gated(BEAT, gate) as (_, access, task):
        access.revoke(READ_GROUP)
        assert (await through(gate, task)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_what_changes_nothing_is_handled_again_by_the_rights_of_now() -> None:
    class Listing(Gate):
        async def handle(self, context: Context, call: Call, request: Any) -> Any:
            self.handled += 1
            groups: list[ListedGroup] = []
            if context.permits(call, Operation.DESCRIBE, of_group(GROUP)):
                groups.append(ListedGroup(group_id=GROUP, protocol_type="consumer"))
            self.entered.set()
            await self.opened.wait()
            return ListGroupsResponse(groups=groups)

    gate = Listing()
    async with gated(ListGroupsRequest(), gate) as (context, access, task):
        access.revoke((Operation.DESCRIBE, of_group(GROUP)))
        answer = await through(gate, task)
        assert (answer.error_code, answer.groups, gate.handled) == (ErrorCode.NONE, [], 2)
        assert context.metrics.apis["ListGroups"].errors == {}


async def test_it_is_handled_again_only_so_often() -> None:
    class Restless(Gate):
        """Each time it is allowed at first, and refused in the end."""

        async def handle(self, context: Context, call: Call, request: Any) -> Any:
            del request
            self.handled += 1
            assert isinstance(context.access, Denying)
            context.access.denied = ()
            context.access.revoke()
            context.require(call, Operation.DESCRIBE, CLUSTER)
            context.access.revoke((Operation.DESCRIBE, CLUSTER))
            self.entered.set()
            return ListGroupsResponse(groups=[])

    gate = Restless()
    async with gated(ListGroupsRequest(), gate) as (_, _access, task):
        answer = await through(gate, task)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert gate.handled == 1 + REPEATED_MAX


def test_what_is_handled_again_is_served_and_only_reads() -> None:
    names = {api.name for api in SERVED}
    assert names >= REPEATABLE
    assert all(name.startswith(("Describe", "List")) or name in OTHER_READS for name in REPEATABLE)


OTHER_READS = {"ConsumerGroupDescribe", "FindCoordinator", "Metadata", "OffsetFetch", "OffsetForLeaderEpoch"}


async def test_each_question_is_asked_once_in_a_request() -> None:
    """So that a refusal stands once in the log, however many partitions it concerns."""

    class Counting(Denying):
        asked = 0

        def permits(self, *args: Any, **kwargs: Any) -> bool:
            self.asked += 1
            return super().permits(*args, **kwargs)

    access = Counting((Operation.WRITE, of_topic("orders")))
    async with running_broker(access=access) as context:
        await make_topic(context, "orders", 3)
        data = [PartitionProduceData(index=index, records=batch(b"a")) for index in range(3)]
        sent = ProduceRequest(
            acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="orders", partition_data=data)]
        )
        [topic] = (await ask(context, sent, 9)).responses
        assert [each.error_code for each in topic.partition_responses] == 3 * [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        assert access.asked == 1


async def test_a_right_to_any_topic_is_asked_again_too() -> None:
    access = Denying((Operation.IDEMPOTENT_WRITE, CLUSTER))
    async with running_broker(access=access) as context:
        sent = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        assert (await ask(context, sent, 5)).error_code == ErrorCode.NONE
        new_producer_id = context.transactions.new_producer_id

        async def revoking() -> int:
            access.denied_kinds = ((Operation.WRITE, ResourceType.TOPIC),)
            access.revoke()
            return await new_producer_id()

        context.transactions.new_producer_id = revoking  # type: ignore[method-assign]
        answer = await ask(context, sent, 5)
        assert (answer.error_code, answer.producer_id) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, -1)


# -- what waits -----------------------------------------------------------------------------------------------------


async def followed(context: Context, *topics: str) -> list[Partition]:
    """Of each topic the partition 0, which has a follower, broker 1, in sync."""
    partitions: list[Partition] = []
    for topic in topics:
        await make_topic(context, topic)
        partition = context.partitions.leader(topic, 0)
        partition.become_leader(1, Replicas(0, (0, 1), (0, 1)))
        partitions.append(partition)
    return partitions


def follow(*partitions: Partition) -> None:
    """Broker 1 has everything."""
    for partition in partitions:
        end = partition.log.log_end_offset
        partition.replicas.followers[1].fetched(end, partition.host.environment.monotonic_ms(), end)
        partition.acknowledgements.update()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("version", [3, 13])
async def test_a_produce_that_waits_for_replicas(version: int) -> None:
    access = Denying()
    async with running_broker(access=access) as context:
        partitions = await followed(context, "orders", "bills")
        ids = context.metadata.image.topics
        data = [PartitionProduceData(index=0, records=batch(b"a"))]
        topics = [
            TopicProduceData(name=name, topic_id=ids[name].topic_id, partition_data=data)
            for name in ("orders", "bills")
        ]
        sent = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics)
        task = asyncio.ensure_future(ask(context, sent, version))
        await turns()
        access.revoke((Operation.WRITE, of_topic("orders")))
        follow(*partitions)
        answers = [each.partition_responses[0] for each in (await asyncio.wait_for(task, 5)).responses]
        assert [(each.error_code, each.base_offset) for each in answers] == [
            (ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1),
            (ErrorCode.NONE, 0),
        ]


@pytest.mark.parametrize("comes", [True, False])
@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
async def test_a_fetch_that_waits_for_records(version: int, comes: bool) -> None:
    access = Denying()
    async with running_broker(access=access) as context:
        partition = await with_records(context)
        end, topic_id = partition.log.log_end_offset, context.metadata.image.topics["orders"].topic_id
        sent = request(wanted(offset=end), topic_id=topic_id, max_wait_ms=10_000 if comes else 30)
        task = asyncio.ensure_future(ask(context, sent, version))
        await turns()
        access.revoke((Operation.READ, of_topic("orders")))
        if comes:
            append(partition, batch(b"secret"))
        response = await asyncio.wait_for(task, 5)
        [data] = response.responses[0].partitions
        assert (response.error_code, data.error_code) == (ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        assert not data.records


async def test_a_session_that_was_opened_before() -> None:
    access = Denying()
    async with running_broker(access=access) as context:
        await with_records(context)
        opened = await ask(context, request(wanted(), session=(0, INITIAL)), BY_NAME)
        assert opened.session_id > 0
        access.revoke((Operation.READ, of_topic("orders")))
        response = await ask(context, request(session=(opened.session_id, 1)), BY_NAME)
        [data] = response.responses[0].partitions
        assert (data.error_code, bool(data.records)) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False)


async def test_a_join_that_waits_for_others() -> None:
    access = Denying()
    async with running_groups(access=access) as context:
        alice, bob = Member(context, rebalance_timeout_ms=60), Member(context, rebalance_timeout_ms=60)
        await generation(alice)
        task = asyncio.ensure_future(bob.join())
        await turns()
        assert not task.done(), "alice has to join again, and does not"
        access.revoke(READ_GROUP)
        assert (await asyncio.wait_for(task, 5)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert await alice.heartbeat() is ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_a_commit_that_waits_for_the_log() -> None:
    access = Denying()
    async with running_groups(topics=("orders", "bills"), access=access) as context:
        task = asyncio.ensure_future(commit(context, {("orders", 0): 1, ("bills", 0): 1}))
        await asyncio.sleep(0)
        access.revoke((Operation.READ, of_topic("orders")))
        assert await asyncio.wait_for(task, 5) == {
            ("orders", 0): ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ("bills", 0): ErrorCode.NONE,
        }


async def test_deletions_and_commits_in_transactions_name_the_topics_that_are_refused() -> None:
    error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    told = [("orders", ErrorCode.TOPIC_AUTHORIZATION_FAILED), ("bills", ErrorCode.NONE)]
    async with running_broker() as context:
        committed = TxnOffsetCommitResponse(
            topics=[
                TxnOffsetCommitResponseTopic(
                    name=name, partitions=[TxnOffsetCommitResponsePartition(partition_index=0, error_code=0)]
                )
                for name, _ in told
            ]
        )
        txn_offset_commit.refuse(context, call(version=5), committed, {"orders"}, error)
        assert [(each.name, each.partitions[0].error_code) for each in committed.topics] == told
        deleted = DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=name, partitions=[DeleteRecordsPartitionResult(partition_index=0, low_watermark=3)]
                )
                for name, _ in told
            ]
        )
        delete_records.refuse(context, call(version=2), deleted, {"orders"}, error)
        assert [(each.name, each.partitions[0].error_code) for each in deleted.topics] == told
        assert [each.partitions[0].low_watermark for each in deleted.topics] == [-1, 3]
