"""Admin's calls about leaders and replicas, on a scripted cluster in memory and virtual time."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.replication import ElectionType, QuorumReplica, Reassignment
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import BrokerError, UnknownTopic, UnsupportedVersion
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tests.client.admin_handlers import serve_admin
from tests.client.broker_faults import disconnect_after, edited
from tests.client.replication_handlers import Replicated, serve_replication
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

TOPIC = "orders"
P0, P1, P2 = (TopicPartition(TOPIC, partition) for partition in range(3))


@asynccontextmanager
async def asking(**settings: Any) -> AsyncGenerator[tuple[Admin, ScriptedCluster, Replicated]]:
    """An admin client of a cluster of four with one topic: three partitions, each on brokers 1, 2 and 3."""
    with scripted_cluster(brokers=4) as scripted:
        scripted.create_topic(TOPIC, 3)
        serve_admin(scripted)
        replicated = serve_replication(scripted)
        for partition in range(3):
            replicated.place(TOPIC, partition, (1, 2, 3), (1, 2, 3))
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment, **settings) as admin:
            yield admin, scripted, replicated


def codes(failed: ItemsFailed) -> dict[TopicPartition, ErrorCode | None]:
    return {partition: error.code for partition, error in failed.errors.items()}


# ---------------------------------------------------------------------------------------------------------- elections
async def test_the_preferred_leader_is_elected_where_it_does_not_lead() -> None:
    async with asking() as (admin, scripted, replicated):
        replicated.place(TOPIC, 1, (1, 2, 3), (2, 3, 1))
        assert await admin.elect_leaders([P0, P1]) == {P0: False, P1: True}
        assert scripted.topics[TOPIC].partitions[1].leader == 1


async def test_each_partition_has_its_own_error() -> None:
    async with asking() as (admin, _, replicated):
        replicated.place(TOPIC, 1, (1, 2, 3), (2, 3))
        missing = TopicPartition("typo", 0)
        with pytest.raises(ItemsFailed) as caught:
            await admin.elect_leaders([P0, P1, missing])
        assert codes(caught.value) == {
            P1: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            missing: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert isinstance(caught.value.errors[missing], UnknownTopic)
        assert caught.value.results == {P0: False}


async def test_all_partitions_are_those_that_the_answer_names() -> None:
    async with asking() as (admin, _, replicated):
        replicated.place(TOPIC, 2, (1, 2, 3), (3, 1))
        assert await admin.elect_leaders() == {P0: False, P1: False, P2: True}
        replicated.place(TOPIC, 0, (1, 2, 3), (2,))
        with pytest.raises(ItemsFailed) as caught:
            await admin.elect_leaders()
        assert codes(caught.value) == {P0: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
        assert caught.value.results == {P1: False, P2: False}


async def test_an_unclean_election_takes_whoever_is_there() -> None:
    async with asking() as (admin, scripted, replicated):
        replicated.place(TOPIC, 0, (1, 2, 3), (), last_known=(1,))
        scripted.brokers[1].stop()
        assert await admin.elect_leaders([P0, P1], ElectionType.UNCLEAN) == {P0: True, P1: False}
        assert scripted.topics[TOPIC].partitions[0].leader == 2


async def test_an_unclean_election_is_never_asked_of_a_broker_without_election_types() -> None:
    async with asking() as (admin, scripted, replicated):
        replicated.place(TOPIC, 0, (1, 2, 3), ())
        for broker in scripted.brokers.values():
            broker.versions[ElectLeadersRequest] = (0, 0)
        with pytest.raises(UnsupportedVersion):
            await admin.elect_leaders([P0], ElectionType.UNCLEAN)
        assert scripted.count(ElectLeadersRequest) == 0
        assert await admin.elect_leaders([P1]) == {P1: False}


async def test_the_controller_is_followed_when_it_has_moved() -> None:
    """NOT_CONTROLLER, which stands for the whole answer here, has newer metadata asked for, and the next one asked."""
    async with asking() as (admin, scripted, replicated):
        replicated.place(TOPIC, 1, (1, 2, 3), (2, 1))
        await admin.list_topics()
        scripted.controller_id = 3
        assert await admin.elect_leaders([P1]) == {P1: True}
        scripted.controller_id = 1
        await admin.alter_partition_reassignments({P0: [2, 3]})
        scripted.controller_id = 2
        assert list(await admin.list_partition_reassignments()) == [P0]
        scripted.controller_id = 0
        await admin.unregister_broker(3)
        asked = [each.node_id for each in scripted.exchanges_of(ElectLeadersRequest)]
        assert (asked[0], asked[-1], set(asked)) == (0, 3, {0, 3})


async def test_a_refusal_of_the_whole_is_raised_as_itself() -> None:
    def refuse(response: Any) -> None:
        response.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    async with asking() as (admin, scripted, _):
        for kind in (ElectLeadersRequest, AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest):
            scripted.on(kind, edited(refuse), times=1)
        calls = (
            admin.elect_leaders([P0]),
            admin.alter_partition_reassignments({P0: [1]}),
            admin.list_partition_reassignments(),
        )
        for call in calls:
            with pytest.raises(BrokerError) as caught:
                await call
            assert caught.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


# ------------------------------------------------------------------------------------------------------ reassignments
async def test_a_partition_is_moved_watched_and_left_where_it_was() -> None:
    async with asking() as (admin, _, replicated):
        await admin.alter_partition_reassignments({P0: [2, 0], P1: [1, 2]})
        assert await admin.list_partition_reassignments() == {
            P0: Reassignment((2, 0, 1, 3), (0,), (1, 3)),
            P1: Reassignment((1, 2, 3), (), (3,)),
        }
        assert (await admin.list_partition_reassignments([P0]))[P0].target == (2, 0)
        replicated.finish(TOPIC, 0)
        assert await admin.list_partition_reassignments([P0]) == {}
        await admin.alter_partition_reassignments({P1: None})
        assert await admin.list_partition_reassignments() == {}
        assert replicated.of(TOPIC, 0).replicas == [2, 0]
        assert replicated.of(TOPIC, 1).replicas == [1, 2, 3]


async def test_of_several_moves_each_has_its_own_error_and_the_others_begin() -> None:
    async with asking() as (admin, _, replicated):
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_partition_reassignments({P0: [1, 99], P1: [2, 3], P2: None})
        assert codes(caught.value) == {
            P0: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            P2: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        }
        assert "no such broker" in str(caught.value.errors[P0])
        assert replicated.of(TOPIC, 1).target == [2, 3]


async def test_another_number_of_replicas_can_be_refused() -> None:
    async with asking() as (admin, scripted, _):
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_partition_reassignments({P0: [1, 2]}, keep_replication_factor=True)
        assert codes(caught.value) == {P0: ErrorCode.INVALID_REPLICATION_FACTOR}
        for broker in scripted.brokers.values():
            broker.versions[AlterPartitionReassignmentsRequest] = (0, 0)
            broker.close_connections()
        with pytest.raises(UnsupportedVersion):
            await admin.alter_partition_reassignments({P0: [1, 2]}, keep_replication_factor=True)
        await admin.alter_partition_reassignments({P0: [1, 2]})


async def test_a_lost_answer_to_a_cancellation_is_no_failure() -> None:
    async with asking() as (admin, scripted, _):
        await admin.alter_partition_reassignments({P0: [2, 3]})
        scripted.on(AlterPartitionReassignmentsRequest, disconnect_after(), times=1)
        await admin.alter_partition_reassignments({P0: None})
        assert scripted.count(AlterPartitionReassignmentsRequest) == 3


# ------------------------------------------------------------------------------------------------ brokers and quorum
async def test_a_broker_is_forgotten_once() -> None:
    async with asking() as (admin, scripted, replicated):
        await admin.unregister_broker(3)
        assert replicated.registered == {0, 1, 2}
        with pytest.raises(BrokerError, match="UnregisterBroker of 3") as caught:
            await admin.unregister_broker(3)
        assert caught.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
        scripted.on(UnregisterBrokerRequest, disconnect_after(), times=1)
        await admin.unregister_broker(2)


async def test_the_quorum_is_described() -> None:
    async with asking() as (admin, scripted, _):
        quorum = await admin.describe_quorum()
        assert (quorum.leader_id, quorum.leader_epoch, quorum.high_watermark) == (0, 7, 100)
        assert quorum.voters == (QuorumReplica(0, 101),)
        assert quorum.observers == (QuorumReplica(2, 99, 5),)

        def empty(response: Any) -> None:
            response.topics = []

        scripted.on(DescribeQuorumRequest, edited(empty), times=1)
        with pytest.raises(ClientError, match="lacks the metadata"):
            await admin.describe_quorum()


# ------------------------------------------------------------------------------------------------------------- topics
async def test_eligible_leaders_are_told_where_they_are_asked_for() -> None:
    async with asking() as (admin, scripted, replicated):
        replicated.place(TOPIC, 1, (1, 2, 3), (2,), elr=(3,))
        replicated.place(TOPIC, 2, (1, 2, 3), (), last_known=(1,))
        topic = (await admin.describe_topics([TOPIC], eligible_leaders=True))[TOPIC]
        assert [each.eligible_leaders for each in topic.partitions] == [(), (3,), ()]
        assert [each.last_known_leaders for each in topic.partitions] == [(), (), (1,)]
        assert [each.out_of_sync for each in topic.partitions] == [(), (1, 3), (1, 2, 3)]
        assert [each.leader for each in topic.partitions] == [1, 2, -1]
        plain = await admin.describe_topic(TOPIC)
        assert [each.eligible_leaders for each in plain.partitions] == [None] * 3
        with pytest.raises(ItemsFailed) as caught:
            await admin.describe_topics([TOPIC, "typo"], eligible_leaders=True)
        assert isinstance(caught.value.errors["typo"], UnknownTopic)
        assert list(caught.value.results) == [TOPIC]
        assert scripted.count(DescribeTopicPartitionsRequest) == 2


async def test_pages_of_partitions_are_put_together() -> None:
    async with asking() as (admin, scripted, replicated):
        scripted.create_topic("a", 1)
        scripted.create_topic("z", 2)
        replicated.page_partitions = 2
        found = await admin.describe_topics(["z", TOPIC, "a"], eligible_leaders=True)
        assert {name: [each.partition for each in topic.partitions] for name, topic in found.items()} == {
            "z": [0, 1],
            TOPIC: [0, 1, 2],
            "a": [0],
        }
        assert scripted.count(DescribeTopicPartitionsRequest) == 3


async def test_an_older_broker_is_asked_for_metadata_instead() -> None:
    async with asking() as (admin, scripted, _):
        for broker in scripted.brokers.values():
            del broker.versions[DescribeTopicPartitionsRequest]
        before = scripted.count(MetadataRequest)
        topic = (await admin.describe_topics([TOPIC], eligible_leaders=True))[TOPIC]
        assert [each.eligible_leaders for each in topic.partitions] == [None] * 3
        assert scripted.count(MetadataRequest) == before + 1
