"""ApiVersions lists what is served, in order, in ranges read as Kafka 4.3; odd software names are refused."""

import pytest
from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions

from odradek.broker.cluster.keys import FEATURES_KEY, encode_features
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Caller
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.support import CLUSTER_ID, LISTENER, NODE_ID, ask, running_broker

ADVERTISED = {
    0: (0, 13),  # Produce
    1: (4, 18),  # Fetch
    2: (1, 11),  # ListOffsets
    3: (0, 13),  # Metadata
    8: (2, 10),  # OffsetCommit
    9: (1, 10),  # OffsetFetch
    10: (0, 6),  # FindCoordinator
    11: (0, 9),  # JoinGroup
    12: (0, 4),  # Heartbeat
    13: (0, 5),  # LeaveGroup
    14: (0, 5),  # SyncGroup
    15: (0, 6),  # DescribeGroups
    16: (0, 5),  # ListGroups
    17: (0, 1),  # SaslHandshake
    18: (0, 5),  # ApiVersions
    19: (2, 7),  # CreateTopics
    20: (1, 6),  # DeleteTopics
    21: (0, 2),  # DeleteRecords
    22: (0, 5),  # InitProducerId
    23: (2, 4),  # OffsetForLeaderEpoch
    24: (0, 5),  # AddPartitionsToTxn
    25: (0, 4),  # AddOffsetsToTxn
    26: (0, 5),  # EndTxn
    27: (1, 2),  # WriteTxnMarkers
    28: (0, 6),  # TxnOffsetCommit
    29: (1, 3),  # DescribeAcls
    30: (1, 3),  # CreateAcls
    31: (1, 3),  # DeleteAcls
    32: (1, 4),  # DescribeConfigs
    33: (0, 2),  # AlterConfigs
    35: (1, 5),  # DescribeLogDirs
    36: (0, 2),  # SaslAuthenticate
    37: (0, 3),  # CreatePartitions
    42: (0, 2),  # DeleteGroups
    43: (0, 2),  # ElectLeaders
    44: (0, 1),  # IncrementalAlterConfigs
    45: (0, 1),  # AlterPartitionReassignments
    46: (0, 0),  # ListPartitionReassignments
    47: (0, 0),  # OffsetDelete
    48: (0, 1),  # DescribeClientQuotas
    49: (0, 1),  # AlterClientQuotas
    50: (0, 0),  # DescribeUserScramCredentials
    51: (0, 0),  # AlterUserScramCredentials
    55: (0, 2),  # DescribeQuorum
    57: (0, 2),  # UpdateFeatures
    60: (0, 2),  # DescribeCluster
    61: (0, 0),  # DescribeProducers
    63: (0, 2),  # BrokerHeartbeat
    64: (0, 0),  # UnregisterBroker
    65: (0, 0),  # DescribeTransactions
    66: (0, 2),  # ListTransactions
    68: (0, 1),  # ConsumerGroupHeartbeat
    69: (0, 1),  # ConsumerGroupDescribe
    74: (0, 1),  # ListConfigResources
    75: (0, 0),  # DescribeTopicPartitions
}


async def versions(version: int, name: str = "tests", software_version: str = "1.0") -> ApiVersionsResponse:
    async with running_broker() as context:
        request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
        return await ask(context, request, version)


@pytest.mark.parametrize("version", range(6))
async def test_every_version_lists_exactly_what_is_served_in_order_of_the_keys(version: int) -> None:
    answer = await versions(version)
    assert answer.error_code == ErrorCode.NONE
    ranges = [(api.api_key, (api.min_version, api.max_version)) for api in answer.api_keys]
    assert ranges == list(ADVERTISED.items())


async def test_kafka_python_takes_us_for_kafka_4_3() -> None:
    answer = await versions(4)
    ranges = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert infer_broker_version_from_api_versions(ranges) == (4, 3)


async def test_kafkas_features_are_told_and_our_own_are_not() -> None:
    answer = await versions(4)
    assert [(each.name, each.min_version, each.max_version) for each in answer.supported_features] == [
        ("group.version", 0, 1),
        ("transaction.version", 0, 2),
    ]
    assert [(each.name, each.max_version_level) for each in answer.finalized_features] == [
        ("group.version", 1),
        ("transaction.version", 2),
    ]
    assert answer.finalized_features_epoch >= 0
    assert not answer.zk_migration_ready
    before = await versions(3)
    assert before.supported_features == [], "a minimum of 0 would end a client of that version"
    assert len(before.finalized_features) == 2


async def test_a_broker_beside_others_without_features_says_so() -> None:
    async with running_broker() as context:
        revision = await context.metadata.store.commit(Txn(put={FEATURES_KEY: encode_features({})}))
        await context.metadata.applied(revision)
        request = ApiVersionsRequest(client_software_name="tests", client_software_version="1.0")
        answer = await ask(context, request, 4)
    assert (answer.finalized_features, answer.finalized_features_epoch) == ([], -1)


@pytest.mark.parametrize(
    ("name", "software_version"),
    [("a b", "1.0"), ("", "1.0"), ("client", ""), ("-client", "1.0"), ("client-", "1.0"), ("client", "1.0\n")],
)
@pytest.mark.parametrize("version", [3, 4, 5])
async def test_a_software_name_or_version_outside_of_kip_511_is_refused(
    version: int, name: str, software_version: str
) -> None:
    answer = await versions(version, name, software_version)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.api_keys == []


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [
        (None, -1, ErrorCode.NONE),
        (CLUSTER_ID, NODE_ID, ErrorCode.NONE),
        ("another", NODE_ID, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER_ID, NODE_ID + 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("", -2, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER_ID, -1, ErrorCode.INVALID_REQUEST),
        (None, NODE_ID, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_who_means_another_broker_or_cluster_has_to_begin_anew(
    cluster_id: str | None, node_id: int, code: ErrorCode
) -> None:
    async with running_broker() as context:
        request = ApiVersionsRequest(
            client_software_name="tests", client_software_version="1.0", cluster_id=cluster_id, node_id=node_id
        )
        answer = await ask(context, request, 5)
    assert (answer.error_code, len(answer.api_keys)) == (code, 0 if code else len(ADVERTISED))


async def test_the_software_is_remembered_with_the_connection() -> None:
    caller = Caller(LISTENER)
    request = ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="3.9.0")
    async with running_broker() as context:
        await ask(context, request, 3, caller=caller)
    assert caller.software == "apache-kafka-java 3.9.0"
