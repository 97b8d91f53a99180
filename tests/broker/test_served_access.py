"""Each API asks whether its caller may do what it wants: for what its row says, and refuses who may not.

The requests here name things of which there are some (topic `orders`), so that nothing else is refused before; there
are a group and a transactional id of that name, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from odradek.broker.access.access import Access, Asker
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import DENIED, Resource, ResourceType
from odradek.broker.handling.context import Api, Context, Need
from odradek.broker.served import SERVED
from odradek.protocol.codec.schema import Struct
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from odradek.protocol.messages.alter_configs import AlterConfigsRequest
from odradek.protocol.messages.alter_configs import AlterConfigsResource as ResourceOfAlter
from odradek.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.describe_producers import TopicRequest as ProducersOfTopic
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.envelope import EnvelopeRequest
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.incremental_alter_configs import AlterConfigsResource, IncrementalAlterConfigsRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.messages.sync_group import SyncGroupRequest
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.api.producing import idempotent
from tests.broker.groups import make_consumer_group, make_group
from tests.broker.support import ask, batch, make_topic, running_broker
from tests.broker.transactions import make_transaction

TOPIC, BROKER, GROUP = 2, 4, 32

SETTINGS = {
    "auto.create.topics.enable": "true",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}

Make = Callable[[bytes], Any]
"""From the topic's id to a request."""


def fetch(topic_id: bytes, replica_id: int = -1) -> FetchRequest:
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    return FetchRequest(
        replica_state=ReplicaState(replica_id=replica_id, replica_epoch=1 if replica_id >= 0 else -1),
        max_wait_ms=0,
        min_bytes=1,
        topics=[FetchTopic(topic="", topic_id=topic_id, partitions=partitions)],
    )


REQUESTS: list[Make] = [
    lambda _: ApiVersionsRequest(client_software_name="test", client_software_version="1"),
    lambda _: SaslHandshakeRequest(mechanism="PLAIN"),
    lambda _: SaslAuthenticateRequest(auth_bytes=b""),
    lambda topic_id: ProduceRequest(
        acks=1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch(b"a"))])
        ],
    ),
    fetch,
    lambda topic_id: fetch(topic_id, 0),
    lambda _: ListOffsetsRequest(
        replica_id=-1,
        topics=[ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])],
    ),
    lambda _: ListOffsetsRequest(
        replica_id=1,
        topics=[ListOffsetsTopic(name="orders", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])],
    ),
    lambda _: MetadataRequest(topics=None),
    lambda _: MetadataRequest(topics=None, include_cluster_authorized_operations=True),
    lambda _: MetadataRequest(topics=[MetadataRequestTopic(name="orders")]),
    lambda topic_id: MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=topic_id)]),
    lambda _: MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True),
    lambda _: FindCoordinatorRequest(coordinator_keys=["group"]),
    lambda _: FindCoordinatorRequest(key_type=1, coordinator_keys=["id"]),
    lambda _: FindCoordinatorRequest(key_type=2, coordinator_keys=["shared"]),
    lambda _: ConsumerGroupHeartbeatRequest(
        group_id="newer",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    ),
    lambda _: ConsumerGroupDescribeRequest(group_ids=["newer"], include_authorized_operations=False),
    lambda topic_id: OffsetCommitRequest(
        group_id="group",
        topics=[
            OffsetCommitRequestTopic(
                topic_id=topic_id,
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")],
            )
        ],
    ),
    lambda topic_id: OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id="group", topics=[OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])]
            )
        ]
    ),
    lambda _: OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="group", topics=None)]),
    lambda _: OffsetDeleteRequest(
        group_id="group",
        topics=[OffsetDeleteRequestTopic(name="orders", partitions=[OffsetDeleteRequestPartition(partition_index=0)])],
    ),
    lambda _: JoinGroupRequest(
        group_id="group",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    ),
    lambda _: SyncGroupRequest(
        group_id="group",
        generation_id=1,
        member_id="member",
        protocol_type="consumer",
        protocol_name="range",
        assignments=[],
    ),
    lambda _: HeartbeatRequest(group_id="group", generation_id=1, member_id="member"),
    lambda _: LeaveGroupRequest(group_id="group", members=[MemberIdentity(member_id="member")]),
    lambda _: DescribeGroupsRequest(groups=["group"], include_authorized_operations=True),
    lambda _: ListGroupsRequest(),
    lambda _: DeleteGroupsRequest(groups_names=["group"]),
    lambda _: UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey(feature="group.version", max_version_level=1)]),
    lambda _: CreateTopicsRequest(
        timeout_ms=1000,
        topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1, assignments=[], configs=[])],
    ),
    lambda _: CreatePartitionsRequest(
        timeout_ms=1000,
        topics=[CreatePartitionsTopic(name="orders", count=2, assignments=None)],
        validate_only=False,
    ),
    lambda _: DeleteRecordsRequest(
        timeout_ms=1000,
        topics=[DeleteRecordsTopic(name="orders", partitions=[DeleteRecordsPartition(partition_index=0, offset=0)])],
    ),
    lambda _: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
    lambda _: InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=1000),
    lambda topic_id: ProduceRequest(
        transactional_id="orders",
        acks=1,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(
                topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=idempotent(0, txn=True))]
            )
        ],
    ),
    lambda _: AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="orders",
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=[0])],
    ),
    lambda _: AddPartitionsToTxnRequest(transactions=[]),
    lambda _: AddOffsetsToTxnRequest(transactional_id="orders", producer_id=0, producer_epoch=0, group_id="group"),
    lambda _: EndTxnRequest(transactional_id="orders", producer_id=0, producer_epoch=0, committed=True),
    lambda _: WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=7,
                producer_epoch=0,
                transaction_result=False,
                topics=[WritableTxnMarkerTopic(name="orders", partition_indexes=[0])],
                coordinator_epoch=0,
            )
        ]
    ),
    lambda topic_id: TxnOffsetCommitRequest(
        transactional_id="orders",
        group_id="group",
        producer_id=0,
        producer_epoch=0,
        topics=[
            TxnOffsetCommitRequestTopic(
                topic_id=topic_id,
                partitions=[
                    TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
                ],
            )
        ],
    ),
    lambda _: DescribeProducersRequest(
        topics=[ProducersOfTopic(name="orders", partition_indexes=[0])],
    ),
    lambda _: DescribeTransactionsRequest(transactional_ids=["orders"]),
    lambda _: ListTransactionsRequest(),
    lambda _: OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(topic="orders", partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)])
        ]
    ),
    lambda _: DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in ((TOPIC, "orders"), (GROUP, "read"), (BROKER, "0"))
        ]
    ),
    lambda _: AlterConfigsRequest(
        resources=[
            ResourceOfAlter(resource_type=kind, resource_name=name, configs=[])
            for kind, name in ((TOPIC, "orders"), (GROUP, "read"), (BROKER, "0"))
        ],
        validate_only=False,
    ),
    lambda _: IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(resource_type=kind, resource_name=name, configs=[])
            for kind, name in ((TOPIC, "orders"), (GROUP, "read"), (BROKER, "0"))
        ],
        validate_only=False,
    ),
    lambda _: ListConfigResourcesRequest(),
    lambda _: DescribeLogDirsRequest(topics=None),
    lambda _: ElectLeadersRequest(topic_partitions=[], timeout_ms=0),
    lambda _: AlterPartitionReassignmentsRequest(topics=[], timeout_ms=0),
    lambda _: ListPartitionReassignmentsRequest(topics=None),
    lambda _: DescribeQuorumRequest(topics=[]),
    lambda _: DescribeClientQuotasRequest(components=[], strict=False),
    lambda _: AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[EntityData(entity_type="user", entity_name="alice")],
                ops=[OpData(key="producer_byte_rate", value=1.0, remove=False)],
            )
        ],
        validate_only=False,
    ),
    lambda _: DescribeUserScramCredentialsRequest(),
    lambda _: AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="alice", mechanism=1)]),
    lambda _: DescribeClusterRequest(include_cluster_authorized_operations=True),
    lambda _: BrokerHeartbeatRequest(broker_id=0, broker_epoch=1, current_metadata_offset=0),
    lambda _: UnregisterBrokerRequest(broker_id=9),
    lambda _: EnvelopeRequest(request_data=b"", client_host_address=bytes(4)),
    lambda _: DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    ),
    lambda _: CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=2, resource_name="orders", principal="User:a", host="*", operation=3, permission_type=3
            )
        ]
    ),
    lambda _: DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=2,
                resource_name_filter="orders",
                principal_filter=None,
                host_filter=None,
                operation=1,
                permission_type=1,
            )
        ]
    ),
    lambda _: DescribeTopicPartitionsRequest(topics=[TopicRequest(name="orders")]),
    lambda _: DescribeTopicPartitionsRequest(topics=[]),
    lambda _: DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=1000),
    lambda topic_id: DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=1000),
]
BEFORE_AUTHENTICATION_COUNT = 3
"""The first ones; nobody is asked for rights by them."""
BY_NAME: Mapping[str, Api] = {api.request.__name__: api for api in SERVED}
HIDES = ("ListGroups", "ListTransactions", "topics=None", "topics=[]", "include_cluster_authorized_operations=True")
"""What leaves out what may not be seen, and refuses nothing."""


@dataclass
class Recording(Access):
    """Allows what it is told to, and keeps what it was asked."""

    allows: bool = True
    asked: set[Need] = field(default_factory=set[Need])
    is_enforced: bool = True
    refuses: Need | None = None

    def permits(self, asker: Asker, operation: Operation, resource: Resource, *, logs_refusal: bool = True) -> bool:
        del logs_refusal
        assert str(asker.principal) == "User:ANONYMOUS"
        self.asked.add((operation, resource.kind))
        return self.allows and self.refuses != (operation, resource.kind)

    def permits_any(self, asker: Asker, operation: Operation, kind: ResourceType) -> bool:
        del asker
        self.asked.add((operation, kind))
        return self.allows

    def authorized_operations(self, asker: Asker, resource: Resource) -> int:
        del asker, resource
        return 1 if self.allows else 0


async def prepared(context: Context) -> bytes:
    """The topic's id."""
    topic_id = await make_topic(context, "orders")
    await make_group(context, "orders")
    await make_consumer_group(context, "newer")
    await make_transaction(context, "orders", ("orders", 0))
    await context.member.controller.work()  # else it is waited for
    return topic_id


async def answered(context: Context, make: Make, topic_id: bytes) -> tuple[Api, Any]:
    request = make(topic_id)
    api = BY_NAME[type(request).__name__]
    return api, await ask(context, request, version_of(api, request))


def version_of(api: Api, request: Any) -> int:
    """The newest that has what the request asks for."""
    if isinstance(request, AddPartitionsToTxnRequest) and request.v3_and_below_transactional_id:
        return 3
    if isinstance(request, MetadataRequest) and request.include_cluster_authorized_operations:
        return 10
    return api.served[1]


def codes(value: object) -> set[int]:
    """All error codes in an answer."""
    if isinstance(value, Struct):
        own: set[int] = {getattr(value, name) for name in value.fields if name.endswith("error_code")}
        return own.union(*(codes(getattr(value, name)) for name in value.fields))
    found: set[int] = set()
    if isinstance(value, list):
        for each in cast("list[object]", value):
            found |= codes(each)
    return found


async def test_all_that_rows_say_is_asked_and_nothing_else() -> None:
    asked: dict[str, set[Need]] = {api.name: set() for api in SERVED}
    for make in REQUESTS:
        in_part = Recording(refuses=(Operation.CREATE, ResourceType.CLUSTER))
        for access in (Recording(), Recording(allows=False), in_part):
            async with running_broker(SETTINGS, access=access) as context:
                api, _ = await answered(context, make, await prepared(context))
                asked[api.name] |= access.asked
                assert access.asked or api.is_before_authentication, f"{api.name} asks for nothing"
    assert asked == {api.name: {*api.needs} for api in SERVED}


@pytest.mark.parametrize("number", range(BEFORE_AUTHENTICATION_COUNT, len(REQUESTS)))
async def test_who_may_nothing_is_refused_or_sees_nothing(number: int) -> None:
    access = Recording(allows=False)
    async with running_broker(SETTINGS, access=access) as context:
        topic_id = await prepared(context)
        before = context.metadata.image.revision
        _, answer = await answered(context, REQUESTS[number], topic_id)
        assert context.metadata.image.revision == before, "nothing was changed"
        assert context.partitions.leader("orders", 0).log.log_end_offset == 0
    refused = {code for code in codes(answer) if code} & {*DENIED.values()}
    if any(each in repr(REQUESTS[number](topic_id)) for each in HIDES) and not refused:
        assert codes(answer) <= {0}
        assert "orders" not in repr(answer)
        assert getattr(answer, "cluster_authorized_operations", 0) in (0, -(2**31))
    else:
        assert refused, answer


async def test_before_authentication_only_versions_and_sasl_may_be_asked_for() -> None:
    names = ["ApiVersions", "SaslHandshake", "SaslAuthenticate"]
    assert [api.name for api in SERVED if api.is_before_authentication] == names
    async with running_broker(access=Recording(allows=False)) as context:
        assert (await ask(context, ApiVersionsRequest(), 2)).error_code == ErrorCode.NONE
