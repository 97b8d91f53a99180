"""Reading from a replica that the leader names (KIP-392), back to the leader, and truncated logs (KIP-320)."""

import pytest

from odradek.client.fetching.fetch_settings import Start
from odradek.client.fetching.position import LogTruncated
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest
from tests.client.reading_handlers import fill
from tests.client.running_fetcher import P0, TOPIC, fetching, reading_cluster, values

pytestmark = pytest.mark.virtual_time


async def test_the_replica_that_the_leader_names_is_read_from() -> None:
    async with reading_cluster(2, 1) as (cluster, reading):
        fill(cluster, TOPIC, 0, values(5))
        reading.preferred[TOPIC, 0] = 1
        async with fetching(cluster, client_rack="r1") as fetcher:
            fetcher.assign(P0, Start.at_offset(0))
            batch = await fetcher.next(1_000)
            assert batch is not None
            assert [record.value for record in batch.records] == values(5)
            await fetcher.next(200)
            assert len(cluster.requests(FetchRequest, node=0)) == 1
            assert {request.rack_id for request in cluster.requests(FetchRequest)} == {"r1"}


async def test_without_a_rack_the_leader_is_read_from() -> None:
    async with reading_cluster(2, 1) as (cluster, reading):
        fill(cluster, TOPIC, 0, values(5))
        reading.preferred[TOPIC, 0] = 1
        async with fetching(cluster) as fetcher:
            fetcher.assign(P0, Start.at_offset(0))
            assert await fetcher.next(1_000) is not None
            assert not cluster.requests(FetchRequest, node=1)


@pytest.mark.parametrize("how", ["out of range", "error", "gone"])
async def test_when_the_replica_fails_the_leader_is_read_from(how: str) -> None:
    async with reading_cluster(2, 1) as (cluster, reading):
        fill(cluster, TOPIC, 0, values(5))
        reading.preferred[TOPIC, 0] = 1
        async with fetching(cluster, client_rack="r1", auto_offset_reset="none") as fetcher:
            fetcher.assign(P0, Start.at_offset(0))
            assert await fetcher.next(1_000) is not None
            if how == "gone":
                cluster.brokers[1].stop()
            else:
                code = ErrorCode.OFFSET_OUT_OF_RANGE if how == "out of range" else ErrorCode.FENCED_LEADER_EPOCH
                reading.errors[TOPIC, 0] = [code]
            fill(cluster, TOPIC, 0, values(5, "w"))
            found: list[bytes | None] = []
            while len(found) < 5 and (batch := await fetcher.next(20_000)) is not None:
                found += [record.value for record in batch.records]
            assert found == values(5, "w")
            before = len(cluster.requests(FetchRequest, node=0))
            assert before >= 2
            assert "" in {request.rack_id for request in cluster.requests(FetchRequest, node=0)}, "it answers itself"


async def test_the_replica_is_asked_for_again_after_a_while() -> None:
    async with reading_cluster(2, 1) as (cluster, reading):
        reading.preferred[TOPIC, 0] = 1
        async with fetching(cluster, client_rack="r1", replica_max_age_ms=500) as fetcher:
            fetcher.assign(P0, Start.at_offset(0))
            await fetcher.next(1_400)
            assert len(cluster.requests(FetchRequest, node=0)) == 3


async def test_a_truncated_log_is_noticed_and_read_from_where_it_parted(caplog: pytest.LogCaptureFixture) -> None:
    async with reading_cluster(1, 1) as (cluster, reading):
        fill(cluster, TOPIC, 0, values(10))
        async with fetching(cluster) as fetcher:
            fetcher.assign(P0, Start.at_offset(0))
            assert await fetcher.next(1_000) is not None
            reading.truncated[TOPIC, 0] = (0, 6)
            batch = await fetcher.next(1_000)
            assert batch is not None
            assert [record.offset for record in batch.records] == [6, 7, 8, 9]
            assert "orders-0 was truncated below 10: reading goes on at 6" in caplog.text
            last = cluster.requests(FetchRequest)[1].topics[0].partitions[0]
            assert (last.fetch_offset, last.last_fetched_epoch) == (10, 0)


async def test_a_committed_epoch_finds_a_truncated_log_which_without_a_policy_is_an_error() -> None:
    async with reading_cluster(1, 1) as (cluster, reading):
        fill(cluster, TOPIC, 0, values(10))
        reading.truncated[TOPIC, 0] = (0, 6)
        async with fetching(cluster, auto_offset_reset="none") as fetcher:
            fetcher.assign(P0, Start.at_offset(8, 3))
            with pytest.raises(LogTruncated) as raised:
                await fetcher.next(1_000)
            assert (raised.value.offset, raised.value.diverging_offset) == (8, 6)
