"""The client's Cluster against our broker, three of ours, and Apache Kafka: first contact, topics, controller, a broker
that is killed.

On asyncio's own loop and on uvloop.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from odradek.client.cluster.cluster import CONTROLLER, Cluster
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ConnectionFailed, InvalidTopic, MetadataTimeout
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode, code_of
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks
from processes.apache_kafka import ApacheKafka
from processes.free_ports import free_ports
from tests.compat.clusters import APACHE_KAFKA, EVERY_KIND, broker_count, ours
from tests.compat.clusters import Cluster as Server

pytestmark = [pytest.mark.compat, pytest.mark.both_loops]

DESCRIBE = DescribeClusterRequest(include_cluster_authorized_operations=False)


@pytest.fixture(scope="module", params=EVERY_KIND)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """One of our own, since it is killed; new topics get 3 partitions."""
    options = {"num.partitions": "3"}
    if request.param == APACHE_KAFKA:
        with ApacheKafka(properties=options) as kafka:
            yield kafka
    else:
        with ours(request.param, tmp_path_factory.mktemp("cluster"), **options) as running:
            yield running


def addresses(server: Server) -> list[str]:
    return server.bootstrap.split(",")


@asynccontextmanager
async def connected(*servers: str, **settings: Any) -> AsyncGenerator[Cluster]:
    environment = Environment()
    tasks = Tasks(environment.loop)
    cluster = Cluster(ClientConfig(list(servers), client_id="compat", **settings), environment, tasks)
    try:
        await cluster.start()
        yield cluster
    finally:
        await cluster.close()
        assert len(tasks) == 0


def fresh_name(prefix: str) -> str:
    return f"{prefix}-{os.urandom(4).hex()}"


def in_s(seconds: float) -> float:
    return (asyncio.get_running_loop().time() + seconds) * 1000.0


async def create(cluster: Cluster, name: str, partitions: int) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1, assignments=[], configs=[])
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=False)
    answer = await cluster.ask(request, node=CONTROLLER)
    assert code_of(answer.topics[0].error_code) is ErrorCode.NONE


async def delete(cluster: Cluster, name: str) -> None:
    answer = await cluster.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), node=CONTROLLER, version=5)
    assert code_of(answer.responses[0].error_code) is ErrorCode.NONE


async def in_thread(what: Callable[[], object]) -> None:
    """Something that blocks, while the client goes on."""
    await asyncio.get_running_loop().run_in_executor(None, what)


@pytest.mark.telling
async def test_first_contact_a_topic_that_is_created_and_its_leader(server: Server) -> None:
    async with connected(*addresses(server)) as cluster:
        metadata = cluster.metadata
        nodes = {node.node_id: f"{node.host}:{node.port}" for node in metadata.nodes()}
        assert sorted(nodes.values()) == sorted(addresses(server))
        assert metadata.controller_id in nodes
        name = fresh_name("made")
        topic = await cluster.wait_for_topic(name, in_s(20))
        assert topic.partition_count == 3
        assert topic.topic_id != ZERO_UUID
        connection = await cluster.connection_to(metadata.leader_of(name, 2)[0], in_s(10))
        assert metadata.leader_of(name, 2)[1] >= 0
        described = await connection.ask(DESCRIBE)
        assert described.cluster_id == metadata.cluster_id
        assert described.controller_id == metadata.controller_id
        asked = await cluster.ask(DESCRIBE)
        assert {each.broker_id: f"{each.host}:{each.port}" for each in asked.brokers} == nodes


async def test_bootstrap_addresses_that_are_wrong_are_passed_over(server: Server) -> None:
    [nobody] = free_ports(1)
    wrong = (f"127.0.0.1:{nobody}", "nowhere.invalid:9092")
    async with connected(*wrong, *addresses(server)) as cluster:
        assert len(cluster.metadata.nodes()) == broker_count(server)
    with pytest.raises(ConnectionFailed, match=rf"127\.0\.0\.1:{nobody} failed"):
        async with connected(*wrong, request_timeout_ms=2_000):
            pass


async def test_a_name_that_no_topic_can_have_is_refused_at_once(server: Server) -> None:
    async with connected(*addresses(server)) as cluster:
        began_ms = in_s(0)
        for _ in range(3):
            with pytest.raises(InvalidTopic, match="no such name!"):
                await cluster.wait_for_topic("no such name!", in_s(30))
        assert in_s(0) - began_ms < 5_000


async def test_a_topic_that_does_not_exist_is_waited_for_and_then_told(server: Server) -> None:
    async with connected(*addresses(server), allow_auto_create_topics=False) as cluster:
        with pytest.raises(MetadataTimeout, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await cluster.wait_for_topic(fresh_name("missing"), in_s(1))


async def test_partitions_that_are_added_are_learned(server: Server) -> None:
    async with connected(*addresses(server)) as cluster:
        name = fresh_name("grown")
        await create(cluster, name, 2)
        assert (await cluster.wait_for_topic(name, in_s(20))).partition_count == 2
        topic = CreatePartitionsTopic(name=name, count=5, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=False)
        answer = await cluster.ask(request, node=CONTROLLER)
        assert code_of(answer.results[0].error_code) is ErrorCode.NONE
        assert (await cluster.wait_for_topic(name, in_s(20), partition=4)).partition_count == 5


async def test_a_topic_that_is_deleted_and_made_anew_is_another_one(server: Server) -> None:
    async with connected(*addresses(server), allow_auto_create_topics=False) as cluster:
        name = fresh_name("anew")
        await create(cluster, name, 3)
        before = await cluster.wait_for_topic(name, in_s(20))
        await delete(cluster, name)
        deadline_ms = in_s(20)
        while cluster.metadata.topic(name) is not None:
            assert in_s(0) < deadline_ms
            cluster.metadata.request_update()  # again and again: a broker learns of it after the controller
            await asyncio.sleep(0.02)
        await create(cluster, name, 1)
        after = await cluster.wait_for_topic(name, in_s(20))
        assert after.partition_count == 1
        assert after.topic_id != before.topic_id


@pytest.mark.telling
async def test_a_broker_that_is_killed_and_back_is_found_again(server: Server) -> None:
    async with connected(*addresses(server)) as cluster:
        name = fresh_name("kept")
        await create(cluster, name, 2)
        before = await cluster.wait_for_topic(name, in_s(20))
        connection = await cluster.connection_to(before.leaders[0][0], in_s(10))
        changed = asyncio.Event()
        cluster.subscribe(changed.set)
        await in_thread(server.kill)
        async with asyncio.timeout(10):
            while connection.is_open:  # the first news may be of another connection
                changed.clear()
                await changed.wait()
        assert cluster.connection(before.leaders[0][0]) is None
        asking = asyncio.ensure_future(cluster.ask(DESCRIBE, timeout_ms=90_000))
        waiting = asyncio.ensure_future(cluster.wait_for_topic(fresh_name("later"), in_s(90)))
        await asyncio.sleep(0.5)  # the time that the broker is away
        assert not asking.done()
        await in_thread(server.start)
        assert (await asking).cluster_id == cluster.metadata.cluster_id
        assert (await waiting).partition_count == 3
        after = await cluster.wait_for_topic(name, in_s(30))
        assert after.topic_id == before.topic_id
        assert after.leaders[1][1] >= before.leaders[1][1]
        deadline_ms = in_s(30)
        while not (topic := await cluster.wait_for_topic(name, deadline_ms)).is_complete:
            assert in_s(0) < deadline_ms
            await asyncio.sleep(0.05)  # between two looks, not instead of them
        await cluster.connection_to(topic.leaders[0][0], in_s(10))
