"""Rows of the matrix of rights: records, offsets of logs, topics as clients see them, and transactions."""

from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.describe_producers import TopicRequest as ProducersOf
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.compat.questions import batch
from tests.compat.rights_questions import asks
from tests.compat.rights_world import GROUP_ID, MADE, NEW, OPEN, STARTED, TOPIC_NAME, World

UNKNOWN_ID = bytes(range(16))
NOBODYS_PRODUCER = 999_999
OF_BROKERS_SINCE = 15
"""Fetch."""
LATEST = -1
OFFSETS = "__consumer_offsets"


# -- Produce --------------------------------------------------------------------------------------------------------
def produce(world: World, *, transactional_id: str | None = None, is_transactional: bool = False) -> ProduceRequest:
    """To a topic that is there, and to one that is not."""
    records = batch(
        producer_id=NOBODYS_PRODUCER if is_transactional else -1,
        epoch=0 if is_transactional else -1,
        sequence=0 if is_transactional else -1,
        is_transactional=is_transactional,
    )
    data = [PartitionProduceData(index=0, records=records)]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=1,
        timeout_ms=5000,
        topic_data=[
            TopicProduceData(name=TOPIC_NAME, topic_id=world.ids[TOPIC_NAME], partition_data=data),
            TopicProduceData(name=NEW, topic_id=UNKNOWN_ID, partition_data=data),
        ],
    )


asks("Produce", (3, 12, 13), produce)
asks("Produce", (12, 13), lambda world: produce(world, transactional_id=OPEN), what="with an id that no batch needs")
asks("Produce", (3, 13), lambda world: produce(world, is_transactional=True), what="of a transaction without an id")
asks(
    "Produce",
    (3, 12, 13),
    lambda world: produce(world, transactional_id=OPEN, is_transactional=True),
    what="of a transaction",
)


# -- Fetch and offsets ----------------------------------------------------------------------------------------------
def fetch(world: World, *, replica_id: int = -1, has_state: bool = False, epoch: int = -1) -> FetchRequest:
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    return FetchRequest(
        replica_id=-1 if has_state else replica_id,
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=1) if has_state else None,
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=epoch,
        topics=[
            FetchTopic(topic=TOPIC_NAME, topic_id=world.ids[TOPIC_NAME], partitions=partitions),
            FetchTopic(topic=NEW, topic_id=UNKNOWN_ID, partitions=partitions),
        ],
    )


asks("Fetch", (4, 12, 13, 18), fetch)
asks("Fetch", (7, 13), lambda world: fetch(world, epoch=0), what="in a new session")
asks("Fetch", (4, 12, 13), lambda world: fetch(world, replica_id=1), what="as a replica")
asks("Fetch", (15, 18), lambda world: fetch(world, replica_id=1, has_state=True), what="as a replica")


def list_offsets(replica_id: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=0, timestamp=LATEST)]
    return ListOffsetsRequest(
        replica_id=replica_id,
        topics=[ListOffsetsTopic(name=name, partitions=partitions) for name in (TOPIC_NAME, NEW)],
    )


asks("ListOffsets", (1, 6, 11), lambda _: list_offsets(-1))
asks("ListOffsets", (1, 11), lambda _: list_offsets(1), what="as a replica")


def end_of_epoch(replica_id: int) -> OffsetForLeaderEpochRequest:
    partitions = [OffsetForLeaderPartition(partition=0, leader_epoch=0)]
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=name, partitions=partitions) for name in (TOPIC_NAME, NEW)]
    )
    request.replica_id = replica_id
    return request


asks("OffsetForLeaderEpoch", (2, 3, 4), lambda _: end_of_epoch(-2))
asks("OffsetForLeaderEpoch", (3, 4), lambda _: end_of_epoch(1), what="as a replica")


def delete_records(world: World) -> DeleteRecordsRequest:
    del world
    partitions = [DeleteRecordsPartition(partition_index=0, offset=0)]
    topics = [DeleteRecordsTopic(name=name, partitions=partitions) for name in (TOPIC_NAME, NEW)]
    return DeleteRecordsRequest(topics=topics, timeout_ms=5000)


asks("DeleteRecords", (0, 2), delete_records)


# -- topics ---------------------------------------------------------------------------------------------------------
def named(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


def by_id(*ids: bytes) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=None, topic_id=topic_id) for topic_id in ids]


def metadata(
    topics: list[MetadataRequestTopic] | None, *, creates: bool = False, tells: bool = False
) -> MetadataRequest:
    """`tells`: what may be done with them."""
    return MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=creates,
        include_topic_authorized_operations=tells,
        include_cluster_authorized_operations=tells,
    )


asks("Metadata", (0,), lambda _: metadata([]), what="all")
asks("Metadata", (1, 9), lambda _: metadata(None), what="all")
asks("Metadata", (8, 10, 11, 13), lambda _: metadata(None, tells=True), what="all, with operations")
asks("Metadata", (4, 9), lambda _: metadata(named(TOPIC_NAME, NEW)), what="by name")
asks("Metadata", (8, 10, 13), lambda _: metadata(named(TOPIC_NAME, NEW), tells=True), what="by name, with operations")
asks(
    "Metadata",
    (12, 13),
    lambda world: metadata(by_id(world.ids[TOPIC_NAME], UNKNOWN_ID), tells=True),
    what="by id",
)
asks(
    "Metadata",
    (0, 4, 13),
    lambda _: metadata(named(MADE), creates=True),
    what="of a topic that is made",
    renew=lambda world, answer: world.unmake(MADE, answer),
)


def pages(*names: str, limit: int = 2000) -> DescribeTopicPartitionsRequest:
    topics = [TopicRequest(name=name) for name in names]
    return DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit)


asks("DescribeTopicPartitions", (0,), lambda _: pages(), what="all")
asks("DescribeTopicPartitions", (0,), lambda _: pages(limit=1), what="a page of all")
asks("DescribeTopicPartitions", (0,), lambda _: pages(TOPIC_NAME, NEW), what="by name")


# -- transactions ---------------------------------------------------------------------------------------------------
def init(transactional_id: str | None) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)


asks("InitProducerId", (0, 5), lambda _: init(None), what="idempotent")
asks("InitProducerId", (0, 5), lambda _: init(STARTED), what="transactional")


def add_partitions(world: World) -> AddPartitionsToTxnRequest:
    del world
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=OPEN,
        v3_and_below_producer_id=NOBODYS_PRODUCER,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in (TOPIC_NAME, NEW, OFFSETS)],
    )


def verify_partitions(world: World) -> AddPartitionsToTxnRequest:
    """As a broker does."""
    del world
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=OPEN,
        producer_id=NOBODYS_PRODUCER,
        producer_epoch=0,
        verify_only=True,
        topics=[AddPartitionsToTxnTopic(name=TOPIC_NAME, partitions=[0])],
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


asks("AddPartitionsToTxn", (0, 3), add_partitions)
asks("AddPartitionsToTxn", (4, 5), verify_partitions)
asks(
    "AddOffsetsToTxn",
    (0, 4),
    lambda _: AddOffsetsToTxnRequest(
        transactional_id=OPEN, producer_id=NOBODYS_PRODUCER, producer_epoch=0, group_id=GROUP_ID
    ),
)
asks(
    "EndTxn",
    (0, 5),
    lambda _: EndTxnRequest(transactional_id=OPEN, producer_id=NOBODYS_PRODUCER, producer_epoch=0, committed=True),
)


def commit_in_transaction(world: World) -> TxnOffsetCommitRequest:
    del world
    offset = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    return TxnOffsetCommitRequest(
        transactional_id=OPEN,
        group_id=GROUP_ID,
        producer_id=NOBODYS_PRODUCER,
        producer_epoch=0,
        topics=[
            TxnOffsetCommitRequestTopic(name=name, topic_id=ZERO_UUID, partitions=[offset])
            for name in (TOPIC_NAME, NEW)
        ],
    )


asks("TxnOffsetCommit", (0, 3, 5), commit_in_transaction)


def markers(world: World) -> WriteTxnMarkersRequest:
    del world
    marker = WritableTxnMarker(
        producer_id=7,
        producer_epoch=0,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=name, partition_indexes=[0]) for name in (TOPIC_NAME, NEW)],
        coordinator_epoch=0,
    )
    return WriteTxnMarkersRequest(markers=[marker])


asks("WriteTxnMarkers", (1, 2), markers)
asks(
    "DescribeProducers",
    (0,),
    lambda _: DescribeProducersRequest(
        topics=[ProducersOf(name=name, partition_indexes=[0]) for name in (TOPIC_NAME, NEW, "no topic")]
    ),
)
asks("DescribeTransactions", (0,), lambda _: DescribeTransactionsRequest(transactional_ids=[OPEN, "unknown"]))
asks("ListTransactions", (0, 2), lambda _: ListTransactionsRequest(state_filters=["Ongoing"]))
