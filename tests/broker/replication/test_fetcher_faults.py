"""A fetcher when something goes wrong: leaders, connections, sessions, answers, and logs that part."""

from itertools import pairwise

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse
from tests.broker.log.logs import T0, FaultyDisk, append, batch, full, open_log, stored
from tests.broker.replication.fake_leader import PORT
from tests.broker.replication.fetcher_world import EPOCH, data, world
from tests.client.memory_network import Reach
from tests.client.virtual_time import virtual_loop

pytestmark = pytest.mark.virtual_time


async def test_a_leader_that_is_gone_is_tried_again_with_growing_pauses() -> None:
    async with world() as it:
        it.pair()
        it.leader.append(0, data())
        await it.run(50)
        it.leader.stop()
        await it.run(10_000)
        refused = [attempt.at_ms for attempt in it.network.attempts][1:]
        assert 10 <= len(refused) <= 18
        pauses = [later - earlier for earlier, later in pairwise(refused)]
        assert pauses[0] < 150
        assert max(pauses) < 1100
        it.leader.start()
        it.leader.append(0, data(1))
        await it.run(1200)
        assert it.is_equal()
        assert len(it.replicas[0].log.epochs.entries) == 1


async def test_a_leader_that_closes_each_connection_is_no_busy_loop() -> None:
    async with world() as it:
        it.leader.refusals += [ErrorCode.UNKNOWN_SERVER_ERROR] * 1000
        it.pair()
        await it.run(10_000)
        assert 10 <= len(it.leader.fetches) <= 18


async def test_a_leader_that_never_answers_is_left_after_the_timeout() -> None:
    async with world({"replica.socket.timeout.ms": "2000"}) as it:
        it.pair()
        it.leader.append(0, data())
        it.leader.delays_ms.append(1e9)
        await it.run(3000)
        assert it.is_equal()
        assert len(it.network.attempts) == 2


async def test_a_black_hole_ends_with_the_fetcher() -> None:
    async with world() as it:
        it.network.path(it.leader.address, PORT).reach = Reach.BLACK_HOLE
        replica = it.pair()
        await it.run(500)
        it.fetchers.stop(replica)
        await it.run(1)
        assert not virtual_loop().running_tasks()


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ],
)
async def test_a_lost_session_is_begun_anew_at_once(code: ErrorCode) -> None:
    async with world() as it:
        for index in range(5):
            it.pair(index)
        await it.run(50)
        it.leader.refusals.append(code)
        await it.run(600)
        it.leader.append(3, data())
        await it.run(5)
        assert it.is_equal(3)
        assert len(it.network.attempts) == 1
        new = [fetch for fetch in it.leader.fetches if fetch.session_epoch == 0]
        assert [len(it.leader.positions(fetch)) for fetch in new] == [5, 5]
        assert (new[1].session_id == 0) is (code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


async def test_a_leader_without_room_for_sessions_is_told_everything() -> None:
    async with world(slots=0) as it:
        for index in range(3):
            it.pair(index)
        await it.run(50)
        it.leader.append(1, data())
        await it.run(600)
        assert it.is_equal(1)
        assert all(len(it.leader.positions(fetch)) == 3 for fetch in it.leader.fetches)


async def test_errors_of_one_partition_do_not_hurt_the_others() -> None:
    async with world() as it:
        it.leader.errors[b"o" * 16, 0] = [ErrorCode.KAFKA_STORAGE_ERROR] * 3
        for index in range(3):
            it.pair(index)
            it.leader.append(index, data())
        await it.run(50)
        assert [it.is_equal(index) for index in range(3)] == [False, True, True]
        for number in range(20):
            it.leader.append(1, data(number))
            await it.run(10)
            assert it.is_equal(1)
        await it.run(3100)
        assert it.is_equal(0)


async def test_right_after_an_election_a_leader_is_asked_again_soon() -> None:
    """It hears of its leadership a little later than the follower: that must not cost a second."""
    async with world() as it:
        it.leader.errors[b"o" * 16, 0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH]
        it.pair()
        it.leader.append(0, data())
        await it.run(60)
        assert it.is_equal()


async def test_an_error_is_got_over_though_its_wait_ends_before_the_next_request() -> None:
    """As on a busy machine: the next request waits 30 ms for the device, and the position is what it was. The leader
    answers an error once, and the partition has left its session with that: it was never asked for again."""
    async with world() as it:
        it.leader.errors[b"o" * 16, 0] = [ErrorCode.UNKNOWN_LEADER_EPOCH]
        for index in range(2):
            it.lead(index)
            it.leader.append(index, data())
        it.follow(1).settle_slowly(it.environment, 30.0)
        it.follow(0)
        await it.run(2_000)
        assert [it.is_equal(index) for index in range(2)] == [True, True]


async def test_a_wait_ends_in_time_although_the_leader_holds_a_fetch_back() -> None:
    """Of another partition, of which nothing is new: it is asked to answer when the wait is over."""
    async with world() as it:
        it.pair(1)
        await it.run(600)
        it.leader.errors[b"o" * 16, 0] = [ErrorCode.NOT_LEADER_OR_FOLLOWER]
        it.pair(0)
        it.leader.append(0, data())
        await it.run(90)
        assert it.is_equal(0)
        assert min(fetch.max_wait_ms for fetch in it.leader.fetches) <= 10


async def test_a_deleted_topic_is_no_busy_loop() -> None:
    async with world() as it:
        it.follow()
        await it.run(10_000)
        assert len(it.leader.fetches) <= 40


async def test_damaged_bytes_are_refused_and_fetched_again(caplog: pytest.LogCaptureFixture) -> None:
    def damage(response: FetchResponse) -> None:
        for topic in response.responses:
            for answer in topic.partitions:
                damaged = bytearray(answer.records or b"")
                damaged[-1] ^= 1
                answer.records = bytes(damaged)

    async with world() as it:
        led = it.lead()
        append(led.log, data(), EPOCH)
        it.leader.edits.append(damage)
        replica = it.follow()
        await it.run(50)
        assert replica.log.log_end_offset == 0
        await it.run(1100)
        assert it.is_equal()
    assert [r.message for r in caplog.records if "checksum" in r.getMessage()] != []


async def test_a_mistake_of_ours_with_one_partition_does_not_hurt_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as it:
        first, _ = it.pair(0), it.pair(1)

        def fail(_: int) -> None:
            raise ZeroDivisionError("a mistake")

        monkeypatch.setattr(first, "replicated_up_to", fail)
        it.leader.append(0, data())
        it.leader.append(1, data())
        await it.run(50)
        assert it.is_equal(1)
        it.leader.append(1, data(1))
        await it.run(50)
        assert it.is_equal(1)
        assert len(it.network.attempts) == 1


# -- logs that part ---------------------------------------------------------------------------------------------------


async def test_what_the_leader_has_not_is_cut_off() -> None:
    async with world() as it:
        led = it.lead()
        mine = open_log(MemoryDisk())
        for log in (led.log, mine):
            append(log, data(), 0)
        append(mine, data(5), 1)
        append(led.log, data(6), 2)
        replica = it.follow(log=mine)
        replica.high_watermark = 2
        await it.run(50)
        assert it.is_equal()
        assert (replica.truncations, replica.high_watermark) == ([1], 1)


async def test_a_leader_that_has_deleted_what_is_missing_here() -> None:
    async with world() as it:
        led = it.lead()
        for number in range(6):
            append(led.log, data(number), EPOCH)
        led.log.truncate_fully_and_start_at(50)
        append(led.log, data(9), EPOCH)
        mine = open_log(MemoryDisk())
        append(mine, data(0), EPOCH)
        replica = it.follow(log=mine)
        await it.run(50)
        assert it.is_equal()
        assert (replica.log.log_start_offset, replica.log.log_end_offset) == (50, 51)


async def test_a_log_start_of_the_leader_within_a_batch() -> None:
    async with world() as it:
        led = it.lead()
        append(led.log, batch(*[T0] * 10), EPOCH)
        led.log.advance_log_start(4)
        replica = it.follow()
        await it.run(50)
        assert bytes(replica.log.fetch(4, 1 << 20, 10, True).records) == stored(batch(*[T0] * 10), 0, EPOCH)
        assert (replica.log.log_start_offset, replica.log.log_end_offset) == (4, 10)


async def test_epochs_that_the_leader_cannot_know_throw_nothing_away() -> None:
    async with world() as it:
        led = it.lead()
        append(led.log, data(), 1)
        mine = open_log(MemoryDisk())
        for number in range(3):
            append(mine, data(number), EPOCH + 5)
        replica = it.follow(log=mine)
        await it.run(5000)
        assert replica.log.log_end_offset == 3
        assert len(it.leader.fetches) <= 12


async def test_a_lost_connection_while_offsets_are_compared() -> None:
    async with world() as it:
        led = it.lead()
        led.log.truncate_fully_and_start_at(50)
        replica = it.follow()
        it.leader.list_offsets_end_connection = 1
        await it.run(1500)
        assert replica.log.log_start_offset == 50


async def test_a_leader_without_sessions_may_leave_a_partition_out() -> None:
    def leave_out(response: FetchResponse) -> None:
        response.responses.clear()

    async with world(slots=0) as it:
        it.pair(0)
        it.pair(1)
        it.leader.edits.append(leave_out)
        await it.run(600)
        it.leader.append(1, data())
        await it.run(50)
        assert it.is_equal(1)
        assert all(len(it.leader.positions(fetch)) == 2 for fetch in it.leader.fetches)


async def test_a_truncation_that_fails_is_completed_before_the_next_fetch() -> None:
    """Until then the log takes nothing, and nothing may be claimed of it."""
    async with world() as it:
        disk = FaultyDisk()
        led, mine = it.lead(), open_log(disk)
        for log in (led.log, mine):
            append(log, data(), 0)
        append(mine, data(5), 1)
        append(led.log, data(6), 2)
        disk.fail_at(1, full, for_good=True)
        replica = it.follow(log=mine)
        await it.run(3500)
        assert replica.log.condition.is_half_cut
        assert [it.leader.positions(fetch) for fetch in it.leader.fetches] == [{0: 2}, {}]
        disk.heal()
        await it.run(1100)
        assert it.is_equal()
