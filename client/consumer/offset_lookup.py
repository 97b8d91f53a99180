"""Asks leaders for offsets: the ends of partitions, and the first record that is not older than a time.

Each leader is asked once for all its partitions. What passes (a leader that moves, a lost connection) is asked again
after a backoff and with newer metadata, until the deadline. (Source: OffsetFetcher.java; the question: `list_offsets`.)
"""

from collections.abc import Mapping
from typing import Final

from odradek.client.cluster.cluster import Cluster
from odradek.client.errors.client_errors import ClientError, InvalidPartition, UnsupportedVersion, broker_error
from odradek.client.fetching.list_offsets import ListedOffset, list_offsets_request, listed_offsets, lowest_version
from odradek.client.fetching.position import PASSING
from odradek.client.network.backoff import Backoff
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.runtime.environment import Environment

__all__ = ["OffsetLookup"]

NOBODY: Final = -1


class OffsetLookup:
    """Questions to one cluster, which has been started."""

    def __init__(self, cluster: Cluster, environment: Environment, backoff: Backoff, *, read_committed: bool) -> None:
        self._cluster = cluster
        self._environment = environment
        self._backoff = backoff
        self._read_committed = read_committed

    async def find(
        self, timestamps: Mapping[TopicPartition, int], deadline_ms: float
    ) -> dict[TopicPartition, ListedOffset]:
        """The offset of each partition by its timestamp, or EARLIEST or LATEST in its place.

        Raises MetadataTimeout for a topic that is not there in time, InvalidPartition, and the last error at the
        deadline; at once what no wait cures.
        """
        found: dict[TopicPartition, ListedOffset] = {}
        failures = 0
        while left := {partition: time for partition, time in timestamps.items() if partition not in found}:
            error: ClientError | None = None
            for node_id, wanted in (await self._by_leader(left, deadline_ms)).items():
                try:
                    outcomes = await self._ask(node_id, wanted, deadline_ms)
                except ClientError as failure:
                    outcomes = dict.fromkeys(wanted, failure)
                for partition, outcome in outcomes.items():
                    if isinstance(outcome, ListedOffset):
                        found[partition] = outcome
                    elif outcome.code not in PASSING:
                        raise outcome.fresh()
                    else:
                        error = outcome
            if error is not None:
                wait_ms = self._backoff.after_ms(failures)
                failures += 1
                if self._environment.monotonic_ms() + wait_ms >= deadline_ms:
                    raise error.fresh()
                self._cluster.metadata.request_update()
                await self._environment.sleep(wait_ms)
        return found

    async def _by_leader(
        self, timestamps: Mapping[TopicPartition, int], deadline_ms: float
    ) -> dict[int, dict[TopicPartition, int]]:
        leaders: dict[int, dict[TopicPartition, int]] = {}
        for partition, timestamp in timestamps.items():
            topic = await self._cluster.wait_for_topic(partition.topic, deadline_ms)
            if not 0 <= partition.partition < topic.partition_count:
                raise InvalidPartition(partition.topic, partition.partition, topic.partition_count, "the call")
            leader, _ = topic.leaders[partition.partition]
            leaders.setdefault(leader, {})[partition] = timestamp
        return leaders

    async def _ask(
        self, node_id: int, wanted: Mapping[TopicPartition, int], deadline_ms: float
    ) -> Mapping[TopicPartition, ListedOffset | ClientError]:
        if node_id == NOBODY:
            return {
                partition: broker_error(ErrorCode.LEADER_NOT_AVAILABLE, "", f"looking for the leader of {partition}")
                for partition in wanted
            }
        connection = await self._cluster.connection_to(node_id, deadline_ms)
        version = connection.version_of(ListOffsetsRequest)
        needed = lowest_version(wanted.values(), read_committed=self._read_committed)
        if version < needed:
            ours, theirs = (needed, ListOffsetsRequest.max_version), (ListOffsetsRequest.min_version, version)
            raise UnsupportedVersion("ListOffsets", connection.broker, ours, theirs)
        epochs = {partition: self._cluster.metadata.leader_of(*partition)[1] for partition in wanted}
        request = list_offsets_request(wanted, epochs, read_committed=self._read_committed)
        timeout_ms = max(1.0, deadline_ms - self._environment.monotonic_ms())
        return listed_offsets(wanted, await connection.ask(request, version=version, timeout_ms=timeout_ms))
