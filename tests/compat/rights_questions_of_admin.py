"""Rows of the matrix of rights: topics and options that operators change, the cluster, quotas, credentials and ACLs."""

from collections.abc import Sequence
from typing import Any

from odradek.protocol.configs import ResourceType
from odradek.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from odradek.protocol.messages.alter_configs import AlterConfigsRequest
from odradek.protocol.messages.alter_configs import AlterConfigsResource as Replaced
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from odradek.protocol.messages.describe_quorum import (
    METADATA_TOPIC,
    DescribeQuorumRequest,
    QuorumPartitionData,
    QuorumTopicData,
)
from odradek.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.protocol.messages.incremental_alter_configs import AlterConfigsResource, IncrementalAlterConfigsRequest
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.compat.rights_principals import ALL, ALLOW, LITERAL, TOPIC
from tests.compat.rights_questions import asks
from tests.compat.rights_questions_of_data import UNKNOWN_ID
from tests.compat.rights_world import DOOMED, GROUP_ID, NEW, TOPIC_NAME, World

NODE, NOT_HERE = "1", 99
RESOURCES = (
    (ResourceType.TOPIC, TOPIC_NAME),
    (ResourceType.TOPIC, NEW),
    (ResourceType.GROUP, GROUP_ID),
    (ResourceType.BROKER, NODE),
    (ResourceType.BROKER, ""),
)
WITH_LOGGERS = (*RESOURCES, (ResourceType.BROKER_LOGGER, NODE))
OPTION = "max.message.bytes"
NOBODY = "User:nobody-of-the-matrix"


# -- topics ---------------------------------------------------------------------------------------------------------
def create(world: World) -> CreateTopicsRequest:
    """Only checked: one that is new, one that is there, and one that nobody may create."""
    del world
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        for name in (NEW, TOPIC_NAME, METADATA_TOPIC)
    ]
    return CreateTopicsRequest(topics=topics, timeout_ms=5000, validate_only=True)


def delete(*states: DeleteTopicState) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=list(states), timeout_ms=5000)


def by_name(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name)


def by_id(topic_id: bytes) -> DeleteTopicState:
    return DeleteTopicState(name=None, topic_id=topic_id)


def is_made_again(world: World, answer: Any) -> None:
    del answer
    world.make_again(DOOMED)


asks("CreateTopics", (2, 4, 5, 7), create)
asks(
    "DeleteTopics",
    (1, 5),
    lambda _: DeleteTopicsRequest(topic_names=[DOOMED, NEW], timeout_ms=5000),
    renew=is_made_again,
)
asks("DeleteTopics", (6,), lambda _: delete(by_name(DOOMED), by_name(NEW)), what="by name", renew=is_made_again)
asks(
    "DeleteTopics",
    (6,),
    lambda world: delete(by_id(world.ids[DOOMED]), by_id(UNKNOWN_ID)),
    what="by id",
    renew=is_made_again,
)
asks(
    "DeleteTopics",
    (6,),
    lambda world: delete(by_id(world.ids[TOPIC_NAME]), by_name(TOPIC_NAME)),
    what="by name and by id",
)
asks(
    "CreatePartitions",
    (0, 3),
    lambda _: CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=2, assignments=None) for name in (TOPIC_NAME, NEW)],
        timeout_ms=5000,
        validate_only=True,
    ),
)
asks(
    "ElectLeaders",
    (0, 2),
    lambda _: ElectLeadersRequest(
        topic_partitions=[TopicPartitions(topic=TOPIC_NAME, partitions=[0])], timeout_ms=5000
    ),
)
asks("ElectLeaders", (2,), lambda _: ElectLeadersRequest(topic_partitions=None, timeout_ms=5000), what="all")
asks(
    "AlterPartitionReassignments",
    (0, 1),
    lambda _: AlterPartitionReassignmentsRequest(
        timeout_ms=5000,
        topics=[
            ReassignableTopic(name=TOPIC_NAME, partitions=[ReassignablePartition(partition_index=0, replicas=None)])
        ],
    ),
)
asks(
    "ListPartitionReassignments",
    (0,),
    lambda _: ListPartitionReassignmentsRequest(
        topics=[ListPartitionReassignmentsTopics(name=TOPIC_NAME, partition_indexes=[0])]
    ),
)
asks("ListPartitionReassignments", (0,), lambda _: ListPartitionReassignmentsRequest(topics=None), what="all")


# -- options --------------------------------------------------------------------------------------------------------
def described(resources: Sequence[tuple[int, str]]) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[OPTION])
            for kind, name in resources
        ]
    )


asks("DescribeConfigs", (1, 4), lambda _: described(WITH_LOGGERS))
asks(
    "AlterConfigs",
    (0, 2),
    lambda _: AlterConfigsRequest(
        resources=[Replaced(resource_type=kind, resource_name=name, configs=[]) for kind, name in RESOURCES if name],
        validate_only=True,
    ),
)
asks(
    "IncrementalAlterConfigs",
    (0, 1),
    lambda _: IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(resource_type=kind, resource_name=name, configs=[]) for kind, name in WITH_LOGGERS
        ],
        validate_only=True,
    ),
)
asks("ListConfigResources", (0, 1), lambda _: ListConfigResourcesRequest())


# -- the cluster ----------------------------------------------------------------------------------------------------
asks(
    "DescribeCluster",
    (0, 2),
    lambda _: DescribeClusterRequest(include_cluster_authorized_operations=True),
    what="with operations",
)
asks("DescribeCluster", (0, 2), lambda _: DescribeClusterRequest(include_cluster_authorized_operations=False))
asks(
    "DescribeQuorum",
    (0, 2),
    lambda _: DescribeQuorumRequest(
        topics=[QuorumTopicData(topic_name=METADATA_TOPIC, partitions=[QuorumPartitionData(partition_index=0)])]
    ),
)
asks("DescribeLogDirs", (1, 3, 5), lambda _: DescribeLogDirsRequest(topics=None), what="all")
asks(
    "DescribeLogDirs",
    (1, 5),
    lambda _: DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic=TOPIC_NAME, partitions=[0])]),
)
asks("UnregisterBroker", (0,), lambda _: UnregisterBrokerRequest(broker_id=NOT_HERE))
asks(
    "UpdateFeatures",
    (0, 1, 2),
    lambda _: UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature="no.such.feature", max_version_level=1)], validate_only=True
    ),
)


# -- who may do what ------------------------------------------------------------------------------------------------
def acl(name: str) -> AclCreation:
    return AclCreation(
        resource_type=TOPIC,
        resource_name=name,
        resource_pattern_type=LITERAL,
        principal=NOBODY,
        host="*",
        operation=ALL,
        permission_type=ALLOW,
    )


asks(
    "DescribeAcls",
    (1, 3),
    lambda _: DescribeAclsRequest(
        resource_type_filter=TOPIC,
        resource_name_filter=NEW,
        pattern_type_filter=LITERAL,
        principal_filter="User:only-topic-read",
        host_filter=None,
        operation=1,
        permission_type=1,
    ),
)
asks("CreateAcls", (1, 3), lambda _: CreateAclsRequest(creations=[acl(NEW), acl("")]))
asks(
    "DeleteAcls",
    (1, 3),
    lambda _: DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=TOPIC,
                resource_name_filter="nothing-has-this-name",
                pattern_type_filter=LITERAL,
                principal_filter=NOBODY,
                host_filter=None,
                operation=1,
                permission_type=1,
            )
        ]
    ),
)
asks("DescribeClientQuotas", (0, 1), lambda _: DescribeClientQuotasRequest(components=[], strict=False))
asks(
    "AlterClientQuotas",
    (0, 1),
    lambda _: AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[EntityData(entity_type="user", entity_name="nobody")],
                ops=[OpData(key="producer_byte_rate", value=1e9, remove=False)],
            )
        ],
        validate_only=True,
    ),
)
asks(
    "DescribeUserScramCredentials",
    (0,),
    lambda _: DescribeUserScramCredentialsRequest(users=[UserName(name="nobody")]),
)
asks(
    "AlterUserScramCredentials",
    (0,),
    lambda _: AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="nobody", mechanism=1)]),
)
