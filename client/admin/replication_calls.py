"""The calls of Admin about leaders, replicas, and the brokers that have them. All go to the controller.

A call about several partitions returns their results by partition, or raises ItemsFailed with the error of each.
"""

from collections.abc import Iterable, Mapping, Sequence

from odradek.client.admin.base import AdminBase, items_of, keys_of
from odradek.client.admin.calls import ControllerCall, Deadline
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.replication import (
    FACTOR_KEPT_SINCE,
    UNCLEAN_SINCE,
    ElectionType,
    QuorumDescription,
    Reassignment,
    alter_reassignments_request,
    altered_reassignments,
    describe_quorum_request,
    described_quorum,
    elect_leaders_request,
    elected_leaders,
    list_reassignments_request,
    listed_reassignments,
)
from odradek.client.arguments import require_all, require_iterable, require_kind, require_partitions
from odradek.client.cluster.cluster import CONTROLLER
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import broker_error
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest

__all__ = ["ReplicationCalls"]


class ReplicationCalls(AdminBase):
    """See `odradek.client.admin.admin`."""

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        election: ElectionType = ElectionType.PREFERRED,
        *,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, bool]:
        """Has the controller give partitions their preferred leader, or by UNCLEAN any that is there.

        Returns whether that changed something: False where the partition has that leader, or (UNCLEAN) has any. None
        for all partitions, of which those that need no election may be left out of the result.

        Raises ItemsFailed with PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE, UnknownTopic and
        others; UnsupportedVersion for UNCLEAN, before Kafka 2.4.
        """
        deadline = self._deadline(timeout_ms)
        if partitions is None:
            return await self._elect_all(election, deadline)
        wanted = await items_of("partitions", partitions, "TopicPartition objects")
        require_partitions("partitions", wanted)

        async def attempt(some: list[TopicPartition]) -> Mapping[TopicPartition, bool | ClientError]:
            return await self._elect(some, election, deadline)

        return await self._calls.complete("ElectLeaders", wanted, attempt, deadline)

    async def _elect_all(self, election: ElectionType, deadline: Deadline) -> dict[TopicPartition, bool]:
        """Which partitions there are tells the answer."""
        outcomes = await self._calls.until("ElectLeaders", lambda: self._elect(None, election, deadline), deadline)
        results = {each: outcome for each, outcome in outcomes.items() if not isinstance(outcome, ClientError)}
        errors = {each: outcome for each, outcome in outcomes.items() if isinstance(outcome, ClientError)}
        if errors:
            raise ItemsFailed("ElectLeaders", errors, results)
        return results

    async def _elect(
        self, partitions: Iterable[TopicPartition] | None, election: ElectionType, deadline: Deadline
    ) -> Mapping[TopicPartition, bool | ClientError]:
        request = elect_leaders_request(partitions, election, self._timeout_ms(deadline))
        at_least = 0 if election is ElectionType.PREFERRED else UNCLEAN_SINCE
        return elected_leaders(await self._calls.ask(request, deadline, node=CONTROLLER, at_least=at_least))

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        keep_replication_factor: bool = False,
        timeout_ms: float | None = None,
    ) -> None:
        """Has partitions move to other brokers, named with the preferred leader first, or by None ends such a move.

        It is begun when this returns; `list_partition_reassignments` tells how long it is under way. With
        `keep_replication_factor` another number of replicas than before is refused (from Kafka 4.1 on).

        Raises ItemsFailed with INVALID_REPLICA_ASSIGNMENT, UnknownTopic, NO_REASSIGNMENT_IN_PROGRESS (for None; not
        after a lost answer, by which it may have been ended) and others.
        """
        deadline = self._deadline(timeout_ms)
        require_partitions("targets", keys_of("targets", targets, "TopicPartition objects"))
        for brokers in targets.values():
            if brokers is not None:
                require_iterable("a target", brokers, "a list of broker ids, or None")
                require_all("a target", brokers, int, "broker ids (whole numbers)")
        controller = ControllerCall(self._calls, deadline, FACTOR_KEPT_SINCE if keep_replication_factor else 0)

        async def attempt(some: list[TopicPartition]) -> Mapping[TopicPartition, ClientError | None]:
            request = alter_reassignments_request(
                {partition: targets[partition] for partition in some},
                self._timeout_ms(deadline),
                keep_factor=keep_replication_factor,
            )
            outcomes = altered_reassignments(await controller.ask(request))
            if controller.answer_was_lost:
                return {each: None if _has_ended(error) else error for each, error in outcomes.items()}
            return outcomes

        await self._calls.complete("AlterPartitionReassignments", targets, attempt, deadline)

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """The partitions whose replicas are being changed, of those named or (None) of all."""
        deadline = self._deadline(timeout_ms)
        wanted = None
        if partitions is not None:
            wanted = await items_of("partitions", partitions, "TopicPartition objects")
            require_partitions("partitions", wanted)

        async def once() -> dict[TopicPartition, Reassignment]:
            request = list_reassignments_request(wanted, self._timeout_ms(deadline))
            return listed_reassignments(await self._calls.ask(request, deadline, node=CONTROLLER))

        return await self._calls.until("ListPartitionReassignments", once, deadline)

    async def unregister_broker(self, node_id: int, *, timeout_ms: float | None = None) -> None:
        """Has the cluster forget a broker that is gone for good.

        Raises BrokerError with BROKER_ID_NOT_REGISTERED for one that it does not know (not after a lost answer).
        """
        require_kind("node_id", node_id, int, "a broker's id, a whole number")
        deadline = self._deadline(timeout_ms)
        controller = ControllerCall(self._calls, deadline)

        async def once() -> None:
            response = await controller.ask(UnregisterBrokerRequest(broker_id=node_id))
            if response.error_code:
                error = broker_error(response.error_code, response.error_message, f"UnregisterBroker of {node_id}")
                if not controller.answer_was_lost or error.code is not ErrorCode.BROKER_ID_NOT_REGISTERED:
                    raise error

        await self._calls.until(f"UnregisterBroker of {node_id}", once, deadline)

    async def describe_quorum(self, *, timeout_ms: float | None = None) -> QuorumDescription:
        """Who keeps the cluster's metadata: the controllers, of which the leader is the active one.

        Raises UnsupportedVersion, before Kafka 3.3 and with ZooKeeper.
        """
        deadline = self._deadline(timeout_ms)

        async def once() -> QuorumDescription:
            return described_quorum(await self._calls.ask(describe_quorum_request(), deadline, node=CONTROLLER))

        return await self._calls.until("DescribeQuorum", once, deadline)


def _has_ended(error: ClientError | None) -> bool:
    return error is not None and error.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
