"""DescribeCluster: id, brokers and controller, through the listener that was asked, for who looks for brokers."""

import pytest

from odradek.broker.cluster.keys import BrokerState, NodeState, node_key
from odradek.broker.cluster.store import Txn
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tests.broker.support import CLUSTER_ID, HERE, ask, running_broker

NOT_ASKED = -(2**31)
ID = bytes(range(16))
CLUSTER_OPERATIONS = 8096
"""As Apache Kafka 4.3.1 answers without an authorizer."""


async def described(
    version: int = 1,
    *,
    operations: bool = False,
    endpoint_type: int = 1,
    listener: str = "PLAINTEXT",
    brokers: tuple[BrokerState, ...] = (HERE,),
) -> DescribeClusterResponse:
    request = DescribeClusterRequest(include_cluster_authorized_operations=operations, endpoint_type=endpoint_type)
    async with running_broker(brokers=brokers) as context:
        return await ask(context, request, version, listener=listener)


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_cluster_with_its_one_broker(version: int) -> None:
    answer = await described(version)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert answer.cluster_id == CLUSTER_ID
    assert answer.controller_id == 0
    assert answer.endpoint_type == 1
    assert answer.brokers == [DescribeClusterBroker(broker_id=0, host="127.0.0.1", port=9092)]
    assert answer.cluster_authorized_operations == NOT_ASKED


async def test_authorized_operations_when_asked_for() -> None:
    assert (await described(operations=True)).cluster_authorized_operations == CLUSTER_OPERATIONS


async def test_addresses_are_those_of_the_listener() -> None:
    answer = await described(listener="EXTERNAL")
    assert [(broker.host, broker.port) for broker in answer.brokers] == [("broker.example", 19092)]


async def test_brokers_without_the_listener_are_left_out_also_as_controller() -> None:
    brokers = (
        BrokerState(0, {"INTERNAL": ("127.0.0.1", 1)}),
        BrokerState(2, {"PLAINTEXT": ("127.0.0.1", 3)}, rack="b"),
        BrokerState(10, {"PLAINTEXT": ("127.0.0.1", 4)}),
    )
    answer = await described(brokers=brokers)
    assert [(broker.broker_id, broker.rack) for broker in answer.brokers] == [(2, "b"), (10, None)]
    assert answer.controller_id == 2


async def test_who_looks_for_controllers_is_told_that_this_is_a_broker() -> None:
    answer = await described(endpoint_type=2)
    assert answer.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert answer.error_message
    assert answer.brokers == []


async def test_an_unknown_endpoint_type_is_refused() -> None:
    answer = await described(endpoint_type=7)
    assert answer.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    assert answer.error_message == "Unsupported endpoint type 7"


@pytest.mark.parametrize(("listener", "ports"), [("PLAINTEXT", [(1, 9093), (3, 9095)]), ("PUBLIC", [(3, 9195)])])
async def test_fenced_brokers_where_they_are_asked_for(listener: str, ports: list[tuple[int, int]]) -> None:
    """Who is there is none, nor who was never heard of, nor whose address is not known any more."""
    here = BrokerState(0, {"PLAINTEXT": ("127.0.0.1", 9092), "PUBLIC": ("127.0.0.1", 9192)})
    nodes = {
        0: NodeState((ID,), endpoints=here.endpoints),
        1: NodeState((ID,), "rack-1", {"PLAINTEXT": ("h", 9093)}),
        2: NodeState((ID,)),
        3: NodeState((ID,), endpoints={"PLAINTEXT": ("h", 9095), "PUBLIC": ("h", 9195)}),
    }
    async with running_broker(brokers=(here,)) as context:
        put = {node_key(node_id): node.encode() for node_id, node in nodes.items()}
        await context.metadata.applied(await context.metadata.store.commit(Txn(put=put)))

        async def asked(*, fenced: bool) -> list[DescribeClusterBroker]:
            request = DescribeClusterRequest(include_cluster_authorized_operations=False, include_fenced_brokers=fenced)
            return (await ask(context, request, 2, listener=listener)).brokers

        first, *others = await asked(fenced=True)
        assert (first.broker_id, first.is_fenced) == (0, False)
        assert [(each.broker_id, each.port) for each in others] == ports
        assert all(each.is_fenced for each in others)
        assert [each.broker_id for each in await asked(fenced=False)] == [0]
