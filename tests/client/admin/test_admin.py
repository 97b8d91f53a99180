"""Admin's calls about options, records and brokers, and its life, on a scripted cluster in memory and virtual time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from odradek.client.admin.admin import Admin
from odradek.client.admin.cluster import BrokerDescription
from odradek.client.admin.config import AdminConfig
from odradek.client.admin.configs import ConfigChange, ConfigResource, ConfigSource, ConfigType, ResourceType
from odradek.client.admin.errors import ItemsFailed
from odradek.client.errors.client_errors import (
    BrokerError,
    ClientClosed,
    ClientError,
    ClientNotStarted,
    ConfigError,
    ConnectionFailed,
    InvalidPartition,
    RequestTimedOut,
    UnknownTopic,
    UnsupportedVersion,
)
from odradek.client.fetching.list_offsets import EARLIEST, LATEST, MAX_TIMESTAMP, ListedOffset
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import DeleteRecordsRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.runtime.tasks import running_tasks
from tests.client.admin_handlers import LOG_DIR, Served, serve_admin
from tests.client.broker_faults import disconnect_after, edited, late, never
from tests.client.reading_handlers import Reading, fill, serve_reading
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

TOPIC = "orders"
P0, P1, P2 = (TopicPartition(TOPIC, partition) for partition in range(3))
T = ConfigResource.topic(TOPIC)


@asynccontextmanager
async def asking(brokers: int = 3, **settings: Any) -> AsyncGenerator[tuple[Admin, ScriptedCluster, Served, Reading]]:
    """An admin client of a cluster with one topic of three partitions."""
    with scripted_cluster(brokers=brokers) as scripted:
        scripted.create_topic(TOPIC, 3)
        served, reading = serve_admin(scripted), serve_reading(scripted)
        async with Admin(scripted.bootstrap, environment=lambda: scripted.environment, **settings) as admin:
            yield admin, scripted, served, reading


# ----------------------------------------------------------------------------------------------------------- life
async def test_a_client_is_started_once_and_closed_any_number_of_times() -> None:
    with scripted_cluster() as scripted:
        admin = Admin(config=AdminConfig(scripted.bootstrap, environment=lambda: scripted.environment))
        with pytest.raises(ClientNotStarted):
            await admin.list_topics()
        async with admin:
            assert await admin.list_topics() == []
            with pytest.raises(ClientClosed):
                await admin.start()
        await admin.close()
        with pytest.raises(ClientClosed):
            await admin.list_topics()
        with pytest.raises(ClientClosed):
            await admin.start()


async def test_a_client_that_was_never_started_closes_without_a_word() -> None:
    admin = Admin("localhost:1")
    await admin.close()
    with pytest.raises(ClientClosed):
        await admin.start()


async def test_settings_are_those_of_admin_config() -> None:
    assert Admin("localhost:1", default_api_timeout_ms=5).config.default_api_timeout_ms == 5
    with pytest.raises(ConfigError):
        Admin("localhost:1", linger_ms=5)  # type: ignore[call-overload]  # pyright: ignore


async def test_without_a_broker_the_start_fails_in_time_and_leaves_nothing_behind() -> None:
    with scripted_cluster() as scripted:
        scripted.brokers[0].stop()
        admin = Admin(scripted.bootstrap, environment=lambda: scripted.environment, default_api_timeout_ms=3_000)
        began_ms = scripted.now_ms()
        with pytest.raises(ConnectionFailed):
            await admin.start()
        assert 2_900 <= scripted.now_ms() - began_ms <= 3_200


def others() -> list[str]:
    """The tasks that run beside this one."""
    return [task.get_name() for task in running_tasks()]


async def test_a_close_that_was_cancelled_is_ended_by_the_next_one() -> None:
    async with asking() as (admin, _, _, _):
        await admin.list_topics()
        assert others()
        closing = asyncio.ensure_future(admin.close())
        await asyncio.sleep(0)
        closing.cancel()
        await admin.close()
        assert others() == []
        with pytest.raises(asyncio.CancelledError):
            await closing


async def test_each_of_two_closes_returns_when_all_is_closed() -> None:
    async with asking() as (admin, _, _, _):
        await admin.list_topics()
        first = asyncio.ensure_future(admin.close())
        await asyncio.sleep(0)
        await admin.close()
        assert set(others()) <= {first.get_name()}
        await first


# -------------------------------------------------------------------------------------------------------- options
async def test_options_are_described_with_where_they_come_from() -> None:
    async with asking() as (admin, _, served, _):
        served.configs[ResourceType.TOPIC, TOPIC]["retention.ms"] = "5"
        entries = (await admin.describe_configs([T], synonyms=True, documentation=True))[T]
        assert sorted(entries) == ["cleanup.policy", "retention.ms"]
        entry = entries["retention.ms"]
        assert (entry.value, entry.source, entry.is_default, entry.type) == (
            "5",
            ConfigSource.TOPIC,
            False,
            ConfigType.STRING,
        )
        assert [synonym.value for synonym in entry.synonyms] == ["5"]
        assert entry.documentation == "What retention.ms does."
        plain = (await admin.describe_configs([T], ["cleanup.policy"]))[T]
        assert list(plain) == ["cleanup.policy"]
        assert (plain["cleanup.policy"].is_default, plain["cleanup.policy"].synonyms) == (True, ())


async def test_a_broker_is_asked_about_its_own_options_and_any_one_about_others() -> None:
    async with asking() as (admin, scripted, served, _):
        served.configs[ResourceType.BROKER, "2"]["log.cleaner.threads"] = "3"
        found = await admin.describe_configs([ConfigResource.broker(2), T, ConfigResource.broker()])
        assert found[ConfigResource.broker(2)]["log.cleaner.threads"].value == "3"
        assert list(found) == [ConfigResource.broker(2), T, ConfigResource.broker()]
        asked = {
            (each.node_id if resource.resource_name == "2" else -1, resource.resource_name)
            for each in scripted.exchanges_of(DescribeConfigsRequest)
            for resource in getattr(each.request, "resources")  # noqa: B009
        }
        assert asked == {(2, "2"), (-1, TOPIC), (-1, "")}


async def test_a_broker_that_does_not_exist_is_told_at_once() -> None:
    async with asking() as (admin, scripted, _, _):
        began_ms = scripted.now_ms()
        with pytest.raises(ItemsFailed, match="the cluster has no broker 99") as caught:
            await admin.describe_configs([T, ConfigResource.broker(99)])
        assert list(caught.value.errors) == [ConfigResource.broker(99)]
        assert list(caught.value.results) == [T]
        assert scripted.now_ms() - began_ms < 1_000


async def test_a_broker_that_is_new_is_found() -> None:
    async with asking() as (admin, scripted, _, _):
        broker = scripted.add_broker()
        found = await admin.describe_configs([ConfigResource.broker(broker.node_id)])
        assert list(found) == [ConfigResource.broker(3)]


async def test_single_options_are_changed_and_the_others_stay() -> None:
    async with asking() as (admin, _, served, _):
        its = served.configs[ResourceType.TOPIC, TOPIC]
        its |= {"retention.ms": "5", "segment.ms": "7"}
        changes = [
            ConfigChange.set("max.message.bytes", "9"),
            ConfigChange.delete("retention.ms"),
            ConfigChange.append("cleanup.policy", "compact"),
        ]
        await admin.alter_configs({T: changes}, validate_only=True)
        assert its == {"retention.ms": "5", "segment.ms": "7"}
        await admin.alter_configs({T: changes})
        assert its == {"segment.ms": "7", "max.message.bytes": "9", "cleanup.policy": "delete,compact"}
        await admin.alter_configs({T: [ConfigChange.subtract("cleanup.policy", "delete")]})
        assert its["cleanup.policy"] == "compact"


async def test_a_change_that_is_refused_has_the_brokers_own_words() -> None:
    async with asking() as (admin, _, served, _):
        broker = ConfigResource.broker(1)
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_configs(
                {T: [ConfigChange.set("no.such", "1")], broker: [ConfigChange.set("log.cleaner.threads", "2")]}
            )
        error = caught.value.errors[T]
        assert (error.code, error.broker_message) == (
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: no.such",
        )
        assert (caught.value.results, caught.value.retriable) == ({broker: None}, False)
        assert served.configs[ResourceType.BROKER, "1"] == {"log.cleaner.threads": "2"}


async def test_a_broker_before_kafka_2_3_cannot_change_single_options() -> None:
    async with asking(1) as (admin, scripted, _, _):
        del scripted.brokers[0].versions[IncrementalAlterConfigsRequest]
        scripted.brokers[0].close_connections()
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_configs({T: [ConfigChange.delete("x")]})
        assert isinstance(caught.value.errors[T], UnsupportedVersion)


# -------------------------------------------------------------------------------------------------------- records
async def test_offsets_are_asked_of_the_leaders() -> None:
    async with asking() as (admin, scripted, _, _):
        for partition in range(3):
            fill(scripted, TOPIC, partition, [b"a", b"b"], [b"c"] * (partition + 1))
        scripted.log(TOPIC, 1).delete_before(1)
        assert await admin.list_offsets({P1: EARLIEST, P0: EARLIEST, P2: LATEST}) == {
            P1: ListedOffset(1, -1, 0),
            P0: ListedOffset(0, -1, 0),
            P2: ListedOffset(5, -1, 0),
        }
        assert await admin.list_offsets({P0: 1_001, P1: 9_999, P2: MAX_TIMESTAMP}) == {
            P0: ListedOffset(1, 1_001, 0),
            P1: ListedOffset(-1, -1, 0),
            P2: ListedOffset(4, 1_004, 0),
        }
        assert {each.node_id for each in scripted.exchanges_of(ListOffsetsRequest)} == {0, 1, 2}
        await admin.list_offsets({P0: LATEST}, read_committed=True)
        assert scripted.requests(ListOffsetsRequest)[-1].isolation_level == 1


async def test_the_largest_timestamp_needs_a_version_that_knows_it() -> None:
    async with asking() as (admin, scripted, _, _):
        scripted.brokers[1].versions[ListOffsetsRequest] = (1, 6)
        for broker in scripted.brokers.values():
            broker.close_connections()
        with pytest.raises(ItemsFailed) as caught:
            await admin.list_offsets({P0: MAX_TIMESTAMP, P1: MAX_TIMESTAMP})
        assert isinstance(caught.value.errors[P1], UnsupportedVersion)
        assert list(caught.value.results) == [P0]
        assert await admin.list_offsets({P1: EARLIEST}) == {P1: ListedOffset(0, -1, 0)}


async def test_a_leader_that_moved_is_found_by_asking_again() -> None:
    async with asking() as (admin, scripted, _, reading):
        fill(scripted, TOPIC, 0, [b"a"])
        reading.errors[TOPIC, 0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH]
        assert await admin.list_offsets({P0: LATEST, P1: LATEST}) == {
            P0: ListedOffset(1, -1, 0),
            P1: ListedOffset(0, -1, 0),
        }
        counts = [len(request.topics[0].partitions) for request in scripted.requests(ListOffsetsRequest, node=1)]
        assert counts == [1], "what was answered is not asked for again"


async def test_a_leader_that_died_is_given_up_for_the_new_one() -> None:
    """As `unassignUnsentCalls` (KafkaAdminClient.java): the broker that was asked says for a while who led before."""
    async with asking() as (admin, scripted, _, _):
        scripted.brokers[1].stop()
        scripted.network.loop.call_later(1, scripted.move_leader, TOPIC, 1, 2)
        began_ms = scripted.now_ms()
        assert await admin.list_offsets({P0: LATEST, P1: LATEST}) == {
            P0: ListedOffset(0, -1, 0),
            P1: ListedOffset(0, -1, 1),
        }
        assert scripted.now_ms() - began_ms < 3_000
        assert scripted.count(ListOffsetsRequest, node=0) == 1


@pytest.mark.parametrize("is_listed", [True, False])
async def test_a_leader_that_the_cluster_no_longer_has_is_given_up_for_the_new_one(is_listed: bool) -> None:
    """It vanished while it was connected to; or before, and one broker has not heard of it."""

    def name_the_old_one(response: Any) -> None:
        for topic in response.topics:
            topic.partitions[1].leader_id = 1

    async with asking() as (admin, scripted, _, _):
        scripted.brokers[1].stop(vanish=True, fenced=not is_listed)
        if is_listed:
            scripted.network.loop.call_later(1, setattr, scripted.brokers[1], "is_fenced", True)
        else:
            admin.cluster.metadata.request_update()
            await asyncio.sleep(1)
        scripted.network.loop.call_later(1, scripted.move_leader, TOPIC, 1, 2)
        scripted.on(MetadataRequest, edited(name_the_old_one), times=2)
        began_ms = scripted.now_ms()
        assert list(await admin.list_offsets({P1: LATEST})) == [P1]
        assert scripted.now_ms() - began_ms < (12_000 if is_listed else 4_000)


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT]
)
async def test_a_leader_with_an_unknown_partition_or_a_storage_error_is_asked_again(code: ErrorCode) -> None:
    """ListOffsetsHandler and DeleteRecordsHandler: from a leader, every error that may pass is one to ask again for."""

    def refuse(response: Any) -> None:
        response.topics[0].partitions[0].error_code = code

    async with asking() as (admin, scripted, _, reading):
        fill(scripted, TOPIC, 0, [b"a"])
        reading.errors[TOPIC, 0] = [code, code]
        assert await admin.list_offsets({P0: LATEST}) == {P0: ListedOffset(1, -1, 0)}
        scripted.on(DeleteRecordsRequest, edited(refuse), times=2)
        assert await admin.delete_records({P0: 1}) == {P0: 1}
        assert scripted.count(DeleteRecordsRequest) == 3


async def test_what_a_leader_says_to_the_end_is_the_error() -> None:
    async with asking() as (admin, _, _, reading):
        reading.errors[TOPIC, 0] = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 1_000
        with pytest.raises(ItemsFailed) as caught:
            await admin.list_offsets({P0: LATEST, P1: LATEST}, timeout_ms=3_000)
        assert isinstance(caught.value.errors[P0], UnknownTopic)
        assert list(caught.value.results) == [P1]


@pytest.mark.parametrize("retries", [0, 3])
async def test_a_call_is_repeated_as_often_as_retries_says(retries: int) -> None:
    async with asking(retries=retries) as (admin, scripted, _, reading):
        reading.errors[TOPIC, 0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 1_000
        with pytest.raises(ItemsFailed) as caught:
            await admin.list_offsets({P0: LATEST, P1: LATEST})
        assert caught.value.errors[P0].code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert scripted.count(ListOffsetsRequest, node=0) == 1 + retries
        scripted.on(DescribeClusterRequest, disconnect_after(), times=None)
        with pytest.raises(ConnectionFailed):
            await admin.describe_cluster()
        assert scripted.count(DescribeClusterRequest) == 1 + retries


async def test_a_number_that_does_not_fit_the_request_is_told_as_such() -> None:
    async with asking(1) as (admin, _, _, _):
        with pytest.raises(ClientError, match="DeleteRecords cannot be sent") as caught:
            await admin.delete_records({P0: 2**63})
        assert not caught.value.retriable


async def test_a_partition_without_a_leader_is_waited_for_until_the_call_is_over() -> None:
    async with asking() as (admin, scripted, _, _):
        scripted.move_leader(TOPIC, 0, to=-1)
        scripted.network.loop.call_later(2, scripted.move_leader, TOPIC, 0, 2)
        assert P0 in await admin.list_offsets({P0: LATEST})
        scripted.move_leader(TOPIC, 0, to=-1)
        began_ms = scripted.now_ms()
        with pytest.raises(ItemsFailed) as caught:
            await admin.list_offsets({P0: LATEST, P1: LATEST}, timeout_ms=5_000)
        assert caught.value.errors[P0].code is ErrorCode.LEADER_NOT_AVAILABLE
        assert (caught.value.results, caught.value.retriable) == ({P1: ListedOffset(0, -1, 0)}, True)
        assert 3_000 <= scripted.now_ms() - began_ms <= 5_000


async def test_topics_and_partitions_that_do_not_exist_are_told_at_once() -> None:
    async with asking() as (admin, scripted, _, _):
        nowhere, beyond = TopicPartition("nowhere", 0), TopicPartition(TOPIC, 7)
        with pytest.raises(ItemsFailed) as caught:
            await admin.list_offsets({nowhere: LATEST, beyond: LATEST, P0: LATEST})
        assert isinstance(caught.value.errors[nowhere], UnknownTopic)
        assert isinstance(caught.value.errors[beyond], InvalidPartition)
        assert scripted.count(ListOffsetsRequest) == 1


async def test_records_are_deleted_before_an_offset_or_all() -> None:
    async with asking() as (admin, scripted, _, _):
        fill(scripted, TOPIC, 0, [b"a"] * 5)
        fill(scripted, TOPIC, 1, [b"a"] * 4)
        assert await admin.delete_records({P0: 3, P1: -1}) == {P0: 3, P1: 4}
        assert scripted.log(TOPIC, 0).start_offset == 3
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_records({P0: 99})
        assert caught.value.errors[P0].code is ErrorCode.OFFSET_OUT_OF_RANGE
        assert all(request.timeout_ms > 0 for request in scripted.requests(DeleteRecordsRequest))


# -------------------------------------------------------------------------------------------------------- brokers
@pytest.mark.parametrize("is_old", [False, True])
async def test_the_cluster_is_described_by_older_brokers_too(is_old: bool) -> None:
    """DescribeCluster is from Kafka 2.8; before, Metadata tells the same."""
    async with asking() as (admin, scripted, _, _):
        scripted.controller_id = 2
        if is_old:
            for broker in scripted.brokers.values():
                del broker.versions[DescribeClusterRequest]
                broker.close_connections()
        cluster = await admin.describe_cluster()
        assert cluster.cluster_id == "c2NyaXB0ZWQtY2x1c3Rlcg"
        assert cluster.controller_id == 2
        assert cluster.brokers == tuple(BrokerDescription(each, f"broker-{each}.test", 9092) for each in range(3))
        assert scripted.count(DescribeClusterRequest) == (0 if is_old else 1)


async def test_an_error_of_the_whole_answer_is_raised() -> None:
    def refuse(response: Any) -> None:
        response.error_code, response.error_message = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no"

    async with asking() as (admin, scripted, _, _):
        scripted.on(DescribeClusterRequest, edited(refuse))
        with pytest.raises(BrokerError, match=r"DescribeCluster .* no") as caught:
            await admin.describe_cluster()
        assert caught.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_log_directories_are_asked_of_each_broker() -> None:
    async with asking() as (admin, _, _, _):
        found = await admin.describe_log_dirs()
        assert list(found) == [0, 1, 2]
        bad, good = found[1]
        assert (good.path, good.total_bytes, good.usable_bytes, good.size_bytes) == (LOG_DIR, 1_000, 400, 101)
        assert [(each.partition, each.size_bytes) for each in good.replicas] == [(P1, 101)]
        assert (bad.path, bad.total_bytes) == ("/broken", -1)
        assert bad.error is not None
        assert bad.error.code is ErrorCode.KAFKA_STORAGE_ERROR
        some = await admin.describe_log_dirs([0], [P1, P2])
        assert [each.replicas for each in some[0]] == [(), ()]


async def test_a_broker_that_is_gone_does_not_hide_the_others() -> None:
    async with asking() as (admin, scripted, _, _):
        scripted.brokers[1].stop()
        with pytest.raises(ItemsFailed) as caught:
            await admin.describe_log_dirs([0, 1, 2], timeout_ms=3_000)
        assert isinstance(caught.value.errors[1], ConnectionFailed)
        assert list(caught.value.results) == [0, 2]
        assert scripted.count(DescribeLogDirsRequest, node=0) == 1


# ------------------------------------------------------------------------------------------------ whoever answers
async def test_a_lost_answer_is_asked_for_again() -> None:
    async with asking(request_timeout_ms=2_000) as (admin, scripted, _, _):
        scripted.on(MetadataRequest, disconnect_after(), times=3)
        assert [topic.name for topic in await admin.list_topics()] == [TOPIC]
        scripted.on(MetadataRequest, never(), times=2)
        assert [topic.name for topic in await admin.list_topics()] == [TOPIC]


async def test_no_answer_at_all_is_an_error_when_the_time_is_up() -> None:
    async with asking() as (admin, scripted, _, _):
        rule = scripted.on(MetadataRequest, never(), times=None)
        began_ms = scripted.now_ms()
        with pytest.raises(RequestTimedOut, match="5000 ms"):
            await admin.list_topics(timeout_ms=5_000)
        assert 4_000 <= scripted.now_ms() - began_ms <= 5_100
        rule.cancel()
        assert [topic.name for topic in await admin.list_topics()] == [TOPIC]


async def test_a_call_that_gives_up_leaves_the_answers_of_others_alone() -> None:
    async with asking(1) as (admin, scripted, _, _):
        scripted.on(MetadataRequest, late(3_000))
        with pytest.raises(RequestTimedOut):
            await admin.list_topics(timeout_ms=1_000)
        connections = {each.connection for each in scripted.exchanges_of(MetadataRequest)}
        await admin.list_topics()
        assert {each.connection for each in scripted.exchanges_of(MetadataRequest)} == connections


async def test_an_answer_that_leaves_items_out_is_an_error_for_these() -> None:
    def shorten(response: Any) -> None:
        response.results.pop()

    async with asking(1) as (admin, scripted, _, _):
        scripted.on(DescribeConfigsRequest, edited(shorten))
        broker = ConfigResource.broker()
        with pytest.raises(ItemsFailed) as caught:
            await admin.describe_configs([T, broker])
        assert list(caught.value.errors) == [broker]
        assert "leaves out" in str(caught.value.errors[broker])


async def test_what_is_not_asked_for_is_ignored() -> None:
    def invent(response: Any) -> None:
        response.results[0].resource_type = 77

    async with asking(1) as (admin, scripted, _, _):
        scripted.on(DescribeConfigsRequest, edited(invent))
        with pytest.raises(ItemsFailed):
            await admin.describe_configs([T])


async def test_a_call_with_brokers_down_ends_in_time_and_the_next_succeeds_on_their_return() -> None:
    async with asking(1) as (admin, scripted, _, _):
        scripted.brokers[0].stop()
        began_ms = scripted.now_ms()
        with pytest.raises(ConnectionFailed):
            await admin.list_topics(timeout_ms=5_000)
        assert scripted.now_ms() - began_ms <= 5_100
        scripted.brokers[0].start()
        assert [topic.name for topic in await admin.list_topics()] == [TOPIC]
