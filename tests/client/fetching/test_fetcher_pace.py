"""When the Fetch loop asks, on a scripted cluster in memory and virtual time: room, turns, timers, who comes next."""

import pytest

from odradek.client.errors.client_errors import ClientError
from odradek.client.fetching.fetch_settings import Start
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest
from tests.client.broker_faults import late
from tests.client.reading_handlers import fill
from tests.client.running_cluster import begun
from tests.client.running_fetcher import P0, P1, P2, TOPIC, fetching, read, reading_cluster, values
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time


async def test_fetching_pauses_while_nobody_reads_and_runs_ahead_while_somebody_does() -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, *([b"x" * 1000] for _ in range(30)))
        async with fetching(scripted, buffer_bytes=5_000, max_partition_fetch_bytes=2_500) as fetcher:
            fetcher.assign(P0, Start.earliest(), 30)
            await scripted.environment.sleep(5_000)
            assert scripted.count(FetchRequest) == 3, "two batches each time, until the buffer is full"
            assert [request.max_bytes for request in scripted.requests(FetchRequest)] == [2_500, 2_500, 720]
            assert await fetcher.next(1_000) is not None
            await scripted.environment.sleep(5_000)
            assert scripted.count(FetchRequest) == 3, "half of an answer is still held"
            assert await fetcher.next(1_000) is not None
            assert await fetcher.next(1_000) is not None
            await scripted.environment.sleep(5_000)
            assert scripted.count(FetchRequest) == 5, "what became free is filled again"
            assert len((await read(fetcher))[0]) == 27


async def test_a_partition_whose_leader_moved_while_nobody_read_is_fetched_on_reading() -> None:
    """However long that took, and though the new leader has to be connected to first."""
    async with reading_cluster(2, 3) as (scripted, _):
        fill(scripted, TOPIC, 0, values(3))
        async with fetching(scripted, buffer_bytes=20_000, retry_timeout_ms=2_000) as fetcher:
            fetcher.assign(P0, Start.at_offset(0), 6)
            assert await fetcher.next(1_000) is not None
            fetcher.assign(P2, Start.at_offset(0), 1)
            fill(scripted, TOPIC, 2, [b"x" * 30_000])
            scripted.move_leader(TOPIC, 0, to=1)
            fill(scripted, TOPIC, 0, values(3))
            await scripted.environment.sleep(60_000)
            assert scripted.count(FetchRequest, node=1) == 0
            assert await read(fetcher, 2_000) == {0: values(3), 2: [b"x" * 30_000]}


async def test_brokers_without_new_records_keep_nobody_from_being_asked() -> None:
    """More brokers than have room for `fetch_max_bytes` each: those who wait for records do not take it in turns."""
    async with reading_cluster() as (scripted, _):
        scripted.on(FetchRequest, late(500), times=None)
        async with fetching(scripted) as fetcher:
            for partition in (P0, P1, P2):
                fetcher.assign(partition, Start.at_offset(0))
            await scripted.environment.sleep(1_100)
            asked = [node for node in range(3) for _ in scripted.requests(FetchRequest, node=node)]
            assert [asked.count(node) for node in range(3)] == [3, 3, 3]


async def test_a_partition_that_is_read_no_more_leaves_its_room_to_the_others() -> None:
    async with reading_cluster(1, 2) as (scripted, _):
        fill(scripted, TOPIC, 0, [b"x" * 3_000])
        async with fetching(scripted, buffer_bytes=2_000) as fetcher:
            fetcher.assign(P0, Start.at_offset(0))
            await scripted.environment.sleep(1_000)
            fetcher.assign(P1, Start.at_offset(0), 1)
            fill(scripted, TOPIC, 1, [b"y"])
            await scripted.environment.sleep(1_000)
            fetcher.release(P0)
            assert await read(fetcher, 1_000) == {1: [b"y"]}


async def test_others_get_their_turn_between_two_batches_that_wait() -> None:
    """Signals, answers, timers: what is buffered takes long to decode, and a file to write it to never makes wait."""
    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, *([b"x"] for _ in range(50)))
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.at_offset(0), 50)
            await scripted.environment.sleep(1_000)
            assert scripted.count(FetchRequest) == 1, "all of it waits"
            iterations = virtual_loop().iterations
            assert await read(fetcher) == {0: [b"x"] * 50}
            assert virtual_loop().iterations - iterations >= 50


async def test_who_is_cancelled_while_others_have_their_turn_loses_nothing() -> None:
    async with reading_cluster(1, 1) as (scripted, _):
        fill(scripted, TOPIC, 0, *([b"%d" % number] for number in range(5)))
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.at_offset(0), 5)
            await scripted.environment.sleep(1_000)
            for _ in range(3):
                reader = begun(fetcher.next(1_000))
                await scripted.environment.sleep(0)
                assert not reader.done()
                reader.cancel()
            await scripted.environment.sleep(0)
            assert await read(fetcher) == {0: [b"%d" % number for number in range(5)]}


@pytest.mark.virtual_time(whole_ms=True, iterations_per_second_max=1_000)
async def test_a_timer_that_rings_early_does_not_ring_again_and_again() -> None:
    """Backoffs end between two milliseconds, and uvloop's clock counts whole ones."""
    async with reading_cluster(1, 1) as (scripted, reading):
        fill(scripted, TOPIC, 0, values(3))
        reading.errors[TOPIC, 0] = [ErrorCode.KAFKA_STORAGE_ERROR] * 20
        async with fetching(scripted) as fetcher:
            fetcher.assign(P0, Start.at_offset(0), 3)
            assert await read(fetcher) == {0: values(3)}


async def test_there_is_one_fetch_a_node_at_a_time() -> None:
    async with reading_cluster(1, 3) as (scripted, _):
        for index in range(3):
            fill(scripted, TOPIC, index, *([b"x"] for _ in range(20)))
        scripted.on(FetchRequest, late(50), times=None)
        async with fetching(scripted, max_partition_fetch_bytes=1) as fetcher:
            for partition in (P0, P1, P2):
                fetcher.assign(partition, Start.at_offset(0), 20)
                await scripted.environment.sleep(20)
            assert await read(fetcher) == dict.fromkeys(range(3), [b"x"] * 20)
        assert scripted.most_in_flight(FetchRequest) == 1


async def test_with_all_brokers_down_little_happens_until_the_time_is_up() -> None:
    async with reading_cluster() as (scripted, _), fetching(scripted, retry_timeout_ms=20_000) as fetcher:
        for partition in (P0, P1, P2):
            fetcher.assign(partition, Start.earliest())
        assert await fetcher.next(1_000) is None
        for broker in scripted.brokers.values():
            broker.stop()
        iterations = virtual_loop().iterations
        began_ms = scripted.environment.monotonic_ms()
        for _ in range(3):
            with pytest.raises(ClientError):
                await fetcher.next(60_000)
        assert fetcher.is_finished
        assert 18_000 <= scripted.environment.monotonic_ms() - began_ms <= 25_000
        assert virtual_loop().iterations - iterations < 5_000
