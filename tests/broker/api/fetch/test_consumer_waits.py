"""When a Fetch waits and when it does not, on virtual time: it waits if, and only if, waiting can bring more bytes.

`took_ms` is exact there: 0 for what is answered at once, the request's `max_wait_ms` for what waits in vain.
"""

import asyncio
from collections.abc import Callable, Sequence
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.api.fetch.consumer import SMALLEST_BATCH_BYTES
from odradek.broker.cluster.keys import BrokerState
from odradek.broker.handling.context import Context
from odradek.broker.log.config import LogConfig
from odradek.broker.log.validation import Origin
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_reader import PartitionReader
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.batches.batch import read_header
from odradek.protocol.codec.schema import Buffer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData
from tests.broker.api.fetching import BY_NAME, INITIAL, LARGE, codes, fetched, offsets, request, told, wanted
from tests.broker.log.logs import T0
from tests.broker.log.transactions import data_of, marker_of, verified
from tests.broker.support import HERE, append, ask, batch, make_topic, running_broker
from tests.client.virtual_time import run_virtual

pytestmark = pytest.mark.virtual_time

MAX_WAIT_MS = 1000
ONE = batch(bytes(1000), timestamps_ms=[T0])
SIZE = len(ONE)
COMMITTED = 1


def now_ms() -> float:
    return asyncio.get_running_loop().time() * 1000


async def timed(context: Context, sent: FetchRequest, version: int = BY_NAME) -> tuple[list[PartitionData], float]:
    began_ms = now_ms()
    answers = await asyncio.wait_for(fetched(context, sent, version), 60)
    return answers, round(now_ms() - began_ms, 3)


async def waiting(context: Context, sent: FetchRequest) -> asyncio.Task[tuple[list[PartitionData], float]]:
    """A Fetch of which we know that it has read, and waits."""
    task = asyncio.ensure_future(timed(context, sent))
    await asyncio.sleep(0.1)
    assert not task.done(), task.result()
    return task


async def filled(context: Context, count: int = 10, *, partitions: int = 1) -> Partition:
    """Partition 0 of "orders" with `count` batches of one size."""
    await make_topic(context, "orders", partitions)
    partition = led(context)
    for _ in range(count):
        append(partition, ONE)
    return partition


def led(context: Context, index: int = 0) -> Partition:
    return context.partitions.leader("orders", index)


def with_follower(partition: Partition) -> None:
    """From here on the high watermark waits for a follower."""
    partition.become_leader(partition.leader_epoch + 1, Replicas(0, (0, 1), (0, 1)))
    partition.replicas.followers[1].fetched(partition.log.log_end_offset, now_ms(), partition.log.log_end_offset)


def replicate(partition: Partition, offset: int) -> None:
    """The follower has everything before `offset`."""
    partition.replicas.followers[1].fetched(offset, now_ms(), partition.log.log_end_offset)
    partition.acknowledgements.update()


def many(sent: FetchPartition | None = None, *, min_bytes: int = LARGE, **more: int) -> FetchRequest:
    """A Fetch that wants more than there is."""
    return request(sent or wanted(), max_wait_ms=MAX_WAIT_MS, min_bytes=min_bytes, **more)  # type: ignore[arg-type]


# -- answered at once: the log holds more ---------------------------------------------------------------------------


@pytest.mark.parametrize("isolation_level", [0, COMMITTED])
@pytest.mark.parametrize(
    ("partition_max_bytes", "max_bytes", "min_bytes", "count"),
    [
        pytest.param(3 * SIZE, LARGE, LARGE, 3, id="the partition's limit"),
        pytest.param(3 * SIZE + 1, LARGE, LARGE, 3, id="whole batches"),
        pytest.param(4 * SIZE - 1, LARGE, 4 * SIZE - 1, 3, id="whole batches, one byte before the next"),
        pytest.param(1, LARGE, LARGE, 1, id="one batch above the limit"),
        pytest.param(LARGE, 3 * SIZE, LARGE, 3, id="the request's limit, below min_bytes"),
        pytest.param(LARGE, 4 * SIZE - 1, 4 * SIZE - 1, 3, id="the request's limit, whole batches"),
        pytest.param(LARGE, 10 * SIZE, 2 * LARGE, 10, id="all there is, which is the request's limit"),
    ],
)
async def test_what_a_limit_cut_is_answered_at_once(
    partition_max_bytes: int, max_bytes: int, min_bytes: int, count: int, isolation_level: int
) -> None:
    async with running_broker() as context:
        await filled(context)
        sent = many(
            wanted(max_bytes=partition_max_bytes),
            max_bytes=max_bytes,
            min_bytes=min_bytes,
            isolation_level=isolation_level,
        )
        (answer,), took_ms = await timed(context, sent)
    assert (offsets(answer), took_ms) == (list(range(count)), 0)


async def test_the_brokers_own_limit_counts_like_the_requests() -> None:
    async with running_broker({"fetch.max.bytes": str(4 * SIZE)}) as context:
        await filled(context, 4)
        (answer,), took_ms = await timed(context, many())
    assert (offsets(answer), took_ms) == ([0, 1, 2, 3], 0)


async def test_the_end_of_an_older_segment_is_no_reason_to_wait() -> None:
    async with running_broker() as context:
        partition = await filled(context, 0)
        partition.log.config = LogConfig(segment_bytes=4 * SIZE)
        for _ in range(10):
            append(partition, ONE)
        assert partition.log.base_offsets == [0, 4, 8]
        older, older_ms = await timed(context, many(wanted(offset=1)))
        newest, newest_ms = await timed(context, many(wanted(offset=8)))
    assert (offsets(older[0]), older_ms) == ([1, 2, 3], 0)
    assert (offsets(newest[0]), newest_ms) == ([8, 9], MAX_WAIT_MS)


async def test_one_partition_of_which_more_is_there_is_enough() -> None:
    async with running_broker() as context:
        await filled(context, partitions=2)
        sent = request(wanted(1), wanted(0, max_bytes=2 * SIZE), min_bytes=LARGE, max_wait_ms=MAX_WAIT_MS)
        answers, took_ms = await timed(context, sent)
    assert ([offsets(answer) for answer in answers], took_ms) == ([[], [0, 1]], 0)


async def test_a_backlog_is_read_without_a_wait_but_the_last() -> None:
    """The input of the report: batches of 16 KB, and limits of a mebibyte that no number of them fills."""
    async with running_broker() as context:
        partition = await filled(context, 0)
        for _ in range(200):
            append(partition, batch(bytes(16_000)))
        offset, began_ms = 0, now_ms()
        while offset < 200:
            (answer,) = await fetched(context, many(wanted(offset=offset, max_bytes=LARGE)))
            offset = offsets(answer)[-1] + 1
        took_ms = now_ms() - began_ms
    assert took_ms == pytest.approx(MAX_WAIT_MS), "what is left at the end is less than min_bytes"


# -- waits: this reader may see no more -----------------------------------------------------------------------------


@pytest.mark.parametrize("isolation_level", [0, COMMITTED])
@pytest.mark.parametrize("min_bytes", [1, LARGE])
async def test_a_high_watermark_that_stands_still_below_the_log_end_is_polled_once_a_wait(
    min_bytes: int, isolation_level: int
) -> None:
    """A reader at it is answered empty once each `max_wait_ms`, whatever is appended behind it."""
    async with running_broker() as context:
        partition = await filled(context)
        with_follower(partition)
        for _ in range(5):
            append(partition, ONE)
        count, began_ms = 0, now_ms()
        while now_ms() < began_ms + 20 * MAX_WAIT_MS:
            sent = many(wanted(offset=10), min_bytes=min_bytes, isolation_level=isolation_level)
            task = await waiting(context, sent)
            append(partition, ONE)
            (answer,), took_ms = await task
            assert (offsets(answer), took_ms, answer.high_watermark) == ([], MAX_WAIT_MS, 10)
            count += 1
    assert count == 20


async def test_a_reader_below_that_high_watermark_waits_with_what_it_has() -> None:
    async with running_broker() as context:
        partition = await filled(context)
        with_follower(partition)
        append(partition, ONE)
        (answer,), took_ms = await timed(context, many(wanted(offset=5)))
    assert (offsets(answer), took_ms) == ([5, 6, 7, 8, 9], MAX_WAIT_MS)


async def test_an_open_transaction_is_polled_once_a_wait() -> None:
    async with running_broker() as context:
        partition = await filled(context)
        append_any(partition, data_of(1, 0, bytes(1000)))
        for offset, found in ((5, [5, 6, 7, 8, 9]), (10, [])):
            task = await waiting(context, many(wanted(offset=offset), isolation_level=COMMITTED))
            append(partition, ONE)
            (answer,), took_ms = await task
            assert (offsets(answer), took_ms, answer.last_stable_offset) == (found, MAX_WAIT_MS, 10)


async def test_without_a_byte_nothing_is_answered_before_its_time() -> None:
    """A request may ask for no bytes at all: then one batch is an answer, and nothing is none."""
    async with running_broker() as context:
        await filled(context)
        (answer,), took_ms = await timed(context, many(wanted(offset=10, max_bytes=0), max_bytes=0))
        assert (offsets(answer), took_ms) == ([], MAX_WAIT_MS)
        (answer,), took_ms = await timed(context, many(wanted(offset=9, max_bytes=0), max_bytes=0))
        assert (offsets(answer), took_ms) == ([9], 0)


# -- a wait ends when its condition has come true -------------------------------------------------------------------


async def ended(task: asyncio.Task[tuple[list[PartitionData], float]]) -> PartitionData:
    """The answer, which came 100 ms after the request: when the test did something."""
    (answer,), took_ms = await task
    assert took_ms == 100
    return answer


async def test_by_an_append_that_the_limit_keeps_out() -> None:
    async with running_broker() as context:
        partition = await filled(context, 2)
        task = await waiting(context, many(wanted(max_bytes=3 * SIZE - 1)))
        append(partition, ONE)
        assert offsets(await ended(task)) == [0, 1]


async def test_by_an_append_that_fills_the_limit() -> None:
    async with running_broker() as context:
        partition = await filled(context, 2)
        task = await waiting(context, many(wanted(max_bytes=3 * SIZE)))
        append(partition, ONE)
        assert offsets(await ended(task)) == [0, 1, 2]


async def test_by_an_append_above_the_limit_of_a_partition_that_was_empty() -> None:
    async with running_broker() as context:
        partition = await filled(context, 0)
        task = await waiting(context, many(wanted(max_bytes=100)))
        append(partition, ONE)
        assert offsets(await ended(task)) == [0]


async def test_by_a_new_segment() -> None:
    async with running_broker() as context:
        partition = await filled(context, 2)
        task = await waiting(context, many())
        partition.log.roll(0)
        append(partition, ONE)
        assert offsets(await ended(task)) == [0, 1]


async def test_by_a_high_watermark_that_passes_what_was_appended_before_the_request() -> None:
    """Most of it was in the log already; what comes together with the high watermark is a little more."""
    async with running_broker() as context:
        partition = await filled(context)
        with_follower(partition)
        for _ in range(10):
            append(partition, ONE)
        task = await waiting(context, many(wanted(offset=10), min_bytes=8 * SIZE))
        append(partition, batch(b"little"))
        replicate(partition, 21)
        assert offsets(await ended(task)) == list(range(10, 21))


async def test_by_the_marker_of_a_large_transaction() -> None:
    async with running_broker() as context:
        partition = await filled(context, 0)
        for number in range(10):
            append_any(partition, data_of(1, number, bytes(1000)))
        task = await waiting(context, many(isolation_level=COMMITTED, min_bytes=8 * SIZE))
        append_any(partition, marker_of(1, is_abort=False))
        assert offsets(await ended(task)) == list(range(11))


async def test_by_lost_leadership_after_an_append_that_nobody_may_read() -> None:
    async with running_broker() as context:
        partition = await filled(context)
        with_follower(partition)
        task = await waiting(context, many(wanted(offset=10)))
        append(partition, ONE)
        partition.resign()
        assert (await ended(task)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_by_a_log_start_that_passes_the_reader() -> None:
    async with running_broker() as context:
        partition = await filled(context)
        with_follower(partition)
        append(partition, ONE)
        task = await waiting(context, many(wanted(offset=5)))
        append(partition, ONE)
        await context.partitions.delete_records(partition, 8)
        (answer,), _ = await task
        assert answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_by_a_log_that_is_cut_before_the_reader() -> None:
    """A consumer of a follower, which has to forget what an unclean election lost."""
    async with running_broker(brokers=(HERE, BrokerState(1, dict(HERE.endpoints)))) as context:
        partition = await filled(context)
        partition.become_follower(1, partition.leader_epoch + 1)
        task = await waiting(context, many(wanted(offset=10)))
        partition.log.truncate_to(5)
        partition.truncated()
        assert (await ended(task)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_waiting_fetch_reads_only_now_and_then_while_the_high_watermark_advances() -> None:
    """Each step could be enough at first; later ones are counted, or a large `min_bytes` reads all of it each time."""
    async with running_broker() as context:
        partition = await filled(context)
        with_follower(partition)
        append(partition, ONE)
        task = await waiting(context, many(wanted(offset=10), min_bytes=50 * SIZE))
        readings = 0

        def counted(*args: object, **more: object) -> object:
            nonlocal readings
            readings += 1
            return fetch(*args, **more)

        fetch: Callable[..., object] = PartitionReader[Partition].fetch
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PartitionReader, "fetch", counted)
            for step in range(49):
                append(partition, ONE)
                replicate(partition, 11 + step)
                await asyncio.sleep(0.001)
            assert not task.done()
            replicate(partition, 60)
            (answer,), _ = await task
    assert offsets(answer) == list(range(10, 60))
    assert readings < 8


# -- sessions -------------------------------------------------------------------------------------------------------


class Session:
    """A consumer's session (KIP-227): what it is not told it keeps."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.session = (0, INITIAL)

    async def fetch(self, *partitions: FetchPartition, **more: int) -> tuple[list[int], float]:
        """The indexes of the partitions answered, and how long it took."""
        began_ms = now_ms()
        sent = request(*partitions, session=self.session, max_wait_ms=MAX_WAIT_MS, **more)  # type: ignore[arg-type]
        response = await ask(self.context, sent, BY_NAME)
        self.session = (response.session_id, self.session[1] + 1)
        return [answer.partition_index for answer in told(response)], round(now_ms() - began_ms, 3)


async def test_in_a_session_partitions_that_are_not_named_count_too() -> None:
    async with running_broker() as context:
        partition = await filled(context, partitions=2)
        session = Session(context)
        assert await session.fetch(wanted(0, 10), wanted(1), min_bytes=LARGE) == ([0, 1], MAX_WAIT_MS)
        assert await session.fetch(min_bytes=LARGE) == ([], MAX_WAIT_MS)
        assert await session.fetch(wanted(0, 0, max_bytes=2 * SIZE), min_bytes=LARGE) == ([0], 0)
        assert await session.fetch(min_bytes=LARGE) == ([0], 0), "it may ask again where it stands"
        append(partition, ONE)
        assert await session.fetch(wanted(0, 11), min_bytes=LARGE) == ([0], MAX_WAIT_MS), "a new high watermark"


async def test_a_partition_added_to_a_session_waits_like_the_others() -> None:
    async with running_broker() as context:
        await filled(context, partitions=3)
        session = Session(context)
        await session.fetch(wanted(1))
        assert await session.fetch(wanted(0, 0, max_bytes=SIZE), min_bytes=LARGE) == ([0], 0)
        assert await session.fetch(wanted(0, 10), wanted(2), min_bytes=LARGE) == ([2], MAX_WAIT_MS)
        task = asyncio.ensure_future(session.fetch(min_bytes=SIZE))
        await asyncio.sleep(0.1)
        append(led(context, 2), ONE)
        assert await task == ([2], 100)


async def test_the_isolation_of_a_request_decides_in_a_session() -> None:
    async with running_broker() as context:
        partition = await filled(context)
        append_any(partition, data_of(1, 0, bytes(1000)))
        session = Session(context)
        assert await session.fetch(wanted(0, 10), isolation_level=COMMITTED) == ([0], MAX_WAIT_MS)
        assert await session.fetch(isolation_level=COMMITTED) == ([], MAX_WAIT_MS)
        assert await session.fetch() == ([0], 0)
        assert await session.fetch(isolation_level=COMMITTED) == ([], MAX_WAIT_MS)


# -- in general -----------------------------------------------------------------------------------------------------


def append_any(partition: Partition, data: bytes) -> None:
    """Appends what only a coordinator could have let in."""
    proof = verified(partition.log.producers, read_header(data))
    partition.append(data, 1, 0, origin=Origin.COORDINATOR, proof=proof)


def size_of(records: Buffer | None) -> int:
    return len(records or b"")


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    segment_bytes=st.integers(150, 600),
    limit=st.integers(0, 700),
    max_bytes=st.integers(0, 700),
    min_bytes=st.integers(1, 1000),
    data=st.data(),
)
def test_an_answer_waits_if_and_only_if_waiting_can_bring_more_bytes(
    sizes: Sequence[int], segment_bytes: int, limit: int, max_bytes: int, min_bytes: int, data: st.DataObject
) -> None:
    """What waiting can bring is tried: all becomes readable, and the smallest batches that there are follow, in the
    same segment (of which nobody can tell now what it may grow to)."""
    high_watermark = data.draw(st.integers(0, len(sizes)), "high watermark")
    offset = data.draw(st.integers(0, len(sizes)), "offset")

    async def check() -> None:
        async with running_broker() as context:
            partition = await filled(context, 0)
            partition.log.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=0)
            with_follower(partition)
            for size in sizes:
                append(partition, batch(bytes(size)))
            replicate(partition, high_watermark)
            limits = {"max_bytes": max_bytes, "min_bytes": min_bytes}
            sent = many(wanted(offset=offset, max_bytes=limit), **limits)
            (answer,), took_ms = await timed(context, sent)
            partition.log.config = LogConfig()
            for _ in range(ceil(700 / SMALLEST_BATCH_BYTES) + 1):
                append(partition, batch(b""))
            replicate(partition, partition.log.log_end_offset)
            (later,), _ = await timed(context, many(wanted(offset=offset, max_bytes=limit), **limits))
            has, could_have = size_of(answer.records), size_of(later.records)
            is_enough = has >= min(min_bytes, max(1, max_bytes))
            assert codes([answer]) == [0]
            assert took_ms == (0 if is_enough or (has and has == could_have) else MAX_WAIT_MS)

    run_virtual(check())


def test_no_batch_is_smaller_than_the_smallest() -> None:
    assert len(batch(b"")) == SMALLEST_BATCH_BYTES
