"""`odradek cluster status` on a scripted cluster: what is wrong is shown, and what cannot be asked does not hide it.

What it does against brokers stands in `tests/compat/test_cluster_commands.py`.
"""

import json
from typing import Any

import pytest

from odradek.client.admin.configs import ResourceType
from odradek.client.commands.cluster import cluster
from odradek.client.commands.failures import CommandFailed
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_quorum import DescribeQuorumRequest
from odradek.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.client.broker_faults import disconnect_before, edited
from tests.client.commands.scripted import on_terminal, ran, replicated_cluster

pytestmark = pytest.mark.virtual_time

Printed = pytest.CaptureFixture[str]


def listing_fenced(node_id: int) -> Any:
    """What a broker answers that was asked for fenced ones, too."""

    def edit(response: Any) -> None:
        for broker in response.brokers:
            broker.rack = f"rack-{broker.broker_id % 2}"
            broker.is_fenced = broker.broker_id == node_id

    return edited(edit)


async def test_a_cluster_in_which_all_is_well(capsys: Printed) -> None:
    with replicated_cluster(3, orders=2) as (scripted, _, replicated):
        for index in range(2):
            replicated.place("orders", index, (0, 1, 2), (0, 1, 2))
        assert await ran(scripted, cluster, "status", "--check") is None
        lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
        assert lines[0][:1] + lines[0][2:] == ["cluster", "0", "1", "2", "0", "0", "0", "0"]
        assert [line[:3] + line[6:] for line in lines[1:]] == [
            ["broker", "0", "up", "yes", "2", "2", "2"],
            ["broker", "1", "up", "no", "0", "2", "2"],
            ["broker", "2", "up", "no", "0", "2", "2"],
        ]


async def test_everything_that_may_be_wrong_is_shown(capsys: Printed) -> None:
    with replicated_cluster(3, orders=4, single=1) as (scripted, served, replicated):
        replicated.place("orders", 0, (0, 1, 2), (0, 1, 2))
        replicated.place("orders", 1, (1, 2, 0), (1, 0))
        replicated.place("orders", 2, (2, 0, 7), (0,), elr=(2,))
        replicated.place("orders", 3, (2,), (), last_known=(2,))
        served.configs[ResourceType.TOPIC, "orders"]["min.insync.replicas"] = "2"
        scripted.on(DescribeClusterRequest, listing_fenced(2), times=None)
        assert await ran(scripted, cluster, "status", "--json") is None
        found = json.loads(capsys.readouterr().out)
        assert (found["controller_id"], found["controller_epoch"], found["topics"], found["partitions"]) == (0, 7, 2, 5)
        assert [(each["node_id"], each["state"], each["rack"], each["in_sync"]) for each in found["brokers"]] == [
            (0, "up", "rack-0", 4),
            (1, "up", "rack-1", 2),
            (2, "fenced", "rack-0", 1),
            (7, "missing", None, 0),
        ]
        assert [(each["partition"], each["problems"]) for each in found["unwell"]] == [
            (1, ["under-replicated"]),
            (2, ["under-replicated", "under-min-isr"]),
            (3, ["offline", "under-replicated", "under-min-isr"]),
        ]
        assert (found["unwell"][1]["out_of_sync"], found["unwell"][1]["eligible_leaders"]) == ([2, 7], [2])
        assert (found["offline"], found["under_replicated"], found["under_min_isr"]) == (1, 3, 2)
        error = await ran(scripted, cluster, "status", "--check")
        assert isinstance(error, CommandFailed)
        assert str(error) == "The cluster is not well: 3 partition(s) are not well; broker(s) 2, 7 are not there."
        rows = [line.split("\t") for line in capsys.readouterr().out.splitlines() if line.startswith("partition")]
        assert rows[1] == [
            "partition", "orders", "2", "0", "0", "2,0,7", "0", "2,7", "2", "under-replicated, under-min-isr",
        ]  # fmt: skip


async def test_a_replica_that_a_reassignment_adds_is_not_missed(capsys: Printed) -> None:
    with replicated_cluster(3, orders=1) as (scripted, _, replicated):
        replicated.place("orders", 0, (0, 1), (0, 1))
        replicated.of("orders", 0).target = [1, 2]
        assert await ran(scripted, cluster, "status", "--json", "--check") is None
        found = json.loads(capsys.readouterr().out)
        assert found["unwell"] == []
        assert found["reassignments"] == [
            {"topic": "orders", "partition": 0, "replicas": [1, 2, 0], "adding": [2], "removing": [0]}
        ]


async def test_a_person_gets_tables_and_a_sum(capsys: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    with replicated_cluster(2, orders=1) as (scripted, _, replicated):
        replicated.place("orders", 0, (0, 1), (1,))
        on_terminal(monkeypatch)
        assert await ran(scripted, cluster, "status") is None
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("cluster ")
        assert lines[0].endswith(", controller 0")
        assert " ".join(lines[1].split()) == "BROKER STATE HOST PORT RACK CONTROLLER LEADS REPLICAS IN SYNC"
        assert " ".join(lines[4].split()) == "TOPIC PARTITION LEADER EPOCH REPLICAS ISR OSR ELR WHAT IS WRONG"
        assert " ".join(lines[5].split()) == "orders 0 1 0 0,1 1 0 - under-replicated"
        assert lines[6] == (
            "1 topic(s), 1 partition(s): 0 offline, 1 under-replicated, 0 under-min-isr, 0 being reassigned"
        )


async def test_older_brokers_are_asked_for_what_they_know(capsys: Printed) -> None:
    with replicated_cluster(2, orders=1) as (scripted, _, _):
        for broker in scripted.brokers.values():
            for kind in (DescribeQuorumRequest, DescribeTopicPartitionsRequest, ListPartitionReassignmentsRequest):
                del broker.versions[kind]
        assert await ran(scripted, cluster, "status", "--json") is None
        found = json.loads(capsys.readouterr().out)
        assert (found["controller_id"], found["controller_epoch"], found["partitions"]) == (0, -1, 1)


async def test_what_only_the_controller_knows_does_not_hide_the_rest(capsys: Printed) -> None:
    with replicated_cluster(2, orders=1) as (scripted, _, replicated):
        replicated.place("orders", 0, (0, 1), (1,))
        for kind in (DescribeQuorumRequest, ListPartitionReassignmentsRequest):
            scripted.on(kind, disconnect_before(), times=None)
        error = await ran(scripted, cluster, "status", "--json")
        assert error is not None
        found = json.loads(capsys.readouterr().out)
        assert [each["problems"] for each in found["unwell"]] == [["under-replicated"]]
