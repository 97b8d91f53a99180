"""The fetch loop with sessions: quiet partitions are named once, and a session that is lost begins again."""

from typing import Any

import pytest

from odradek.client.fetching.fetch_settings import Start
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.messages.fetch import FetchRequest
from tests.client.broker_faults import disconnect_after, disconnect_before
from tests.client.reading_handlers import fill
from tests.client.running_fetcher import TOPIC, fetching, reading_cluster, values

pytestmark = pytest.mark.virtual_time


def named(request: FetchRequest) -> list[int]:
    return [each.partition for topic in request.topics for each in topic.partitions]


async def test_quiet_partitions_are_named_once() -> None:
    async with reading_cluster(1, 20) as (cluster, reading):
        reading.keeps_sessions = True
        async with fetching(cluster) as fetcher:
            for index in range(20):
                fetcher.assign(TopicPartition(TOPIC, index), Start.at_offset(0))
            await fetcher.next(100)
            fill(cluster, TOPIC, 7, values(3))
            assert await fetcher.next(1_000) is not None
            await fetcher.next(100)
            requests = cluster.requests(FetchRequest)
            assert sorted(named(requests[0])) == list(range(20))
            assert [named(request) for request in requests[1:] if named(request)] == [[7]]
            fetcher.release(TopicPartition(TOPIC, 3))
            await fetcher.next(100)
            gone = [
                each.partitions for request in cluster.requests(FetchRequest) for each in request.forgotten_topics_data
            ]
            assert gone == [[3]]


@pytest.mark.parametrize("fault", [disconnect_before(), disconnect_after(), None], ids=["before", "after", "evicted"])
async def test_a_lost_session_begins_again_and_nothing_is_lost(fault: Any) -> None:
    async with reading_cluster(1, 3) as (cluster, reading):
        reading.keeps_sessions = True
        async with fetching(cluster) as fetcher:
            for index in range(3):
                fetcher.assign(TopicPartition(TOPIC, index), Start.at_offset(0))
            found: dict[int, list[bytes | None]] = {0: [], 1: [], 2: []}
            for step in range(6):
                for index in range(3):
                    fill(cluster, TOPIC, index, values(1, f"{step}-"))
                if step == 2 and fault is not None:
                    cluster.on(FetchRequest, fault)
                elif step == 2:
                    reading.sessions.clear()
                while (batch := await fetcher.next(2_000 if step == 2 else 200)) is not None:
                    found[batch.partition] += [record.value for record in batch.records]
            assert found == {index: [b"%d-0" % step for step in range(6)] for index in range(3)}
            full = [request for request in cluster.requests(FetchRequest) if len(named(request)) == 3]
            assert len([each for each in full if each.session_epoch == 0]) == 2
