"""Java's own clients, in Apache Kafka's command line tools, against one broker and three: each does what it is for.

Spark's source and sink, which are Java's clients, too, have a module of their own.
"""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from processes.apache_kafka import run_tool
from tests.compat.clusters import Ours, broker_count, eventually

pytestmark = [pytest.mark.compat, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

TOOLS = "org.apache.kafka.tools"
PARTITIONS = 6


def tool(broker: Ours, name: str, *arguments: str) -> str:
    return run_tool(f"{TOOLS}.{name}", "--bootstrap-server", broker.bootstrap, *arguments)


def create(broker: Ours, topic: str) -> None:
    tool(broker, "TopicCommand", "--create", "--topic", topic, "--partitions", str(PARTITIONS))


def produced(broker: Ours, topic: str, count: int) -> list[tuple[int, int, str]]:
    """Sends with acks=all; partition, offset and value of each acknowledgement."""
    said = tool(broker, "VerifiableProducer", "--topic", topic, "--max-messages", str(count), "--acks", "-1")
    events: list[dict[str, Any]] = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    [summary] = [event for event in events if event["name"] == "tool_data"]
    assert (summary["sent"], summary["acked"]) == (count, count)
    return [
        (event["partition"], event["offset"], event["value"])
        for event in events
        if event["name"] == "producer_send_success"
    ]


def consumed(broker: Ours, topic: str, partition: int, count: int, *arguments: str) -> list[str]:
    """The values of a partition by the console consumer, without a group."""
    where = ("--topic", topic, "--partition", str(partition), "--offset", "earliest")
    said = tool(
        broker, "consumer.ConsoleConsumer", *where, "--max-messages", str(count), "--timeout-ms", "60000", *arguments
    )
    assert f"Processed a total of {count} messages" in said
    return [line for line in said.splitlines() if line.isdigit()]


@pytest.mark.telling
def test_what_is_acknowledged_is_where_it_was_acknowledged(broker: Ours) -> None:
    create(broker, "java-load")
    acknowledged = produced(broker, "java-load", 1_000)
    assert Counter(value for _, _, value in acknowledged) == Counter(str(number) for number in range(1_000))
    used = Counter(partition for partition, _, _ in acknowledged)
    partition, count = used.most_common(1)[0]
    expected = [value for _, _, value in sorted(each for each in acknowledged if each[0] == partition)]
    assert consumed(broker, "java-load", partition, count) == expected


@pytest.mark.only_in_compat
def test_the_performance_tool_sends_as_many_as_it_says(broker: Ours, record_count: int) -> None:
    create(broker, "java-speed")
    settings = ("--throughput", "-1", "--record-size", "100", "--num-records", str(record_count))
    said = run_tool(
        f"{TOOLS}.ProducerPerformance", "--topic", "java-speed", *settings,
        *("--producer-props", f"bootstrap.servers={broker.bootstrap}", "acks=all"),
    )  # fmt: skip
    assert f"{record_count} records sent" in said
    assert sum(offsets(broker, "java-speed").values()) == record_count


def offsets(broker: Ours, topic: str, time: str = "latest") -> dict[int, int]:
    said = tool(broker, "GetOffsetShell", "--topic", topic, "--time", time)
    found = re.findall(rf"^{topic}:(\d+):(\d+)$", said, re.MULTILINE)
    return {int(partition): int(offset) for partition, offset in found}


@pytest.mark.only_in_compat
def test_a_topics_life(broker: Ours, tmp_path: Path) -> None:
    """Created, described, enlarged, shortened, deleted: by Kafka's own administration."""
    replicas = broker_count(broker)
    create(broker, "java-life")
    said = tool(broker, "TopicCommand", "--describe", "--topic", "java-life")
    assert f"PartitionCount: {PARTITIONS}\tReplicationFactor: {replicas}" in said
    found = re.findall(r"Leader: (\d+)\tReplicas: ([\d,]+)\tIsr: ([\d,]+)", said)
    assert len(found) == PARTITIONS
    assert len({leader for leader, _, _ in found}) == replicas, "leaders are spread"
    assert all(sorted(mine.split(",")) == sorted(isr.split(",")) for _, mine, isr in found)
    tool(broker, "TopicCommand", "--alter", "--topic", "java-life", "--partitions", str(PARTITIONS + 2))
    acknowledged = produced(broker, "java-life", 200)
    partition = acknowledged[0][0]
    count = sum(each[0] == partition for each in acknowledged)
    file = tmp_path / "delete.json"
    wanted = {"topic": "java-life", "partition": partition, "offset": count}
    file.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    assert f"low_watermark: {count}" in tool(broker, "DeleteRecordsCommand", "--offset-json-file", str(file))
    assert offsets(broker, "java-life", "earliest")[partition] == count
    described = tool(broker, "LogDirsCommand", "--describe", "--topic-list", "java-life")
    listed = json.loads(described[described.index('{"') :].splitlines()[0])
    assert len(listed["brokers"]) == replicas
    assert {len(each["logDirs"][0]["partitions"]) for each in listed["brokers"]} == {PARTITIONS + 2}
    tool(broker, "TopicCommand", "--delete", "--topic", "java-life")
    assert "java-life" not in tool(broker, "TopicCommand", "--list").splitlines()


@pytest.mark.only_in_compat
def test_options_are_set_and_shown(broker: Ours) -> None:
    create(broker, "java-options")
    entity = ("--entity-type", "topics", "--entity-name", "java-options")
    main = "kafka.admin.ConfigCommand"
    here = ("--bootstrap-server", broker.bootstrap)
    run_tool(main, *here, "--alter", *entity, "--add-config", "retention.ms=60000,max.message.bytes=5000")
    said = run_tool(main, *here, "--describe", *entity)
    assert "retention.ms=60000" in said
    assert "max.message.bytes=5000" in said
    run_tool(main, *here, "--alter", *entity, "--delete-config", "retention.ms")
    assert "retention.ms" not in run_tool(main, *here, "--describe", *entity)


@pytest.mark.only_in_compat
def test_replicas_are_moved_and_leaders_elected(broker: Ours, tmp_path: Path) -> None:
    """As kafka-reassign-partitions and kafka-leader-election do it, with a throttle, until both say that it is done."""
    if broker_count(broker) == 1:
        pytest.skip("there is nobody to move to")
    create(broker, "java-moves")
    file = tmp_path / "moves.json"
    target = {"topic": "java-moves", "partition": 0}
    for replicas in ([1], [2, 3]):
        file.write_text(json.dumps({"version": 1, "partitions": [{**target, "replicas": replicas}]}))
        plan = ("--reassignment-json-file", str(file))
        said = tool(broker, "reassign.ReassignPartitionsCommand", "--execute", *plan, "--throttle", "100000000")
        assert "Successfully started partition reassignment for java-moves-0" in said
        _until(broker, "reassign.ReassignPartitionsCommand", "java-moves-0 is completed", "--verify", *plan)
    said = tool(broker, "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions")
    assert "Error" not in said
    [leader] = re.findall(
        r"Partition: 0\tLeader: (\d+)", tool(broker, "TopicCommand", "--describe", "--topic", "java-moves")
    )
    assert leader == "2"


def _until(broker: Ours, name: str, said: str, *arguments: str) -> None:
    """Asks again until the tool says so."""
    eventually(lambda: said in tool(broker, name, *arguments), True)


@pytest.mark.only_in_compat
def test_the_cluster_is_described(broker: Ours) -> None:
    count = broker_count(broker)
    versions = tool(broker, "BrokerApiVersionsCommand")
    assert (
        len(re.findall(r"^127\.0\.0\.1:\d+ \(id: \d+ rack: \S+ isFenced: false\) -> \(", versions, re.MULTILINE))
        == count
    )
    assert "Cluster ID:" in run_tool(f"{TOOLS}.ClusterTool", "cluster-id", "--bootstrap-server", broker.bootstrap)
    quorum = tool(broker, "MetadataQuorumCommand", "describe", "--status")
    assert re.search(r"LeaderId: +[0-3]\b", quorum), quorum


@pytest.mark.only_in_compat
def test_groups_that_have_rebalanced_are_described(broker: Ours) -> None:
    """Why they have is told in a tagged field that Java's AdminClient passes over."""
    create(broker, "java-groups")
    settings = {"bootstrap.servers": broker.bootstrap}
    protocols = ("classic", "consumer")
    consumers = [Consumer(settings | {"group.id": f"of-{name}", "group.protocol": name}) for name in protocols]
    for consumer in consumers:
        consumer.subscribe(["java-groups"])

    def counts() -> list[int]:
        for consumer in consumers:
            consumer.poll(0.1)
        return [len(consumer.assignment()) for consumer in consumers]

    eventually(counts, [PARTITIONS] * 2)
    named = ("--group", "of-classic", "--group", "of-consumer")
    said = tool(broker, "consumer.group.ConsumerGroupCommand", "--describe", *named, "--state")
    rows = [line.split() for line in said.splitlines() if line.startswith("of-")]
    assert sorted((row[0], *row[-2:]) for row in rows) == [
        ("of-classic", "Stable", "1"),
        ("of-consumer", "Stable", "1"),
    ]
    for consumer in consumers:
        consumer.close()
