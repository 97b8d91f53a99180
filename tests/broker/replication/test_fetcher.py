"""A fetcher against a leader in memory, on virtual time: what it asks for, when, and who comes and goes.

The leader answers with real bytes out of real logs (fake_leader.py). What goes wrong is in test_fetcher_faults.py.
"""

import asyncio
import logging
from collections.abc import Callable

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.replication.fetcher import NUDGE_MS, WARNED_AFTER_MS
from odradek.protocol.messages.fetch import FetchPartition
from tests.broker.log.logs import append, open_log, read_all
from tests.broker.replication.fake_leader import PORT
from tests.broker.replication.fetcher_world import BROKER_EPOCH, EPOCH, World, data, world
from tests.broker.replication.replicas_world import FollowingReplica, Led
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time

# -- what is fetched --------------------------------------------------------------------------------------------------


async def test_what_the_leader_has_and_gets_is_replicated_at_once() -> None:
    async with world() as it:
        replicas = [it.pair(index) for index in range(3)]
        for index in range(3):
            it.leader.append(index, data(index))
        await it.run(5)
        assert all(it.is_equal(index) for index in range(3))
        it.leader.append(1, data(9))
        await it.run(5)
        assert [replica.log.log_end_offset for replica in replicas] == [1, 2, 1]
        assert it.is_equal(1)
        assert replicas[1].appended_bytes == replicas[1].log.size_bytes


async def test_a_request_says_who_fetches_and_from_where() -> None:
    async with world({"replica.fetch.max.bytes": "5000", "replica.fetch.min.bytes": "7"}) as it:
        log = open_log(MemoryDisk())
        for number in range(4):
            append(log, data(number), 2)
        log.advance_log_start(2)
        log.durable_log_start_offset = 1
        it.lead(log=open_log(MemoryDisk()))
        it.follow(log=log)
        await it.run(10)
        request = it.leader.fetches[0]
        assert request.replica_state is not None
        assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (0, BROKER_EPOCH)
        assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 7, 10 * 1024**2)
        assert (request.isolation_level, request.session_id, request.session_epoch) == (0, 0, 0)
        ((wanted,),) = (topic.partitions for topic in request.topics)
        assert (wanted.partition, wanted.current_leader_epoch, wanted.partition_max_bytes) == (0, EPOCH, 5000)
        assert (wanted.fetch_offset, wanted.last_fetched_epoch, wanted.log_start_offset) == (4, 2, 1)


async def test_the_high_watermark_and_the_log_start_follow_the_leaders() -> None:
    async with world() as it:
        replica, led = it.pair(), it.leader.led[b"o" * 16, 0]
        for number in range(6):
            it.leader.append(0, data(number))
        await it.run(5)
        assert replica.high_watermark == 0
        led.high_watermark = 4
        it.leader.wake()
        await it.run(5)
        assert replica.high_watermark == 4
        led.log.advance_log_start(3)
        led.high_watermark = 99  # more than is here
        it.leader.wake()
        await it.run(5)
        assert (replica.high_watermark, replica.log.log_start_offset) == (6, 3)
        await it.run(600)
        last = [wanted for fetch in it.leader.fetches for topic in fetch.topics for wanted in topic.partitions][-1]
        assert last.log_start_offset == 3, "which the leader is told"


@pytest.mark.parametrize("device_ms", [1, 12, 200])
async def test_the_leader_hears_of_a_log_start_soon_after_it_is_on_the_disk_and_not_before(device_ms: int) -> None:
    """A DeleteRecords waits for that, and the leader may hold a request back for half a second. What is appended while
    the device is slow is fetched, and when it is done the requests are long ones again."""
    async with world() as it:
        replica, led = it.pair(), it.leader.led[b"o" * 16, 0]
        for number in range(6):
            it.leader.append(0, data(number))
        led.high_watermark = 6
        await it.run(600)
        replica.is_device_slow = True
        led.log.advance_log_start(3)
        it.leader.append(0, data(7))
        await it.run(device_ms)
        assert replica.log_starts_wanted == [3]
        assert {position.log_start_offset for position in _said(it)} == {0}
        count = len(it.leader.fetches)
        assert count < 20, "it does not ask all the time"
        replica.device_is_done()
        it.fetchers.changed(replica)
        await it.run(max(10, 2 * device_ms))
        assert [position.log_start_offset for position in _said(it)][-1] == 3
        assert (replica.log.log_end_offset, it.is_equal()) == (7, True)
        count = len(it.leader.fetches)
        await it.run(2000)
        assert len(it.leader.fetches) <= count + 5


def _said(it: World) -> list[FetchPartition]:
    """What all requests said of partitions, in order."""
    return [wanted for fetch in it.leader.fetches for topic in fetch.topics for wanted in topic.partitions]


async def test_quiet_partitions_are_in_no_request_and_no_answer() -> None:
    async with world() as it:
        for index in range(1000):
            it.pair(index)
        await it.run(600)
        sizes = [sum(len(topic.partitions) for topic in fetch.topics) for fetch in it.leader.fetches]
        assert sizes == [1000, 0]
        it.leader.append(7, data())
        it.leader.append(500, data())
        await it.run(1000)
        sizes = [sum(len(topic.partitions) for topic in fetch.topics) for fetch in it.leader.fetches]
        assert sizes[2:] == [1, 1, *[0] * (len(sizes) - 4)]
        assert max(it.leader.answered[1:]) == 1
        assert it.is_equal(7)
        assert it.is_equal(500)


async def test_idle_polls_are_as_long_as_configured() -> None:
    async with world() as it:
        it.pair()
        await it.run(10_000)
        assert 19 <= len(it.leader.fetches) <= 22


async def test_a_large_backlog_comes_in_pieces() -> None:
    async with world({"replica.fetch.max.bytes": "2000"}) as it:
        led = it.lead()
        for number in range(100):
            append(led.log, data(number, 500), EPOCH)
        replica = it.follow()
        await it.run(200)
        assert it.is_equal()
        assert len(it.leader.fetches) > 20
        assert replica.appended_bytes == led.log.size_bytes


# -- partitions come and go -------------------------------------------------------------------------------------------


async def test_an_answer_for_a_former_epoch_is_dropped() -> None:
    async with world() as it:
        replica = it.pair()
        await it.run(50)
        it.leader.delays_ms.append(100)
        it.leader.append(0, data())
        await it.run(20)
        replica.leader_epoch = EPOCH + 1  # the metadata has another leader epoch, of the same leader
        it.leader.led[b"o" * 16, 0].leader_epoch = EPOCH + 1
        it.fetchers.follow(replica, 1)
        assert replica.log.log_end_offset == 0
        await it.run(500)
        assert it.is_equal()
        epochs = [wanted.current_leader_epoch for f in it.leader.fetches for t in f.topics for wanted in t.partitions]
        assert epochs[0] == EPOCH
        assert epochs[-1] == EPOCH + 1


async def test_a_leader_that_is_away_briefly_is_no_warning_and_one_that_stays_away_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def levels() -> list[int]:
        return [record.levelno for record in caplog.records if record.name == "odradek.broker.replication.fetcher"]

    with caplog.at_level(logging.INFO):
        async with world() as it:
            replica = it.pair()
            await it.run(50)
            it.leader.stop()
            await it.run(WARNED_AFTER_MS / 2)
            it.leader.start()
            await it.run(WARNED_AFTER_MS)
            assert levels() == [logging.INFO, logging.INFO], "it fails, and works again"
            it.leader.stop()
            await it.run(5 * WARNED_AFTER_MS)
            assert levels()[2:] == [logging.INFO, logging.WARNING], "told once"
            it.leader.start()
            it.leader.append(0, data())
            await it.run(WARNED_AFTER_MS)
            assert replica.log.log_end_offset > 0


async def test_an_answer_that_comes_when_the_epoch_has_moved_is_not_applied(caplog: pytest.LogCaptureFixture) -> None:
    """Also before anybody has told the fetcher."""
    async with world() as it:
        replica = it.pair()
        await it.run(50)
        it.leader.delays_ms.append(100)
        it.leader.append(0, data())
        await it.run(20)
        replica.leader_epoch = EPOCH + 1
        await it.run(300)
        assert replica.log.log_end_offset == 0
        assert len(it.leader.fetches) <= 3, "nothing is asked for an epoch that is gone"
    assert not caplog.records, "that is no mistake of anybody"


async def test_a_partition_that_is_stopped_gets_nothing_any_more() -> None:
    async with world() as it:
        first, second = it.pair(0), it.pair(1)
        await it.run(50)
        it.leader.delays_ms.append(100)
        it.leader.append(0, data())
        it.leader.append(1, data())
        await it.run(20)
        it.fetchers.stop(first)
        await it.run(700)
        assert (first.log.log_end_offset, second.log.log_end_offset) == (0, 1)
        forgotten = [topic.partitions for fetch in it.leader.fetches for topic in fetch.forgotten_topics_data]
        assert forgotten == [[0]]


async def test_without_partitions_nothing_is_connected_any_more() -> None:
    async with world() as it:
        replica = it.pair()
        await it.run(50)
        it.fetchers.stop(replica)
        assert len(it.fetchers) == 0
        await it.run(50)
        it.network.check_closed()


async def test_a_partition_that_is_followed_already_goes_on() -> None:
    """Metadata changes of which the leader is no part come often."""
    async with world() as it:
        replica = it.pair()
        await it.run(700)
        fetches = len(it.leader.fetches)
        for _ in range(5):
            it.fetchers.follow(replica, 1)
            await it.run(50)
        assert len(it.leader.fetches) == fetches
        assert len(it.network.attempts) == 1


async def test_a_partition_moves_from_one_leader_to_another() -> None:
    async with world() as it:
        replica = it.pair()
        it.leader.append(0, data())
        await it.run(50)
        led = Led(open_log(MemoryDisk()), EPOCH + 1)
        append(led.log, data(), EPOCH)
        it.other.lead(0, led)
        it.other.append(0, data(1))
        replica.leader_epoch = EPOCH + 1
        it.fetchers.follow(replica, 2)
        await it.run(50)
        assert read_all(replica.log) == read_all(led.log)
        assert len(it.fetchers) == 1


async def test_a_new_partition_does_not_wait_for_a_fetch_that_is_held_back() -> None:
    async with world() as it:
        it.pair(0)
        await it.run(1200)
        it.lead(1)
        it.leader.append(1, data())
        before, connections = len(it.leader.fetches), len(it.network.attempts)
        it.follow(1)
        await it.run(NUDGE_MS + 10)
        assert it.is_equal(1)
        assert it.leader.positions(it.leader.fetches[before]) == {1: 0}, "the session goes on"
        assert len(it.network.attempts) == connections


async def test_partitions_that_come_together_cost_one_request() -> None:
    async with world() as it:
        it.pair(0)
        await it.run(1200)
        before = len(it.leader.fetches)
        for index in range(1, 40):
            it.pair(index)
        await it.run(NUDGE_MS + 10)
        named = [it.leader.positions(fetch) for fetch in it.leader.fetches[before:]]
        assert named == [dict.fromkeys(range(1, 40), 0)]


async def test_what_many_partitions_cost_that_come_one_after_the_other_is_their_number() -> None:
    async with world() as it:
        for index in range(600):
            it.pair(index)
        await it.run(3000)
        before, connections = len(it.leader.fetches), len(it.network.attempts)
        for index in range(600, 640):
            it.pair(index)
            await it.run(20)
        named = sum(len(topic.partitions) for fetch in it.leader.fetches[before:] for topic in fetch.topics)
        assert named == 40
        assert len(it.network.attempts) == connections
        it.leader.append(639, data())
        await it.run(10)
        assert it.is_equal(639)


async def test_an_answer_that_is_being_received_is_not_given_up() -> None:
    async with world({"replica.fetch.max.bytes": "1000000"}) as it:
        path = it.network.path(it.leader.address, PORT)
        it.pair(0)
        await it.run(700)
        connections = len(it.network.attempts)
        path.to_client.bytes_per_ms = 16_000
        it.leader.append(0, data(0, 1_600_000))
        await it.run(30)
        it.pair(1)
        await it.run(500)
        assert it.is_equal(0)
        assert len(it.network.attempts) == connections


# -- durability, quota, end -------------------------------------------------------------------------------------------


@pytest.mark.virtual_time(blocking_ms=30.0)
async def test_a_fetch_claims_only_what_is_on_the_device() -> None:
    async with world() as it:
        it.lead()
        replica = FollowingReplica(open_log(MemoryDisk()), EPOCH)
        replica.sync_each(it.environment, it.tasks)
        it.replicas[0] = replica
        it.fetchers.follow(replica, 1)
        await it.run(50)
        it.leader.append(0, data())
        at_ms = it.environment.monotonic_ms()
        await it.run(200)
        claims = [
            (time_ms - at_ms, offset)
            for fetch, time_ms in zip(it.leader.fetches, it.leader.fetch_times_ms, strict=True)
            for offset in it.leader.positions(fetch).values()
            if time_ms >= at_ms
        ]
        assert [offset for _, offset in claims] == [1]
        assert 30.0 <= claims[0][0] < 60.0


async def test_throttled_replicas_keep_to_the_rate_and_others_do_not_wait() -> None:
    async with world({"follower.replication.throttled.rate": "10000", "replica.fetch.max.bytes": "1000"}) as it:
        for index in (0, 1):
            led = it.lead(index)
            for number in range(100):
                append(led.log, data(number, 500), EPOCH)
            led.high_watermark = 100
            replica = it.follow(index)
            replica.is_follower_throttled = index == 0
        await it.run(500)
        assert it.is_equal(1)
        assert it.replicas[0].appended_bytes <= 10_000 * 1.5 + 1_200
        await it.run(1500)
        assert 20_000 <= it.replicas[0].appended_bytes <= 10_000 * 3 + 1_200
        await it.run(6000)
        assert it.is_equal(0)


async def test_a_throttled_replica_that_was_not_answered_leaves_the_session_too() -> None:
    """The leader answers one partition at a time. Once there is no room, it must not go on with the others."""
    settings = {"follower.replication.throttled.rate": "1000", "replica.fetch.response.max.bytes": "700"}
    async with world(settings) as it:
        for index in range(20):
            led = it.lead(index)
            append(led.log, data(0, 500), EPOCH)
            led.high_watermark = 1
        for index in range(20):
            it.follow(index).is_follower_throttled = True
        await it.run(500)
        assert 1000 <= sum(replica.appended_bytes for replica in it.replicas.values()) <= 1000 + 500 + 600
        await it.run(12_000)
        assert all(it.is_equal(index) for index in range(20))


async def test_what_is_in_sync_is_not_throttled() -> None:
    async with world({"follower.replication.throttled.rate": "10"}) as it:
        replica, led = it.pair(), it.leader.led[b"o" * 16, 0]
        replica.is_follower_throttled = True
        await it.run(10)
        for number in range(50):
            it.leader.append(0, data(number))
            await it.run(2)
            assert it.is_equal()
        assert led.log.log_end_offset == 50


async def test_closing_ends_a_fetch_in_flight_at_once() -> None:
    async with world() as it:
        it.pair()
        await it.run(50)
        before_ms = it.environment.monotonic_ms()
        await it.fetchers.close()
        assert it.environment.monotonic_ms() - before_ms < 1.0
        it.network.check_closed()


async def test_large_answers_give_the_loop_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as it:
        turns: list[int] = []
        counter: Callable[[], int] = lambda: virtual_loop().iterations  # noqa: E731
        for index in range(8):
            led = it.lead(index)
            append(led.log, data(0, 300_000), EPOCH)
        for index in range(8):
            replica = it.follow(index)
            appended = replica.appended_as_follower

            def noted(size_bytes: int, appended: Callable[[int], None] = appended) -> None:
                turns.append(counter())
                appended(size_bytes)

            monkeypatch.setattr(replica, "appended_as_follower", noted)
        await it.run(100)
        assert len(turns) == 8
        assert len(set(turns)) == 8


async def test_a_task_that_is_cancelled_while_it_waits_for_partitions_ends() -> None:
    async with world() as it:
        replica = it.pair()
        it.fetchers.stop(replica)
        await asyncio.sleep(0)
        assert len(it.fetchers) == 0
