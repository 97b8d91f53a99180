"""Our Admin, `odradek transactions` and `odradek producers` about transactions of kafka-python, at ours and at Apache
Kafka, beside Kafka's own command in java, whose answers have to be the same.

Brokers do not verify transactions here, so that a raw producer can leave one hanging, of which no coordinator knows.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing
from typing import Any

import click
import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError

from odradek.client.admin.admin import Admin
from odradek.client.commands.failures import CommandFailed
from odradek.client.commands.options import Target
from odradek.client.commands.producers import producers
from odradek.client.commands.transactions import transactions
from odradek.client.fetching.list_offsets import LATEST
from odradek.client.topic_partition import TopicPartition
from processes.apache_kafka import ApacheKafka, run_tool
from tests.broker.wire import RawClient
from tests.client.commands.scripted import ran_command
from tests.client.raw_producer import RawProducer
from tests.compat.clusters import APACHE_KAFKA, EVERY_KIND, OPTIONS, Cluster, broker_count, ours, soon

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.timeout(180)]

COMMAND = "org.apache.kafka.tools.TransactionsCommand"
UNVERIFIED = OPTIONS | {"transaction.partition.verification.enable": "false"}
Printed = pytest.CaptureFixture[str]


@pytest.fixture(scope="module", params=EVERY_KIND)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Cluster]:
    if request.param == APACHE_KAFKA:
        with ApacheKafka(properties=UNVERIFIED) as kafka:
            yield kafka
    else:
        with ours(request.param, tmp_path_factory.mktemp("transactions"), **UNVERIFIED) as running:
            yield running


@pytest.fixture
async def admin(server: Cluster) -> AsyncGenerator[Admin]:
    async with Admin(server.bootstrap, default_api_timeout_ms=30_000) as client:
        yield client


async def by_kafka(server: Cluster, *arguments: str) -> list[list[str]]:
    """What Kafka's command prints, by row; a column is as wide as its longest value."""
    printed = await asyncio.to_thread(run_tool, COMMAND, "--bootstrap-server", server.bootstrap, *arguments)
    return [line.split() for line in printed.splitlines()[1:]]


async def by_ours(server: Cluster, capsys: Printed, command: click.Command, *arguments: str) -> Any:
    """What our command prints as JSON."""
    capsys.readouterr()
    target = Target(bootstrap_server=server.bootstrap, timeout_ms=30_000)
    assert await ran_command(target, command, *arguments, "--json") is None
    return json.loads(capsys.readouterr().out)


async def stable_end(admin: Admin, partition: TopicPartition) -> int:
    return (await admin.list_offsets({partition: LATEST}, read_committed=True))[partition].offset


async def until_stable_at(admin: Admin, partition: TopicPartition, offset: int) -> None:
    """Waits until readers of what is committed get so far."""
    await soon(lambda: stable_end(admin, partition), offset)


@asynccontextmanager
async def leader_of(admin: Admin, partition: TopicPartition) -> AsyncGenerator[RawClient]:
    """A connection to the leader, once it serves the partition: Kafka's tell of themselves as leaders before that."""
    await admin.describe_producers([partition])
    leader = (await admin.describe_topic(partition.topic)).partitions[partition.partition].leader
    (broker,) = [each for each in (await admin.describe_cluster()).brokers if each.node_id == leader]
    reader, writer = await asyncio.open_connection(broker.host, broker.port)
    try:
        yield RawClient(reader, writer)
    finally:
        writer.close()


async def hang(admin: Admin, transactional_id: str, partition: TopicPartition) -> int:
    """Leaves a transaction open of which the coordinator does not know. Returns the producer's id."""
    its = (await admin.fence_producers([transactional_id]))[transactional_id]
    async with leader_of(admin, partition) as client:
        producer = RawProducer(client, transactional_id, its.producer_id, its.producer_epoch)
        assert await producer.send_unknown(partition.topic, partition.partition, b"a") == 0
    return its.producer_id


# ----------------------------------------------------------------------------------------------------- what is known
def begun(server: Cluster, topic: str, transactional_id: str) -> KafkaProducer:
    """A producer of kafka-python with a record in each of two partitions, in one open transaction."""
    producer = KafkaProducer(bootstrap_servers=server.bootstrap, transactional_id=transactional_id)
    producer.init_transactions()
    producer.begin_transaction()
    for partition in (0, 1):
        producer.send(topic, b"a", partition=partition).get(timeout=30)
    return producer


async def test_both_commands_show_the_same_of_an_open_transaction(
    server: Cluster, admin: Admin, capsys: Printed
) -> None:
    await admin.create_topic("shown", 2, broker_count(server))
    with closing(await asyncio.to_thread(begun, server, "shown", "shower")) as producer:
        (ours_listed,) = await by_ours(server, capsys, transactions.commands["list"], "--pattern", "show.*")
        listed = {row[0]: row[1:] for row in await by_kafka(server, "list")}
        its = ours_listed
        assert listed["shower"] == [str(its["coordinator"]), str(its["producer_id"]), "Ongoing"]
        (described,) = await by_ours(server, capsys, transactions.commands["describe"], "shower")
        (row,) = await by_kafka(server, "describe", "--transactional-id", "shower")
        assert row[:7] == [
            str(described[name])
            for name in (
                "coordinator", "transactional_id", "producer_id", "producer_epoch", "state", "timeout_ms", "started_ms",
            )
        ]  # fmt: skip
        assert sorted(row[-1].split(",")) == ["shown-0", "shown-1"]
        assert [each["partition"] for each in described["partitions"]] == [0, 1]
        (state,) = await by_ours(server, capsys, producers, "shown:1")
        (row,) = await by_kafka(server, "describe-producers", "--topic", "shown", "--partition", "1")
        assert row == [
            *(str(state[name]) for name in ("producer_id", "producer_epoch")), "-1",
            *(str(state[name]) for name in ("last_sequence", "last_timestamp_ms", "transaction_start_offset")),
        ]  # fmt: skip
        await asyncio.to_thread(producer.commit_transaction)


async def test_an_id_is_aborted_and_its_producer_fenced(server: Cluster, admin: Admin, capsys: Printed) -> None:
    await admin.create_topic("fenced", 2, broker_count(server))
    with closing(await asyncio.to_thread(begun, server, "fenced", "fencer")) as producer:
        places = [TopicPartition("fenced", index) for index in (0, 1)]
        assert [await stable_end(admin, each) for each in places] == [0, 0]
        abort = ("--transactional-id", "fencer")
        assert not (await by_ours(server, capsys, transactions.commands["abort"], *abort))["executed"]
        assert (await by_ours(server, capsys, transactions.commands["abort"], *abort, "--execute"))["executed"]
        for each in places:
            await until_stable_at(admin, each, 2)
        with pytest.raises(KafkaError):
            await asyncio.to_thread(producer.commit_transaction)


# ------------------------------------------------------------------------------------------------------- what hangs
async def test_both_commands_find_what_hangs_and_end_it(server: Cluster, admin: Admin, capsys: Printed) -> None:
    await admin.create_topic("hanging", 3, broker_count(server))
    places = [TopicPartition("hanging", index) for index in range(3)]
    ids = [await hang(admin, f"hangs-{place.partition}", place) for place in places]
    expected = [("0", str(ids[0])), ("1", str(ids[1])), ("2", str(ids[2]))]
    searches = [["--topic", "hanging"]]
    searches += [["--broker-id", str(each.node_id)] for each in (await admin.describe_cluster()).brokers]
    for search in searches:
        found = await by_kafka(server, "find-hanging", *search)
        assert sorted((row[1], row[2]) for row in found if row[0] == "hanging") == expected
    look = ("--hanging", "--topic", "hanging")
    found_by_ours = await by_ours(server, capsys, transactions.commands["list"], *look)
    assert [(str(each["partition"]), str(each["producer_id"])) for each in found_by_ours] == expected
    await by_kafka(server, "abort", "--topic", "hanging", "--partition", "0", "--start-offset", "0")
    await by_ours(server, capsys, transactions.commands["abort"], "hanging-1", "--start-offset", "0", "--execute")
    numbers = ("--producer-id", str(ids[2]), "--producer-epoch", "0", "--coordinator-epoch", "-1")
    await by_ours(server, capsys, transactions.commands["abort"], "hanging-2", *numbers, "--execute")
    for place in places:
        await until_stable_at(admin, place, 2)
    assert await by_kafka(server, "find-hanging", "--topic", "hanging") == []
    assert await by_ours(server, capsys, transactions.commands["list"], *look) == []


async def test_what_a_coordinator_has_under_way_does_not_hang(server: Cluster, admin: Admin, capsys: Printed) -> None:
    await admin.create_topic("ongoing", 2, broker_count(server))
    with closing(await asyncio.to_thread(begun, server, "ongoing", "goes-on")) as producer:
        look = ("--hanging", "--topic", "ongoing", "--max-timeout-minutes", "0")
        assert await by_ours(server, capsys, transactions.commands["list"], *look) == []
        target = Target(bootstrap_server=server.bootstrap, timeout_ms=30_000)
        abort = ("ongoing-0", "--start-offset", "0", "--execute")
        error = await ran_command(target, transactions.commands["abort"], *abort)
        assert isinstance(error, CommandFailed)
        assert "it is that of goes-on, Ongoing" in str(error)
        await asyncio.to_thread(producer.commit_transaction)
    await until_stable_at(admin, TopicPartition("ongoing", 0), 2)
