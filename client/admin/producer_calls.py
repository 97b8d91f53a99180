"""The calls of Admin about the producers of partitions and their open transactions. Each partition is asked of its
leader.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from odradek.client.admin.base import items_of, only
from odradek.client.admin.leader_calls import LeaderCalls
from odradek.client.admin.producer_states import (
    MarkerUncertain,
    ProducerState,
    abort_request,
    aborted_transaction,
    describe_producers_request,
    described_producers,
)
from odradek.client.arguments import require_kind, require_partitions
from odradek.client.errors.client_errors import ClientError
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

__all__ = ["ProducerCalls"]

NOT_WRITTEN: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""Errors by which a leader, or who was taken for it, says that the marker does not stand there, and that pass.
(Source: AbortTransactionHandler.java; the last one is of our brokers, about `__consumer_offsets`.)"""


class ProducerCalls(LeaderCalls):
    """See `odradek.client.admin.admin`."""

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """The producers that the leaders of these partitions know, with their open transactions.

        Raises ItemsFailed with UnknownTopic, InvalidPartition, AuthorizationError and others; UnsupportedVersion before
        Kafka 3.0.
        """
        deadline = self._deadline(timeout_ms)
        wanted = await items_of("partitions", partitions, "TopicPartition objects")
        require_partitions("partitions", wanted)

        async def ask(
            leaders: Mapping[TopicPartition, int], node_id: int
        ) -> Mapping[TopicPartition, tuple[ProducerState, ...] | ClientError]:
            return described_producers(
                await self._calls.ask(describe_producers_request(leaders), deadline, node=node_id)
            )

        return await self._calls.complete(
            "DescribeProducers", wanted, lambda some: self._by_leader(some, ask, deadline), deadline
        )

    async def abort_transaction(
        self,
        partition: TopicPartition,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        timeout_ms: float | None = None,
    ) -> None:
        """Ends the open transaction of a producer in one partition, by a marker in its coordinator's place.

        For one that hangs, of which no coordinator knows; `fence_producers` aborts one that a coordinator has under
        way. The numbers are those of `describe_producers`; 0 for a coordinator epoch that is None there.

        Raises BrokerError with INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, CLUSTER_AUTHORIZATION_FAILED and
        others; MarkerUncertain when the answer is lost: it is asked once, for a marker that comes twice could end a
        later transaction.
        """
        require_partitions("partition", [partition])
        for name, value in (
            ("producer_id", producer_id),
            ("producer_epoch", producer_epoch),
            ("coordinator_epoch", coordinator_epoch),
        ):
            require_kind(name, value, int, "a whole number")
        deadline = self._deadline(timeout_ms)
        request = abort_request(partition, producer_id, producer_epoch, coordinator_epoch)

        async def ask(_: Mapping[TopicPartition, int], node_id: int) -> Mapping[TopicPartition, ClientError | None]:
            await self._calls.connect(node_id, deadline)  # what fails here may be tried again
            try:
                response = await self._calls.ask(request, deadline, node=node_id)
            except ClientError as lost:
                return {partition: MarkerUncertain(partition, lost) if lost.retriable else lost}
            error = aborted_transaction(partition, producer_id, response)
            if error is not None and error.retriable and error.code not in NOT_WRITTEN:
                return {partition: MarkerUncertain(partition, error)}
            return {partition: error}

        await only(
            partition,
            self._calls.complete(
                "WriteTxnMarkers", [partition], lambda some: self._by_leader(some, ask, deadline), deadline
            ),
        )
