"""A partition as leader and as follower, and from one to the other: what is kept, what is told, what begins anew."""

from dataclasses import replace

import pytest

from odradek.broker.cluster.keys import PartitionState
from odradek.broker.replica.partition import Partition
from odradek.broker.replica.partition_listener import Alone
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.replica.test_partition import TRIO, follower_at, parked, partition_with
from tests.broker.support import append, batch

TOPIC_ID = bytes(range(16))


class Telling(Alone):
    """A listener that allows one broker, or all, into in-sync sets, and keeps what it was told."""

    def __init__(self, allowed: tuple[int, int] | None = None) -> None:
        self.allowed = allowed
        self.reported: list[Partition] = []

    def isr_outdated(self, partition: Partition) -> None:
        self.reported.append(partition)

    def may_join(self, broker_id: int, broker_epoch: int) -> bool:
        return self.allowed in (None, (broker_id, broker_epoch))


STATE = PartitionState(TOPIC_ID, TRIO, TRIO, 0, revision=10)


def fetched(partition: Partition, broker_id: int, broker_epoch: int, offset: int) -> ErrorCode:
    try:
        partition.follower_fetched(broker_id, broker_epoch, offset)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


# -- leading -----------------------------------------------------------------------------------------------------------


async def test_only_replicas_are_followers_and_only_in_their_present_life() -> None:
    partition = partition_with(TRIO)
    append(partition, batch(b"a"))
    assert fetched(partition, 1, 50, 1) == ErrorCode.NONE
    assert fetched(partition, 1, 49, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetched(partition, 9, 50, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetched(partition, 0, 50, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.high_watermark.value == 0
    assert fetched(partition, 2, 51, 1) == ErrorCode.NONE
    assert partition.high_watermark.value == 1


async def test_a_returning_follower_holds_the_high_watermark_until_it_has_fetched_again() -> None:
    partition = partition_with(TRIO)
    append(partition, batch(b"a"))
    for broker_id in (1, 2):
        fetched(partition, broker_id, 50, 1)
    append(partition, batch(b"b"))
    fetched(partition, 1, 50, 2)
    fetched(partition, 2, 60, 0)
    assert partition.high_watermark.value == 1
    fetched(partition, 2, 60, 2)
    assert partition.high_watermark.value == 2


async def test_who_has_come_far_enough_is_reported_and_nobody_else() -> None:
    listener = Telling()
    partition = partition_with(TRIO, isr=(0, 1), listener=listener)
    reported = listener.reported
    append(partition, batch(b"a", b"b"))
    partition.high_watermark.advance(1)
    fetched(partition, 2, 50, 0)
    assert not reported
    fetched(partition, 2, 50, 1)
    assert reported == [partition]


async def test_below_the_start_of_its_epoch_nobody_joins_however_low_the_high_watermark() -> None:
    partition = partition_with(TRIO, isr=(0, 1))
    append(partition, batch(b"a", b"b"))
    partition.become_leader(1, Replicas(0, TRIO, (0, 1), now_ms=partition.host.environment.monotonic_ms()))
    assert (partition.high_watermark.value, partition.role.epoch_start_offset) == (0, 2)
    partition.learn(replace(STATE, isr=(0, 1), leader_epoch=1))
    fetched(partition, 2, 50, 1)
    assert partition.wanted_isr() is None
    fetched(partition, 2, 50, 2)
    assert partition.wanted_isr() == TRIO


async def test_wanted_is_nothing_of_another_epoch_or_for_who_does_not_lead() -> None:
    partition = partition_with(TRIO, isr=(0, 1))
    fetched(partition, 2, 50, 0)
    assert partition.wanted_isr() is None, "nothing is stored as far as it knows"
    partition.learn(replace(STATE, isr=(0, 1), leader_epoch=3))
    assert partition.wanted_isr() is None
    partition.become_follower(1, 4)
    assert partition.wanted_isr() is None


async def test_what_the_cluster_does_not_allow_is_not_wanted() -> None:
    partition = partition_with(TRIO, isr=(0,), listener=Telling(allowed=(2, 60)))
    partition.learn(replace(STATE, isr=(0,)))
    fetched(partition, 1, 50, 0)
    fetched(partition, 2, 60, 0)
    assert partition.wanted_isr() == (0, 2)


async def test_news_that_are_older_than_what_is_known_are_none() -> None:
    partition = partition_with(TRIO)
    partition.learn(replace(STATE, isr=(0, 1), revision=20))
    partition.learn(replace(STATE, revision=19))
    assert partition.replicas.isr == (0, 1)
    assert partition.state is not None
    assert partition.state.revision == 20


async def test_a_smaller_in_sync_set_that_is_learned_moves_the_high_watermark() -> None:
    partition = partition_with(TRIO)
    append(partition, batch(b"a"))
    follower_at(partition, 1, 1)
    waiting = await parked(partition, 0)
    partition.learn(replace(STATE, isr=(0, 1)))
    assert partition.high_watermark.value == 1
    await waiting


# -- from leader to follower and back ----------------------------------------------------------------------------------


async def test_who_becomes_a_follower_tells_those_who_wait() -> None:
    partition = partition_with(TRIO)
    append(partition, batch(b"a"))
    waiting = await parked(partition, 0)
    partition.become_follower(1, 1)
    with pytest.raises(KafkaError) as raised:
        await waiting
    assert raised.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetched(partition, 2, 50, 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(KafkaError):
        append(partition, batch(b"b"))


async def test_a_follower_knows_as_much_as_it_has_and_never_less_than_before() -> None:
    partition = partition_with(TRIO)
    append(partition, batch(b"a", b"b"))
    partition.become_follower(1, 1)
    partition.replicated_up_to(1)
    assert partition.high_watermark.value == 1
    partition.replicated_up_to(0)
    assert partition.high_watermark.value == 1
    partition.replicated_up_to(99)
    assert partition.high_watermark.value == 2, "what it does not have it does not know"


async def test_a_log_that_is_cut_takes_the_high_watermark_with_it() -> None:
    partition = partition_with(TRIO)
    append(partition, batch(b"a"))
    append(partition, batch(b"b"))
    partition.become_follower(1, 1)
    partition.replicated_up_to(2)
    partition.log.truncate_to(1)
    partition.truncated()
    assert partition.high_watermark.value == 1


async def test_a_log_that_begins_anew_behind_the_high_watermark_takes_it_along() -> None:
    partition = partition_with(TRIO)
    partition.become_follower(1, 1)
    partition.log.truncate_fully_and_start_at(37)
    partition.truncated()
    assert partition.high_watermark.value == 37


async def test_a_leader_again_goes_on_from_what_it_knew_and_asks_its_followers_anew() -> None:
    partition = partition_with(TRIO)
    append(partition, batch(b"a", b"b"))
    partition.become_follower(1, 1)
    partition.replicated_up_to(1)
    partition.become_leader(2, Replicas(0, TRIO, TRIO))
    assert partition.high_watermark.value == 1
    follower_at(partition, 1, 2)
    assert partition.high_watermark.value == 1
    follower_at(partition, 2, 2)
    assert partition.high_watermark.value == 2
