"""What handlers hide from, and refuse to, who may less than all: the shapes and orders of Apache Kafka's KafkaApis and
ControllerApis, API by API. Against Apache Kafka itself: tests/compat/test_rights_like_kafka.py."""

import logging

import pytest

from odradek.broker.access.operations import NOT_ASKED, Operation, bit_field
from odradek.broker.access.resource import (
    CLUSTER,
    Resource,
    ResourceType,
    of_group,
    of_topic,
    of_transactional_id,
)
from odradek.broker.handling.context import Caller, Context
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.create_topics import CreatableTopic, CreatableTopicResult, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest
from odradek.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from odradek.protocol.messages.describe_topic_partitions import TopicRequest as PagedTopic
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.messages.sync_group import SyncGroupRequest
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.api.producing import idempotent
from tests.broker.groups import GROUP, Member, running_groups
from tests.broker.support import ask, batch, call, make_topic, running_broker
from tests.broker.transactions import PAYMENTS, Denying, running_transactions

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
CREATING = {"auto.create.topics.enable": "true"}
NO_ID = bytes(range(16))
DESCRIBE, READ, WRITE, CREATE, DELETE = (
    Operation.DESCRIBE,
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
)


def of(name: str, operation: Operation) -> tuple[Operation, Resource]:
    return operation, of_topic(name)


# -- Metadata -------------------------------------------------------------------------------------------------------


async def metadata(context: Context, *topics: MetadataRequestTopic, version: int = 12) -> list[MetadataResponseTopic]:
    asked = MetadataRequest(
        topics=list(topics) or None, allow_auto_topic_creation=True, include_topic_authorized_operations=version >= 8
    )
    return (await ask(context, asked, version)).topics


async def test_metadata_hides_what_may_not_be_described() -> None:
    async with running_broker(access=Denying(of("secret", DESCRIBE))) as context:
        await make_topic(context, "open")
        topic_id = await make_topic(context, "secret")
        assert [each.name for each in await metadata(context)] == ["open"]
        [by_name] = await metadata(context, MetadataRequestTopic(name="secret"))
        [by_id] = await metadata(context, MetadataRequestTopic(name=None, topic_id=topic_id))
    for each, name, of_id in ((by_name, "secret", ZERO_UUID), (by_id, None, topic_id)):
        assert (each.error_code, each.name, each.topic_id, each.partitions) == (DENIED, name, of_id, [])
        assert each.topic_authorized_operations == NOT_ASKED


async def test_metadata_creates_nothing_for_who_may_not_describe_it() -> None:
    """The answer would be the same, and the topic would be there."""
    async with running_broker(CREATING, access=Denying(of("secret", DESCRIBE))) as context:
        [topic] = await metadata(context, MetadataRequestTopic(name="secret"))
        assert (topic.error_code, dict(context.metadata.image.topics)) == (DENIED, {})


async def test_metadata_creates_nothing_for_who_may_not_create_it() -> None:
    access = Denying(of("new", CREATE), (CREATE, CLUSTER))
    async with running_broker(CREATING, access=access) as context:
        [topic] = await metadata(context, MetadataRequestTopic(name="new"))
        assert (topic.error_code, topic.topic_authorized_operations) == (DENIED, NOT_ASKED)
        access.denied = (of("new", CREATE),)
        [topic] = await metadata(context, MetadataRequestTopic(name="new"))
        assert topic.error_code == ErrorCode.NONE


async def test_authorized_operations_are_those_of_the_caller() -> None:
    access = Denying(of("open", WRITE), (Operation.ALTER, CLUSTER))
    async with running_broker(access=access) as context:
        await make_topic(context, "open")
        [topic] = await metadata(context, MetadataRequestTopic(name="open"))
        assert topic.topic_authorized_operations == 3576 - bit_field(WRITE)
        with_cluster = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
        of_cluster = DescribeClusterRequest(include_cluster_authorized_operations=True)
        permitted = 8096 - bit_field(Operation.ALTER)
        for denied, told in (((Operation.ALTER, CLUSTER), permitted), ((DESCRIBE, CLUSTER), 0)):
            access.denied = (denied,)
            assert (await ask(context, with_cluster, 10)).cluster_authorized_operations == told
            assert (await ask(context, of_cluster, 2)).cluster_authorized_operations == told


# -- topics ---------------------------------------------------------------------------------------------------------


async def paged(context: Context, *names: str, limit: int = 2000) -> DescribeTopicPartitionsResponse:
    topics = [PagedTopic(name=name) for name in names]
    return await ask(context, DescribeTopicPartitionsRequest(topics=topics, response_partition_limit=limit), 0)


async def test_a_page_begins_at_no_topic_that_may_not_be_seen() -> None:
    async with running_broker(access=Denying(of("b", DESCRIBE))) as context:
        for name in ("a", "b", "c"):
            await make_topic(context, name)
        page = await paged(context, limit=1)
        assert [each.name for each in page.topics] == ["a"]
        assert page.next_cursor is not None
        assert page.next_cursor.topic_name == "c"
        everything = await paged(context, "a", "b", "c")
    told = [(each.name, each.error_code, each.topic_authorized_operations) for each in everything.topics]
    assert told == [("a", 0, 3576), ("c", 0, 3576), ("b", DENIED, NOT_ASKED)]


async def created(context: Context, *names: str, version: int = 7) -> list[CreatableTopicResult]:
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]) for name in names
    ]
    return (await ask(context, CreateTopicsRequest(topics=topics, timeout_ms=5000), version)).topics


async def test_a_new_topic_is_described_to_who_may_describe_its_configuration() -> None:
    async with running_broker(access=Denying(of("new", Operation.DESCRIBE_CONFIGS))) as context:
        [topic] = await created(context, "new")
        assert (topic.error_code, topic.topic_config_error_code) == (ErrorCode.NONE, DENIED)
        assert (topic.num_partitions, topic.replication_factor, topic.configs) == (-1, -1, [])
        assert topic.topic_id != ZERO_UUID


async def test_what_nobody_may_create_is_refused_as_that() -> None:
    access = Denying(of("new", CREATE), of("__cluster_metadata", CREATE), (CREATE, CLUSTER))
    async with running_broker(access=access) as context:
        told = [topic.error_code for topic in await created(context, "new", "__cluster_metadata")]
        assert told == [DENIED, ErrorCode.INVALID_REQUEST]


async def deleted(context: Context, *topics: DeleteTopicState) -> list[DeletableTopicResult]:
    return (await ask(context, DeleteTopicsRequest(topics=list(topics), timeout_ms=5000), 6)).responses


async def test_deletion_by_id_names_a_topic_to_who_may_describe_it() -> None:
    access = Denying(of("secret", DELETE), (DELETE, CLUSTER))
    async with running_broker(access=access) as context:
        topic_id = await make_topic(context, "secret")
        by_id, by_name = DeleteTopicState(name=None, topic_id=topic_id), DeleteTopicState(name="secret")
        [answer] = await deleted(context, by_id)
        assert (answer.error_code, answer.name, answer.topic_id) == (DENIED, "secret", topic_id)
        access.denied += (of("secret", DESCRIBE),)
        [answer] = await deleted(context, by_id)
        assert (answer.error_code, answer.name, answer.topic_id) == (DENIED, None, topic_id)
        assert "secret" not in (answer.error_message or "")
        told = await deleted(context, by_id, by_name)
        assert [each.error_code for each in told] == [DENIED, DENIED], "which topic the id is of is not told, either"
        assert "secret" in context.metadata.image.topics
        [answer] = await deleted(context, DeleteTopicState(name=None, topic_id=NO_ID))
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_who_may_not_describe_a_topic_does_not_learn_whether_it_is_there() -> None:
    denied = (of("secret", DESCRIBE), of("none", DESCRIBE), (DELETE, CLUSTER))
    async with running_broker(access=Denying(*denied)) as context:
        await make_topic(context, "secret")
        told = await deleted(context, DeleteTopicState(name="secret"), DeleteTopicState(name="none"))
        assert [(each.error_code, each.topic_id) for each in told] == 2 * [(DENIED, ZERO_UUID)]


async def test_who_may_delete_in_the_cluster_may_delete_each_topic() -> None:
    async with running_broker(access=Denying(of("a", DELETE), of("a", DESCRIBE))) as context:
        await make_topic(context, "a")
        [answer] = await deleted(context, DeleteTopicState(name="a"))
        assert (answer.error_code, "a" in context.metadata.image.topics) == (ErrorCode.NONE, False)


@pytest.mark.parametrize("may_read", [True, False])
async def test_a_name_that_no_topic_can_have_is_refused_first(may_read: bool) -> None:
    async with running_broker(access=Denying(*(() if may_read else (of("a b", READ),)))) as context:
        asked = DescribeProducersRequest(topics=[TopicRequest(name="a b", partition_indexes=[0])])
        [topic] = (await ask(context, asked, 0)).topics
        assert topic.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


# -- what brokers ask -----------------------------------------------------------------------------------------------

NO_BROKER = (Operation.CLUSTER_ACTION, CLUSTER)


def end_of_epoch() -> OffsetForLeaderEpochRequest:
    partition = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic="orders", partitions=[partition])])


def log_start(replica_id: int) -> ListOffsetsRequest:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-2)
    return ListOffsetsRequest(replica_id=replica_id, topics=[ListOffsetsTopic(name="orders", partitions=[partition])])


@pytest.mark.parametrize(
    ("denied", "of_epoch", "of_replica", "of_consumer"),
    [
        ((), 0, 0, 0),
        ((NO_BROKER,), 0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 0),
        ((of("orders", DESCRIBE),), 0, 0, DENIED),
        ((NO_BROKER, of("orders", DESCRIBE)), DENIED, DENIED, DENIED),
    ],
)
async def test_brokers_ask_for_offsets_by_cluster_action_and_consumers_by_describe(
    denied: tuple[tuple[Operation, Resource], ...], of_epoch: int, of_replica: int, of_consumer: int
) -> None:
    async with running_broker(access=Denying(*denied)) as context:
        await make_topic(context, "orders")
        told = (await ask(context, end_of_epoch(), 4)).topics[0].partitions[0].error_code
        assert told == of_epoch
        for replica_id, code in ((1, of_replica), (-1, of_consumer)):
            told = (await ask(context, log_start(replica_id), 11)).topics[0].partitions[0].error_code
            assert told == code


@pytest.mark.parametrize("version", [4, 12, 18])
async def test_who_is_no_broker_does_not_fetch_as_one(version: int) -> None:
    async with running_broker(access=Denying(NO_BROKER)) as context:
        topic_id = await make_topic(context, "orders")
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        asked = FetchRequest(
            replica_id=1,
            max_wait_ms=0,
            min_bytes=0,
            topics=[FetchTopic(topic="orders", topic_id=topic_id, partitions=[partition])],
        )
        if version >= 15:
            asked.replica_state = ReplicaState(replica_id=1, replica_epoch=1)
        caller = Caller("PLAINTEXT")
        answer = await ask(context, asked, version, caller=caller)
        assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (ErrorCode.NONE, DENIED)
        assert not caller.follows


async def test_a_broker_may_ask_for_the_quorum_and_nobody_else_without_describe() -> None:
    access = Denying((DESCRIBE, CLUSTER))
    async with running_broker(access=access) as context:
        assert (await ask(context, DescribeQuorumRequest(topics=[]), 2)).error_code == ErrorCode.NONE
        access.denied += (NO_BROKER,)
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert (await ask(context, DescribeQuorumRequest(topics=[]), 2)).error_code == refused


async def test_coordinators_of_share_groups_are_for_brokers() -> None:
    async with running_broker(access=Denying(NO_BROKER)) as context:
        asked = FindCoordinatorRequest(key_type=2, coordinator_keys=["group:id:0"])
        [coordinator] = (await ask(context, asked, 6)).coordinators
        assert coordinator.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        [coordinator] = (await ask(context, asked, 5)).coordinators
        assert coordinator.error_code == ErrorCode.INVALID_REQUEST


async def test_who_calls_himself_a_broker_ends_no_transaction_unheard(caplog: pytest.LogCaptureFixture) -> None:
    marker = WritableTxnMarker(
        producer_id=7,
        producer_epoch=0,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[0])],
        coordinator_epoch=0,
    )
    async with running_broker(access=Denying(NO_BROKER)) as context:
        await make_topic(context, "orders")
        api = context.served[WriteTxnMarkersRequest.api_key]
        with caplog.at_level(logging.WARNING):
            await api.handle(context, call(client_id="broker-1"), WriteTxnMarkersRequest(markers=[marker]))
        assert "by hand" in caplog.text


# -- groups, producers, transactions --------------------------------------------------------------------------------


async def test_a_join_that_is_refused_says_nothing_of_the_member() -> None:
    async with running_groups(access=Denying((READ, of_group(GROUP)))) as context:
        member = Member(context)
        member.member_id = "mine"
        for version in (5, 9):
            answer = await member.ask_to_join(version)
            assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, "")
            assert answer.protocol_name == (None if version >= 7 else "")


async def test_rights_to_a_group_are_asked_before_its_id_is_looked_at() -> None:
    async with running_groups(access=Denying((READ, of_group("")))) as context:
        answer = await Member(context, "").ask_to_join()
        assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        sync = SyncGroupRequest(group_id="", generation_id=1, member_id="m", assignments=[])
        assert (await ask(context, sync, 5)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert (await ask(context, sync, 4)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_who_may_write_to_any_topic_gets_a_producer_id() -> None:
    access = Denying((Operation.IDEMPOTENT_WRITE, CLUSTER))
    async with running_broker(access=access) as context:
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        assert (await ask(context, asked, 5)).error_code == ErrorCode.NONE
        access.denied_kinds = ((WRITE, ResourceType.TOPIC),)
        assert (await ask(context, asked, 5)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_an_empty_transactional_id_is_asked_for_as_one() -> None:
    async with running_broker(access=Denying((WRITE, of_transactional_id("")))) as context:
        asked = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
        assert (await ask(context, asked, 5)).error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@pytest.mark.parametrize("transactional_id", [PAYMENTS, None])
async def test_without_the_right_to_its_transaction_nothing_of_a_produce_is_done(transactional_id: str | None) -> None:
    """Nor is anything else of it looked at: each partition says the same."""
    async with running_transactions(access=Denying((WRITE, of_transactional_id(PAYMENTS)))) as context:
        batches = (idempotent(0, txn=True), batch(b"plain"))
        data = [PartitionProduceData(index=index, records=each) for index, each in enumerate(batches)]
        topics = [
            TopicProduceData(name="orders", partition_data=data),
            TopicProduceData(name="unknown", partition_data=data[1:]),
        ]
        asked = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1000, topic_data=topics)
        answer = await ask(context, asked, 9)
        codes = [each.error_code for topic in answer.responses for each in topic.partition_responses]
        assert codes == 3 * [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]
        assert context.partitions.leader("orders", 1).log.log_end_offset == 0


async def test_an_id_that_no_batch_belongs_to_is_not_asked_for() -> None:
    async with running_transactions(access=Denying((WRITE, of_transactional_id(PAYMENTS)))) as context:
        data = TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=0, records=batch(b"a"))])
        asked = ProduceRequest(transactional_id=PAYMENTS, acks=-1, timeout_ms=1000, topic_data=[data])
        [topic] = (await ask(context, asked, 9)).responses
        assert topic.partition_responses[0].error_code == ErrorCode.NONE


async def test_topics_of_coordinators_are_in_no_transaction() -> None:
    async with running_transactions() as context:
        asked = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=PAYMENTS,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name="__consumer_offsets", partitions=[0]),
                AddPartitionsToTxnTopic(name="orders", partitions=[0]),
            ],
        )
        told = [
            each.partition_error_code
            for topic in (await ask(context, asked, 3)).results_by_topic_v3_and_below
            for each in topic.results_by_partition
        ]
        assert told == [DENIED, ErrorCode.OPERATION_NOT_ATTEMPTED]


async def test_refused_reassignments_name_what_was_asked_for() -> None:
    denied = ((Operation.ALTER, CLUSTER), (DESCRIBE, CLUSTER))
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    async with running_broker(access=Denying(*denied)) as context:
        partition = ReassignablePartition(partition_index=3, replicas=[0])
        alter = AlterPartitionReassignmentsRequest(
            timeout_ms=1000, topics=[ReassignableTopic(name="orders", partitions=[partition])]
        )
        altered = await ask(context, alter, 0)
        [each] = altered.responses[0].partitions
        assert (altered.error_code, each.partition_index, each.error_code) == (code, 3, code)
        topic = ListPartitionReassignmentsTopics(name="orders", partition_indexes=[3])
        listed = await ask(context, ListPartitionReassignmentsRequest(topics=[topic]), 0)
        assert (listed.error_code, [each.partition_index for each in listed.topics[0].partitions]) == (code, [3])
