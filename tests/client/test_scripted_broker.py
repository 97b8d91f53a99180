"""The scripted cluster answers like brokers do, read through the codec, until it is told otherwise."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.protocol.frames import RequestHeader, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from tests.broker.wire import RawClient, batch
from tests.client.broker_handlers import Call
from tests.client.memory_network import SocketsLeft
from tests.client.scripted_broker import ClientErred, ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time

INIT = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)


@asynccontextmanager
async def connected(cluster: ScriptedCluster, node: int = 0) -> AsyncGenerator[RawClient]:
    broker = cluster.brokers[node]
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport = await cluster.network.connect(lambda: protocol, broker.host, broker.port)
    writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
    try:
        yield RawClient(reader, writer)
    finally:
        transport.abort()
        await asyncio.sleep(0.01)


def produce(
    *parts: tuple[str, int, bytes], acks: int = -1, sequence: int = -1, producer_id: int = -1, epoch: int = 0
) -> ProduceRequest:
    """A request with one record for each (topic, partition, value)."""
    topics: dict[str, list[PartitionProduceData]] = {}
    for topic, index, value in parts:
        epoch = -1 if producer_id < 0 else epoch
        records = batch(value, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        topics.setdefault(topic, []).append(PartitionProduceData(index=index, records=records))
    data = [TopicProduceData(name=name, partition_data=each) for name, each in topics.items()]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=data)


async def produced(client: RawClient, request: ProduceRequest, version: int = 11) -> list[PartitionProduceResponse]:
    answer = await client.ask(request, version)
    return [part for topic in answer.responses for part in topic.partition_responses]


async def metadata(client: RawClient, *names: str, version: int = 12) -> MetadataResponse:
    topics = [MetadataRequestTopic(name=name) for name in names] if names else None
    return await client.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=True), version)


# ------------------------------------------------------------------------------------------------------- ApiVersions
async def test_api_versions_tells_what_is_served() -> None:
    with scripted_cluster() as cluster:
        cluster.brokers[0].versions[ProduceRequest] = (3, 9)
        async with connected(cluster) as client:
            for version in range(6):
                answer = await client.ask(ApiVersionsRequest(), version)
                ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
                assert ranges == {0: (3, 9), 3: (0, 13), 18: (0, 5), 22: (0, 6)}


@pytest.mark.parametrize("version", [3, 4, 5, 99])
async def test_api_versions_of_an_unknown_version_is_answered_with_version_0(version: int) -> None:
    """KIP-511: error 35, the range of this key alone, in the layout that everybody can read."""
    with scripted_cluster() as cluster:
        cluster.brokers[0].versions[ApiVersionsRequest] = (0, 2)
        async with connected(cluster) as client:
            frame = b"".join(request_frame(RequestHeader(18, version, 77, "client"), True, [b"whatever"]))
            client.writer.write(frame)
            answer = await client.receive_frame()
            assert answer[:4] == (77).to_bytes(4, "big")
            assert bytes(answer[4:]) == bytes.fromhex("0023 00000001 0012 0000 0002")
            assert isinstance(await client.ask(ApiVersionsRequest(), 2), ApiVersionsResponse)


async def test_what_is_not_served_closes_the_connection_and_is_a_violation() -> None:
    with scripted_cluster(checks=False) as cluster:
        cluster.brokers[0].versions[MetadataRequest] = (0, 11)
        async with connected(cluster) as client:
            client.send(MetadataRequest(topics=[]), 12)
            assert await client.is_closed()
        async with connected(cluster) as client:
            client.send(DescribeClusterRequest(include_cluster_authorized_operations=False), 0)
            assert await client.is_closed()
        assert [text.partition(": ")[2] for text in cluster.violations] == [
            "key 3 version 12 is not served",
            "key 60 version 0 is not served",
        ]
        with pytest.raises(ClientErred, match="key 60"):
            cluster.check()


# ---------------------------------------------------------------------------------------------------------- Metadata
async def test_metadata_describes_brokers_topics_and_leaders() -> None:
    with scripted_cluster(brokers=3) as cluster:
        topic = cluster.create_topic("orders", 4)
        cluster.create_topic("others", 1, leaders=[-1])
        cluster.move_leader("orders", 1, to=2)
        async with connected(cluster) as client:
            answer = await metadata(client)
            assert [(each.node_id, each.host, each.port) for each in answer.brokers] == [
                (node, f"broker-{node}.test", 9092) for node in range(3)
            ]
            orders, others = answer.topics
            assert (orders.error_code, orders.topic_id, len(topic.topic_id)) == (0, topic.topic_id, 16)
            leaders = [(part.partition_index, part.leader_id, part.leader_epoch) for part in orders.partitions]
            assert leaders == [(0, 0, 0), (1, 2, 1), (2, 2, 0), (3, 0, 0)]
            assert [(part.error_code, part.leader_id) for part in others.partitions] == [(5, -1)]
            assert (await metadata(client, "orders", version=0)).topics[0].name == "orders"
            by_id = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic.topic_id, name=None)])
            assert (await client.ask(by_id, 12)).topics[0].name == "orders"
            assert (await client.ask(MetadataRequest(topics=[]), 1)).topics == []
            assert len((await client.ask(MetadataRequest(topics=[]), 0)).topics) == 2


async def test_unknown_topics_are_errors_and_are_created_where_the_cluster_does() -> None:
    with scripted_cluster(brokers=2) as cluster:
        async with connected(cluster) as client:
            assert (await metadata(client, "orders")).topics[0].error_code == 3
            assert (await metadata(client, "orders")).topics[0].error_code == 3
            assert (await metadata(client, "no/name")).topics[0].error_code == 17
            cluster.auto_create_partitions = 2
            asked_not_to = MetadataRequest(
                topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=False
            )
            assert (await client.ask(asked_not_to, 12)).topics[0].error_code == 3
            assert cluster.topics == {}
            assert (await metadata(client, "orders")).topics[0].error_code == 3, "as KRaft, which is creating it"
            assert len((await metadata(client, "orders")).topics[0].partitions) == 2


async def test_a_broker_that_hears_nothing_answers_what_it_knew() -> None:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic("orders", 1)
        cluster.create_topic("others", 1)
        cluster.brokers[0].freeze_metadata()
        cluster.auto_create_partitions = 1
        cluster.move_leader("orders", 0, to=1)
        cluster.create_topic("later")
        async with connected(cluster, 0) as stale, connected(cluster, 1) as true:
            for _ in range(2):
                assert (await metadata(stale, "orders")).topics[0].partitions[0].leader_id == 0
                assert (await metadata(true, "orders")).topics[0].partitions[0].leader_id == 1
            for name in ("later", "never"):
                assert (await metadata(stale, name)).topics[0].error_code == 3
            assert "never" not in cluster.topics
            assert [topic.name for topic in (await metadata(stale)).topics] == ["orders", "others"]
            cluster.brokers[0].stale_metadata = None
            assert (await metadata(stale, "orders")).topics[0].partitions[0].leader_id == 1


async def test_topics_and_partitions_come_and_go() -> None:
    with scripted_cluster() as cluster:
        first = cluster.create_topic("orders", 1).topic_id
        async with connected(cluster) as client:
            cluster.add_partitions("orders", 3)
            assert len((await metadata(client, "orders")).topics[0].partitions) == 3
            cluster.delete_topic("orders")
            assert (await metadata(client, "orders")).topics[0].error_code == 3
            assert cluster.create_topic("orders").topic_id != first


# ----------------------------------------------------------------------------------------------------------- Produce
async def test_every_producer_gets_an_id_of_its_own() -> None:
    with scripted_cluster(brokers=2) as cluster:
        ids: list[int] = []
        for node in (0, 1):
            async with connected(cluster, node) as client:
                for version in range(6):
                    answer = await client.ask(INIT, version)
                    assert (answer.error_code, answer.producer_epoch) == (0, 0)
                    ids.append(answer.producer_id)
        assert len(set(ids)) == 12


@pytest.mark.parametrize("version", range(3, 12))
async def test_produce_appends_and_answers_offsets_in_every_version(version: int) -> None:
    with scripted_cluster() as cluster:
        cluster.create_topic("orders", 2)
        cluster.create_topic("others", 1).log_append_time = True
        async with connected(cluster) as client:
            request = produce(("orders", 1, b"a"), ("orders", 0, b"b"), ("others", 0, b"c"))
            for offset in range(2):
                answers = await produced(client, request, version)
                assert [(part.index, part.error_code, part.base_offset) for part in answers] == [
                    (1, 0, offset),
                    (0, 0, offset),
                    (0, 0, offset),
                ]
                assert [part.log_append_time_ms for part in answers[:2]] == [-1, -1]
                assert 0 <= cluster.environment.now_ms() - answers[2].log_append_time_ms <= 1
                assert answers[0].log_start_offset == (0 if version >= 5 else -1)
        assert cluster.values("orders") == [b"b", b"b", b"a", b"a"]
        assert cluster.values("orders", 1) == [b"a", b"a"]
        assert [each.base_offset for each in cluster.batches("others")] == [0, 1]


async def test_an_idempotent_retry_is_acknowledged_again_and_not_appended() -> None:
    with scripted_cluster() as cluster:
        cluster.create_topic("orders")
        async with connected(cluster) as client:
            for sequence in range(2):
                request = produce(("orders", 0, b"%d" % sequence), producer_id=7, sequence=sequence)
                for _ in range(2):
                    [answer] = await produced(client, request)
                    assert (answer.error_code, answer.base_offset) == (0, sequence)
            gap = produce(("orders", 0, b"3"), producer_id=7, sequence=3)
            assert [each.error_code for each in await produced(client, gap)] == [45]
        assert cluster.values("orders") == [b"0", b"1"]


async def test_only_the_leader_appends_and_others_name_it() -> None:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic("orders", 1)
        cluster.move_leader("orders", 0, to=1)
        request = produce(("orders", 0, b"a"), ("orders", 9, b"b"), ("nowhere", 0, b"c"))
        async with connected(cluster, 0) as client:
            answer = await client.ask(request, 10)
            first, second = (topic.partition_responses for topic in answer.responses)
            assert [part.error_code for part in (*first, *second)] == [6, 3, 3]
            assert first[0].current_leader == LeaderIdAndEpoch(leader_id=1, leader_epoch=1)
            assert [(each.node_id, each.host) for each in answer.node_endpoints] == [(1, "broker-1.test")]
            cluster.gives_hints = False
            answer = await client.ask(request, 10)
            assert answer.responses[0].partition_responses[0].current_leader is None
            assert answer.node_endpoints == []
        async with connected(cluster, 1) as client:
            assert (await produced(client, request))[0].error_code == 0
        assert cluster.batches("orders")[0].leader_epoch == 1


async def test_a_batch_over_the_topic_s_limit_is_too_large() -> None:
    with scripted_cluster() as cluster:
        cluster.create_topic("orders", max_message_bytes=200)
        async with connected(cluster) as client:
            [answer] = await produced(client, produce(("orders", 0, b"x" * 200)))
            assert (answer.error_code, answer.error_message and "200 are allowed" in answer.error_message) == (10, True)
            assert [each.error_code for each in await produced(client, produce(("orders", 0, b"x" * 20)))] == [0]


async def test_without_acks_there_is_no_answer_and_an_error_closes_the_connection() -> None:
    with scripted_cluster() as cluster:
        cluster.create_topic("orders")
        async with connected(cluster) as client:
            client.send(produce(("orders", 0, b"a"), acks=0), 11)
            assert await client.ask(INIT, 5), "the next answer is to the next request"
            client.send(produce(("nowhere", 0, b"a"), acks=0), 11)
            assert await client.is_closed()
        assert cluster.values("orders") == [b"a"]


async def test_acks_that_do_not_exist_are_refused() -> None:
    with scripted_cluster() as cluster:
        cluster.create_topic("orders")
        async with connected(cluster) as client:
            answers = [await produced(client, produce(("orders", 0, b"a"), acks=acks)) for acks in (1, 2, -1)]
            assert [each.error_code for [each] in answers] == [0, 21, 0]


async def test_a_bad_batch_is_an_error_and_a_violation() -> None:
    with scripted_cluster(checks=False) as cluster:
        cluster.create_topic("orders")
        async with connected(cluster) as client:
            request = produce(("orders", 0, b"a"))
            part = request.topic_data[0].partition_data[0]
            assert part.records is not None
            part.records = bytes(part.records)[:-1] + b"\1"
            assert [each.error_code for each in await produced(client, request)] == [2]
            twice = produce(("orders", 0, b"a"), ("orders", 0, b"b"))
            await produced(client, twice)
        assert len(cluster.violations) == 2
        assert "CORRUPT_MESSAGE" in cluster.violations[0]
        assert "each partition once" in cluster.violations[1]


# ------------------------------------------------------------------------------------------------------- connections
async def test_answers_come_in_order_one_request_at_a_time() -> None:
    with scripted_cluster() as cluster:
        cluster.create_topic("orders")
        cluster.brokers[0].service_ms = 100
        async with connected(cluster) as client:
            requests = [produce(("orders", 0, b"%d" % number)) for number in range(4)]
            sent = [client.send(request, 9) for request in requests]
            start_ms = cluster.now_ms()
            received = [(await client.receive(request, 9))[0] for request in requests]
            assert received == sent
            assert 400 <= cluster.now_ms() - start_ms < 402
            assert all(each.at_ms - start_ms < 1 for each in cluster.exchanges), "they came at once"
            assert cluster.most_in_flight(ProduceRequest) == 4
            await client.ask(requests[0], 9)
            assert cluster.most_in_flight(InitProducerIdRequest) == 0
        assert cluster.values("orders") == [b"0", b"1", b"2", b"3", b"0"]
        assert cluster.most_in_flight(ProduceRequest) == 4


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x02ab", b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\0"])
async def test_bytes_that_are_no_request_close_the_connection_and_are_a_violation(data: bytes) -> None:
    with scripted_cluster(checks=False) as cluster:
        async with connected(cluster) as client:
            client.writer.write(data)
            assert await client.is_closed()
        assert len(cluster.violations) == 1


async def test_requests_are_noted_with_node_connection_and_time() -> None:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic("orders", 2)
        async with connected(cluster, 0) as first, connected(cluster, 1) as second:
            await metadata(first)
            await produced(second, produce(("orders", 1, b"a")))
            await produced(second, produce(("orders", 1, b"a")))
        assert [cluster.count(ProduceRequest), cluster.count(ProduceRequest, node=0)] == [2, 0]
        assert [len(each.topic_data) for each in cluster.requests(ProduceRequest, node=1)] == [1, 1]
        one, two = cluster.exchanges_of(ProduceRequest)
        assert (one.node_id, one.connection, one.version, one.client_id) == (1, 2, 11, "raw")
        assert one.partitions == [("orders", 1)]
        assert one.answered_at_ms is not None
        assert one.at_ms <= one.answered_at_ms < two.at_ms
        assert one.answer_size > 20
        assert cluster.exchanges_of(MetadataRequest)[0].partitions == []


async def test_connections_left_open_are_found() -> None:
    with pytest.raises(SocketsLeft), scripted_cluster() as cluster:
        await cluster.network.connect(asyncio.Protocol, "broker-0.test", 9092)


# ----------------------------------------------------------------------------------------------- brokers come and go
async def test_a_stopped_broker_closes_connections_and_refuses_new_ones_until_it_starts() -> None:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic("orders", 2)
        broker = cluster.brokers[0]
        async with connected(cluster, 0) as client, connected(cluster, 1) as other:
            broker.stop()
            assert not broker.is_running
            assert await client.is_closed()
            with pytest.raises(ConnectionRefusedError):
                await cluster.network.connect(asyncio.Protocol, broker.host, broker.port)
            answer = await metadata(other)
            assert len(answer.brokers) == 2, "nobody has noticed"
            assert [part.leader_id for part in answer.topics[0].partitions] == [0, 1]
        broker.start({ProduceRequest: (3, 5)})
        async with connected(cluster, 0) as client:
            versions = await client.ask(ApiVersionsRequest(), 0)
            assert [each.max_version for each in versions.api_keys if each.api_key == 0] == [5]
            assert (await produced(client, produce(("orders", 0, b"a")), 5))[0].error_code == 0


async def test_a_fenced_broker_is_listed_no_more_and_leads_nothing() -> None:
    with scripted_cluster(brokers=2) as cluster:
        cluster.create_topic("orders", 2)
        cluster.brokers[0].stop(fenced=True)
        async with connected(cluster, 1) as client:
            answer = await metadata(client)
            assert [each.node_id for each in answer.brokers] == [1]
            parts = [(part.error_code, part.leader_id) for part in answer.topics[0].partitions]
            assert parts == [(5, -1), (0, 1)]
            cluster.brokers[0].start()
            assert [part.leader_id for part in (await metadata(client)).topics[0].partitions] == [0, 1]


async def test_a_machine_that_vanishes_says_nothing_and_its_connections_stay_half_open() -> None:
    with scripted_cluster() as cluster:
        cluster.create_topic("orders")
        async with connected(cluster) as client:
            cluster.brokers[0].stop(vanish=True)
            client.send(produce(("orders", 0, b"a")), 11)
            with pytest.raises(TimeoutError):
                await client.receive_frame()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(cluster.network.connect(asyncio.Protocol, "broker-0.test", 9092), 60)
            cluster.brokers[0].start()
            async with connected(cluster) as again:
                assert (await produced(again, produce(("orders", 0, b"b"))))[0].error_code == 0
        assert cluster.values("orders") == [b"b"]


async def test_what_a_stopped_broker_had_begun_is_not_done() -> None:
    with scripted_cluster() as cluster:
        cluster.create_topic("orders")
        cluster.brokers[0].service_ms = 1_000
        async with connected(cluster) as client:
            client.send(produce(("orders", 0, b"a")), 11)
            await asyncio.sleep(0.5)
            cluster.brokers[0].stop()
            await asyncio.sleep(2)
        assert cluster.count(ProduceRequest) == 1
        assert cluster.values("orders") == []


async def test_connections_can_be_closed_while_the_broker_goes_on() -> None:
    with scripted_cluster() as cluster:
        async with connected(cluster) as client:
            cluster.brokers[0].close_connections()
            assert await client.is_closed()
        async with connected(cluster) as client:
            await client.ask(INIT, 5)


# ---------------------------------------------------------------------------------------------------------- other APIs
async def test_other_apis_can_be_served() -> None:
    def describe(call: Call) -> DescribeClusterResponse:
        return DescribeClusterResponse(cluster_id="x", controller_id=call.broker.node_id, brokers=[])

    with scripted_cluster(brokers=2) as cluster:
        cluster.serve(DescribeClusterRequest, describe)
        async with connected(cluster, 1) as client:
            request = DescribeClusterRequest(include_cluster_authorized_operations=False)
            assert (await client.ask(request, 1)).controller_id == 1
            ranges = {each.api_key for each in (await client.ask(ApiVersionsRequest(), 3)).api_keys}
            assert DescribeClusterRequest.api_key in ranges


async def test_a_guard_closes_connections_that_ask_too_early() -> None:
    with scripted_cluster(checks=False) as cluster:
        cluster.guard = lambda connection, cls: cls is ApiVersionsRequest or bool(connection.state)
        async with connected(cluster) as client:
            await client.ask(ApiVersionsRequest(), 3)
            client.send(INIT, 5)
            assert await client.is_closed()
