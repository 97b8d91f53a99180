"""Transactional producers for the broker's tests, by raw protocol: each asks as a client does, at any version.

    async with running_transactions() as context:
        producer = Producer(context)                 # of transaction version 2; `is_new=False`: of version 1
        await producer.init()
        await producer.send(b"a", index=1)           # before: `await producer.add(("orders", 1))` where it is old
        await producer.end(commit=True)
        assert await committed(context, 1) == [b"a"]

`committed` reads as a consumer with isolation.level=read_committed does, `stable_end` is where it has to stop.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from odradek.broker.access.access import Access, Asker
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import Resource, ResourceType
from odradek.broker.cluster.keys import partition_key
from odradek.broker.cluster.store import MetadataStore, Txn
from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.disk.disk import Disk
from odradek.broker.handling.context import Context
from odradek.broker.handling.coordinator_topics import OF_GROUPS, OF_TRANSACTIONS, ensure_coordinator_topic
from odradek.broker.log.markers import read_marker
from odradek.broker.txn.machine import TransactionMachine
from odradek.broker.txn.requests import AddPartitions, InitProducerId
from odradek.broker.txn.stored import stored_record
from odradek.broker.txn.transaction import EPOCH_MAX, ProducerIdentity
from odradek.protocol.batches.batch import iterate_batches
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record, iterate_records
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.broker.api.fetching import fetched, request, wanted
from tests.broker.api.producing import request as produce_request
from tests.broker.groups import GROUP, loaded
from tests.broker.groups import SETTINGS as GROUP_SETTINGS
from tests.broker.support import NO_SETTINGS, ask, id_of, make_topic, running_broker, stored_partition
from tests.client.virtual_time import VirtualEnvironment

PAYMENTS = "payments"
SETTINGS = {
    **GROUP_SETTINGS,
    "transaction.state.log.num.partitions": "2",
    "broker.session.timeout.ms": "3600000",  # time that is passed over is no pause of the process
}
NO_ID = -1
LATEST = -1
READ_COMMITTED = 1
Place = tuple[str, int]


@asynccontextmanager
async def running_transactions(
    settings: Mapping[str, str] = NO_SETTINGS,
    *,
    access: Access | None = None,
    disk: Disk | None = None,
    store: MetadataStore | None = None,
) -> AsyncGenerator[Context]:
    """A broker that coordinates transactions and groups, with "orders" of three partitions."""
    environment = VirtualEnvironment(asyncio.get_running_loop())  # time-outs go by the wall clock
    async with running_broker(
        {**SETTINGS, **settings}, access=access, disk=disk, store=store, environment=environment
    ) as context:
        if "orders" not in context.metadata.image.topics:
            await make_topic(context, "orders", 3)
        await ensure_coordinator_topic(context, OF_GROUPS)
        await ensure_coordinator_topic(context, OF_TRANSACTIONS)
        await all_loaded(context)
        yield context


async def all_loaded(context: Context) -> None:
    """When no shard of either kind is being loaded any more."""
    await loaded(context)
    async with asyncio.timeout(5):
        while any(each.state is ShardState.LOADING for each in context.transactions.shards.all):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)


async def make_transaction(context: Context, transactional_id: str, *places: Place) -> ProducerIdentity:
    """Begins a transaction that includes these, behind the handlers' back."""
    await ensure_coordinator_topic(context, OF_TRANSACTIONS)
    await all_loaded(context)
    shard = context.transactions.shards.of(transactional_id)
    init = InitProducerId(transactional_id, 60_000, None, 0)

    def initializing(machine: TransactionMachine, waiting: Waiting[ProducerIdentity], now: Now) -> None:
        machine.init_producer_id(init, waiting, now)

    producer = await shard.ask(initializing)
    add = AddPartitions(transactional_id, producer, frozenset(places), 0)

    def adding(machine: TransactionMachine, waiting: Waiting[None], now: Now) -> None:
        machine.add_partitions(add, waiting, now)

    await shard.ask(adding)
    return producer


class Denying(Access):
    """Allows everything but these."""

    def __init__(self, *denied: tuple[Operation, Resource]) -> None:
        self.denied = denied
        self.denied_kinds: tuple[tuple[Operation, ResourceType], ...] = ()
        self.is_enforced = True

    def revoke(self, *denied: tuple[Operation, Resource]) -> None:
        """Takes this away, as an operator does while requests wait."""
        self.denied += denied
        self.generation += 1

    def permits(self, asker: Asker, operation: Operation, resource: Resource, *, logs_refusal: bool = True) -> bool:
        del asker, logs_refusal
        return (operation, resource) not in self.denied

    def permits_any(self, asker: Asker, operation: Operation, kind: ResourceType) -> bool:
        del asker
        return (operation, kind) not in self.denied_kinds


class Producer:
    """One client with a transactional id."""

    def __init__(self, context: Context, transactional_id: str = PAYMENTS, *, is_new: bool = True) -> None:
        self.context = context
        self.transactional_id = transactional_id
        self.is_new = is_new
        self.producer_id = NO_ID
        self.epoch = NO_ID
        self.sequences: dict[Place, int] = {}

    async def ask_init(
        self,
        *,
        version: int = 5,
        timeout_ms: int = 60_000,
        brings: bool = False,
        is_two_phase: bool = False,
        keeps: bool = False,
    ) -> InitProducerIdResponse:
        """`brings`: with the id and epoch that it has (KIP-360). From version 6 on: `is_two_phase`, and it `keeps` what
        is under way (KIP-939)."""
        init = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=self.producer_id if brings else NO_ID,
            producer_epoch=self.epoch if brings else NO_ID,
            enable2_pc=is_two_phase,
            keep_prepared_txn=keeps,
        )
        return await ask(self.context, init, version)

    async def init_two_phase(self, *, keeps: bool = False) -> InitProducerIdResponse:
        answer = await self.ask_init(version=6, is_two_phase=True, keeps=keeps)
        assert answer.error_code == ErrorCode.NONE
        self._goes_on_with(answer.producer_id, answer.producer_epoch)
        return answer

    async def init(self, *, version: int = 5, timeout_ms: int = 60_000, brings: bool = False) -> ErrorCode:
        answer = await self.ask_init(version=version, timeout_ms=timeout_ms, brings=brings)
        if not answer.error_code:
            self._goes_on_with(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)

    def _goes_on_with(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch, self.sequences = producer_id, epoch, {}

    async def add(self, *places: Place, version: int = 3) -> dict[Place, ErrorCode]:
        add = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index]) for topic, index in places],
        )
        answer = await ask(self.context, add, version)
        return {
            (topic.name, each.partition_index): ErrorCode(each.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        }

    async def add_offsets(self, group_id: str = GROUP, *, version: int = 3) -> ErrorCode:
        add = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group_id,
        )
        return ErrorCode((await ask(self.context, add, version)).error_code)

    def batch(self, *values: bytes, place: Place = ("orders", 0)) -> bytes:
        """The next one of this partition."""
        now_ms = self.context.environment.now_ms()
        records = [Record(delta, now_ms, None, value, ()) for delta, value in enumerate(values)]
        sequence = self.sequences.get(place, 0)
        self.sequences[place] = sequence + len(values)
        return build_batch(
            records,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )

    async def send(
        self, *values: bytes, topic: str = "orders", index: int = 0, version: int | None = None, acks: int = -1
    ) -> ErrorCode:
        version = (12 if self.is_new else 11) if version is None else version
        batch = self.batch(*values, place=(topic, index))
        topic_id = id_of(self.context, topic)
        sent = produce_request(
            (index, batch), topic=topic, topic_id=topic_id, acks=acks, transactional_id=self.transactional_id
        )
        [answer] = (await ask(self.context, sent, version)).responses
        return ErrorCode(answer.partition_responses[0].error_code)

    async def commit_offsets(
        self,
        offsets: Mapping[Place, int],
        group_id: str = GROUP,
        *,
        version: int | None = None,
        member_id: str = "",
        generation: int = -1,
    ) -> dict[Place, ErrorCode]:
        version = (5 if self.is_new else 4) if version is None else version
        commit = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            member_id=member_id,
            generation_id=generation,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    topic_id=id_of(self.context, topic),
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offset, committed_metadata=""
                        )
                    ],
                )
                for (topic, index), offset in offsets.items()
            ],
        )
        names = {id_of(self.context, topic): topic for topic, _ in offsets}
        answer = await ask(self.context, commit, version)
        return {
            (topic.name or names[topic.topic_id], each.partition_index): ErrorCode(each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        }

    async def ask_end(self, *, commit: bool, version: int | None = None) -> EndTxnResponse:
        end = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        return await ask(self.context, end, (5 if self.is_new else 4) if version is None else version)

    async def end(self, *, commit: bool, version: int | None = None) -> ErrorCode:
        answer = await self.ask_end(commit=commit, version=version)
        if not answer.error_code and answer.producer_id != NO_ID:
            self._goes_on_with(answer.producer_id, answer.producer_epoch)
        return ErrorCode(answer.error_code)


async def described(context: Context, transactional_id: str = PAYMENTS) -> TransactionState:
    [state] = (
        await ask(context, DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0)
    ).transaction_states
    return state


async def state_of(context: Context, transactional_id: str = PAYMENTS) -> str:
    return (await described(context, transactional_id)).transaction_state


async def completed(context: Context, transactional_id: str = PAYMENTS) -> str:
    """The state of the transaction once all its partitions know how it ends."""
    async with asyncio.timeout(30):
        while not (state := await state_of(context, transactional_id)).startswith("Complete"):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    return state


async def committed(context: Context, index: int = 0, topic: str = "orders") -> list[bytes]:
    """What a consumer with isolation.level=read_committed hands out: a consumer drops what was aborted itself."""
    sent = request(wanted(index), topic=topic, isolation_level=READ_COMMITTED)
    [data] = await fetched(context, sent)
    assert data.error_code == ErrorCode.NONE
    aborted = sorted((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
    values: list[bytes] = []
    dropped: set[int] = set()
    records = memoryview(data.records or b"")
    for position, header in iterate_batches(records):
        while aborted and aborted[0][0] <= header.base_offset:
            dropped.add(aborted.pop(0)[1])
        batch = records[position : position + header.size_bytes]
        if header.is_control:
            if (marker := read_marker(batch)) is not None and marker.is_abort:
                dropped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropped):
            values += [record.value or b"" for record in iterate_records(batch)]
    return values


async def stable_end(context: Context, index: int = 0, topic: str = "orders", *, version: int = 6) -> int:
    """What ListOffsets answers a reader of read_committed for the latest offset."""
    partition = ListOffsetsPartition(partition_index=index, timestamp=LATEST)
    topics = [ListOffsetsTopic(name=topic, partitions=[partition])]
    asked = ListOffsetsRequest(replica_id=-1, isolation_level=READ_COMMITTED, topics=topics)
    [answer] = (await ask(context, asked, version)).topics
    assert answer.partitions[0].error_code == ErrorCode.NONE
    return answer.partitions[0].offset


async def markers(context: Context, index: int = 0, topic: str = "orders") -> list[tuple[int, int, bool]]:
    """Of the markers in a partition: producer id, epoch and whether it aborts."""
    [data] = await fetched(context, request(wanted(index), topic=topic))
    records = memoryview(data.records or b"")
    found: list[tuple[int, int, bool]] = []
    for position, header in iterate_batches(records):
        if header.is_control:
            marker = read_marker(records[position : position + header.size_bytes])
            assert marker is not None
            found.append((header.producer_id, header.producer_epoch, marker.is_abort))
    return found


def machine(context: Context, transactional_id: str = PAYMENTS) -> TransactionMachine:
    """That of the id's shard."""
    return context.transactions.shards.of(transactional_id).machine


async def lead(context: Context, topic: str, index: int, leader: int) -> None:
    """That broker leads the partition from now on."""
    store = context.metadata.store
    state = await stored_partition(store, topic, index)
    replicas = (leader, *state.replicas)
    led = replace(state, replicas=replicas, isr=replicas, leader=leader, leader_epoch=state.leader_epoch + 1)
    revision = await store.commit(Txn(put={partition_key(topic, index): led.encode()}))
    await asyncio.wait_for(context.metadata.applied(revision), 5)


def use_up_epochs(context: Context, transactional_id: str = PAYMENTS) -> None:
    """The id has the last epoch that its producer may have, as if thousands of transactions had been."""
    of = machine(context, transactional_id)
    transaction = dict(of.transactions)[transactional_id]._replace(epoch=EPOCH_MAX)
    of.replay(*stored_record(transactional_id, transaction, 1), NO_ID)
