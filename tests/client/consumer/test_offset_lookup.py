"""Offsets asked of the leaders: ends, times, leaders that move, and what cannot be answered."""

import pytest

from odradek.client.errors.client_errors import AuthorizationError, BrokerError, InvalidPartition, MetadataTimeout
from odradek.client.fetching.list_offsets import ListedOffset
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from tests.client.broker_faults import disconnect_before
from tests.client.consuming import consuming
from tests.client.reading_handlers import fill
from tests.client.running_fetcher import P0, P1, P2, TOPIC, reading_cluster, values

pytestmark = pytest.mark.virtual_time


async def test_each_leader_is_asked_once_for_all_its_partitions() -> None:
    async with reading_cluster(2, 3) as (cluster, _), consuming(cluster) as consumer:
        for index in range(3):
            fill(cluster, TOPIC, index, values(index + 5))
        cluster.log(TOPIC, 2).delete_before(3)
        assert await consumer.beginning_offsets([P0, P1, P2]) == {P0: 0, P1: 0, P2: 3}
        assert len(cluster.requests(ListOffsetsRequest)) == 2
        assert await consumer.end_offsets([P2, P0]) == {P2: 7, P0: 5}


async def test_a_time_finds_the_first_record_that_is_not_older() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, values(5))
        assert await consumer.offsets_for_times({P0: 1_002}) == {P0: ListedOffset(2, 1_002, 0)}
        assert await consumer.offsets_for_times({P0: 9_999}) == {P0: None}
        with pytest.raises(ValueError, match="0 or more"):
            await consumer.offsets_for_times({P0: -1})


async def test_what_passes_is_asked_again_and_what_stays_is_raised() -> None:
    async with reading_cluster(1, 1) as (cluster, reading), consuming(cluster) as consumer:
        fill(cluster, TOPIC, 0, values(5))
        reading.errors[TOPIC, 0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE]
        cluster.on(ListOffsetsRequest, disconnect_before())
        assert await consumer.end_offsets([P0]) == {P0: 5}
        reading.errors[TOPIC, 0] = [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        with pytest.raises(AuthorizationError):
            await consumer.end_offsets([P0])
        reading.errors[TOPIC, 0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 100
        with pytest.raises(BrokerError) as raised:
            await consumer.end_offsets([P0], timeout_ms=3_000)
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_topics_and_partitions_that_are_not_there_are_told() -> None:
    async with reading_cluster(1, 1) as (cluster, _), consuming(cluster) as consumer:
        with pytest.raises(InvalidPartition):
            await consumer.end_offsets([P1])
        with pytest.raises(MetadataTimeout):
            await consumer.end_offsets([TopicPartition("nowhere", 0)], timeout_ms=2_000)
        with pytest.raises(MetadataTimeout):
            await consumer.partitions_for("nowhere", timeout_ms=2_000)
        assert await consumer.partitions_for(TOPIC) == (P0,)
