"""`AppendTicket`: what an append has to wait for, and what ends all hope of it, waited for or only asked."""

import asyncio

import pytest

from odradek.broker.replica.acknowledgements import ACKS_ALL
from odradek.broker.replica.append_ticket import AppendTicket, outcomes
from odradek.broker.replica.replicas import Replicas
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.replica.gated import EACH, GatedDisk, led
from tests.broker.replica.test_partition import PAIR, code_of, follower_at, partition_with
from tests.broker.support import batch

LONG_MS = 10_000.0


class HandLease:
    """A broker's place in its cluster, which the test takes away."""

    is_lost = False

    def require(self) -> None:
        if self.is_lost:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "cut off from the metadata store")


def code_when_asked(ticket: AppendTicket) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        ticket.is_acknowledged()
    return raised.value.code


async def test_with_acks_0_and_1_an_append_is_acknowledged_at_once() -> None:
    partition = partition_with(PAIR)
    for acks in (0, 1):
        ticket = partition.append(batch(b"a"), acks, 0)
        assert not ticket.waits
        assert ticket.is_acknowledged()
        await ticket.acknowledged(0)


async def test_with_acks_all_it_is_when_the_followers_have_it() -> None:
    partition = partition_with(PAIR)
    ticket = partition.append(batch(b"a", b"b"), ACKS_ALL, 0)
    waiting = asyncio.ensure_future(ticket.acknowledged(LONG_MS))
    follower_at(partition, 1, 1)
    assert not ticket.is_acknowledged()
    follower_at(partition, 1, 2)
    assert ticket.is_acknowledged()
    await asyncio.wait_for(waiting, 5)


async def test_several_batches_have_one_ticket_which_is_that_of_the_last() -> None:
    partition = partition_with(PAIR)
    ticket = partition.append_all([batch(b"a"), batch(b"b", b"c")], ACKS_ALL, 0)
    assert (ticket.appended.base_offset, ticket.appended.last_offset) == (0, 2)
    follower_at(partition, 1, 1)
    assert not ticket.is_acknowledged()
    follower_at(partition, 1, 3)
    assert ticket.is_acknowledged()


async def test_a_term_that_ends_fails_it_even_if_this_broker_leads_again() -> None:
    partition = partition_with(PAIR)
    ticket, other = (partition.append(batch(b"a"), ACKS_ALL, 0) for _ in range(2))
    waiting = asyncio.ensure_future(ticket.acknowledged(LONG_MS))
    await asyncio.sleep(0)
    partition.become_follower(1, 1)
    partition.become_leader(2, Replicas(0, PAIR, (0,)))
    follower_at(partition, 1, 2)
    assert partition.high_watermark.value == 2
    assert await code_of(waiting) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await code_of(ticket.acknowledged(LONG_MS)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_when_asked(other) is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_who_only_asks_is_told_of_the_failure_once() -> None:
    partition = partition_with(PAIR)
    ticket = partition.append(batch(b"a"), ACKS_ALL, 0)
    partition.resign()
    assert code_when_asked(ticket) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert not ticket.is_acknowledged()


async def test_too_few_replicas_after_the_append_fail_it() -> None:
    partition = partition_with(PAIR, min_insync=2)
    ticket, other = (partition.append(batch(b"a"), ACKS_ALL, 0) for _ in range(2))
    follower_at(partition, 1, 2)
    partition.replicas.update(PAIR, (0,), (), 0.0)
    assert await code_of(ticket.acknowledged(LONG_MS)) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert code_when_asked(other) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


async def test_a_device_that_takes_nothing_fails_it() -> None:
    disk = GatedDisk()
    async with led(EACH, disk) as partition:
        disk.errors = [OSError("no device")]
        ticket, other = (partition.append(batch(b"a"), 1, 0) for _ in range(2))
        assert ticket.waits
        assert not ticket.is_acknowledged()
        assert await code_of(ticket.acknowledged(LONG_MS)) is ErrorCode.KAFKA_STORAGE_ERROR
        assert code_when_asked(other) is ErrorCode.KAFKA_STORAGE_ERROR


async def test_without_a_lease_only_what_others_have_is_acknowledged() -> None:
    lease = HandLease()
    async with led(EACH, GatedDisk(), require_lease=lease.require) as partition:
        leader_only, everybody = (partition.append(batch(b"a"), acks, 0) for acks in (1, ACKS_ALL))
        lease.is_lost = True
        assert await code_of(leader_only.acknowledged(LONG_MS)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        await everybody.acknowledged(LONG_MS)
        with pytest.raises(KafkaError, match="cut off"):
            partition.append(batch(b"a"), 1, 0)
        assert partition.append(batch(b"a"), ACKS_ALL, 0).appended.base_offset == 2


async def test_a_timeout_is_no_failure_for_good() -> None:
    partition = partition_with(PAIR)
    ticket = partition.append(batch(b"a"), ACKS_ALL, 0)
    assert await code_of(ticket.acknowledged(1)) is ErrorCode.REQUEST_TIMED_OUT
    follower_at(partition, 1, 1)
    assert ticket.is_acknowledged()


async def test_tickets_of_several_partitions_have_one_deadline_and_an_outcome_each() -> None:
    partitions = [partition_with(PAIR) for _ in range(4)]
    tickets = [partition.append(batch(b"a"), ACKS_ALL, 0) for partition in partitions]
    waiting = asyncio.ensure_future(outcomes(tickets, 200, partitions[0].host.environment))
    await asyncio.sleep(0)
    follower_at(partitions[0], 1, 1)
    partitions[2].resign()
    follower_at(partitions[3], 1, 1)
    errors = [error and error.code for error in await asyncio.wait_for(waiting, 5)]
    assert errors == [None, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER, None]
