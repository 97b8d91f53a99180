"""Fetches of followers: who may, what their positions count for, and sessions that answer what has happened only.

Broker 0 leads; broker 1 is registered and asks. Requests go through dispatch, encoded, as version 17.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import pytest

from odradek.broker.cluster.keys import BrokerState, broker_config_key, encode_configs
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Caller, Context
from odradek.broker.log.config import LogConfig
from odradek.broker.replica.partition import Partition
from odradek.broker.replication.closest_replica import RACK_AWARE
from odradek.broker.replication.follower_sessions import GATHERING_TURNS_MAX, IDLE_TURNS_MAX, NEWS_DELAY_MS
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import EpochEndOffset, FetchPartition, FetchResponse, PartitionData
from tests.broker.api import fetching
from tests.broker.api.fetching import BY_NAME, LARGE, offsets, request
from tests.broker.cold_disk import ColdDisk
from tests.broker.support import DATA_DIR, HERE, NO_SETTINGS, append, ask, batch, make_topic, running_broker

VERSION = 17
OTHER = BrokerState(1, {"PLAINTEXT": ("127.0.0.1", 9093), "PUBLIC": ("127.0.0.1", 9193)})
PATIENCE_S = 5.0
LONG_MS = 10_000


def wanted(
    index: int = 0, offset: int = 0, *, epoch: int = 0, last_epoch: int = -1, max_bytes: int = LARGE
) -> FetchPartition:
    """A follower always says in which epoch it follows."""
    return fetching.wanted(index, offset, epoch=epoch, last_epoch=last_epoch, max_bytes=max_bytes)


class Replica:
    """A follower's requests, in one session."""

    def __init__(self, context: Context, topic_id: bytes) -> None:
        self.context = context
        self.topic_id = topic_id
        self.epoch = context.metadata.image.brokers[1].epoch
        self.session: tuple[int, int] = (0, 0)
        self.caller: Caller | None = None

    async def response(
        self, *partitions: FetchPartition, max_wait_ms: int = 0, forgotten: tuple[int, ...] = ()
    ) -> FetchResponse:
        asked = request(
            *partitions,
            topic_id=self.topic_id,
            max_wait_ms=max_wait_ms,
            session=self.session,
            forgotten=forgotten,
            replica=1,
            replica_epoch=self.epoch,
        )
        response = await asyncio.wait_for(ask(self.context, asked, VERSION, caller=self.caller), PATIENCE_S)
        self.session = (response.session_id, self.session[1] + 1)
        return response

    async def fetch(
        self, *partitions: FetchPartition, max_wait_ms: int = 0, forgotten: tuple[int, ...] = ()
    ) -> list[PartitionData]:
        response = await self.response(*partitions, max_wait_ms=max_wait_ms, forgotten=forgotten)
        assert response.error_code == ErrorCode.NONE
        return [partition for topic in response.responses for partition in topic.partitions]


@asynccontextmanager
async def led(
    partition_count: int = 1, settings: Mapping[str, str] = NO_SETTINGS
) -> AsyncGenerator[tuple[Context, Replica]]:
    async with running_broker(settings, brokers=(HERE, OTHER)) as context:
        topic_id = await make_topic(context, "orders", partition_count, replicas=(0, 1))
        yield context, Replica(context, topic_id)


def leader(context: Context, index: int = 0) -> Partition:
    return context.partitions.leader("orders", index)


async def test_a_follower_reads_beyond_the_high_watermark_and_its_next_position_moves_it() -> None:
    async with led() as (context, replica):
        partition = leader(context)
        append(partition, batch(b"a", b"b"))
        (first,) = await replica.fetch(wanted())
        assert (offsets(first), first.high_watermark) == ([0], 0)
        assert partition.high_watermark.value == 0
        second = await replica.fetch(wanted(offset=2))
        assert partition.high_watermark.value == 2
        assert [answer.high_watermark for answer in second] == [], "told with the next records, or after a while"
        (news,) = await replica.fetch(max_wait_ms=20)
        assert (news.high_watermark, news.records) == (2, b"")


async def test_a_follower_says_where_its_log_begins() -> None:
    """Consumers are not sent to it for what is before that (broker/replication/closest_replica.py)."""
    async with led() as (context, replica):
        append(leader(context), batch(b"a", b"b"))
        later = wanted(offset=1)
        later.log_start_offset = 1
        await replica.fetch(later)
        follower = leader(context).replicas.followers[1]
        assert (follower.log_start_offset, follower.log_end_offset) == (1, 1)


@pytest.mark.parametrize("may_read_from_followers", [False, True])
async def test_a_high_watermark_alone_comes_early_only_if_consumers_read_from_followers(
    may_read_from_followers: bool,
) -> None:
    """Known before the request, or moved while it waits. Else it comes when the request's time is up."""
    settings = {"replica.selector.class": RACK_AWARE} if may_read_from_followers else {}
    async with led(2, settings) as (context, replica):
        await replica.fetch(wanted(0), wanted(1))
        for index in (0, 1):
            append(leader(context, index), batch(b"a"))
        await replica.fetch()
        await replica.fetch(wanted(0, offset=1), wanted(1, offset=1))  # tells where it is, and hears nothing
        waiting_ms = 5 * NEWS_DELAY_MS
        began_ms = context.environment.monotonic_ms()
        answers = await replica.fetch(max_wait_ms=int(waiting_ms))
        took_ms = context.environment.monotonic_ms() - began_ms
        assert [answer.high_watermark for answer in answers] == [1, 1]
        assert (took_ms < waiting_ms / 2) == may_read_from_followers


async def test_a_fetch_waits_for_an_append_and_names_only_the_partition_that_has_it() -> None:
    async with led(100) as (context, replica):
        await replica.fetch(*(wanted(index) for index in range(100)))
        waiting = asyncio.create_task(replica.fetch(max_wait_ms=LONG_MS))
        await asyncio.sleep(0)
        assert not waiting.done()
        append(leader(context, 42), batch(b"a"))
        (answer,) = await waiting
        assert (answer.partition_index, offsets(answer)) == (42, [0])


async def test_a_fetch_response_gathers_appends_of_the_next_loop_turns_up_to_a_limit() -> None:
    async with led() as (context, replica):
        await replica.fetch(wanted())
        waiting = asyncio.create_task(replica.fetch(max_wait_ms=LONG_MS))
        await asyncio.sleep(0)
        for _ in range(3 * GATHERING_TURNS_MAX):
            append(leader(context), batch(b"a"))
            await asyncio.sleep(0)
        (answer,) = await waiting
        assert GATHERING_TURNS_MAX / 2 < len(offsets(answer)) < 2 * GATHERING_TURNS_MAX


@pytest.mark.parametrize(("burst", "answered"), [(1, 1), (2, 2), (4, 5)])
async def test_the_more_has_come_the_longer_an_answer_waits_for_more(burst: int, answered: int) -> None:
    """A single append is answered after a turn of the loop that brings nothing; behind many, some may be idle."""
    async with led() as (context, replica):
        await replica.fetch(wanted())
        waiting = asyncio.create_task(replica.fetch(max_wait_ms=LONG_MS))
        await asyncio.sleep(0)
        for _ in range(burst):
            append(leader(context), batch(b"a"))
        for _ in range(IDLE_TURNS_MAX):
            await asyncio.sleep(0)
        append(leader(context), batch(b"a later one"))
        (answer,) = await waiting
        assert offsets(answer) == list(range(answered))


async def test_without_news_it_is_answered_empty_when_its_time_is_up() -> None:
    async with led() as (_, replica):
        await replica.fetch(wanted())
        assert await replica.fetch(max_wait_ms=20) == []


async def test_the_first_answer_names_every_partition() -> None:
    async with led(3) as (_, replica):
        answers = await replica.fetch(*(wanted(index) for index in range(3)), max_wait_ms=LONG_MS)
        assert [(answer.partition_index, answer.high_watermark) for answer in answers] == [(0, 0), (1, 0), (2, 0)]


async def test_every_fetch_of_a_session_says_that_a_quiet_partition_was_caught_up() -> None:
    """It is quiet for an hour; then something is appended, and before it is fetched the follower is still in sync."""
    async with led() as (context, replica):
        partition = leader(context)
        await replica.fetch(wanted())
        follower = partition.replicas.followers[1]
        follower.last_caught_up_ms -= 3_600_000
        await replica.fetch()
        append(partition, batch(b"a"))
        now_ms = context.environment.monotonic_ms()
        assert partition.replicas.lagging(partition.log.log_end_offset, now_ms, 1_000) == ()


async def test_a_position_where_the_logs_part_does_not_count_and_is_told_where() -> None:
    async with led() as (context, replica):
        partition = leader(context)
        append(partition, batch(b"a", b"b"))
        (answer,) = await replica.fetch(wanted(offset=7, last_epoch=0))
        assert answer.diverging_epoch == EpochEndOffset(epoch=0, end_offset=2)
        assert partition.high_watermark.value == 0
        assert partition.replicas.followers[1].log_end_offset == -1


async def test_where_the_logs_part_nothing_else_is_answered_whatever_is_appended_meanwhile() -> None:
    """What is behind the follower's position must not come before it has cut its log: its batches may fit together."""
    async with led(2) as (context, replica):
        partition = leader(context)
        append(partition, batch(b"a", b"b"))
        append(leader(context, 1), batch(b"read, so that it is looked what the next turns bring"))
        caught_up_ms = partition.replicas.followers[1].last_caught_up_ms
        asking = asyncio.create_task(replica.fetch(wanted(offset=7, last_epoch=0), wanted(1), max_wait_ms=LONG_MS))
        while not asking.done():
            append(partition, batch(b"x"))
            await asyncio.sleep(0)
        answer, _ = await asking
        assert answer.diverging_epoch is not None
        assert (answer.diverging_epoch.epoch, answer.records) == (0, b"")
        end_offset = answer.diverging_epoch.end_offset
        for _ in range(10):
            append(partition, batch(b"y"))
        assert await replica.fetch(max_wait_ms=10) == []
        assert partition.replicas.followers[1].last_caught_up_ms == caught_up_ms
        (again,) = await replica.fetch(wanted(offset=end_offset, last_epoch=0))
        assert offsets(again)[0] == end_offset


async def test_a_past_that_nobody_can_compare_does_not_count() -> None:
    """All that the follower has was deleted here, with the epoch in which it was written: it begins anew."""
    async with led() as (context, replica):
        partition = leader(context)
        append(partition, batch(b"a", b"b"))
        partition.become_leader(1, partition.replicas)
        append(partition, batch(b"c"))
        partition.log.advance_log_start(2)
        told = wanted(offset=2, epoch=1, last_epoch=0)
        told.log_start_offset = 0
        (answer,) = await replica.fetch(told)
        assert (answer.error_code, answer.records) == (ErrorCode.OFFSET_OUT_OF_RANGE, b"")
        assert partition.replicas.followers[1].log_end_offset == -1
        told.log_start_offset = 2
        (answer,) = await replica.fetch(told)
        assert offsets(answer) == [2], "a log that holds nothing has nothing else"


@pytest.mark.parametrize(
    ("offset", "epoch", "code"),
    [(9, 0, "OFFSET_OUT_OF_RANGE"), (0, 5, "UNKNOWN_LEADER_EPOCH"), (0, -1, "UNKNOWN_LEADER_EPOCH")],
)
async def test_errors_are_told_once_and_the_partition_leaves_the_session(offset: int, epoch: int, code: str) -> None:
    async with led() as (context, replica):
        (answer,) = await replica.fetch(wanted(offset=offset, epoch=epoch))
        assert answer.error_code == ErrorCode[code]
        append(leader(context), batch(b"a"))
        assert await replica.fetch(max_wait_ms=10) == []
        (again,) = await replica.fetch(wanted())
        assert offsets(again) == [0]


async def test_lost_leadership_ends_the_wait_with_an_error() -> None:
    async with led() as (context, replica):
        await replica.fetch(wanted())
        waiting = asyncio.create_task(replica.fetch(max_wait_ms=LONG_MS))
        await asyncio.sleep(0)
        leader(context).resign()
        (answer,) = await waiting
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_forgotten_partitions_are_answered_no_more() -> None:
    async with led(2) as (context, replica):
        await replica.fetch(wanted(0), wanted(1))
        await replica.fetch(forgotten=(0,))
        append(leader(context, 0), batch(b"a"))
        append(leader(context, 1), batch(b"b"))
        (answer,) = await replica.fetch(max_wait_ms=LONG_MS)
        assert answer.partition_index == 1
        assert not leader(context, 0).reader.log_watchers


async def test_records_that_do_not_fit_come_in_later_responses_and_partitions_take_turns() -> None:
    async with led(3, {"message.max.bytes": "8000000"}) as (context, replica):
        for index in range(3):
            append(leader(context, index), batch(bytes(6_000_000)))
        seen: list[int] = []
        answers = await replica.fetch(*(wanted(index, max_bytes=8_000_000) for index in range(3)))
        while answers:
            seen += [answer.partition_index for answer in answers if answer.records]
            answers = await replica.fetch(*(wanted(answer.partition_index, offset=1) for answer in answers))
        assert seen == [0, 1, 2]


async def test_a_batch_for_which_an_answer_has_no_room_left_is_in_the_next_one() -> None:
    """Though its follower does not name it: it is where it was. Without another append nobody would have sent it."""
    async with led(2, {"replica.fetch.response.max.bytes": "1000"}) as (context, replica):
        append(leader(context, 0), batch(bytes(600)))
        append(leader(context, 1), batch(bytes(700)))
        answers = await replica.fetch(wanted(0), wanted(1))
        assert [(answer.partition_index, offsets(answer)) for answer in answers] == [(0, [0]), (1, [])]
        later = await replica.fetch(wanted(0, offset=1), max_wait_ms=LONG_MS)
        assert [answer.partition_index for answer in later if offsets(answer)] == [1]


async def test_what_is_cold_in_several_places_is_answered_once_it_is_read() -> None:
    """The index first, then the batches to which it leads: the loop waits for neither, nor does the answer."""
    disk = ColdDisk()
    async with running_broker(disk=disk, brokers=(HERE, OTHER)) as context:
        replica = Replica(context, await make_topic(context, "orders", replicas=(0, 1)))
        partition = leader(context)
        partition.log.config = LogConfig(index_interval_bytes=20_000, segment_bytes=100_000)
        for _ in range(12):
            append(partition, batch(bytes(10_000)))
        await asyncio.sleep(0)
        disk.evict_all(f"{DATA_DIR}/orders-0")
        began_ms = context.environment.monotonic_ms()
        (answer,) = await replica.fetch(wanted(offset=3, max_bytes=25_000), max_wait_ms=LONG_MS)
        assert offsets(answer) == [3, 4]
        assert context.environment.monotonic_ms() - began_ms < PATIENCE_S * 1000 / 2
        assert len(disk.fetched) > 1
        assert disk.waits == []


async def test_a_restarted_follower_begins_again_and_its_former_life_counts_no_more() -> None:
    async with led() as (context, replica):
        partition = leader(context)
        append(partition, batch(b"a"))
        await replica.fetch(wanted(offset=1))
        follower = partition.replicas.followers[1]
        assert follower.log_end_offset == 1
        assert follower.identify(replica.epoch + 10)
        assert follower.log_end_offset == -1
        (answer,) = await replica.fetch(wanted(offset=1))
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert follower.log_end_offset == -1


@pytest.mark.parametrize(
    ("replica_id", "epoch_offset", "code"),
    [(1, 1, "STALE_BROKER_EPOCH"), (1, -1, "STALE_BROKER_EPOCH"), (2, 0, "STALE_BROKER_EPOCH")],
)
async def test_only_registered_brokers_fetch_as_such(replica_id: int, epoch_offset: int, code: str) -> None:
    async with led() as (context, replica):
        epoch = replica.epoch + epoch_offset
        asked = request(wanted(), topic_id=replica.topic_id, session=(0, 0), replica=replica_id, replica_epoch=epoch)
        response = await ask(context, asked, VERSION)
        assert response.error_code == ErrorCode[code]


async def test_only_on_the_listener_of_brokers() -> None:
    async with led() as (context, replica):
        asked = request(wanted(), topic_id=replica.topic_id, session=(0, 0), replica=1, replica_epoch=replica.epoch)
        response = await ask(context, asked, VERSION, listener="PUBLIC")
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_versions_without_a_broker_epoch_are_refused() -> None:
    async with led() as (context, _):
        response = await ask(context, request(wanted(), replica=1), BY_NAME)
        assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("session", "code"),
    [((0, 5), "FETCH_SESSION_ID_NOT_FOUND"), ((-1, 7), "INVALID_FETCH_SESSION_EPOCH")],
)
async def test_a_session_that_is_not_the_one_here_is_refused(session: tuple[int, int], code: str) -> None:
    async with led() as (_, replica):
        await replica.fetch(wanted())
        replica.session = (replica.session[0] if session[0] < 0 else 12345, session[1])
        assert (await replica.response()).error_code == ErrorCode[code]


async def test_a_new_session_ends_the_wait_of_a_request_whose_connection_was_lost() -> None:
    async with led() as (context, replica):
        await replica.fetch(wanted())
        lost = asyncio.create_task(replica.response(max_wait_ms=LONG_MS))
        await asyncio.sleep(0)
        other = Replica(context, replica.topic_id)
        await other.fetch(wanted())
        assert (await lost).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        append(leader(context), batch(b"a"))
        (answer,) = await other.fetch(max_wait_ms=LONG_MS)
        assert offsets(answer) == [0]
        assert len(leader(context).reader.log_watchers) == 1


async def test_who_is_not_assigned_gets_an_error_and_no_records() -> None:
    async with running_broker(brokers=(HERE, OTHER)) as context:
        topic_id = await make_topic(context, "orders")
        append(leader(context), batch(b"a"))
        (answer,) = await Replica(context, topic_id).fetch(wanted())
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert answer.records == b""


# -- throttling (KIP-73) -----------------------------------------------------------------------------------------------

THROTTLED = {"leader.replication.throttled.replicas": "0:0"}
RATE = {"leader.replication.throttled.rate": "100000"}


@asynccontextmanager
async def led_throttled(*, isr: tuple[int, ...] = (0,)) -> AsyncGenerator[tuple[Context, Replica]]:
    """Partition 0 of two is throttled at 100 kB/s, which its first answer of 300 kB exceeds for two seconds."""
    async with running_broker(RATE, brokers=(HERE, OTHER)) as context:
        topic_id = await make_topic(context, "orders", 2, THROTTLED, replicas=(0, 1), isr=isr)
        for index in range(2):
            append(leader(context, index), batch(bytes(300_000)))
            append(leader(context, index), batch(b"next"))
        yield context, Replica(context, topic_id)


async def test_what_is_throttled_waits_until_there_is_room_and_the_rest_does_not() -> None:
    async with led_throttled() as (context, replica):
        clock = context.environment.monotonic_ms
        first = await replica.fetch(wanted(0, max_bytes=300_100), wanted(1, max_bytes=300_100))
        began_ms = clock()
        assert [offsets(answer) for answer in first] == [[0], [0]], "a debt is made by what is there to be sent"
        (other,) = await replica.fetch(wanted(0, 1), wanted(1, 1))
        assert (other.partition_index, offsets(other)) == (1, [1])
        (late,) = await replica.fetch(wanted(1, 2), max_wait_ms=LONG_MS)
        assert (late.partition_index, offsets(late)) == (0, [1])
        assert 1_500 <= clock() - began_ms <= 4_500


async def test_a_follower_that_is_in_sync_is_never_throttled() -> None:
    async with led_throttled(isr=(0, 1)) as (_, replica):
        await replica.fetch(wanted(0, max_bytes=300_100))
        (second,) = await replica.fetch(wanted(0, 1), max_wait_ms=LONG_MS)
        assert offsets(second) == [1]


async def test_a_new_rate_applies_at_once_and_the_first_response_names_what_is_throttled() -> None:
    async with led_throttled() as (context, replica):
        put = {broker_config_key(None): encode_configs({"leader.replication.throttled.rate": "0"})}
        await context.metadata.applied(await context.metadata.store.commit(Txn(put=put)))
        (first,) = await replica.fetch(wanted(0))
        assert (first.high_watermark, offsets(first)) == (2, [])
        waiting = asyncio.create_task(replica.fetch(max_wait_ms=LONG_MS))
        await asyncio.sleep(0)
        assert not waiting.done()
        put = {broker_config_key(None): encode_configs({"leader.replication.throttled.rate": "1000000000"})}
        await context.metadata.applied(await context.metadata.store.commit(Txn(put=put)))
        (second,) = await waiting
        assert offsets(second) == [0, 1]


# -- what waits behind it ----------------------------------------------------------------------------------------------


async def test_a_fetch_that_waits_is_answered_when_another_request_comes_behind_it() -> None:
    async with led() as (context, replica):
        await replica.fetch(wanted())
        requests: list[str] = []
        is_asked = asyncio.Event()

        def has_more() -> bool:
            is_asked.set()
            return bool(requests)

        caller = replica.caller = Caller("PLAINTEXT")
        caller.has_more = has_more
        waiting = asyncio.create_task(replica.fetch(max_wait_ms=LONG_MS))
        await is_asked.wait()
        assert not waiting.done()
        requests.append("another one")
        caller.arrived()
        assert await waiting == []
        assert await replica.fetch(max_wait_ms=LONG_MS) == [], "one that is there already is seen, too"
        requests.clear()
        append(leader(context), batch(b"a"))
        (answer,) = await replica.fetch(max_wait_ms=LONG_MS)
        assert offsets(answer) == [0], "the session goes on"
