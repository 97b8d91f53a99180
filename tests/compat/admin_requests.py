"""Admin requests at random, good and bad values in every field: the steps of a history, drawn from a seed.

Topics are written by short names, which stand for topics of the history's own. `a` exists, with two partitions placed
by hand (0 on brokers 1 and 2, 1 on 2 and 3; with one broker both on it) and records in it. `p` exists and was placed by
the cluster. Others do not exist until the history creates them. An id is written as `topic_id("a")`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final, cast

from odradek.broker.served import BY_KEY
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.schema import ZERO_UUID, Request, Struct
from odradek.protocol.messages import alter_configs as legacy
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from odradek.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.compat.admin_leaves import as_list

A, PLACED = "a", "p"
NAMES: Final = (A, PLACED, "n", "m", "c.c", "c_c")
"""Short for topics of the history's own."""
INVALID: Final = ("", ".", "..", "a/b", "x" * 250)
TIMEOUT_MS = 15_000
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)

# fmt: off
TOPIC_VALUES: Final[dict[str, tuple[str | None, ...]]] = {
    "retention.ms": ("600000", "-1", "-2", "soon", "", " 7 ", None, "9223372036854775808"),
    "retention.bytes": ("1", "-1", "1.5"),
    "cleanup.policy": (
        "compact", "delete", "compact,delete", "", "none", "delete,", ",", "delete,,compact", "delete,delete",
    ),
    "min.insync.replicas": ("1", "2", "4", "0"),
    "compression.type": ("zstd", "producer", "none", "uncompressed", "ZSTD"),
    "segment.bytes": ("1048576", "1", "2147483648"),
    "max.message.bytes": ("1000", "0", "-1"),
    "message.timestamp.type": ("LogAppendTime", "logappendtime"),
    "min.compaction.lag.ms": ("5", "0"),
    "max.compaction.lag.ms": ("1", "0"),
    "min.cleanable.dirty.ratio": ("0.1", "1", "1.1", ".5"),
    "preallocate": ("true", "TRUE", "yes", "1"),
    "unclean.leader.election.enable": ("true", "false"),
    "leader.replication.throttled.replicas": ("0:1", "*", "0:1,1:2", "", "0", "0:x", "*,0:1"),
    "follower.replication.throttled.replicas": ("0:1", "*"),
    "compression.gzip.level": ("9", "0", "10"),
    "local.retention.ms": ("-2", "5"),
    "remote.storage.enable": ("false",),
    "no.such": ("1", None),
    "log.retention.ms": ("1",),
    "": ("1",),
}
BROKER_VALUES: Final[dict[str, tuple[str | None, ...]]] = {
    "log.retention.ms": ("600000000", "soon", None),
    "log.cleaner.threads": ("1",),
    "log.cleanup.policy": ("compact", "delete", "none"),
    "message.max.bytes": ("1048588", "-1"),
    "max.connections": ("100", "many"),
    "min.insync.replicas": ("1", "2", "0"),
    "num.partitions": ("2",),
    "node.id": ("1", "5"),
    "process.roles": ("broker",),
    "ssl.keystore.type": ("JKS",),
    "no.such.option": ("1", None),
    "": ("x",),
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Step:
    """A request to one of the brokers, in a version."""

    node: int
    version: int
    request: Any
    """A `Request`, of which rules look at fields that only some have."""

    @property
    def api(self) -> str:
        return type(self.request).__name__.removesuffix("Request")


def topic_id(name: str) -> bytes:
    """Stands for the id of that topic."""
    return f"id of {name}".encode().ljust(16, b"_")


def history(seed: int, brokers: int, steps: int = 0) -> list[Step]:
    """So many steps; 0: two or three."""
    draw = Draw(Random(seed), brokers)
    return [draw.step() for _ in range(steps or draw.random.choice((2, 2, 3)))]


class Draw:
    """Values for one history."""

    def __init__(self, random: Random, brokers: int) -> None:
        self.random = random
        self.brokers = brokers
        self._apis: tuple[tuple[int, Callable[[], Request[Any]]], ...] = (
            (5, self._create_topics),
            (3, self._create_partitions),
            (3, self._delete_topics),
            (3, self._alter_configs),
            (5, self._incremental_alter_configs),
            (2, self._describe_configs),
            (2, self._delete_records),
            (2, self._elect_leaders),
            (4, self._alter_partition_reassignments),
            (1, self._list_partition_reassignments),
            (2, self._describe_topic_partitions),
            (2, self._metadata),
            (1, self._describe_cluster),
            (2, self._list_offsets),
            (1, self._unregister_broker),
            (1, self._describe_log_dirs),
            (1, self._offset_for_leader_epoch),
        )

    def step(self) -> Step:
        """One that its version can carry: null may not stand everywhere in each."""
        while True:
            [make] = self.random.choices([make for _, make in self._apis], [weight for weight, _ in self._apis])
            request = make()
            lowest, highest = BY_KEY[request.api_key].served
            version = self.random.choice((highest, highest, self.random.randint(lowest, highest)))
            try:
                encode(request, version)
            except ValueError:
                continue
            return Step(self.random.randint(1, self.brokers), version, request)

    # -- values -------------------------------------------------------------------------------------------------
    def one(self, *values: Any) -> Any:
        return self.random.choice(values)

    def some(self, make: Callable[[], Any], *counts: int) -> list[Any]:
        return [make() for _ in range(self.one(*(counts or (1, 1, 1, 2))))]

    def name(self) -> str:
        return self.random.choice((A, A, A, A, PLACED, PLACED, "n", "m", self.random.choice(INVALID)))

    def index(self) -> int:
        return self.random.choice((0, 0, 0, 1, 1, 9, -1))

    def replicas(self) -> list[int]:
        ids = [*range(1, self.brokers + 1)]
        good = self.random.sample(ids, self.random.randint(1, len(ids)))
        return self.random.choice((good, good, good, good, [1, 1], [], [9], [-1], [*good, 9]))

    def values(self, pool: dict[str, tuple[str | None, ...]], count: int) -> list[tuple[str, str | None]]:
        names = self.random.choices(list(pool), k=count)
        return [(name, self.random.choice(pool[name])) for name in names]

    def validate_only(self) -> bool:
        return self.random.random() < 0.15

    # -- topics -------------------------------------------------------------------------------------------------
    def _create_topics(self) -> CreateTopicsRequest:
        return CreateTopicsRequest(
            topics=self.some(self._new_topic), timeout_ms=TIMEOUT_MS, validate_only=self.validate_only()
        )

    def _new_topic(self) -> CreatableTopic:
        name = self.random.choice((*NAMES, "n", "n", "n", self.random.choice(INVALID), "__cluster_metadata"))
        assignments: list[CreatableReplicaAssignment] = []
        count, factor = self.one(-1, -1, 1, 2, 0, -2, 10_001), self.one(-1, -1, 1, self.brokers, 4, 0, -2)
        if self.random.random() < 0.3:
            assignments = self._assignments()
            if self.random.random() < 0.8:
                count = factor = -1
        configs = [
            CreatableTopicConfig(name=name, value=value)
            for name, value in self.values(TOPIC_VALUES, self.one(0, 0, 0, 1, 1, 2))
        ]
        return CreatableTopic(
            name=name, num_partitions=count, replication_factor=factor, assignments=assignments, configs=configs
        )

    def _assignments(self) -> list[CreatableReplicaAssignment]:
        indexes = self.random.choice(((0,), (0, 1), (0, 1), (1,), (0, 0), (0, 2), (-1, 0)))
        return [CreatableReplicaAssignment(partition_index=index, broker_ids=self.replicas()) for index in indexes]

    def _create_partitions(self) -> CreatePartitionsRequest:
        return CreatePartitionsRequest(
            topics=self.some(self._more_partitions), timeout_ms=TIMEOUT_MS, validate_only=self.validate_only()
        )

    def _more_partitions(self) -> CreatePartitionsTopic:
        assignments: list[CreatePartitionsAssignment] | None = None
        if self.random.random() < 0.4:
            assignments = self.some(lambda: CreatePartitionsAssignment(broker_ids=self.replicas()), 0, 1, 1, 1, 2)
        return CreatePartitionsTopic(name=self.name(), count=self.one(3, 3, 3, 4, 2, 1, 0, -1), assignments=assignments)

    def _delete_topics(self) -> DeleteTopicsRequest:
        names = self.some(self.name)
        if self.random.random() < 0.5:
            return DeleteTopicsRequest(topic_names=names, timeout_ms=TIMEOUT_MS)
        return DeleteTopicsRequest(topics=[self._state(name) for name in names], timeout_ms=TIMEOUT_MS)

    def _state(self, name: str) -> DeleteTopicState:
        identity = topic_id(name if name in NAMES else A)
        return self.random.choice(
            (
                DeleteTopicState(name=name),
                DeleteTopicState(name=name),
                DeleteTopicState(name=None, topic_id=identity),
                DeleteTopicState(name=None, topic_id=identity),
                DeleteTopicState(name=name, topic_id=identity),
                DeleteTopicState(name=None, topic_id=ZERO_UUID),
            )
        )

    # -- options ------------------------------------------------------------------------------------------------
    def _resource(self) -> tuple[int, str]:
        kind = self.random.choice((TOPIC, TOPIC, TOPIC, BROKER, BROKER, self.one(0, 1, 77)))
        if kind == BROKER:
            return kind, self.one("", *map(str, range(1, self.brokers + 1)), self.one("9", "x", "-1"))
        return kind, self.name()

    def _pool(self, kind: int) -> dict[str, tuple[str | None, ...]]:
        return BROKER_VALUES if kind == BROKER else TOPIC_VALUES

    def _alter_configs(self) -> legacy.AlterConfigsRequest:
        """Each resource once: one that is named twice Kafka never answers. Types that do not exist are one to it."""
        resources = {
            (each.resource_type if each.resource_type in (TOPIC, BROKER) else 0, each.resource_name): each
            for each in self.some(self._replaced)
        }
        return legacy.AlterConfigsRequest(resources=list(resources.values()), validate_only=self.validate_only())

    def _replaced(self) -> legacy.AlterConfigsResource:
        kind, name = self._resource()
        values = self.values(self._pool(kind), self.one(0, 1, 1, 2))
        configs = [legacy.AlterableConfig(name=option, value=value) for option, value in values]
        return legacy.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)

    def _incremental_alter_configs(self) -> IncrementalAlterConfigsRequest:
        return IncrementalAlterConfigsRequest(resources=self.some(self._altered), validate_only=self.validate_only())

    def _altered(self) -> AlterConfigsResource:
        kind, name = self._resource()
        configs = [
            AlterableConfig(name=option, config_operation=operation, value=value)
            for option, value in self.values(self._pool(kind), self.one(0, 1, 1, 2))
            for operation in (self.one(SET, SET, SET, DELETE, APPEND, SUBTRACT, self.one(4, -1)),)
        ]
        return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)

    def _describe_configs(self) -> DescribeConfigsRequest:
        return DescribeConfigsRequest(
            resources=self.some(self._described), include_synonyms=self.one(True, False), include_documentation=False
        )

    def _described(self) -> DescribeConfigsResource:
        kind, name = self._resource()
        keys = self.random.sample(list(self._pool(kind)), 3)
        if kind != BROKER and self.random.random() < 0.5:
            keys = self.one(None, [])
        return DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)

    # -- partitions ---------------------------------------------------------------------------------------------
    def placed(self) -> str:
        """A topic of which it is known where its partitions are, or one that is not there."""
        return self.random.choice((A, A, A, A, "m", self.random.choice(INVALID)))

    def _delete_records(self) -> DeleteRecordsRequest:
        return DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=self.placed(),
                    partitions=self.some(
                        lambda: DeleteRecordsPartition(
                            partition_index=self.index(), offset=self.one(-1, 0, 1, 3, 4, -2)
                        )
                    ),
                )
            ],
            timeout_ms=TIMEOUT_MS,
        )

    def _elect_leaders(self) -> ElectLeadersRequest:
        return ElectLeadersRequest(
            election_type=self.one(0, 0, 1, 2),
            topic_partitions=[
                TopicPartitions(topic=self.placed(), partitions=self.some(self.index, 0, 1, 1, 2)) for _ in range(1)
            ],
            timeout_ms=TIMEOUT_MS,
        )

    def _alter_partition_reassignments(self) -> AlterPartitionReassignmentsRequest:
        return AlterPartitionReassignmentsRequest(
            timeout_ms=TIMEOUT_MS,
            allow_replication_factor_change=self.one(True, True, False),
            topics=[
                ReassignableTopic(name=self.placed(), partitions=self.some(self._reassigned, 1, 1, 1, 2))
                for _ in range(1)
            ],
        )

    def _reassigned(self) -> ReassignablePartition:
        replicas = None if self.random.random() < 0.15 else self.replicas()
        return ReassignablePartition(partition_index=self.index(), replicas=replicas)

    def _list_partition_reassignments(self) -> ListPartitionReassignmentsRequest:
        topics = [ListPartitionReassignmentsTopics(name=self.name(), partition_indexes=self.some(self.index, 0, 1, 2))]
        return ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=self.one(None, [], topics))

    def _list_offsets(self) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self.one(0, 0, 1),
            topics=[ListOffsetsTopic(name=self.placed(), partitions=self.some(self._offset)) for _ in range(1)],
        )

    def _offset(self) -> ListOffsetsPartition:
        return ListOffsetsPartition(
            partition_index=self.index(),
            current_leader_epoch=self.one(-1, -1, -1, 99),
            timestamp=self.one(-1, -2, -3, -4, -5, -6, -7, 0, 1_700_000_000_001, 2**62),
        )

    def _offset_for_leader_epoch(self) -> OffsetForLeaderEpochRequest:
        return OffsetForLeaderEpochRequest(
            replica_id=self.one(-1, -2),
            topics=[
                OffsetForLeaderTopic(
                    topic=self.placed(),
                    partitions=self.some(
                        lambda: OffsetForLeaderPartition(
                            partition=self.index(),
                            current_leader_epoch=self.one(-1, -1, 99),
                            leader_epoch=self.one(0, -1, 99),
                        )
                    ),
                )
            ],
        )

    # -- looking ------------------------------------------------------------------------------------------------
    def _describe_topic_partitions(self) -> DescribeTopicPartitionsRequest:
        cursor = None
        if self.random.random() < 0.3:
            cursor = Cursor(topic_name=self.name(), partition_index=self.one(0, 1, 9, -1))
        return DescribeTopicPartitionsRequest(
            topics=self.some(lambda: TopicRequest(name=self.name()), 1, 2, 3),
            response_partition_limit=self.one(2000, 2000, 1, 0, -1),
            cursor=cursor,
        )

    def _metadata(self) -> MetadataRequest:
        return MetadataRequest(
            topics=self.some(self._asked, 0, 1, 1, 2, 3),
            allow_auto_topic_creation=self.one(True, False),
            include_cluster_authorized_operations=self.one(True, False),
            include_topic_authorized_operations=self.one(True, False),
        )

    def _asked(self) -> MetadataRequestTopic:
        name = self.name()
        identity = topic_id(name if name in NAMES else "m")
        return self.random.choice(
            (
                MetadataRequestTopic(name=name),
                MetadataRequestTopic(name=name),
                MetadataRequestTopic(name=None, topic_id=identity),
                MetadataRequestTopic(name=name, topic_id=identity),
                MetadataRequestTopic(name=None),
            )
        )

    def _describe_cluster(self) -> DescribeClusterRequest:
        return DescribeClusterRequest(
            include_cluster_authorized_operations=self.one(True, False),
            endpoint_type=self.one(1, 1, 2, 3, 0),
            include_fenced_brokers=self.one(True, False),
        )

    def _unregister_broker(self) -> UnregisterBrokerRequest:
        return UnregisterBrokerRequest(broker_id=self.one(9, -1, 2**31 - 1))

    def _describe_log_dirs(self) -> DescribeLogDirsRequest:
        topics = self.some(
            lambda: DescribableLogDirTopic(topic=self.placed(), partitions=self.some(self.index, 0, 1, 2))
        )
        return DescribeLogDirsRequest(topics=self.one(None, [], topics, topics))


def fields_of(value: object) -> tuple[str, ...]:
    """The names of a struct's fields; none of anything else."""
    return (
        cast("tuple[str, ...]", getattr(cast("object", type(value)), "__slots__", ()))
        if isinstance(value, Struct)
        else ()
    )


def lists_in(value: object) -> Iterator[list[Any]]:
    """The lists of a message, and those of what is in them."""
    for name in fields_of(value):
        yield from lists_in(getattr(value, name))
    if (items := as_list(value)) is not None:
        yield items
        for each in items:
            yield from lists_in(each)
