"""ElectLeaders: the preferred leader, or any for who has none, from the controller only."""

from dataclasses import replace

import pytest

from odradek.broker.cluster.keys import NO_LEADER, partition_key
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from tests.broker.api.controlling import controller, stored
from tests.broker.support import ask, make_topic

PREFERRED, UNCLEAN = 0, 1


async def elected(
    context: Context, asked: dict[str, list[int]] | None, election: int = PREFERRED, version: int = 2
) -> ElectLeadersResponse:
    topics = None
    if asked is not None:
        topics = [TopicPartitions(topic=name, partitions=indexes) for name, indexes in asked.items()]
    request = ElectLeadersRequest(election_type=election, topic_partitions=topics, timeout_ms=5_000)
    return await ask(context, request, version)


def codes(response: ElectLeadersResponse) -> dict[tuple[str, int], int]:
    assert response.error_code == ErrorCode.NONE
    return {
        (each.topic, partition.partition_id): partition.error_code
        for each in response.replica_election_results
        for partition in each.partition_result
    }


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_the_preferred_leader_is_elected(version: int) -> None:
    async with controller() as context:
        await make_topic(context, "orders", replicas=(1, 0), leader=0)
        assert codes(await elected(context, {"orders": [0]}, version=version)) == {("orders", 0): ErrorCode.NONE}
        state = await stored(context)
        assert (state.leader, state.leader_epoch) == (1, 1)


async def test_null_means_all_and_leaves_out_those_that_need_none() -> None:
    async with controller() as context:
        await make_topic(context, "bills", replicas=(0, 1))
        await make_topic(context, "orders", replicas=(1, 0), leader=0)
        await make_topic(context, "parts", replicas=(1, 0), isr=(0,), leader=0)
        assert codes(await elected(context, None)) == {
            ("orders", 0): ErrorCode.NONE,
            ("parts", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        }


async def test_each_partition_that_is_named_has_its_own_answer() -> None:
    async with controller() as context:
        await make_topic(context, "orders", replicas=(0, 1))
        asked = {"orders": [0, 5], "unknown": [0]}
        assert codes(await elected(context, asked)) == {
            ("orders", 0): ErrorCode.ELECTION_NOT_NEEDED,
            ("orders", 5): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("unknown", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }


async def test_an_unclean_election_is_refused_where_somebody_leads() -> None:
    async with controller() as context:
        await make_topic(context, "orders", replicas=(0, 1))
        asked = {"orders": [0]}
        assert codes(await elected(context, asked, UNCLEAN)) == {("orders", 0): ErrorCode.ELECTION_NOT_NEEDED}
        lost = replace(await stored(context), isr=(), leader=NO_LEADER, last_known_leader=2, leader_epoch=1)
        revision = await context.metadata.store.commit(Txn(put={partition_key("orders", 0): lost.encode()}))
        await context.metadata.applied(revision)
        assert codes(await elected(context, asked, UNCLEAN)) == {("orders", 0): ErrorCode.NONE}
        state = await stored(context)
        assert (state.leader, state.isr, state.leader_epoch) == (0, (0,), 2)


async def test_an_election_of_another_kind_is_refused() -> None:
    async with controller() as context:
        await make_topic(context, "orders", replicas=(0, 1))
        response = await elected(context, {"orders": [0]}, 2)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert [each.error_code for each in response.replica_election_results[0].partition_result] == [
            ErrorCode.INVALID_REQUEST
        ]
