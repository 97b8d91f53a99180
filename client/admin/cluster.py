"""Brokers, their log directories and deleted records as Admin returns them, and what that is on the wire. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.client.topic_partition import TopicPartition, by_topic
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.describe_cluster import DescribeClusterResponse
from odradek.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from odradek.protocol.messages.metadata import MetadataResponse

__all__ = ["BrokerDescription", "ClusterDescription", "LogDirDescription", "ReplicaDescription"]


@dataclass(frozen=True, slots=True)
class BrokerDescription:
    """A broker, by the address that it advertises to those who ask on this listener.

    `is_fenced`: it is registered, but the controller does not hear from it; only where such brokers were asked for.
    """

    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster. `controller_id` is a broker that takes requests for the controller; -1: there is none."""

    cluster_id: str | None
    controller_id: int
    brokers: tuple[BrokerDescription, ...]


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    """A replica in a log directory. `offset_lag`: how far it is behind the leader's end.

    `is_future`: it is being moved there from another directory of the broker.
    """

    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """A log directory of a broker. Sizes of the volume are -1 where the broker does not tell (KIP-827).

    `error`: why it cannot be used; KAFKA_STORAGE_ERROR where its disk has failed.
    """

    path: str
    replicas: tuple[ReplicaDescription, ...]
    total_bytes: int = -1
    usable_bytes: int = -1
    error: ClientError | None = None

    @property
    def size_bytes(self) -> int:
        """Of all replicas in it."""
        return sum(replica.size_bytes for replica in self.replicas)


def described_cluster(response: DescribeClusterResponse | MetadataResponse) -> ClusterDescription:
    """From DescribeCluster (KIP-700), or from Metadata, which older brokers answer. Raises ClientError."""
    if isinstance(response, MetadataResponse):
        found = [BrokerDescription(each.node_id, each.host, each.port, each.rack) for each in response.brokers]
    else:
        if response.error_code:
            raise broker_error(response.error_code, response.error_message, "DescribeCluster")
        found = [
            BrokerDescription(each.broker_id, each.host, each.port, each.rack, each.is_fenced)
            for each in response.brokers
        ]
    brokers = tuple(sorted(found, key=lambda broker: broker.node_id))
    return ClusterDescription(response.cluster_id, response.controller_id, brokers)


def describe_log_dirs_request(partitions: Iterable[TopicPartition] | None) -> DescribeLogDirsRequest:
    """`partitions`: None for all."""
    if partitions is None:
        return DescribeLogDirsRequest(topics=None)
    topics = by_topic(partitions).items()
    return DescribeLogDirsRequest(
        topics=[DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics]
    )


def described_log_dirs(response: DescribeLogDirsResponse, node_id: int) -> tuple[LogDirDescription, ...] | ClientError:
    if response.error_code:
        return broker_error(response.error_code, "", f"DescribeLogDirs of broker {node_id}")
    return tuple(sorted(map(_log_dir, response.results), key=lambda log_dir: log_dir.path))


def _log_dir(result: DescribeLogDirsResult) -> LogDirDescription:
    replicas = [
        ReplicaDescription(
            TopicPartition(topic.name, each.partition_index), each.partition_size, each.offset_lag, each.is_future_key
        )
        for topic in result.topics
        for each in topic.partitions
    ]
    return LogDirDescription(
        result.log_dir,
        tuple(sorted(replicas, key=lambda replica: (replica.partition, replica.is_future))),
        result.total_bytes,
        result.usable_bytes,
        broker_error(result.error_code, "", f"the log directory {result.log_dir}") if result.error_code else None,
    )


def delete_records_request(before: Mapping[TopicPartition, int], timeout_ms: int) -> DeleteRecordsRequest:
    """`before`: the offset that each partition shall begin with; -1: its high watermark."""
    topics: dict[str, list[DeleteRecordsPartition]] = {}
    for partition, offset in before.items():
        topics.setdefault(partition.topic, []).append(
            DeleteRecordsPartition(partition_index=partition.partition, offset=offset)
        )
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        timeout_ms=timeout_ms,
    )


def deleted_records(response: DeleteRecordsResponse) -> dict[TopicPartition, int | ClientError]:
    """The first offset that is left, by partition."""
    outcomes: dict[TopicPartition, int | ClientError] = {}
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            failed = broker_error(each.error_code, "", f"DeleteRecords of {partition}") if each.error_code else None
            outcomes[partition] = each.low_watermark if failed is None else failed
    return outcomes
