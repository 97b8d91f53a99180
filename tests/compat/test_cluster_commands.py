"""`odradek cluster status`, `partitions` and `topics describe` against three nodes of Apache Kafka, and three of ours.

One story for both, since the nodes take longest: replicas move, throttled and not; a broker stops, is missed, and comes
back. Meanwhile topics are created, which it joins, and a move waits for it.
"""

import asyncio
import json
import subprocess
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.offline.rescue.rebuilding import rebuild
from odradek.client.admin.admin import Admin
from odradek.client.errors.client_errors import BrokerError
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.primitives import uuid_text
from processes.apache_kafka import ApacheKafka, run_tool
from processes.odradek_broker import OdradekBroker
from tests.compat.brokers_on_etcd import brokers_on_etcd
from tests.compat.clusters import ON_KAFKA, ON_THREE, THREE_BROKERS, eventually
from tests.compat.commands import Commands
from tests.compat.kafka_cluster import kafka_cluster

pytestmark = [
    pytest.mark.compat,
    pytest.mark.only_in_compat,
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

Node = OdradekBroker | ApacheKafka
Nodes = Mapping[int, Node]

ONE = ("--topic", "orders", "--partition", "0")
OPTIONS = {"auto.create.topics.enable": "true", "default.replication.factor": "3"}


@pytest.fixture(scope="module", params=[ON_THREE, ON_KAFKA])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Nodes]:
    if request.param == THREE_BROKERS:
        with brokers_on_etcd(tmp_path_factory.mktemp("commands-three"), **OPTIONS) as ours:
            yield ours
    else:
        with kafka_cluster(**OPTIONS) as theirs:
            yield theirs


def data_directory(node: Node) -> str:
    return str(node.data_dir if isinstance(node, OdradekBroker) else node.data_directory)


def states(odradek: Commands) -> dict[int, str]:
    return {each["node_id"]: each["state"] for each in odradek.json("cluster", "status")["brokers"]}


def replicas(odradek: Commands, topic: str, partition: int) -> list[int]:
    [described] = odradek.json("topics", "describe", topic)
    found: list[int] = described["partitions"][partition]["replicas"]
    return found


def throttles(odradek: Commands) -> list[str]:
    """The options of throttles that are set anywhere."""
    resources = [("topic", "orders"), *(("broker", str(node_id)) for node_id in (1, 2, 3))]
    found = [entry["name"] for each in resources for entry in odradek.json("configs", "describe", *each)]
    return [name for name in found if "throttled" in name]


@pytest.mark.telling
def test_replicas_move_and_brokers_go_and_come_back(nodes: Nodes, tmp_path: Path) -> None:
    odradek = Commands(nodes[1])
    odradek.run(
        "topics", "create", "orders", "--replica-assignment", "1:2,2:3,3:1", "--set", "min.insync.replicas=2"
    )  # fmt: skip
    odradek.run("topics", "create", "lone", "--replica-assignment", "3")
    _all_is_well(odradek)
    asyncio.run(_admin_is_answered_by_the_controller(nodes[2]))
    _a_crowded_broker_is_relieved(odradek)
    _a_move_is_throttled_and_waited_for(odradek)
    _a_slow_move_is_listed_and_cancelled(odradek, nodes[1], tmp_path)
    _a_broker_is_missed(odradek, nodes[3])
    _topics_are_created_without_it(odradek, nodes[1])
    waiting = _a_move_waits_for_it(odradek)
    _a_preferred_leader_is_elected(odradek, nodes[3])
    _what_waited_for_it_is_done(odradek, waiting)
    _their_directories_tell_who_had_what(odradek, nodes)


def _all_is_well(odradek: Commands) -> None:
    found = odradek.json("cluster", "status", "--check")
    assert [(each["node_id"], each["state"], each["rack"]) for each in found["brokers"]] == [
        (node_id, "up", f"rack-{node_id}") for node_id in (1, 2, 3)
    ]
    assert found["controller_id"] in (1, 2, 3)
    assert found["controller_epoch"] >= 1
    assert (found["topics"], found["partitions"], found["unwell"], found["reassignments"]) == (2, 4, [], [])
    shown = odradek.on_terminal("cluster", "status").splitlines()
    assert shown[0] == f"cluster {found['cluster_id']}, controller {found['controller_id']}"
    assert shown[-1].startswith("2 topic(s), 4 partition(s): 0 offline, 0 under-replicated, ")
    assert odradek.run("partitions", "elect") == (
        b"lone\t0\tnot needed\norders\t0\tnot needed\norders\t1\tnot needed\norders\t2\tnot needed\n"
    )


def _a_move_is_throttled_and_waited_for(odradek: Commands) -> None:
    odradek.run("produce", "orders", "-p", "0", given=b"x" * 1_000 + b"\n")
    moved = odradek.run("partitions", "reassign", *ONE, "--replicas", "2,3", "--throttle", "10000000", "--wait")
    assert moved == b"orders-0 moves from 1,2 to 2,3\ndone\n"
    eventually(lambda: replicas(odradek, "orders", 0), [2, 3])
    eventually(lambda: throttles(odradek), [])
    assert odradek.run("partitions", "reassign", *ONE, "--replicas", "2,3", "--wait") == (
        b"orders-0 is on 2,3 already\ndone\n"
    )
    odradek.run("partitions", "reassign", *ONE, "--replicas", "2,77", code=1)
    assert "INVALID_REPLICA_ASSIGNMENT" in odradek.said


def _a_slow_move_is_listed_and_cancelled(odradek: Commands, node: Node, tmp_path: Path) -> None:
    """Slowed down so that it cannot end: Kafka's own tool sees the same."""
    odradek.run("produce", "orders", "-p", "0", given=(b"x" * 10_000 + b"\n") * 500)
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 1]}]}))
    odradek.run("partitions", "reassign", str(file), "--throttle", "1000")
    assert "--wait" in odradek.said
    assert odradek.run("partitions", "reassign", "--list") == b"orders\t0\t2,1\t1\t3\n"
    tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    listed = run_tool(tool, "--bootstrap-server", node.bootstrap, "--list")
    assert "orders-0: replicas: 2,1,3. adding: 1. removing: 3." in listed
    eventually(lambda: len(throttles(odradek)), 2 + 2 * 3)
    [moving] = odradek.json("cluster", "status", "--check")["reassignments"]
    assert (moving["adding"], moving["removing"]) == ([1], [3])
    assert odradek.run("partitions", "reassign", str(file), "--cancel") == b"orders-0 stays where it was\n"
    eventually(lambda: replicas(odradek, "orders", 0), [2, 3])
    eventually(lambda: throttles(odradek), [])
    odradek.run("partitions", "reassign", *ONE, "--cancel", code=1)
    assert "NO_REASSIGNMENT_IN_PROGRESS" in odradek.said


def _a_broker_is_missed(odradek: Commands, node: Node) -> None:
    node.stop()
    eventually(lambda: states(odradek), {1: "up", 2: "up", 3: "fenced"})
    odradek.run("cluster", "status", "--check", code=1)
    assert "broker(s) 3 are not there" in odradek.said

    def unwell() -> dict[tuple[str, int], list[str]]:
        found = odradek.json("cluster", "status")["unwell"]
        return {(each["topic"], each["partition"]): each["problems"] for each in found}

    lost = ["under-replicated", "under-min-isr"]
    expected = {("lone", 0): ["offline", *lost], **{("orders", number): lost for number in range(3)}}
    eventually(unwell, expected)
    [described] = odradek.json("topics", "describe", "orders")
    assert [(each["isr"], each["out_of_sync"]) for each in described["partitions"]] == [
        ([2], [3]),
        ([2], [3]),
        ([1], [3]),
    ]
    assert [each["eligible_leaders"] for each in described["partitions"]] == [[3]] * 3
    odradek.run("partitions", "elect", "--unclean", "--topic", "lone", code=1)
    assert "give --yes" in odradek.said
    odradek.run("partitions", "elect", "--unclean", "--topic", "lone", "--yes", code=3)
    assert "lone-0 has no leader. What was acknowledged is on 3: if another replica leads (nobody else)" in odradek.said
    assert "ELIGIBLE_LEADERS_NOT_AVAILABLE" in odradek.said


def placed(odradek: Commands, topic: str) -> list[tuple[int, list[int], list[int]]]:
    """Leader, replicas and those in sync of each partition."""
    [described] = odradek.json("topics", "describe", topic)
    return [(each["leader"], each["replicas"], sorted(each["isr"])) for each in described["partitions"]]


def _topics_are_created_without_it(odradek: Commands, node: Node) -> None:
    """It is registered, so it gets replicas: of a topic that a send creates, and of those that somebody creates."""
    with KafkaProducer(bootstrap_servers=node.bootstrap) as producer:
        assert producer.send("unborn", b"first").get(timeout=30).offset == 0
    odradek.run("topics", "create", "late", "--partitions", "2", "--replication-factor", "3")
    odradek.run("topics", "alter", "late", "--partitions", "3")
    for topic in ("unborn", "late"):
        for leader, replicas, isr in placed(odradek, topic):
            assert (sorted(replicas), isr, leader) == ([1, 2, 3], [1, 2], replicas[0])
    odradek.run("topics", "create", "byhand", "--replica-assignment", "3:2:1", "--set", "min.insync.replicas=2")
    assert placed(odradek, "byhand") == [(2, [3, 2, 1], [1, 2])]
    odradek.run("topics", "create", "nobody", "--replica-assignment", "3", code=1)
    assert "for partition 0 are fenced or in controlled shutdown" in odradek.said
    odradek.run("topics", "create", "nobody", "--replication-factor", "4", code=1)
    assert "Unable to replicate the partition 4 time(s): The target replication factor of 4 " in odradek.said
    assert "only 3 broker(s) are registered" in odradek.said


def _a_move_waits_for_it(odradek: Commands) -> subprocess.Popen[bytes]:
    """To brokers 2 and 3: broker 1 stays, for 3 is not in sync."""
    of_it = ("--topic", "byhand", "--partition", "0")
    waiting = odradek.start(
        *("partitions", "reassign", *of_it, "--replicas", "2,3", "--wait"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == b"byhand-0 waits for 3 (3 is not there) to be in sync.\n"
    assert odradek.run("partitions", "reassign", "--list") == b"byhand\t0\t2,3\t-\t1\n"
    odradek.run("produce", "byhand", "--set", "acks=all", given=b"on two\n")
    assert placed(odradek, "byhand") == [(2, [2, 3, 1], [1, 2])]
    return waiting


def _what_waited_for_it_is_done(odradek: Commands, waiting: subprocess.Popen[bytes]) -> None:
    said, complained = waiting.communicate(timeout=60)
    assert (said, waiting.returncode) == (b"byhand-0 moves from 3,2,1 to 2,3\ndone\n", 0), complained
    eventually(lambda: placed(odradek, "byhand"), [(2, [2, 3], [2, 3])])
    for topic in ("unborn", "late"):
        assert [isr for _, _, isr in placed(odradek, topic)] == [[1, 2, 3]] * (1 if topic == "unborn" else 3)
    odradek.run("topics", "delete", "unborn", "late", "byhand", "--yes")


def _a_preferred_leader_is_elected(odradek: Commands, node: Node) -> None:
    node.start()
    eventually(lambda: odradek.json("cluster", "status")["unwell"], [])
    two = ("--topic", "orders", "--partition", "2")
    assert odradek.run("partitions", "elect", *two) == b"orders\t2\telected\n"

    def leader() -> Any:
        return odradek.json("topics", "describe", "orders")[0]["partitions"][2]["leader"]

    eventually(leader, 3)


def _a_crowded_broker_is_relieved(odradek: Commands) -> None:
    """What is spread already stays where it is."""
    before = [replicas(odradek, "orders", index) for index in range(3)]
    odradek.run("topics", "create", "crowded", "--replica-assignment", "1,1,1,1,1")
    told = odradek.json("partitions", "spread")
    assert {each["topic"] for each in told} == {"crowded"}
    assert [(each["replicas_before"], each["is_done"]) for each in told] == [([1], False)] * 3
    assert [replicas(odradek, "crowded", index) for index in range(5)] == [[1]] * 5
    odradek.run("partitions", "spread", "--execute", "--lot", "2", "--throttle", "10000000")
    assert sorted(replicas(odradek, "crowded", index) for index in range(5)) == [[1], [1], [2], [2], [3]]
    assert [replicas(odradek, "orders", index) for index in range(3)] == before
    assert throttles(odradek) == []
    assert odradek.json("partitions", "spread", "--execute") == []
    odradek.run("topics", "delete", "crowded")
    eventually(lambda: "crowded" in [each["name"] for each in odradek.json("topics", "list")], False)


def _their_directories_tell_who_had_what(odradek: Commands, nodes: Nodes) -> None:
    """What a rebuild makes of the brokers' directories, which agree but for what node 3 has missed."""
    nodes[3].stop()
    eventually(lambda: states(odradek)[3], "fenced")
    odradek.run("produce", "orders", "-p", "0", "--set", "acks=1", given=b"missed by node 3\n")
    [described] = odradek.json("topics", "describe", "orders", "--offsets")
    for node in nodes.values():
        node.kill()
    directories = [data_directory(node) for node in nodes.values()]
    plan = rebuild(FileDisk(), directories, directories[0], is_dry_run=True)
    found = {topic.name: topic for topic in plan.topics}
    assert found.keys() == {"orders", "lone"}
    assert uuid_text(found["orders"].topic_id) == described["topic_id"]
    assert [(each.leader, each.isr, set(each.replicas)) for each in found["orders"].partitions] == [
        (2, (2,), {2, 3}),
        (2, (2, 3), {2, 3}),
        (1, (1, 3), {1, 3}),
    ]
    for ours, theirs in zip(found["orders"].partitions, described["partitions"], strict=True):
        assert ours.leader_epoch > theirs["leader_epoch"]
    ends = [each[0].facts.log_end_offset for each in found["orders"].replicas]
    readable = [each["end_offset"] for each in described["partitions"]]
    assert ends == [readable[0] + 1, 0, 0], "the last record was in too few logs to be read, and is in one"
    # Kafka leaves what was moved away for a minute.
    assert {reason.partition(";")[0] for reason in plan.left.values()} <= {"a deleted partition"}


async def _admin_is_answered_by_the_controller(node: Node) -> None:
    async with Admin(node.bootstrap, default_api_timeout_ms=20_000) as admin:
        quorum = await admin.describe_quorum()
        assert quorum.leader_id in (1, 2, 3)
        # The controller of ours is one broker; who votes for it is the metadata store's business.
        voters = [quorum.leader_id] if isinstance(node, OdradekBroker) else [1, 2, 3]
        assert sorted(each.node_id for each in quorum.voters) == voters
        with pytest.raises(BrokerError) as caught:
            await admin.unregister_broker(99)
        assert caught.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED
        assert await admin.list_partition_reassignments([TopicPartition("nowhere", 0)]) == {}
