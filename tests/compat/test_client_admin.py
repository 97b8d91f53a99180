"""Our Admin and Fetcher against one broker of ours, three, and Apache Kafka: each call, its effect, how it is refused.

kafka-python writes the records that are read, transactions among them, so that not only our own halves agree.
"""

from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from kafka import KafkaProducer

from odradek.client.admin.admin import Admin
from odradek.client.admin.configs import ConfigChange, ConfigResource, ConfigSource, ConfigType
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.topics import NewTopic
from odradek.client.errors.client_errors import InvalidPartition, InvalidTopic, TopicExists, UnknownTopic
from odradek.client.fetching.fetch_settings import FetchSettings, Start
from odradek.client.fetching.fetcher import Fetcher
from odradek.client.fetching.list_offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode
from odradek.runtime.environment import Environment
from tests.compat.clusters import EVERY_KIND, Cluster, broker_count, cluster, soon

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]


@pytest.fixture(scope="module", params=EVERY_KIND)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    with cluster(request.param, tmp_path_factory.mktemp("admin")) as running:
        yield running


@pytest.fixture
async def admin(server: Cluster) -> AsyncGenerator[Admin]:
    async with Admin(server.bootstrap, default_api_timeout_ms=20_000) as client:
        yield client


@pytest.fixture
def replicas(server: Cluster) -> int:
    """How many a topic is to get."""
    return broker_count(server)


def write(server: Cluster, topic: str, count: int, **settings: Any) -> None:
    """Values `value 0` and so on to partition 0, timestamps from 1,000 on in steps of 10."""
    with KafkaProducer(bootstrap_servers=server.bootstrap, **settings) as producer:
        futures = [
            producer.send(topic, b"value %d" % number, b"k%d" % number, partition=0, timestamp_ms=1_000 + 10 * number)
            for number in range(count)
        ]
        for future in futures:
            future.get(timeout=30)


async def read(admin: Admin, partition: TopicPartition, start: Start, end: int, **settings: Any) -> list[Record]:
    async with Fetcher(admin.cluster, Environment(), FetchSettings(**settings)) as fetcher:
        fetcher.assign(partition, start, end)
        found: list[Record] = []
        while (batch := await fetcher.next(20_000)) is not None:
            found += batch.records
        assert fetcher.is_finished
        return found


async def names(admin: Admin, *wanted: str) -> list[str]:
    return [topic.name for topic in await admin.list_topics() if topic.name in wanted]


async def value(admin: Admin, resource: ConfigResource, option: str) -> str | None:
    return (await admin.describe_configs([resource], [option]))[resource][option].value


# --------------------------------------------------------------------------------------------------------- topics
@pytest.mark.telling
async def test_a_topics_life(admin: Admin, replicas: int) -> None:
    created = await admin.create_topic("life", 3, replicas, {"retention.ms": "60000"})
    assert (created.partitions, created.replication_factor) == (3, replicas)
    assert ("retention.ms", "60000", ConfigSource.TOPIC) in [(e.name, e.value, e.source) for e in created.configs]
    described = await admin.describe_topic("life")
    assert (described.topic_id, len(described.partitions), described.has_leaders) == (created.topic_id, 3, True)
    assert "life" in [topic.name for topic in await admin.list_topics()]
    await admin.create_partitions({"life": 5})
    assert len((await admin.describe_topic("life")).partitions) == 5
    with pytest.raises(TopicExists):
        await admin.create_topic("life", 1, replicas)
    assert created.topic_id is not None
    await admin.delete_topics(topic_ids=[created.topic_id])
    await soon(lambda: names(admin, "life"), [])
    with pytest.raises(UnknownTopic):
        await admin.describe_topic("life")
    with pytest.raises(UnknownTopic):
        await admin.delete_topic("life")
    again = await admin.create_topic("life")
    assert (again.partitions, again.topic_id != created.topic_id) == (2, True)
    assert again.replication_factor == replicas


@pytest.mark.telling
async def test_of_several_new_topics_each_has_its_outcome(admin: Admin, replicas: int) -> None:
    nodes = [broker.node_id for broker in (await admin.describe_cluster()).brokers]
    topics = [
        NewTopic("several", 1, replicas),
        NewTopic("not a name", 1, replicas),
        NewTopic("several-wide", 1, 9),
        NewTopic("several-odd", 1, replicas, {"no.such.option": "1"}),
        NewTopic("several-assigned", assignments={0: nodes, 1: nodes[::-1]}),
    ]
    with pytest.raises(ItemsFailed) as caught:
        await admin.create_topics(topics)
    errors = caught.value.errors
    assert isinstance(errors["not a name"], InvalidTopic)
    assert errors["several-wide"].code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert errors["several-odd"].code is ErrorCode.INVALID_CONFIG
    assert {name: topic.partitions for name, topic in caught.value.results.items()} == {
        "several": 1,
        "several-assigned": 2,
    }


async def test_validation_creates_nothing(admin: Admin, replicas: int) -> None:
    await admin.create_topic("validated", 1, replicas, validate_only=True)
    with pytest.raises(UnknownTopic):
        await admin.describe_topic("validated")


# -------------------------------------------------------------------------------------------------------- options
async def test_options_of_a_topic_are_changed_one_by_one(admin: Admin, replicas: int) -> None:
    await admin.create_topic("options", 1, replicas, {"retention.ms": "60000"})
    topic = ConfigResource.topic("options")
    await admin.alter_configs({topic: [ConfigChange.set("segment.ms", "7000")]})
    await soon(lambda: value(admin, topic, "segment.ms"), "7000")
    entries = (await admin.describe_configs([topic], documentation=True, synonyms=True))[topic]
    assert (entries["retention.ms"].value, entries["segment.ms"].value) == ("60000", "7000")
    assert (entries["segment.ms"].source, entries["segment.ms"].type) == (ConfigSource.TOPIC, ConfigType.LONG)
    assert entries["segment.ms"].synonyms[0].value == "7000"
    assert entries["segment.ms"].documentation
    assert entries["max.message.bytes"].source is ConfigSource.DEFAULT
    await admin.alter_configs({topic: [ConfigChange.delete("segment.ms"), ConfigChange.delete("retention.ms")]})
    await soon(lambda: value(admin, topic, "segment.ms"), "604800000")
    entries = (await admin.describe_configs([topic], ["segment.ms", "retention.ms"]))[topic]
    assert sorted(entries) == ["retention.ms", "segment.ms"]
    assert all(entry.is_default for entry in entries.values())


async def test_a_refused_option_has_the_brokers_words_and_changes_nothing(admin: Admin, replicas: int) -> None:
    await admin.create_topic("refused", 1, replicas)
    topic, nowhere = ConfigResource.topic("refused"), ConfigResource.topic("nowhere")
    bad = [ConfigChange.set("segment.ms", "7000"), ConfigChange.set("retention.ms", "soon")]
    with pytest.raises(ItemsFailed) as caught:
        await admin.alter_configs({topic: bad, nowhere: [ConfigChange.set("segment.ms", "1")]})
    assert caught.value.errors[topic].code is ErrorCode.INVALID_CONFIG
    assert "soon" in caught.value.errors[topic].broker_message
    assert isinstance(caught.value.errors[nowhere], UnknownTopic)
    entries = (await admin.describe_configs([topic], ["segment.ms"]))[topic]
    assert entries["segment.ms"].is_default


async def test_the_options_of_a_broker_are_asked_of_it(admin: Admin) -> None:
    node = (await admin.describe_cluster()).brokers[0].node_id
    broker = ConfigResource.broker(node)
    entries = (await admin.describe_configs([broker], ["num.partitions"]))[broker]
    assert (entries["num.partitions"].value, entries["num.partitions"].source) == ("2", ConfigSource.STATIC_BROKER)
    with pytest.raises(ItemsFailed, match="the cluster has no broker 77"):
        await admin.describe_configs([ConfigResource.broker(77)])


# -------------------------------------------------------------------------------------------------------- records
@pytest.mark.telling
async def test_offsets_and_deleted_records(admin: Admin, server: Cluster, replicas: int) -> None:
    await admin.create_topic("offsets", 2, replicas)
    write(server, "offsets", 100)
    full, empty = TopicPartition("offsets", 0), TopicPartition("offsets", 1)
    both = [full, empty]
    for timestamp, expected in ((EARLIEST, [0, 0]), (LATEST, [100, 0]), (1_495, [50, -1]), (9_999, [-1, -1])):
        found = await admin.list_offsets(dict.fromkeys(both, timestamp))
        assert [found[each].offset for each in both] == expected, timestamp
    youngest = (await admin.list_offsets({full: MAX_TIMESTAMP}))[full]
    assert (youngest.offset, youngest.timestamp_ms) == (99, 1_990)
    assert (await admin.list_offsets({full: LATEST}, read_committed=True))[full].offset == 100
    assert await admin.delete_records({full: 40}) == {full: 40}
    assert (await admin.list_offsets({full: EARLIEST}))[full].offset == 40
    assert await admin.delete_records({full: -1}) == {full: 100}
    with pytest.raises(ItemsFailed) as caught:
        await admin.delete_records({full: 101, TopicPartition("offsets", 9): 0, TopicPartition("nowhere", 0): 0})
    assert caught.value.errors[full].code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert isinstance(caught.value.errors[TopicPartition("offsets", 9)], InvalidPartition)
    assert isinstance(caught.value.errors[TopicPartition("nowhere", 0)], UnknownTopic)


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
async def test_records_are_read_back_from_any_offset_in_any_codec(
    admin: Admin, server: Cluster, replicas: int, codec: str | None
) -> None:
    topic = f"codec-{codec}"
    await admin.create_topic(topic, 1, replicas)
    write(server, topic, 1_000, compression_type=codec, linger_ms=20)
    partition = TopicPartition(topic, 0)
    expected = [Record(n, 1_000 + 10 * n, b"k%d" % n, b"value %d" % n) for n in range(1_000)]
    assert await read(admin, partition, Start.earliest(), 1_000) == expected
    assert await read(admin, partition, Start.at_offset(777), 1_000) == expected[777:]
    assert await read(admin, partition, Start(None, 9_999), 1_000) == expected[900:]
    few = {"max_partition_fetch_bytes": 1_000, "buffer_bytes": 5_000}
    assert await read(admin, partition, Start.earliest(), 500, **few) == expected[:500]


async def test_read_committed_leaves_out_the_records_of_aborted_transactions(
    admin: Admin, server: Cluster, replicas: int
) -> None:
    await admin.create_topic("transactions", 1, replicas)
    with KafkaProducer(bootstrap_servers=server.bootstrap, transactional_id="t") as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            producer.send("transactions", b"%d" % number, partition=0).get(timeout=30)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with KafkaProducer(bootstrap_servers=server.bootstrap, transactional_id="t") as successor:
        successor.init_transactions()  # which waits for the last marker: the coordinator answers before it is written
    partition = TopicPartition("transactions", 0)
    end = (await admin.list_offsets({partition: LATEST}))[partition].offset
    assert end == 12, "six records and six markers"
    every = await read(admin, partition, Start.earliest(), end)
    assert [record.value for record in every] == [b"%d" % number for number in range(6)]
    committed = await read(admin, partition, Start.earliest(), end, isolation_level="read_committed")
    assert [record.value for record in committed] == [b"0", b"2", b"4"]


# -------------------------------------------------------------------------------------------------------- brokers
@pytest.mark.telling
async def test_the_cluster_and_its_disks(admin: Admin, server: Cluster, replicas: int) -> None:
    cluster = await admin.describe_cluster()
    assert sorted(f"{each.host}:{each.port}" for each in cluster.brokers) == sorted(server.bootstrap.split(","))
    assert cluster.cluster_id
    assert cluster.controller_id in {each.node_id for each in cluster.brokers}
    await admin.create_topic("disks", 2, replicas)
    write(server, "disks", 10)
    everywhere = await admin.describe_log_dirs()
    assert everywhere.keys() == {each.node_id for each in cluster.brokers}
    for node_id, directories in everywhere.items():
        [directory] = directories
        assert directory.error is None
        assert directory.total_bytes >= directory.usable_bytes > 0
        sizes = {each.partition: each.size_bytes for each in directory.replicas}
        assert sizes[TopicPartition("disks", 0)] > 100
        assert sizes[TopicPartition("disks", 1)] == 0
        [only] = (await admin.describe_log_dirs([node_id], [TopicPartition("disks", 0)]))[node_id]
        assert [each.partition for each in only.replicas] == [TopicPartition("disks", 0)]
