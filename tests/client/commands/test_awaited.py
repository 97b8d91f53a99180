"""What a reassignment waits for: whom, why, and when it is told to whoever waits."""

import asyncio

import pytest

from odradek.client.admin.configs import ResourceType
from odradek.client.admin.replication import Reassignment
from odradek.client.commands.awaited import waiting_for
from odradek.client.commands.partitions import partitions
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.client.commands.scripted import ran, replicated_cluster
from tests.client.commands.test_partitions import until

ONE = ("--topic", "orders", "--partition", "0")
MOVE = Reassignment(replicas=(2, 3, 4, 1), adding=(4,), removing=(1,))
SHRINK = Reassignment(replicas=(2, 3, 1), adding=(), removing=(1,))


@pytest.mark.parametrize(
    ("moving", "isr", "min_insync", "brokers"),
    [
        (MOVE, (1, 2, 3), 2, (4,)),
        (MOVE, (1, 3), 2, (4,)),
        (MOVE, (1, 2, 3, 4), 2, ()),
        (MOVE, (1, 4), 1, (2, 3)),
        (SHRINK, (1, 2), 1, (3,)),
        (SHRINK, (1, 2, 3), 3, ()),
    ],
)
def test_whom_a_reassignment_waits_for(
    moving: Reassignment, isr: tuple[int, ...], min_insync: int, brokers: tuple[int, ...]
) -> None:
    assert waiting_for(moving, isr, min_insync) == (brokers, "")


def test_what_waits_for_the_minimum_says_so() -> None:
    told = ": without 1 only 4 would be, and min.insync.replicas is 2"
    assert waiting_for(MOVE, (1, 4), 2) == ((2, 3), told)


@pytest.mark.virtual_time
async def test_a_broker_that_is_not_there_is_named_at_once_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    with replicated_cluster(4, orders=1) as (scripted, _, replicated):
        replicated.place("orders", 0, (0, 1), (0, 1))
        scripted.brokers[2].is_fenced = True
        moving = asyncio.ensure_future(ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,2", "--wait"))
        await until(lambda: scripted.count(AlterPartitionReassignmentsRequest) > 0)
        await asyncio.sleep(0.4)
        said = "orders-0 waits for 2 (2 is not there) to be in sync.\n"
        assert capsys.readouterr().err == said
        await asyncio.sleep(30)
        assert capsys.readouterr().err == ""
        scripted.brokers[2].is_fenced = False
        await asyncio.sleep(30)
        assert capsys.readouterr().err == "orders-0 waits for 2 to be in sync.\n", "it is there, and does not come on"
        replicated.finish("orders", 0)
        assert await moving is None


@pytest.mark.virtual_time
async def test_copying_is_told_of_only_when_it_takes_long(capsys: pytest.CaptureFixture[str]) -> None:
    with replicated_cluster(4, orders=1) as (scripted, served, replicated):
        replicated.place("orders", 0, (0, 1, 2), (0, 1, 2))
        served.configs[ResourceType.TOPIC, "orders"]["min.insync.replicas"] = "2"
        moving = asyncio.ensure_future(ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,2,3", "--wait"))
        await until(lambda: scripted.count(AlterPartitionReassignmentsRequest) > 0)
        await asyncio.sleep(4)
        assert capsys.readouterr().err == ""
        await asyncio.sleep(4)
        assert capsys.readouterr().err == "orders-0 waits for 3 to be in sync.\n"
        replicated.of("orders", 0).isr = [0, 3]
        await asyncio.sleep(12)
        assert capsys.readouterr().err == (
            "orders-0 waits for 1,2 to be in sync: without 0 only 3 would be, and min.insync.replicas is 2.\n"
        )
        replicated.finish("orders", 0)
        assert await moving is None


@pytest.mark.virtual_time
async def test_what_cannot_be_asked_is_said_once_and_the_wait_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    refused = DescribeConfigsResult(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        resource_type=ResourceType.TOPIC,
        resource_name="orders",
        configs=[],
    )
    with replicated_cluster(4, orders=1) as (scripted, served, replicated):
        replicated.place("orders", 0, (0, 1), (0, 1))
        scripted.serve(DescribeConfigsRequest, lambda _: DescribeConfigsResponse(results=[refused]))
        moving = asyncio.ensure_future(ran(scripted, partitions, "reassign", *ONE, "--replicas", "1,2", "--wait"))
        await until(lambda: scripted.count(DescribeConfigsRequest) > 3)
        assert capsys.readouterr().err.count("What it waits for is not known: ") == 1
        scripted.serve(DescribeConfigsRequest, served.describe_configs)
        replicated.finish("orders", 0)
        assert await moving is None
