"""Shows that what is declared is what the issue asks for, and pins the tricky places byte by byte.

Whether the declarations agree with Kafka is shown by the bytes of real clients and brokers in `golden/`. Here stand the
facts that need no capture: keys, versions, pairs, and messages written out by hand from Kafka's definitions.
"""

from importlib import import_module

import pytest

from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import ZERO_UUID, Message, Request, Response
from odradek.protocol.declared import declared_messages
from odradek.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from odradek.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    PartitionData,
)
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

# module, name, key, first and last version, first flexible version (KIP-482), from Kafka's definitions
DECLARED = [
    ("produce", "Produce", 0, 3, 13, 9),
    ("fetch", "Fetch", 1, 4, 18, 12),
    ("list_offsets", "ListOffsets", 2, 1, 11, 6),
    ("metadata", "Metadata", 3, 0, 13, 9),
    ("offset_commit", "OffsetCommit", 8, 2, 10, 8),
    ("offset_fetch", "OffsetFetch", 9, 1, 10, 6),
    ("find_coordinator", "FindCoordinator", 10, 0, 6, 3),
    ("join_group", "JoinGroup", 11, 0, 9, 6),
    ("heartbeat", "Heartbeat", 12, 0, 4, 4),
    ("leave_group", "LeaveGroup", 13, 0, 5, 4),
    ("sync_group", "SyncGroup", 14, 0, 5, 4),
    ("describe_groups", "DescribeGroups", 15, 0, 6, 5),
    ("list_groups", "ListGroups", 16, 0, 5, 3),
    ("sasl_handshake", "SaslHandshake", 17, 0, 1, None),
    ("api_versions", "ApiVersions", 18, 0, 5, 3),
    ("create_topics", "CreateTopics", 19, 2, 7, 5),
    ("delete_topics", "DeleteTopics", 20, 1, 6, 4),
    ("delete_records", "DeleteRecords", 21, 0, 2, 2),
    ("init_producer_id", "InitProducerId", 22, 0, 6, 2),
    ("offset_for_leader_epoch", "OffsetForLeaderEpoch", 23, 2, 4, 4),
    ("add_partitions_to_txn", "AddPartitionsToTxn", 24, 0, 5, 3),
    ("add_offsets_to_txn", "AddOffsetsToTxn", 25, 0, 4, 3),
    ("end_txn", "EndTxn", 26, 0, 5, 3),
    ("write_txn_markers", "WriteTxnMarkers", 27, 1, 2, 1),
    ("txn_offset_commit", "TxnOffsetCommit", 28, 0, 6, 3),
    ("describe_configs", "DescribeConfigs", 32, 1, 4, 4),
    ("alter_configs", "AlterConfigs", 33, 0, 2, 2),
    ("describe_log_dirs", "DescribeLogDirs", 35, 1, 5, 2),
    ("sasl_authenticate", "SaslAuthenticate", 36, 0, 2, 2),
    ("create_partitions", "CreatePartitions", 37, 0, 3, 2),
    ("delete_groups", "DeleteGroups", 42, 0, 2, 2),
    ("elect_leaders", "ElectLeaders", 43, 0, 2, 2),
    ("incremental_alter_configs", "IncrementalAlterConfigs", 44, 0, 1, 1),
    ("alter_partition_reassignments", "AlterPartitionReassignments", 45, 0, 1, 0),
    ("list_partition_reassignments", "ListPartitionReassignments", 46, 0, 0, 0),
    ("offset_delete", "OffsetDelete", 47, 0, 0, None),
    ("describe_quorum", "DescribeQuorum", 55, 0, 2, 0),
    ("update_features", "UpdateFeatures", 57, 0, 2, 0),
    ("envelope", "Envelope", 58, 0, 0, 0),
    ("describe_cluster", "DescribeCluster", 60, 0, 2, 0),
    ("describe_producers", "DescribeProducers", 61, 0, 0, 0),
    ("broker_heartbeat", "BrokerHeartbeat", 63, 0, 2, 0),
    ("unregister_broker", "UnregisterBroker", 64, 0, 0, 0),
    ("describe_transactions", "DescribeTransactions", 65, 0, 0, 0),
    ("list_transactions", "ListTransactions", 66, 0, 2, 0),
    ("consumer_group_heartbeat", "ConsumerGroupHeartbeat", 68, 0, 1, 0),
    ("consumer_group_describe", "ConsumerGroupDescribe", 69, 0, 1, 0),
    ("list_config_resources", "ListConfigResources", 74, 0, 1, 0),
    ("describe_topic_partitions", "DescribeTopicPartitions", 75, 0, 0, 0),
]


@pytest.mark.parametrize(("module", "name", "key", "first", "last", "flexible"), DECLARED)
def test_keys_and_versions(module: str, name: str, key: int, first: int, last: int, flexible: int | None) -> None:
    found = vars(import_module(f"odradek.protocol.messages.{module}"))
    request, response = found[f"{name}Request"], found[f"{name}Response"]
    assert request.response_type is response
    for cls, base in ((request, Request), (response, Response)):
        assert issubclass(cls, base)
        assert (cls.api_key, cls.min_version, cls.max_version, cls.flexible_since) == (key, first, last, flexible)


def test_nothing_else_is_declared() -> None:
    names = [f"{name}{kind}" for _module, name, *_rest in DECLARED for kind in ("Request", "Response")]
    assert sorted(declared_messages()) == sorted(names)


# ------------------------------------------------------------------------------------------------- by hand
PRODUCE_V9 = (
    b"\x00"  # transactional_id: null
    b"\xff\xff"  # acks: -1
    b"\x00\x00\x75\x30"  # timeout_ms: 30,000
    b"\x02\x07orders"  # topic_data: 1; name
    b"\x02\x00\x00\x00\x03"  # partition_data: 1; index
    b"\x05abcd\x00"  # records: 4 bytes; no tags
    b"\x00\x00"  # no tags of topic and request
)
PRODUCE_V13 = (
    b"\x00\xff\xff\x00\x00\x75\x30"
    b"\x02" + bytes(range(16)) + b"\x02\x00\x00\x00\x03\x05abcd\x00"  # the topic by its id
    b"\x00\x00"
)
PRODUCE_V3 = (
    b"\xff\xff"  # transactional_id: null
    b"\xff\xff"
    b"\x00\x00\x75\x30"
    b"\x00\x00\x00\x01\x00\x06orders"
    b"\x00\x00\x00\x01\x00\x00\x00\x03"
    b"\x00\x00\x00\x04abcd"
)
PRODUCE = ProduceRequest(
    transactional_id=None,
    acks=-1,
    timeout_ms=30_000,
    topic_data=[TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=3, records=b"abcd")])],
)

API_VERSIONS_V3 = (
    b"\x00\x00"  # error_code
    b"\x02\x00\x12\x00\x00\x00\x04\x00"  # api_keys: 1; 18, 0 to 4, no tags
    b"\x00\x00\x00\x05"  # throttle_time_ms
    b"\x04"  # four tagged fields
    b"\x00\x08\x02\x02f\x00\x01\x00\x02\x00"  # 0, 8 bytes: one supported feature f, 1 to 2
    b"\x01\x08\x00\x00\x00\x00\x00\x00\x00\x07"  # 1, 8 bytes: finalized_features_epoch
    b"\x02\x08\x02\x02f\x00\x02\x00\x01\x00"  # 2, 8 bytes: one finalized feature f, max 2, min 1
    b"\x03\x01\x01"  # 3, 1 byte: zk_migration_ready
)
API_VERSIONS = ApiVersionsResponse(
    api_keys=[ApiVersion(api_key=18, min_version=0, max_version=4)],
    throttle_time_ms=5,
    supported_features=[SupportedFeatureKey(name="f", min_version=1, max_version=2)],
    finalized_features_epoch=7,
    finalized_features=[FinalizedFeatureKey(name="f", max_version_level=2, min_version_level=1)],
    zk_migration_ready=True,
)

FETCH_V4 = (
    b"\x00\x00\x00\x00"  # throttle_time_ms
    b"\x00\x00\x00\x01\x00\x01t"  # responses: 1; topic
    b"\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00"  # partitions: 1; index 2, no error
    b"\x00\x00\x00\x00\x00\x00\x00\x09"  # high_watermark
    b"\x00\x00\x00\x00\x00\x00\x00\x08"  # last_stable_offset
    b"\x00\x00\x00\x01"  # aborted_transactions: 1
    b"\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x06"  # producer_id, first_offset
    b"\x00\x00\x00\x02rr"  # records
)
FETCH_V12 = (
    b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07"  # throttle_time_ms, error_code, session_id
    b"\x02\x02t\x02\x00\x00\x00\x02\x00\x00"
    b"\x00\x00\x00\x00\x00\x00\x00\x09"
    b"\x00\x00\x00\x00\x00\x00\x00\x08"
    b"\x00\x00\x00\x00\x00\x00\x00\x01"  # log_start_offset
    b"\x02\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x06\x00"
    b"\xff\xff\xff\xff"  # preferred_read_replica
    b"\x03rr"
    b"\x02"  # two tagged fields of the partition
    b"\x00\x0d\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x04\x00"  # 0, 13 bytes: diverging_epoch
    b"\x01\x09\x00\x00\x00\x01\x00\x00\x00\x06\x00"  # 1, 9 bytes: current_leader
    b"\x00\x00"  # no tags of topic and response
)


def fetched(**more: object) -> FetchResponse:
    partition = PartitionData(
        partition_index=2,
        high_watermark=9,
        last_stable_offset=8,
        aborted_transactions=[AbortedTransaction(producer_id=5, first_offset=6)],
        records=b"rr",
    )
    for name, value in more.items():
        setattr(partition, name, value)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])


FETCHED_V12 = fetched(
    log_start_offset=1,
    diverging_epoch=EpochEndOffset(epoch=3, end_offset=4),
    current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=6),
)
FETCHED_V12.session_id = 7

METADATA_V0 = (
    b"\x00\x00\x00\x01\x00\x00\x00\x05\x00\x01h\x00\x00\x23\x84"  # brokers: 1; id 5, host, port 9092
    b"\x00\x00\x00\x01\x00\x00\x00\x01t"  # topics: 1; no error, name
    b"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05"  # partitions: 1; no error, index 0, leader 5
    b"\x00\x00\x00\x01\x00\x00\x00\x05"  # replica_nodes
    b"\x00\x00\x00\x01\x00\x00\x00\x05"  # isr_nodes
)
METADATA_V12 = (
    b"\x00\x00\x00\x00"  # throttle_time_ms
    b"\x02\x00\x00\x00\x05\x02h\x00\x00\x23\x84\x00\x00"  # a broker, rack null
    b"\x00"  # cluster_id: null
    b"\x00\x00\x00\x05"  # controller_id
    b"\x02\x00\x00\x02t" + bytes(range(16)) + b"\x00"  # a topic with its id, not internal
    b"\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05"
    b"\x00\x00\x00\x03"  # leader_epoch
    b"\x02\x00\x00\x00\x05"
    b"\x02\x00\x00\x00\x05"
    b"\x01\x00"  # offline_replicas: 0; no tags of the partition
    b"\x80\x00\x00\x00\x00"  # topic_authorized_operations, which nobody asked for; no tags
    b"\x00"
)


# throttle_time_ms; no brokers; cluster_id null; controller_id -1; no topics; error_code 129 (KIP-1102)
METADATA_REBOOTSTRAP_V13 = b"\x00\x00\x00\x00\x01\x00\xff\xff\xff\xff\x01\x00\x81\x00"


def described(leader_epoch: int = -1, topic_id: bytes = ZERO_UUID, controller_id: int = -1) -> MetadataResponse:
    partition = MetadataResponsePartition(
        partition_index=0, leader_id=5, leader_epoch=leader_epoch, replica_nodes=[5], isr_nodes=[5]
    )
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=5, host="h", port=9092)],
        controller_id=controller_id,
        topics=[MetadataResponseTopic(name="t", topic_id=topic_id, partitions=[partition])],
    )


# With their defaults, no tagged field is sent.
API_VERSIONS_PLAIN_V3 = b"\x00\x23\x01\x00\x00\x00\x00\x00"

BY_HAND: list[tuple[Message, int, bytes]] = [
    (PRODUCE, 3, PRODUCE_V3),
    (PRODUCE, 9, PRODUCE_V9),
    (PRODUCE, 12, PRODUCE_V9),
    (
        ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(
                    topic_id=bytes(range(16)), partition_data=[PartitionProduceData(index=3, records=b"abcd")]
                )
            ],
        ),
        13,
        PRODUCE_V13,
    ),
    (
        FetchRequest(
            max_wait_ms=1,
            min_bytes=2,
            topics=[
                FetchTopic(
                    topic_id=bytes(range(16)),
                    partitions=[
                        FetchPartition(partition=3, fetch_offset=4, partition_max_bytes=5, high_watermark=6),
                        FetchPartition(partition=7, fetch_offset=8, partition_max_bytes=9),
                    ],
                )
            ],
        ),
        18,
        # max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch
        b"\x00\x00\x00\x01\x00\x00\x00\x02\x7f\xff\xff\xff\x00\x00\x00\x00\x00\xff\xff\xff\xff"
        b"\x02" + bytes(range(16)) + b"\x03"  # topics: 1; its id; partitions: 2
        b"\x00\x00\x00\x03\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x04\xff\xff\xff\xff"
        b"\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x05"
        b"\x01\x01\x08\x00\x00\x00\x00\x00\x00\x00\x06"  # one tagged field: 1, 8 bytes, high_watermark
        b"\x00\x00\x00\x07\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x08\xff\xff\xff\xff"
        b"\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x09"
        b"\x00\x00"  # no tags of this one, which has the default, nor of the topic
        b"\x01\x01\x00",  # nothing forgotten, no rack, no tags
    ),
    (API_VERSIONS, 3, API_VERSIONS_V3),
    (ApiVersionsResponse(error_code=35, api_keys=[]), 3, API_VERSIONS_PLAIN_V3),
    (fetched(), 4, FETCH_V4),
    (FETCHED_V12, 12, FETCH_V12),
    (described(), 0, METADATA_V0),
    (described(3, bytes(range(16)), 5), 12, METADATA_V12),
    (MetadataResponse(brokers=[], topics=[], error_code=129), 13, METADATA_REBOOTSTRAP_V13),
    (MetadataRequest(topics=None), 1, b"\xff\xff\xff\xff"),
    (MetadataRequest(topics=None), 9, b"\x00\x01\x00\x00\x00"),
    (
        MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=bytes(range(16)))]),
        12,
        b"\x02" + bytes(range(16)) + b"\x00\x00\x01\x00\x00",
    ),
    (DeleteTopicsRequest(topic_names=["a"], timeout_ms=9), 5, b"\x02\x02a\x00\x00\x00\x09\x00"),
    (
        DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=9),
        6,
        b"\x02\x02a" + bytes(16) + b"\x00\x00\x00\x00\x09\x00",
    ),
    (
        CreateTopicsResponse(topics=[CreatableTopicResult(name="a", topic_config_error_code=29)]),
        5,
        # throttle_time_ms; 1 topic: name, error_code, error_message, num_partitions, replication_factor, configs; a tag
        b"\x00\x00\x00\x00\x02\x02a\x00\x00\x00\xff\xff\xff\xff\xff\xff\x00\x01\x00\x02\x00\x1d\x00",
    ),
    (
        ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=1, timestamp=-2)])],
        ),
        1,
        b"\xff\xff\xff\xff\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x01" + b"\xff" * 7 + b"\xfe",
    ),
    (SaslHandshakeRequest(mechanism="PLAIN"), 1, b"\x00\x05PLAIN"),
    (
        SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN", "X"]),
        1,
        b"\x00\x21\x00\x00\x00\x02\x00\x05PLAIN\x00\x01X",
    ),
    (SaslAuthenticateRequest(auth_bytes=b"\0u\0p"), 1, b"\x00\x00\x00\x04\x00u\x00p"),
    (SaslAuthenticateRequest(auth_bytes=b"\0u\0p"), 2, b"\x05\x00u\x00p\x00"),
    (
        SaslAuthenticateResponse(error_code=58, error_message="no", auth_bytes=b"", session_lifetime_ms=9),
        1,
        b"\x00\x3a\x00\x02no\x00\x00\x00\x00" + b"\x00" * 7 + b"\x09",
    ),
    (SaslAuthenticateResponse(auth_bytes=b"v"), 2, b"\x00\x00\x00\x02v" + b"\x00" * 8 + b"\x00"),
    (
        FindCoordinatorResponse(error_code=15, node_id=-1),
        0,
        b"\x00\x0f\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00",
    ),
    (
        FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=-1, host="", port=-1, error_code=15)]),
        4,
        b"\x00\x00\x00\x00\x02\x02g\xff\xff\xff\xff\x01\xff\xff\xff\xff\x00\x0f\x00\x00\x00",
    ),
]


@pytest.mark.parametrize(
    ("message", "version", "expected"), BY_HAND, ids=[f"{type(case[0]).__name__}-{case[1]}" for case in BY_HAND]
)
def test_messages_written_out_by_hand(message: Message, version: int, expected: bytes) -> None:
    """Encoded to exactly these bytes, and decoded from them."""
    assert encode(message, version).hex(" ") == expected.hex(" ")
    assert decode(type(message), version, expected) == message


def test_defaults_are_kafkas() -> None:
    """What a version does not carry, as the definitions have it."""
    request = decode(FetchRequest, 4, encode(FetchRequest(max_wait_ms=1, min_bytes=1, topics=[]), 4))
    assert (request.replica_id, request.max_bytes, request.session_id, request.session_epoch) == (-1, 2**31 - 1, 0, -1)
    assert (request.rack_id, request.cluster_id, request.replica_state) == ("", None, None)
    (topic,) = decode(MetadataResponse, 0, METADATA_V0).topics
    assert (topic.topic_id, topic.is_internal, topic.topic_authorized_operations) == (ZERO_UUID, False, -(2**31))
    assert topic.partitions[0].leader_epoch == -1
    assert decode(MetadataResponse, 12, METADATA_V12).error_code == 0
    assert decode(MetadataRequest, 3, b"\xff\xff\xff\xff").allow_auto_topic_creation


def test_what_may_hold_a_password_is_not_shown() -> None:
    request = SaslAuthenticateRequest(auth_bytes=b"\0user\0secret")
    assert "secret" not in repr(request)
    assert "12 bytes" in repr(request)
