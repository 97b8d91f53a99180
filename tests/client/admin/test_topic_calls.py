"""Admin's calls about topics on a scripted cluster: created once whatever happens to answers, found, and deleted."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigSource, ResourceType
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.topics import NewTopic, PartitionDescription, TopicListing
from odradek.client.errors.client_errors import (
    BrokerError,
    ClientError,
    ConnectionFailed,
    TopicExists,
    UnknownTopic,
    UnsupportedVersion,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest
from odradek.protocol.messages.create_topics import CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.primitives import uuid_text
from tests.client.admin_handlers import Served, serve_admin
from tests.client.broker_faults import disconnect_after, disconnect_before, edited, never
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time


@asynccontextmanager
async def asking(brokers: int = 2, **settings: Any) -> AsyncGenerator[tuple[Admin, ScriptedCluster, Served]]:
    with scripted_cluster(brokers=brokers) as scripted:
        served = serve_admin(scripted)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment, **settings) as admin:
            yield admin, scripted, served


def id_of(scripted: ScriptedCluster, topic: str) -> str:
    return uuid_text(scripted.topics[topic].topic_id)


# --------------------------------------------------------------------------------------------------------- create
async def test_a_topic_is_created_as_it_is_wanted() -> None:
    async with asking() as (admin, scripted, served):
        created = await admin.create_topic("orders", 3, 2, {"retention.ms": "5"})
        assert (created.name, created.partitions, created.topic_id) == ("orders", 3, id_of(scripted, "orders"))
        assert [(each.name, each.value, each.source) for each in created.configs] == [
            ("retention.ms", "5", ConfigSource.TOPIC)
        ]
        assert served.configs[ResourceType.TOPIC, "orders"] == {"retention.ms": "5"}
        [request] = scripted.requests(CreateTopicsRequest)
        assert (request.topics[0].num_partitions, request.topics[0].replication_factor) == (3, 2)
        assert 0 < request.timeout_ms <= 30_000


async def test_options_that_may_not_be_told_are_no_failure() -> None:
    """KIP-525: who may create a topic need not be allowed to see its options."""

    def hide(response: Any) -> None:
        response.topics[0].topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        response.topics[0].configs = None

    async with asking() as (admin, scripted, _):
        scripted.on(CreateTopicsRequest, edited(hide))
        created = await admin.create_topic("orders", 1, 1, {"retention.ms": "5"})
        assert (created.partitions, created.configs) == (1, ())
        assert created.configs_error is not None
        assert created.configs_error.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_without_numbers_the_brokers_defaults_hold() -> None:
    async with asking() as (admin, _, _):
        assert (await admin.create_topic("orders")).partitions == 2


async def test_an_older_broker_has_no_defaults_to_ask_for() -> None:
    async with asking() as (admin, scripted, _):
        for broker in scripted.brokers.values():
            broker.versions[CreateTopicsRequest] = (2, 3)
            broker.close_connections()
        with pytest.raises(UnsupportedVersion, match="CreateTopics"):
            await admin.create_topic("orders", partitions=3)
        created = await admin.create_topic("orders", 3, 1)
        assert (created.topic_id, created.partitions, created.configs) == (None, -1, ())
        assert scripted.count(CreateTopicsRequest) == 1


async def test_replicas_are_assigned_by_hand() -> None:
    async with asking() as (admin, scripted, _):
        await admin.create_topic("orders", assignments={0: [1, 0], 1: [0, 1], 2: [1]})
        assert [partition.leader for partition in scripted.topics["orders"].partitions] == [1, 0, 1]
        [topic] = scripted.requests(CreateTopicsRequest)[0].topics
        assert (topic.num_partitions, topic.replication_factor) == (-1, -1)


async def test_nothing_is_created_where_it_is_only_to_be_validated() -> None:
    async with asking() as (admin, scripted, _):
        assert (await admin.create_topic("orders", 3, 1, validate_only=True)).partitions == 3
        assert scripted.topics == {}


async def test_of_several_topics_each_has_its_own_outcome() -> None:
    async with asking() as (admin, scripted, _):
        scripted.create_topic("old")
        topics = [NewTopic("old", 1, 1), NewTopic("new", 1, 1), NewTopic("wide", 1, 9)]
        with pytest.raises(ItemsFailed, match="CreateTopics failed for 2 of 3") as caught:
            await admin.create_topics(topics)
        failed = caught.value
        assert isinstance(failed.errors["old"], TopicExists)
        assert failed.errors["old"].broker_message == "Topic 'old' already exists."
        assert failed.errors["wide"].code is ErrorCode.INVALID_REPLICATION_FACTOR
        assert failed.results["new"].topic_id == id_of(scripted, "new")
        with pytest.raises(TopicExists):
            await admin.create_topic("old", 1, 1)


async def test_the_controller_is_looked_for_until_one_is_found() -> None:
    async with asking() as (admin, scripted, _):
        for broker in scripted.brokers.values():
            broker.freeze_metadata()
        scripted.controller_id = 1  # and nobody tells
        scripted.network.loop.call_later(2, setattr, scripted.brokers[0], "stale_metadata", None)
        scripted.network.loop.call_later(2, setattr, scripted.brokers[1], "stale_metadata", None)
        await admin.create_topic("orders", 1, 1)
        assert 2 <= scripted.count(CreateTopicsRequest) <= 10
        assert scripted.count(CreateTopicsRequest, node=1) == 1


@pytest.mark.parametrize("fault", [disconnect_before(), never(applies=False)])
async def test_a_request_that_did_not_arrive_is_made_again(fault: Any) -> None:
    async with asking(request_timeout_ms=2_000) as (admin, scripted, _):
        scripted.on(CreateTopicsRequest, fault, times=2)
        await admin.create_topic("orders", 1, 1)
        assert list(scripted.topics) == ["orders"]


@pytest.mark.parametrize("fault", [disconnect_after(), never()])
async def test_after_a_lost_answer_a_topic_that_exists_may_be_our_own_and_the_hint_says_so(fault: Any) -> None:
    async with asking(request_timeout_ms=2_000) as (admin, scripted, _):
        scripted.on(CreateTopicsRequest, fault)
        with pytest.raises(TopicExists) as caught:
            await admin.create_topic("orders", 1, 1)
        assert "this call may have created it itself" in str(caught.value)
        with pytest.raises(TopicExists) as caught:
            await admin.create_topic("orders", 1, 1)
        assert "itself" not in str(caught.value)


async def test_a_controller_that_could_not_wait_is_not_asked_again() -> None:
    """REQUEST_TIMED_OUT: it has begun, and would say TOPIC_ALREADY_EXISTS then."""

    def time_out(response: Any) -> None:
        response.topics[0].error_code = ErrorCode.REQUEST_TIMED_OUT

    async with asking() as (admin, scripted, _):
        scripted.on(CreateTopicsRequest, edited(time_out))
        with pytest.raises(BrokerError) as caught:
            await admin.create_topic("orders", 1, 1)
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert scripted.count(CreateTopicsRequest) == 1


async def test_a_quota_is_waited_for() -> None:
    def refuse(response: Any) -> None:
        response.topics[0].error_code = ErrorCode.THROTTLING_QUOTA_EXCEEDED

    async with asking() as (admin, scripted, _):
        scripted.on(CreateTopicsRequest, edited(refuse), times=2)
        with pytest.raises(TopicExists):  # the scripted broker refuses after it has done it
            await admin.create_topic("orders", 1, 1)
        assert scripted.count(CreateTopicsRequest) == 3


async def test_a_new_topic_is_there_when_all_partitions_have_leaders() -> None:
    async with asking() as (admin, _, served):
        served.leaderless_looks = 5
        await admin.create_topic("orders", 3, 1)
        assert served.leaderless_looks == 0
        served.leaderless_looks = 5
        await admin.create_topic("payments", 3, 1, wait_for_leaders=False)
        assert served.leaderless_looks == 5


async def test_the_wait_for_leaders_outlives_a_lost_connection() -> None:
    async with asking() as (admin, scripted, served):
        served.leaderless_looks = 3
        scripted.on(MetadataRequest, disconnect_after(), nth=2, times=2)
        await admin.create_topic("orders", 3, 1)
        assert served.leaderless_looks <= 0


async def test_leaders_not_elected_in_time_are_an_error_that_says_that_the_topic_exists() -> None:
    async with asking() as (admin, scripted, served):
        served.leaderless_looks = 1 << 30
        began_ms = scripted.now_ms()
        with pytest.raises(BrokerError, match="leaders of orders, after CreateTopics was done in time,") as caught:
            await admin.create_topic("orders", 3, 1, timeout_ms=2_000)
        assert caught.value.code is ErrorCode.LEADER_NOT_AVAILABLE
        assert 1_900 <= scripted.now_ms() - began_ms <= 2_100


async def test_who_may_create_a_topic_but_not_describe_it_does_not_wait_for_its_leaders() -> None:
    def hide(response: Any) -> None:
        for topic in response.topics:
            if topic.name == "hidden":
                topic.error_code, topic.partitions = ErrorCode.TOPIC_AUTHORIZATION_FAILED, []

    async with asking() as (admin, scripted, served):
        scripted.on(MetadataRequest, edited(hide), times=None)
        served.leaderless_looks = 3
        began_ms = scripted.now_ms()
        created = await admin.create_topics([NewTopic("hidden", 3, 1), NewTopic("seen", 3, 1)])
        assert list(created) == ["hidden", "seen"]
        assert served.leaderless_looks == 0, "the other one is waited for"
        assert scripted.now_ms() - began_ms < 1_000


async def test_leaders_are_looked_for_less_often_the_longer_it_takes() -> None:
    async with asking() as (admin, scripted, served):
        served.leaderless_looks = 1 << 30
        with pytest.raises(BrokerError):
            await admin.create_topic("orders", 3, 1, timeout_ms=30_000)
        looks = [each.at_ms for each in scripted.exchanges_of(MetadataRequest) if getattr(each.request, "topics")]  # noqa: B009
        assert len(looks) < 60
        assert looks[1] - looks[0] < 40


@pytest.mark.parametrize("partitions", [2**31, 3_000_000_000])
async def test_a_number_of_partitions_that_no_request_can_hold_is_told(partitions: int) -> None:
    async with asking() as (admin, scripted, _):
        scripted.create_topic("a", 2)
        with pytest.raises(ClientError, match="CreateTopics cannot be sent"):
            await admin.create_topic("orders", partitions, 1)
        with pytest.raises(ClientError, match="CreatePartitions cannot be sent"):
            await admin.create_partitions({"a": partitions})


# --------------------------------------------------------------------------------------------------------- delete
async def test_topics_are_deleted_by_name_and_by_id() -> None:
    async with asking() as (admin, scripted, _):
        for name in ("a", "b", "c", "d"):
            scripted.create_topic(name)
        await admin.delete_topics(["a", "b"], topic_ids=[id_of(scripted, "c")])
        assert list(scripted.topics) == ["d"]
        await admin.delete_topic("d")
        assert list(scripted.topics) == []
        with pytest.raises(UnknownTopic):
            await admin.delete_topic("d")


async def test_an_unknown_id_and_a_text_that_is_none_are_told() -> None:
    async with asking() as (admin, scripted, _):
        scripted.create_topic("a")
        unknown = uuid_text(bytes(range(16)))
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_topics(["a"], topic_ids=[unknown])
        assert isinstance(caught.value.errors[unknown], UnknownTopic)
        assert list(caught.value.results) == ["a"]
        asked = scripted.count(DeleteTopicsRequest)
        with pytest.raises(ClientError, match="'short' is no topic id") as wrong:
            await admin.delete_topics(["a"], topic_ids=["short"])
        assert wrong.value.hint
        assert scripted.count(DeleteTopicsRequest) == asked


async def test_an_older_broker_deletes_by_name_alone() -> None:
    async with asking() as (admin, scripted, _):
        scripted.create_topic("a")
        for broker in scripted.brokers.values():
            broker.versions[DeleteTopicsRequest] = (1, 5)
            broker.close_connections()
        with pytest.raises(UnsupportedVersion):
            await admin.delete_topics(topic_ids=[id_of(scripted, "a")])
        await admin.delete_topic("a")
        assert list(scripted.topics) == []


async def test_a_topic_that_is_gone_after_a_lost_answer_counts_as_deleted() -> None:
    async with asking() as (admin, scripted, _):
        scripted.create_topic("a")
        scripted.on(DeleteTopicsRequest, disconnect_after())
        await admin.delete_topics(["a"])
        assert scripted.count(DeleteTopicsRequest) == 2


# ------------------------------------------------------------------------------------------------------ partitions
async def test_partitions_are_added() -> None:
    async with asking() as (admin, scripted, _):
        scripted.create_topic("a", 2)
        scripted.create_topic("b", 2)
        await admin.create_partitions({"a": 5}, validate_only=True)
        assert len(scripted.topics["a"].partitions) == 2
        await admin.create_partitions({"a": 5, "b": 3}, assignments={"b": [[1, 0]]})
        assert [len(scripted.topics[name].partitions) for name in "ab"] == [5, 3]
        assert scripted.count(MetadataRequest) >= 2
        last = scripted.requests(CreatePartitionsRequest)[-1]
        assert [each.assignments and each.assignments[0].broker_ids for each in last.topics] == [None, [1, 0]]
        with pytest.raises(ItemsFailed) as caught:
            await admin.create_partitions({"a": 4, "b": 4})
        assert caught.value.errors["a"].code is ErrorCode.INVALID_PARTITIONS
        assert caught.value.results == {"b": None}


async def test_new_partitions_are_there_when_they_are_known_and_have_leaders() -> None:
    """Kafka's brokers hear of them after the controller has answered."""
    late_ones: list[int] = [3, 3]

    def shorten(response: Any) -> None:
        for topic in response.topics:
            if late_ones and late_ones.pop():
                topic.partitions = topic.partitions[:2]

    async with asking() as (admin, scripted, served):
        scripted.create_topic("a", 2)
        scripted.on(MetadataRequest, edited(shorten), times=None)
        await admin.create_partitions({"a": 5})
        assert late_ones == []
        served.leaderless_looks = 3
        await admin.create_partitions({"a": 6})
        assert served.leaderless_looks == 0
        served.leaderless_looks = 3
        await admin.create_partitions({"a": 7}, wait_for_leaders=False)
        assert served.leaderless_looks == 3


# ------------------------------------------------------------------------------------------------ list and describe
async def test_topics_are_listed_by_name_without_internal_ones() -> None:
    def mark(response: Any) -> None:
        for topic in response.topics:
            topic.is_internal = topic.name.startswith("__")

    async with asking() as (admin, scripted, _):
        for name in ("b", "a", "__consumer_offsets"):
            scripted.create_topic(name, 2)
        scripted.on(MetadataRequest, edited(mark), times=None)
        listed = await admin.list_topics()
        assert listed == [TopicListing(name, id_of(scripted, name), False, 2, 1) for name in ("a", "b")]
        everything = await admin.list_topics(include_internal=True)
        assert [topic.name for topic in everything] == ["__consumer_offsets", "a", "b"]


async def test_a_topic_is_described_with_its_partitions() -> None:
    async with asking() as (admin, scripted, _):
        scripted.create_topic("a", 2)
        scripted.move_leader("a", 1, to=-1)
        topic = await admin.describe_topic("a")
        assert (topic.name, topic.topic_id, topic.is_internal) == ("a", id_of(scripted, "a"), False)
        assert topic.partitions == (
            PartitionDescription(0, 0, 0, (0,), (0,), ()),
            PartitionDescription(1, -1, 1, (-1,), (-1,), ()),
        )
        assert not topic.has_leaders


async def test_a_topic_whose_leaders_are_missing_is_described_all_the_same() -> None:
    """Version 0 of Metadata has the error for the topic."""

    def mark(response: Any) -> None:
        for topic in response.topics:
            topic.error_code = ErrorCode.LEADER_NOT_AVAILABLE

    async with asking() as (admin, scripted, _):
        scripted.create_topic("a", 2)
        scripted.on(MetadataRequest, edited(mark), times=None)
        assert len((await admin.describe_topic("a")).partitions) == 2


async def test_describing_a_topic_does_not_create_it() -> None:
    async with asking() as (admin, scripted, _):
        scripted.auto_create_partitions = 1
        scripted.create_topic("a")
        with pytest.raises(ItemsFailed) as caught:
            await admin.describe_topics(["a", "b"])
        assert isinstance(caught.value.errors["b"], UnknownTopic)
        assert list(caught.value.results) == ["a"]
        with pytest.raises(UnknownTopic):
            await admin.describe_topic("b")
        assert list(scripted.topics) == ["a"]
        assert scripted.count(MetadataRequest) <= 4, "it is an answer, not something to wait for"


async def test_a_call_about_nothing_asks_nobody() -> None:
    async with asking() as (admin, scripted, _):
        before = len(scripted.exchanges)
        assert await admin.describe_topics([]) == {}
        assert await admin.create_topics([]) == {}
        await admin.delete_topics([])
        await admin.create_partitions({})
        assert len(scripted.exchanges) == before


async def test_a_controller_that_cannot_be_reached_ends_the_call_with_that_error() -> None:
    async with asking() as (admin, scripted, _):
        scripted.brokers[0].stop()
        with pytest.raises(ConnectionFailed):
            await admin.create_topics([NewTopic("a", 1, 1), NewTopic("b", 1, 1)], timeout_ms=3_000)
