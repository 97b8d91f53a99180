"""Our Admin and `odradek groups` about groups of kafka-python, at ours and at Apache Kafka, beside Kafka's own command.

kafka-python joins, commits, and writes in transactions, so that not only our own halves agree.
"""

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import Consumer
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as TheirPartition

from odradek.client.admin.admin import Admin
from odradek.client.admin.errors import ItemsFailed
from odradek.client.admin.group_offsets import CommittedOffset
from odradek.client.admin.groups import GroupDescription
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.groups import groups
from odradek.client.commands.options import Target
from odradek.client.errors.client_errors import BrokerError
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from processes.apache_kafka import run_tool
from tests.client.commands.scripted import ran_on
from tests.compat.clusters import EVERY_KIND, ON_KAFKA, Cluster, Ours, broker_count, cluster, soon

pytestmark = [pytest.mark.compat, pytest.mark.timeout(120)]

COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
AT_KAFKA = pytest.mark.parametrize("server", [ON_KAFKA], indirect=True)
Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module", params=EVERY_KIND)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    with cluster(request.param, tmp_path_factory.mktemp("groups")) as running:
        yield running


@pytest.fixture
async def admin(server: Cluster) -> AsyncGenerator[Admin]:
    async with Admin(server.bootstrap, default_api_timeout_ms=30_000) as client:
        yield client


@contextmanager
def member(server: Cluster, group: str, topic: str, **settings: Any) -> Generator[KafkaConsumer]:
    """A consumer that has joined, and read a record."""
    with closing(KafkaConsumer(
        topic, bootstrap_servers=server.bootstrap, group_id=group, client_id=f"client of {group}",
        auto_offset_reset="earliest", enable_auto_commit=False, consumer_timeout_ms=30_000, **settings,
    )) as consumer:  # fmt: skip
        next(consumer)
        yield consumer


def write(server: Cluster, topic: str, count: int, **settings: Any) -> None:
    with closing(KafkaProducer(bootstrap_servers=server.bootstrap, **settings)) as producer:
        for number in range(count):
            producer.send(topic, b"value %d" % number, partition=0, timestamp_ms=1_000 + number).get(timeout=30)


def causes(found: GroupDescription) -> list[str]:
    """Why the group rebalanced, which our brokers tell and Kafka's do not."""
    return [each.cause for each in found.rebalances]


def described_by_clients(server: Cluster, group_id: str) -> list[tuple[str, list[str]]]:
    """By kafka-python and confluent-kafka: the state of a classic group, and the ids of its members."""
    with closing(KafkaAdminClient(bootstrap_servers=server.bootstrap)) as kafka_python:
        theirs: Any = kafka_python
        its = theirs.describe_groups([group_id])[group_id]
    module: Any = confluent_kafka.admin  # its annotations are incomplete
    client = module.AdminClient({"bootstrap.servers": server.bootstrap})
    found = client.describe_consumer_groups([group_id])[group_id].result(30)
    return [
        (its["group_state"], [each["member_id"] for each in its["members"]]),
        (found.state.name.capitalize(), [each.member_id for each in found.members]),
    ]


async def described(server: Cluster, capsys: Printed, *arguments: str) -> dict[tuple[str, int], dict[str, Any]]:
    """By partition."""
    capsys.readouterr()
    target = Target(bootstrap_server=server.bootstrap, timeout_ms=30_000)
    assert await ran_on(target, groups, "describe", *arguments, "--json") is None
    (found,) = json.loads(capsys.readouterr().out)
    return {(each["topic"], each["partition"]): each for each in found["partitions"]}


async def test_a_groups_life(server: Cluster, admin: Admin, capsys: Printed) -> None:
    await admin.create_topic("life", 2, broker_count(server))
    write(server, "life", 10)
    with member(server, "life-group", "life", group_instance_id="one") as consumer:
        consumer.commit({TheirPartition("life", 0): OffsetAndMetadata(4, "a note", -1)})
        found = await admin.describe_group("life-group")
        assert (found.state, found.group_type, found.protocol_type) == ("Stable", "classic", "consumer")
        (its,) = found.members
        assert (its.instance_id, its.client_id) == ("one", "client of life-group")
        assert its.partitions == (TopicPartition("life", 0), TopicPartition("life", 1))
        assert causes(found) == (["member joined"] if isinstance(server, Ours) else [])
        assert described_by_clients(server, "life-group") == [("Stable", [its.member_id])] * 2
        listed = await admin.list_groups(["Stable"], ["classic"])
        assert "life-group" in [each.group_id for each in listed]
        assert await admin.group_offsets("life-group") == {TopicPartition("life", 0): CommittedOffset(4, "a note")}
        shown = await described(server, capsys, "life-group")
        assert [(each["lag"], each["member"]) for each in shown.values()] == [(6, its.member_id), (None, its.member_id)]
        target = Target(bootstrap_server=server.bootstrap, timeout_ms=30_000)
        error = await ran_on(target, groups, "reset", "life-group", "--topic", "life", "--to-latest", "--execute")
        assert isinstance(error, CommandFailed)
        assert "(instance one) of client of life-group at 127.0.0.1" in str(error)
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_group_offsets("life-group", {TopicPartition("life", 0): 5})
        assert [each.code for each in caught.value.errors.values()] == [ErrorCode.UNKNOWN_MEMBER_ID]
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_group_offsets("life-group", [TopicPartition("life", 0)])
        assert [each.code for each in caught.value.errors.values()] == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
        with pytest.raises(ItemsFailed) as caught:
            await admin.delete_groups(["life-group"])
        assert caught.value.errors["life-group"].code is ErrorCode.NON_EMPTY_GROUP
    await admin.remove_group_members("life-group", reason="a test")
    found = await admin.describe_group("life-group")
    assert found.state == "Empty"
    assert causes(found) == (["member joined", "member left"] if isinstance(server, Ours) else [])
    if isinstance(server, Ours):
        assert found.rebalances[-1].reason == f"member {its.member_id} left: a test"
        assert found.rebalances[-1].instance_id == "one"
    await admin.alter_group_offsets("life-group", {TopicPartition("life", 1): CommittedOffset(0, "other", 0)})
    await admin.delete_group_offsets("life-group", [TopicPartition("life", 0)])
    assert await admin.group_offsets("life-group") == {TopicPartition("life", 1): CommittedOffset(0, "other", 0)}
    await admin.delete_groups(["life-group"])

    async def is_listed() -> bool:
        return "life-group" in [group.group_id for group in await admin.list_groups()]

    await soon(is_listed, False)


@AT_KAFKA
async def test_a_reset_by_a_file_of_kafkas_own_command(
    server: Cluster, admin: Admin, capsys: Printed, tmp_path: Path
) -> None:
    await admin.create_topic("csv", 2, 1)
    write(server, "csv", 5)
    asked = ("--bootstrap-server", server.bootstrap, "--group", "csv-group", "--reset-offsets", "--topic", "csv")
    printed = run_tool(COMMAND, *asked, "--to-latest", "--export", "--dry-run")
    file = tmp_path / "offsets.csv"
    file.write_text("".join(f"{line}\n" for line in printed.splitlines() if line.startswith(("csv,", '"csv",'))))
    target = Target(bootstrap_server=server.bootstrap, timeout_ms=30_000)
    assert await ran_on(target, groups, "reset", "csv-group", "--from-file", str(file), "--execute") is None
    assert capsys.readouterr().out.splitlines() == ["csv-group\tcsv\t0\t-\t5\t-", "csv-group\tcsv\t1\t-\t0\t-"]
    shown = run_tool(COMMAND, "--bootstrap-server", server.bootstrap, "--group", "csv-group", "--describe")
    rows = [line.split()[1:6] for line in shown.splitlines() if line.startswith("csv-group")]
    assert sorted(rows) == [["csv", "0", "5", "5", "0"], ["csv", "1", "0", "0", "0"]]


async def test_markers_alone_are_no_lag(server: Cluster, admin: Admin, capsys: Printed) -> None:
    await admin.create_topic("marked", 1, 1)
    with closing(KafkaProducer(bootstrap_servers=server.bootstrap, transactional_id="t")) as producer:
        producer.init_transactions()
        for _ in range(2):
            producer.begin_transaction()
            producer.send("marked", b"value").get(timeout=30)
            producer.commit_transaction()
    partition = TopicPartition("marked", 0)
    await admin.alter_group_offsets("marked-group", {partition: 3})
    for isolation in ("read_uncommitted", "read_committed"):
        shown = (await described(server, capsys, "marked-group", "--isolation", isolation))["marked", 0]
        assert (shown["end_offset"], shown["lag"]) == (4, 0)
    await admin.alter_group_offsets("marked-group", {partition: 2})
    assert (await described(server, capsys, "marked-group"))["marked", 0]["lag"] == 2


async def test_a_group_of_kip_848(server: Cluster, admin: Admin) -> None:
    await admin.create_topic("new", 2, broker_count(server))
    settings: dict[str, Any] = {
        "bootstrap.servers": server.bootstrap, "group.id": "new-group", "group.protocol": "consumer",
        "client.id": "their",
    }  # fmt: skip
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe(["new"])

        async def partitions() -> list[tuple[TopicPartition, ...] | None]:
            consumer.poll(0.1)
            try:
                return [each.partitions for each in (await admin.describe_group("new-group")).members]
            except BrokerError:  # not yet
                return []

        await soon(partitions, [(TopicPartition("new", 0), TopicPartition("new", 1))])
        found = await admin.describe_group("new-group")
        assert (found.state, found.group_type, found.protocol) == ("Stable", "consumer", "uniform")
        assert found.group_epoch == found.assignment_epoch > 0
        assert causes(found)[:1] == (["member joined"] if isinstance(server, Ours) else [])
        (its,) = found.members
        assert (its.client_id, its.subscribed_topics, its.target_partitions) == ("their", ("new",), its.partitions)
        assert [each.group_type for each in await admin.list_groups(types=["consumer"])] == ["consumer"]
        with pytest.raises(ItemsFailed) as caught:
            await admin.alter_group_offsets("new-group", {TopicPartition("new", 0): 0})
        assert [each.code for each in caught.value.errors.values()] == [ErrorCode.UNKNOWN_MEMBER_ID]
