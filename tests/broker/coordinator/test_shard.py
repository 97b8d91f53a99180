"""One shard: answers wait until what they depend on is committed, and no longer; what the log refuses never was."""

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from odradek.broker.coordinator.machine import Now, StoredRecord, TransactionBatch, Waiting
from odradek.broker.coordinator.shard import Shard, ShardState
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.markers import Marker, encode_marker
from odradek.broker.log.verifications import Proof
from odradek.broker.replica.partition import Partition
from odradek.protocol.batches.batch import BatchHeader, iterate_batches
from odradek.protocol.batches.compression import Codec
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.coordinator.counters import Counters
from tests.broker.replica.test_partition import PAIR, code_of, follower_at, partition_with


@dataclass
class Options:
    append_linger_ms: int = -1
    commit_timeout_ms: int = 5_000
    compression: Codec = Codec.NONE


class Reloads:
    """Stands for the loading of shards."""

    def __init__(self) -> None:
        self.shards: list[Shard[Counters]] = []

    def __call__(self, shard: Shard[Counters]) -> None:
        self.shards.append(shard)


def shard_of(
    partition: Partition, options: Options | None = None, reload: Reloads | None = None, *, is_loaded: bool = True
) -> Shard[Counters]:
    tasks = partition.host.tasks
    shard = Shard(partition, 0, Counters, options or Options(), tasks, reload or Reloads())
    if is_loaded:
        shard.loaded()
    return shard


async def add(shard: Shard[Counters], name: str, number: int, size_bytes: int = 0) -> int:
    return await shard.ask(lambda machine, waiting, now: machine.add(name, number, waiting, now, size_bytes))


async def read(shard: Shard[Counters], name: str) -> int:
    return await shard.ask(lambda machine, waiting, now: machine.read(name, waiting, now))


async def hold(shard: Shard[Counters], name: str, delay_ms: int) -> int:
    return await shard.ask(lambda machine, waiting, now: machine.hold(name, waiting, delay_ms, now))


async def fail(shard: Shard[Counters]) -> int:
    return await shard.ask(lambda machine, waiting, now: machine.fail(waiting, now))


def nothing() -> None: ...


async def turns(count: int = 5) -> None:
    """So many turns of the loop: everything that waits for nothing has happened."""
    for _ in range(count):
        await asyncio.sleep(0)


def batches(partition: Partition) -> list[int]:
    """How many records each batch of the log has."""
    end_offset = partition.log.log_end_offset
    if not end_offset:
        return []
    found = partition.log.fetch(0, 1 << 20, end_offset, True)
    return [header.record_count for _, header in iterate_batches(found.records)]


@contextmanager
def refusing(partition: Partition, monkeypatch: pytest.MonkeyPatch, code: ErrorCode) -> Generator[None]:
    """The log takes nothing."""

    def refuse(*_: object, **__: object) -> None:
        raise KafkaError(code, "not now")

    with monkeypatch.context() as patch:
        patch.setattr(Partition, "append", refuse)
        yield


# -- answers ---------------------------------------------------------------------------------------------------------


async def test_an_answer_waits_for_its_records_to_be_replicated() -> None:
    partition = partition_with(PAIR)
    shard = shard_of(partition)
    answer = asyncio.ensure_future(add(shard, "a", 3))
    await turns()
    assert partition.log.log_end_offset == 1
    assert not answer.done(), "the follower has nothing yet"
    follower_at(partition, 1, 1)
    assert await asyncio.wait_for(answer, 5) == 3


async def test_a_read_waits_for_what_its_own_entity_wrote_and_for_nobody_elses() -> None:
    partition = partition_with(PAIR)
    shard = shard_of(partition)
    written = asyncio.ensure_future(add(shard, "a", 3))
    await turns()
    assert await asyncio.wait_for(read(shard, "b"), 5) == 0
    of_a = asyncio.ensure_future(read(shard, "a"))
    await turns()
    assert not of_a.done(), "what may still vanish is told to nobody"
    follower_at(partition, 1, 1)
    assert await asyncio.wait_for(of_a, 5) == await written == 3
    assert await asyncio.wait_for(read(shard, "a"), 5) == 3


async def test_what_one_turn_brings_is_appended_together_and_is_never_split() -> None:
    partition = partition_with()
    shard = shard_of(partition)
    assert await asyncio.gather(*(add(shard, name, 1) for name in "abcab")) == [1, 1, 1, 2, 2]
    assert batches(partition) == [5]
    await add(shard, "a", 1)
    assert batches(partition) == [5, 1]


async def test_a_linger_gathers_what_several_turns_bring() -> None:
    partition = partition_with()
    shard = shard_of(partition, Options(append_linger_ms=20))
    first = asyncio.ensure_future(add(shard, "a", 1))
    await turns()
    second = asyncio.ensure_future(add(shard, "b", 1))
    await asyncio.gather(first, second)
    assert batches(partition) == [2]


async def test_a_request_that_the_machine_refuses_writes_nothing() -> None:
    partition = partition_with()
    shard = shard_of(partition)
    assert await code_of(add(shard, "a", 0)) is ErrorCode.INVALID_REQUEST
    assert batches(partition) == []


async def test_who_goes_away_is_not_answered_and_the_records_stay() -> None:
    partition = partition_with(PAIR)
    shard = shard_of(partition)
    gone = asyncio.ensure_future(add(shard, "a", 3))
    await turns()
    gone.cancel()
    await turns()
    follower_at(partition, 1, 1)
    assert await asyncio.wait_for(add_when_replicated(shard, partition), 5) == 4


async def add_when_replicated(shard: Shard[Counters], partition: Partition) -> int:
    answer = asyncio.ensure_future(add(shard, "a", 1))
    await turns()
    follower_at(partition, 1, partition.log.log_end_offset)
    return await answer


# -- appends that fail -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
    ],
)
async def test_what_the_log_refuses_is_undone_with_all_of_its_batch(
    code: ErrorCode, told: ErrorCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = partition_with()
    shard = shard_of(partition)
    await add(shard, "a", 1)
    with refusing(partition, monkeypatch, code):
        failed = [code_of(add(shard, name, 1)) for name in "aab"]
        seen = code_of(read(shard, "a"))
        assert await asyncio.gather(*failed, seen) == [told] * 4, "a read that saw it fails with it"
    assert shard.machine.values == {"a": 1}
    assert await add(shard, "a", 1) == 2


async def test_records_that_are_too_large_are_refused_alone() -> None:
    partition = partition_with()
    shard = shard_of(partition)
    too_large = code_of(add(shard, "b", 1, partition.config.max_message_bytes))
    first, refused, last = await asyncio.gather(add(shard, "a", 1), too_large, add(shard, "c", 1))
    assert (first, refused, last) == (1, ErrorCode.UNKNOWN_SERVER_ERROR, 1)
    assert shard.machine.values == {"a": 1, "c": 1}


async def test_what_builds_on_refused_records_is_refused_with_them() -> None:
    partition = partition_with()
    shard = shard_of(partition)
    too_large = add(shard, "b", 1, partition.config.max_message_bytes)
    asked = too_large, add(shard, "a", 1), add(shard, "b", 1), read(shard, "b")
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert [each.code if isinstance(each, KafkaError) else each for each in told] == [
        ErrorCode.UNKNOWN_SERVER_ERROR,
        1,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ]
    assert shard.machine.values == {"a": 1}
    assert partition.log.log_end_offset == 1, "nothing of b is in the log"
    assert await add(shard, "b", 1) == 1


async def test_what_is_wrong_with_a_transaction_is_told_to_its_producer_alone() -> None:
    """A member of the group that asks meanwhile would take it for its own."""
    partition = partition_with()
    shard = shard_of(partition)

    def in_transaction(machine: Counters, waiting: Waiting[None], now: Now) -> None:
        del now
        machine.outbox.append("a", [StoredRecord(b"a", b"1")], lambda: None, TransactionBatch(7, 0))
        machine.outbox.reply("a", waiting, None)

    asked = shard.ask(in_transaction), read(shard, "a"), add(shard, "a", 1), add(shard, "b", 1)
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert [each.code if isinstance(each, KafkaError) else each for each in told] == [
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        1,
    ]


async def test_what_is_not_committed_in_time_stays_and_only_its_answers_fail() -> None:
    partition = partition_with(PAIR)
    shard = shard_of(partition, Options(commit_timeout_ms=20))
    late, seen = code_of(add(shard, "a", 3)), code_of(read(shard, "a"))
    assert set(await asyncio.gather(late, seen)) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert shard.machine.values == {"a": 3}
    assert await code_of(read(shard, "a")) is ErrorCode.COORDINATOR_NOT_AVAILABLE, "it is not committed yet"
    follower_at(partition, 1, 1)
    assert await asyncio.wait_for(read(shard, "a"), 5) == 3


async def test_too_few_replicas_after_the_append_leave_the_state() -> None:
    partition = partition_with(PAIR, min_insync=2)
    shard = shard_of(partition)
    answer = asyncio.ensure_future(code_of(add(shard, "a", 3)))
    await turns()
    follower_at(partition, 1, 1)
    partition.replicas.isr = (0,)
    assert await answer is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert await read(shard, "a") == 3, "the high watermark has passed it"


# -- the lease -------------------------------------------------------------------------------------------------------


def lose_lease(partition: Partition) -> None:
    """The broker was paused, or is cut off from the metadata store: another one may lead by now."""

    def require_lease() -> None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker is cut off")

    partition.host = replace(partition.host, require_lease=require_lease)


async def test_without_a_lease_nothing_is_told_that_another_broker_may_have_changed() -> None:
    partition = partition_with()
    shard = shard_of(partition)
    assert await add(shard, "a", 3) == 3
    lose_lease(partition)
    assert await code_of(read(shard, "a")) is ErrorCode.NOT_COORDINATOR
    assert await code_of(read(shard, "b")) is ErrorCode.NOT_COORDINATOR
    assert await code_of(add(shard, "a", 0)) is ErrorCode.NOT_COORDINATOR, "nor is anything refused"


async def test_without_a_lease_what_followers_have_in_this_term_is_told() -> None:
    partition = partition_with(PAIR)
    shard = shard_of(partition)
    written = asyncio.ensure_future(add(shard, "a", 3))
    await turns()
    of_a = asyncio.ensure_future(read(shard, "a"))
    await turns()
    lose_lease(partition)
    follower_at(partition, 1, 1)
    assert await asyncio.wait_for(of_a, 5) == await written == 3
    assert await asyncio.wait_for(add_when_replicated(shard, partition), 5) == 4


# -- time ------------------------------------------------------------------------------------------------------------


async def test_the_machine_is_told_when_its_time_has_come() -> None:
    partition = partition_with()
    shard = shard_of(partition)
    await add(shard, "a", 3)
    assert await asyncio.wait_for(hold(shard, "a", 10), 5) == 0
    assert batches(partition) == [1, 1]


# -- states ----------------------------------------------------------------------------------------------------------


async def test_a_shard_that_is_being_loaded_or_cannot_be_answers_nothing() -> None:
    shard = shard_of(partition_with(), is_loaded=False)
    assert await code_of(read(shard, "a")) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    shard.failed("the log is damaged")
    with pytest.raises(KafkaError, match="the log is damaged") as raised:
        await read(shard, "a")
    assert raised.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_the_end_of_leadership_is_told_to_everybody_who_waits() -> None:
    partition = partition_with(PAIR)
    shard = shard_of(partition)
    written = asyncio.ensure_future(code_of(add(shard, "a", 3)))
    held = asyncio.ensure_future(code_of(hold(shard, "b", 60_000)))
    await turns()
    partition.resign()
    shard.end()
    assert set(await asyncio.gather(written, held)) == {ErrorCode.NOT_COORDINATOR}
    assert await code_of(read(shard, "a")) is ErrorCode.NOT_COORDINATOR
    assert shard.state is ShardState.ENDED


async def test_what_is_not_appended_yet_when_leadership_ends_is_told_so() -> None:
    partition = partition_with()
    shard = shard_of(partition)
    answer = asyncio.ensure_future(code_of(add(shard, "a", 3)))
    await asyncio.sleep(0)
    shard.end()
    assert await answer is ErrorCode.NOT_COORDINATOR
    await turns()
    assert batches(partition) == []


async def test_a_machine_that_fails_is_loaded_again(caplog: pytest.LogCaptureFixture) -> None:
    partition, reloads = partition_with(), Reloads()
    shard = shard_of(partition, reload=reloads)
    await add(shard, "a", 3)
    before = asyncio.ensure_future(code_of(add(shard, "b", 1)))
    await asyncio.sleep(0)
    with caplog.at_level(logging.ERROR):
        assert await code_of(fail(shard)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert await before is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "it was not appended, and never will be"
    assert reloads.shards == [shard]
    assert shard.state is ShardState.LOADING
    assert shard.machine.values == {}
    assert "loads its log again" in caplog.text


async def test_compressed_batches_are_written_where_the_option_says_so() -> None:
    partition = partition_with(disk=MemoryDisk())
    shard = shard_of(partition, Options(compression=Codec.GZIP))
    await add(shard, "a", 1)
    [(_, header)] = iterate_batches(partition.log.fetch(0, 1 << 20, 1, True).records)
    assert header.codec is Codec.GZIP


# -- transactions ----------------------------------------------------------------------------------------------------


def headers(partition: Partition) -> list[BatchHeader]:
    found = partition.log.fetch(0, 1 << 20, partition.log.log_end_offset, True)
    return [header for _, header in iterate_batches(found.records)]


async def test_records_of_a_transaction_and_its_marker_stand_in_batches_that_say_so() -> None:
    partition = partition_with()
    shard = shard_of(partition, Options(compression=Codec.GZIP))
    asked = partition.log.producers.verifications.begin(7, 1, -1, 0)
    ours = TransactionBatch(7, 1, proof=Proof(asked, is_coordinators=True))
    marker = TransactionBatch(7, 1, is_marker=True)

    def write(_machine: Counters, _now: Now) -> None:
        shard.append("a", [StoredRecord(b"a", b"1")], nothing)
        shard.append("a", [StoredRecord(b"a", b"2")], nothing, ours)
        shard.append("a", [StoredRecord(*encode_marker(Marker(False, 3)))], nothing, marker)

    shard.do(write)
    await turns()
    plain, records, end = headers(partition)
    assert (plain.producer_id, plain.is_transactional, plain.codec) == (-1, False, Codec.GZIP)
    assert (records.producer_id, records.producer_epoch, records.base_sequence) == (7, 1, -1)
    assert (records.is_transactional, records.is_control, records.codec) == (True, False, Codec.GZIP)
    assert (end.producer_id, end.producer_epoch, end.base_sequence) == (7, 1, -1)
    assert (end.is_transactional, end.is_control, end.codec) == (True, True, Codec.NONE)


# -- what follows a commit ---------------------------------------------------------------------------------------------


async def test_what_follows_a_commit_happens_at_once_where_all_is_committed() -> None:
    partition, happened = partition_with(), list[str]()
    shard = shard_of(partition)
    shard.when_committed("a", lambda: happened.append("nothing was written"))
    assert happened == ["nothing was written"]
    await add(shard, "a", 3)
    shard.when_committed("a", lambda: happened.append("all is"))
    assert happened == ["nothing was written", "all is"]


async def test_what_follows_a_commit_waits_for_it_however_long_that_takes() -> None:
    partition, happened = partition_with(PAIR), list[str]()
    shard = shard_of(partition, Options(commit_timeout_ms=5))
    late = asyncio.ensure_future(add(shard, "a", 3))
    await asyncio.sleep(0)
    shard.when_committed("a", lambda: happened.append("in its turn"))
    await turns()
    shard.when_committed("a", lambda: happened.append("behind it"))
    assert await code_of(late) is ErrorCode.COORDINATOR_NOT_AVAILABLE, "whoever asked is told that it takes too long"
    assert happened == []
    follower_at(partition, 1, 1)
    await turns()
    assert happened == ["in its turn", "behind it"]


async def test_what_follows_a_refused_append_never_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    partition, happened = partition_with(), list[str]()
    shard = shard_of(partition)
    with refusing(partition, monkeypatch, ErrorCode.NOT_ENOUGH_REPLICAS):
        refused = asyncio.ensure_future(add(shard, "a", 1))
        await asyncio.sleep(0)
        shard.when_committed("a", lambda: happened.append("never"))
        assert await code_of(refused) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    await add(shard, "a", 1)
    assert happened == []


@pytest.mark.parametrize("is_deposed", [True, False], ids=["deposed", "loaded again"])
async def test_what_follows_a_commit_never_happens_after_the_shard_has_ended(is_deposed: bool) -> None:
    partition, happened = partition_with(PAIR), list[str]()
    shard = shard_of(partition)
    written = asyncio.ensure_future(add(shard, "a", 1))
    await asyncio.sleep(0)
    shard.when_committed("a", lambda: happened.append("never"))
    await turns()
    if is_deposed:
        partition.resign()
        shard.end()
    else:
        assert await code_of(fail(shard)) is ErrorCode.UNKNOWN_SERVER_ERROR
    await code_of(written)
    if not is_deposed:
        follower_at(partition, 1, 1)
    await turns()
    assert happened == []
