"""Which APIs are served, and in which versions: one row an API, and everything else follows from these rows.

The ApiVersions answer, dispatch, the metrics' labels and `docs/protocol-support.md` derive from `SERVED`; an option
may add a version (`served_with`). The ranges are coherent with one release, so that clients which infer a broker's
version from them read Kafka 4.3.

Two minimums are lower than what anybody uses, because clients read features from them: Produce 0 (librdkafka's gzip
and snappy, KAFKA-18659) and FindCoordinator 0 (old librdkafka's lz4).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import ResourceType
from odradek.broker.api import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    broker_heartbeat,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    envelope,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from odradek.broker.api.fetch import consumer as fetch
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.handling.context import Api
from odradek.broker.served_security import OF_SECURITY
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.alter_configs import AlterConfigsRequest
from odradek.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest
from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from odradek.protocol.messages.delete_records import DeleteRecordsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.envelope import EnvelopeRequest
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.join_group import JoinGroupRequest
from odradek.protocol.messages.leave_group import LeaveGroupRequest
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.offset_commit import OffsetCommitRequest
from odradek.protocol.messages.offset_delete import OffsetDeleteRequest
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest
from odradek.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.sync_group import SyncGroupRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from odradek.protocol.messages.update_features import UpdateFeaturesRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
)
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
CLUSTER_ACTION, IDEMPOTENT_WRITE = Operation.CLUSTER_ACTION, Operation.IDEMPOTENT_WRITE
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)

TWO_PHASE_COMMIT_SINCE: Final = 6
"""The version of InitProducerId."""

SERVED: tuple[Api, ...] = (
    Api(
        ProduceRequest,
        produce.handle,
        produce.fail,
        served=(3, 13),
        needs=((WRITE, TOPIC), (WRITE, TRANSACTIONAL_ID)),
        refuse=produce.refuse,
        advertised_from=0,
        is_eager=True,
        has_records=True,
    ),
    Api(FetchRequest, fetch.handle, fetch.fail, served=(4, 18), needs=((READ, TOPIC), (CLUSTER_ACTION, CLUSTER))),
    Api(
        ListOffsetsRequest,
        list_offsets.handle,
        list_offsets.fail,
        served=(1, 11),
        needs=((DESCRIBE, TOPIC), (CLUSTER_ACTION, CLUSTER)),
    ),
    Api(
        MetadataRequest,
        metadata.handle,
        metadata.fail,
        served=(0, 13),
        needs=((DESCRIBE, TOPIC), (CREATE, TOPIC), (CREATE, CLUSTER), (DESCRIBE, CLUSTER)),
    ),
    Api(
        FindCoordinatorRequest,
        find_coordinator.handle,
        find_coordinator.fail,
        served=(0, 6),
        needs=((DESCRIBE, GROUP), (DESCRIBE, TRANSACTIONAL_ID), (CLUSTER_ACTION, CLUSTER)),
    ),
    Api(
        OffsetCommitRequest,
        offset_commit.handle,
        offset_commit.fail,
        served=(2, 10),
        needs=((READ, GROUP), (READ, TOPIC)),
        refuse=offset_commit.refuse,
        is_eager=True,
    ),
    Api(
        OffsetFetchRequest,
        offset_fetch.handle,
        offset_fetch.fail,
        served=(1, 10),
        needs=((DESCRIBE, GROUP), (DESCRIBE, TOPIC)),
    ),
    Api(JoinGroupRequest, join_group.handle, join_group.fail, served=(0, 9), needs=((READ, GROUP),)),
    Api(HeartbeatRequest, heartbeat.handle, heartbeat.fail, served=(0, 4), needs=((READ, GROUP),)),
    Api(LeaveGroupRequest, leave_group.handle, leave_group.fail, served=(0, 5), needs=((READ, GROUP),)),
    Api(SyncGroupRequest, sync_group.handle, sync_group.fail, served=(0, 5), needs=((READ, GROUP),)),
    Api(DescribeGroupsRequest, describe_groups.handle, describe_groups.fail, served=(0, 6), needs=((DESCRIBE, GROUP),)),
    Api(
        ListGroupsRequest,
        list_groups.handle,
        list_groups.fail,
        served=(0, 5),
        needs=((DESCRIBE, CLUSTER), (DESCRIBE, GROUP)),
    ),
    Api(DeleteGroupsRequest, delete_groups.handle, delete_groups.fail, served=(0, 2), needs=((DELETE, GROUP),)),
    Api(
        OffsetDeleteRequest,
        offset_delete.handle,
        offset_delete.fail,
        served=(0, 0),
        needs=((DELETE, GROUP), (READ, TOPIC)),
    ),
    Api(
        ApiVersionsRequest,
        api_versions.handle,
        api_versions.fail,
        served=(0, 5),
        needs=(),
        is_before_authentication=True,
    ),
    Api(
        CreateTopicsRequest,
        create_topics.handle,
        create_topics.fail,
        served=(2, 7),
        needs=((CREATE, CLUSTER), (CREATE, TOPIC), (DESCRIBE_CONFIGS, TOPIC)),
    ),
    Api(
        DeleteTopicsRequest,
        delete_topics.handle,
        delete_topics.fail,
        served=(1, 6),
        needs=((DELETE, CLUSTER), (DESCRIBE, TOPIC), (DELETE, TOPIC)),
    ),
    Api(
        DeleteRecordsRequest,
        delete_records.handle,
        delete_records.fail,
        served=(0, 2),
        needs=((DELETE, TOPIC),),
        refuse=delete_records.refuse,
    ),
    Api(
        InitProducerIdRequest,
        init_producer_id.handle,
        init_producer_id.fail,
        served=(0, 5),
        needs=((WRITE, TRANSACTIONAL_ID), (IDEMPOTENT_WRITE, CLUSTER), (WRITE, TOPIC)),
    ),
    Api(
        AddPartitionsToTxnRequest,
        add_partitions_to_txn.handle,
        add_partitions_to_txn.fail,
        served=(0, 5),
        needs=((WRITE, TRANSACTIONAL_ID), (WRITE, TOPIC), (CLUSTER_ACTION, CLUSTER)),
    ),
    Api(
        AddOffsetsToTxnRequest,
        add_offsets_to_txn.handle,
        add_offsets_to_txn.fail,
        served=(0, 4),
        needs=((WRITE, TRANSACTIONAL_ID), (READ, GROUP)),
    ),
    Api(EndTxnRequest, end_txn.handle, end_txn.fail, served=(0, 5), needs=((WRITE, TRANSACTIONAL_ID),)),
    Api(
        WriteTxnMarkersRequest,
        write_txn_markers.handle,
        write_txn_markers.fail,
        served=(1, 2),
        needs=((ALTER, CLUSTER), (CLUSTER_ACTION, CLUSTER)),
    ),
    Api(
        TxnOffsetCommitRequest,
        txn_offset_commit.handle,
        txn_offset_commit.fail,
        served=(0, 6),
        needs=((WRITE, TRANSACTIONAL_ID), (READ, GROUP), (READ, TOPIC)),
        refuse=txn_offset_commit.refuse,
    ),
    Api(
        DescribeProducersRequest,
        describe_producers.handle,
        describe_producers.fail,
        served=(0, 0),
        needs=((READ, TOPIC),),
    ),
    Api(
        DescribeTransactionsRequest,
        describe_transactions.handle,
        describe_transactions.fail,
        served=(0, 0),
        needs=((DESCRIBE, TRANSACTIONAL_ID), (DESCRIBE, TOPIC)),
    ),
    Api(
        ListTransactionsRequest,
        list_transactions.handle,
        list_transactions.fail,
        served=(0, 2),
        needs=((DESCRIBE, TRANSACTIONAL_ID),),
    ),
    Api(
        OffsetForLeaderEpochRequest,
        offset_for_leader_epoch.handle,
        offset_for_leader_epoch.fail,
        served=(2, 4),
        needs=((CLUSTER_ACTION, CLUSTER), (DESCRIBE, TOPIC)),
    ),
    Api(
        DescribeConfigsRequest,
        describe_configs.handle,
        describe_configs.fail,
        served=(1, 4),
        needs=((DESCRIBE_CONFIGS, TOPIC), (DESCRIBE_CONFIGS, GROUP), (DESCRIBE_CONFIGS, CLUSTER)),
    ),
    Api(
        AlterConfigsRequest,
        alter_configs.handle,
        alter_configs.fail,
        served=(0, 2),
        needs=((ALTER_CONFIGS, TOPIC), (ALTER_CONFIGS, GROUP), (ALTER_CONFIGS, CLUSTER)),
    ),
    Api(
        DescribeLogDirsRequest,
        describe_log_dirs.handle,
        describe_log_dirs.fail,
        served=(1, 5),
        needs=((DESCRIBE, CLUSTER),),
    ),
    Api(
        CreatePartitionsRequest,
        create_partitions.handle,
        create_partitions.fail,
        served=(0, 3),
        needs=((ALTER, TOPIC),),
    ),
    Api(
        ElectLeadersRequest,
        elect_leaders.handle,
        elect_leaders.fail,
        served=(0, 2),
        needs=((ALTER, CLUSTER),),
        is_forwarded=True,
    ),
    Api(
        IncrementalAlterConfigsRequest,
        incremental_alter_configs.handle,
        incremental_alter_configs.fail,
        served=(0, 1),
        needs=((ALTER_CONFIGS, TOPIC), (ALTER_CONFIGS, GROUP), (ALTER_CONFIGS, CLUSTER)),
    ),
    Api(
        AlterPartitionReassignmentsRequest,
        alter_partition_reassignments.handle,
        alter_partition_reassignments.fail,
        served=(0, 1),
        needs=((ALTER, CLUSTER),),
        is_forwarded=True,
    ),
    Api(
        ListPartitionReassignmentsRequest,
        list_partition_reassignments.handle,
        list_partition_reassignments.fail,
        served=(0, 0),
        needs=((DESCRIBE, CLUSTER),),
    ),
    Api(
        DescribeQuorumRequest,
        describe_quorum.handle,
        describe_quorum.fail,
        served=(0, 2),
        needs=((DESCRIBE, CLUSTER), (CLUSTER_ACTION, CLUSTER)),
    ),
    Api(
        DescribeClusterRequest,
        describe_cluster.handle,
        describe_cluster.fail,
        served=(0, 2),
        needs=((DESCRIBE, CLUSTER),),
    ),
    Api(
        BrokerHeartbeatRequest,
        broker_heartbeat.handle,
        broker_heartbeat.fail,
        served=(0, 2),
        needs=((CLUSTER_ACTION, CLUSTER),),
    ),
    Api(
        UnregisterBrokerRequest,
        unregister_broker.handle,
        unregister_broker.fail,
        served=(0, 0),
        needs=((ALTER, CLUSTER),),
        is_forwarded=True,
    ),
    Api(
        DescribeTopicPartitionsRequest,
        describe_topic_partitions.handle,
        describe_topic_partitions.fail,
        served=(0, 0),
        needs=((DESCRIBE, TOPIC),),
    ),
    Api(
        ConsumerGroupHeartbeatRequest,
        consumer_group_heartbeat.handle,
        consumer_group_heartbeat.fail,
        served=(0, 1),
        needs=((READ, GROUP), (DESCRIBE, TOPIC)),
    ),
    Api(
        ConsumerGroupDescribeRequest,
        consumer_group_describe.handle,
        consumer_group_describe.fail,
        served=(0, 1),
        needs=((DESCRIBE, GROUP), (DESCRIBE, TOPIC)),
    ),
    Api(
        ListConfigResourcesRequest,
        list_config_resources.handle,
        list_config_resources.fail,
        served=(0, 1),
        needs=((DESCRIBE_CONFIGS, CLUSTER),),
    ),
    Api(
        UpdateFeaturesRequest,
        update_features.handle,
        update_features.fail,
        served=(0, 2),
        needs=((ALTER, CLUSTER),),
    ),
    Api(
        EnvelopeRequest,
        envelope.handle,
        envelope.fail,
        served=(0, 0),
        needs=((CLUSTER_ACTION, CLUSTER),),
        is_advertised=False,
    ),
    *OF_SECURITY,
)

BY_KEY: Mapping[int, Api] = {api.key: api for api in SERVED}


def served_with(config: BrokerConfig, served: Mapping[int, Api] = BY_KEY) -> Mapping[int, Api]:
    """The table of a broker with these options: `transaction.two.phase.commit.enable` brings InitProducerId 6, where
    the table has the version before (KIP-939)."""
    key = InitProducerIdRequest.api_key
    api = served.get(key)
    if not config.transaction_two_phase_commit_enable or api is None or api.served[1] != TWO_PHASE_COMMIT_SINCE - 1:
        return served
    needs = (*api.needs, (Operation.TWO_PHASE_COMMIT, TRANSACTIONAL_ID))
    return {**served, key: replace(api, served=(api.served[0], TWO_PHASE_COMMIT_SINCE), needs=needs)}


def limited(served: Mapping[int, Api], ranges: Mapping[int, tuple[int, int]]) -> Mapping[int, Api]:
    """The table of another release: these APIs alone, by key, each with the versions that both have. Raises ValueError
    where they have none in common."""
    limited: dict[int, Api] = {}
    for key, (lowest, highest) in ranges.items():
        api = served[key]
        lowest, highest = max(lowest, api.served[0]), min(highest, api.served[1])
        if lowest > highest:
            raise ValueError(f"{api.name} is served from {api.served[0]} to {api.served[1]}, not {ranges[key]}")
        limited[key] = replace(api, served=(lowest, highest))
    return limited
