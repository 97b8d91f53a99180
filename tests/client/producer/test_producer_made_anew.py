"""A topic that is deleted and created again with fewer partitions, while records wait for one that it has no more."""

import asyncio
from typing import Any

import pytest

from odradek.client.errors.client_errors import PartitionVanished
from odradek.client.producer.producer import Producer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.broker_faults import edited, error, late
from tests.client.producing import TOPIC, producing
from tests.client.scripted_broker import ScriptedCluster, scripted_cluster

pytestmark = pytest.mark.virtual_time


def made_anew(cluster: ScriptedCluster, partitions: int) -> None:
    cluster.delete_topic(TOPIC)
    cluster.create_topic(TOPIC, partitions=partitions)


async def fill(producer: Producer, **arguments: Any) -> list[Any]:
    return [await producer.send(TOPIC, b"%d" % number, **arguments) for number in range(3)]


@pytest.mark.parametrize("is_idempotent", [True, False])
async def test_records_for_a_partition_that_is_gone_fail_at_once_with_the_reason(is_idempotent: bool) -> None:
    with scripted_cluster() as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        async with producing(cluster, linger_ms=1_000, enable_idempotence=is_idempotent) as producer:
            await producer.prepare(TOPIC)
            held = await fill(producer, partition=2)
            kept = await fill(producer, partition=0)
            made_anew(cluster, 1)
            began_ms = cluster.now_ms()
            errors = await producer.gather(held, return_exceptions=True)
            assert cluster.now_ms() - began_ms < 3_000
            assert {type(each) for each in errors} == {PartitionVanished}
            assert str(errors[0]) == (
                "3 record(s) for orders-2 were not delivered: the topic was deleted, and created again with 1 "
                "partition(s). Send them again; with a key, they go to one of those that there are now."
            )
            assert [ack.offset for ack in await producer.gather(kept)] == [0, 1, 2]
            assert (await (await producer.send(TOPIC, b"v", key=b"k"))).partition == 0


async def test_records_that_were_sent_before_fail_too() -> None:
    """The broker does not know the partition any more."""
    with scripted_cluster() as cluster:
        cluster.create_topic(TOPIC, partitions=3)
        async with producing(cluster, linger_ms=0) as producer:
            await producer.prepare(TOPIC)
            cluster.on(ProduceRequest, late(500))
            cluster.on(ProduceRequest, error(ErrorCode.NOT_LEADER_OR_FOLLOWER), nth=1)
            held = await producer.send(TOPIC, b"v", partition=2)
            await asyncio.sleep(0.1)
            made_anew(cluster, 1)
            with pytest.raises(PartitionVanished):
                await asyncio.wait_for(held, 5)


async def test_a_broker_that_was_not_told_of_new_partitions_fails_nothing() -> None:
    """Nor does one that still knows the topic by its former id, with fewer partitions than it has now."""
    with scripted_cluster() as cluster:
        cluster.create_topic(TOPIC, partitions=1)
        former = cluster.topics[TOPIC].topic_id
        async with producing(cluster, linger_ms=2_000, metadata_max_age_ms=500) as producer:
            await producer.prepare(TOPIC)
            made_anew(cluster, 3)
            await producer.send(TOPIC, b"v", partition=0)
            await asyncio.sleep(3)
            held = await producer.send(TOPIC, b"v", partition=2)

            def look_back(response: Any) -> None:
                assert isinstance(response, MetadataResponse)
                for topic in response.topics:
                    topic.topic_id = former
                    topic.partitions = [each for each in topic.partitions if each.partition_index == 0]

            cluster.on(MetadataRequest, edited(look_back), times=3)
            cluster.on(ProduceRequest, error(ErrorCode.NOT_LEADER_OR_FOLLOWER), times=1)
            assert (await held).partition == 2
