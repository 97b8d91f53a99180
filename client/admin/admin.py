"""The admin client: topics, partitions, replicas, options, records, brokers, groups, transactions, features, ACLs,
quotas and users of any Kafka cluster.

    async with Admin("localhost:9092") as admin:
        await admin.create_topic("orders", partitions=6, configs={"retention.ms": "3600000"})
        offsets = await admin.list_offsets({TopicPartition("orders", 0): LATEST})

A call about several items returns their results by item. When some fail it raises ItemsFailed, which holds the error of
each of these and the results of the others; a call about one item raises its error itself. Every call takes
`default_api_timeout_ms`, or its own `timeout_ms`, repetitions included.

Versions follow from the broker that is asked: what an older one does not know is asked for in an older way, or refused
by UnsupportedVersion before anything is sent. (Source: KafkaAdminClient.java.)
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from odradek.client.admin.acl_calls import AclCalls
from odradek.client.admin.base import items_of, keys_of
from odradek.client.admin.cluster import (
    ClusterDescription,
    LogDirDescription,
    delete_records_request,
    deleted_records,
    describe_log_dirs_request,
    described_cluster,
    described_log_dirs,
)
from odradek.client.admin.configs import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    alter_configs_request,
    altered_configs,
    describe_configs_request,
    described_configs,
)
from odradek.client.admin.feature_calls import FeatureCalls
from odradek.client.admin.group_calls import GroupCalls
from odradek.client.admin.group_offset_calls import GroupOffsetCalls
from odradek.client.admin.producer_calls import ProducerCalls
from odradek.client.admin.quota_calls import QuotaCalls
from odradek.client.admin.replication_calls import ReplicationCalls
from odradek.client.admin.transaction_calls import TransactionCalls
from odradek.client.admin.user_calls import UserCalls
from odradek.client.arguments import require_all, require_iterable, require_partitions
from odradek.client.errors.client_errors import ClientError, UnsupportedVersion
from odradek.client.fetching.list_offsets import ListedOffset, list_offsets_request, listed_offsets, lowest_version
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.runtime.tasks import run_together

__all__ = ["Admin"]

V = TypeVar("V")


class Admin(
    ProducerCalls,
    ReplicationCalls,
    GroupCalls,
    GroupOffsetCalls,
    TransactionCalls,
    FeatureCalls,
    AclCalls,
    QuotaCalls,
    UserCalls,
):
    """Asks and changes a cluster. The settings are those of `AdminConfig`, by name, or one ready `config`."""

    # ----------------------------------------------------------------------------------------------- options
    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        names: Sequence[str] | None = None,
        *,
        synonyms: bool = False,
        documentation: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """The options of topics, groups and brokers, by name. `names`: of those wanted; None: all.

        `synonyms`: with all places where each can be set; `documentation`: with what Kafka says of it.
        """
        deadline = self._deadline(timeout_ms)
        wanted = await items_of("resources", resources, "ConfigResource objects")
        require_all("resources", wanted, ConfigResource, "ConfigResource objects")
        if names is not None:
            require_iterable("names", names, "a list of options' names, or None")
            require_all("names", names, str, "options' names (str)")

        async def ask(
            some: list[ConfigResource], node_id: int | None
        ) -> Mapping[ConfigResource, dict[str, ConfigEntry] | ClientError]:
            request = describe_configs_request(some, names, synonyms=synonyms, documentation=documentation)
            return described_configs(await self._calls.ask(request, deadline, node=node_id))

        return await self._calls.complete("DescribeConfigs", wanted, lambda some: _by_node(some, ask), deadline)

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Changes single options (KIP-339): set, delete, append to and subtract from lists. The others stay.

        The changes of a resource are made together or not at all.
        """
        deadline = self._deadline(timeout_ms)
        resources = keys_of("changes", changes, "ConfigResource objects")
        require_all("changes", resources, ConfigResource, "ConfigResource objects")
        for some_changes in changes.values():
            require_iterable("the changes of a resource", some_changes, "a list of ConfigChange objects")
            require_all("the changes of a resource", some_changes, ConfigChange, "ConfigChange objects")

        async def ask(some: list[ConfigResource], node_id: int | None) -> Mapping[ConfigResource, ClientError | None]:
            request = alter_configs_request({each: changes[each] for each in some}, validate_only=validate_only)
            return altered_configs(await self._calls.ask(request, deadline, node=node_id))

        await self._calls.complete("AlterConfigs", changes, lambda some: _by_node(some, ask), deadline)

    # ----------------------------------------------------------------------------------------------- records
    async def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """An offset of each partition: EARLIEST, LATEST, MAX_TIMESTAMP, or the first record that is not older than a
        timestamp in milliseconds. With `read_committed`, LATEST is where the first open transaction begins."""
        deadline = self._deadline(timeout_ms)
        require_partitions("timestamps", keys_of("timestamps", timestamps, "TopicPartition objects"))
        require_all("timestamps", timestamps.values(), int, "whole numbers by partition")

        async def ask(
            leaders: Mapping[TopicPartition, int], node_id: int
        ) -> Mapping[TopicPartition, ListedOffset | ClientError]:
            wanted = {partition: timestamps[partition] for partition in leaders}
            at_least = lowest_version(wanted.values(), read_committed=read_committed)
            request = list_offsets_request(wanted, leaders, read_committed=read_committed)
            return listed_offsets(wanted, await self._calls.ask(request, deadline, node=node_id, at_least=at_least))

        return await self._calls.complete(
            "ListOffsets", timestamps, lambda some: self._by_leader(some, ask, deadline), deadline
        )

    async def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """Deletes the records before an offset (-1: all that are there); returns the first offset that is left."""
        deadline = self._deadline(timeout_ms)
        require_partitions("before", keys_of("before", before, "TopicPartition objects"))
        require_all("before", before.values(), int, "offsets (whole numbers) by partition")

        async def ask(
            leaders: Mapping[TopicPartition, int], node_id: int
        ) -> Mapping[TopicPartition, int | ClientError]:
            request = delete_records_request(
                {partition: before[partition] for partition in leaders}, self._timeout_ms(deadline)
            )
            return deleted_records(await self._calls.ask(request, deadline, node=node_id))

        return await self._calls.complete(
            "DeleteRecords", before, lambda some: self._by_leader(some, ask, deadline), deadline
        )

    # ----------------------------------------------------------------------------------------------- brokers
    async def describe_cluster(
        self, *, include_fenced: bool = False, timeout_ms: float | None = None
    ) -> ClusterDescription:
        """Cluster id, controller and brokers; with `include_fenced` those, too, that are registered and do not answer,
        where the broker that is asked tells of them (from Kafka 4.0 on)."""
        deadline = self._deadline(timeout_ms)
        try:
            request = DescribeClusterRequest(
                include_cluster_authorized_operations=False, include_fenced_brokers=include_fenced
            )
            response = await self._calls.ask_until(request, deadline)
        except UnsupportedVersion:  # before Kafka 2.8
            metadata = await self._calls.ask_until(MetadataRequest(topics=[]), deadline)
            return described_cluster(metadata)
        return described_cluster(response)

    async def describe_log_dirs(
        self,
        node_ids: Iterable[int] | None = None,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: float | None = None,
    ) -> dict[int, tuple[LogDirDescription, ...]]:
        """The log directories of brokers (None: all), with the sizes of replicas (None: of all partitions)."""
        deadline = self._deadline(timeout_ms)
        if node_ids is None:
            cluster = await self.describe_cluster(timeout_ms=timeout_ms)
            node_ids = [broker.node_id for broker in cluster.brokers]
        wanted = await items_of("node_ids", node_ids, "broker ids")
        require_all("node_ids", wanted, int, "broker ids (whole numbers)")
        if partitions is not None:
            partitions = await items_of("partitions", partitions, "TopicPartition objects")
            require_partitions("partitions", partitions)
        request = describe_log_dirs_request(partitions)

        async def one(node_id: int) -> tuple[LogDirDescription, ...] | ClientError:
            try:
                return described_log_dirs(await self._calls.ask(request, deadline, node=node_id), node_id)
            except ClientError as error:
                return error

        async def attempt(some: list[int]) -> Mapping[int, tuple[LogDirDescription, ...] | ClientError]:
            return dict(zip(some, await run_together([one(each) for each in some], "DescribeLogDirs"), strict=True))

        return await self._calls.complete("DescribeLogDirs", wanted, attempt, deadline)


async def _by_node(
    resources: list[ConfigResource],
    ask: Callable[[list[ConfigResource], int | None], Awaitable[Mapping[ConfigResource, V | ClientError]]],
) -> Mapping[ConfigResource, V | ClientError]:
    """Asks a broker about its own options and any broker about the others, at the same time."""
    by_node: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        by_node.setdefault(resource.node_id, []).append(resource)

    async def one(node_id: int | None, some: list[ConfigResource]) -> Mapping[ConfigResource, V | ClientError]:
        try:
            return await ask(some, node_id)
        except ClientError as error:
            return dict.fromkeys(some, error)

    outcomes: dict[ConfigResource, V | ClientError] = {}
    for answered in await run_together([one(node_id, some) for node_id, some in by_node.items()], "ask brokers"):
        outcomes |= answered
    return outcomes
