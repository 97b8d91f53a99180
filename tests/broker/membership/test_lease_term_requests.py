"""What a leader that is cut off from the metadata store still does: what epochs protect, and nothing else.

Broker 0 leads, alone in sync; its lease ends when the test says so.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.handling.context import CloseConnection, Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.broker.api.fetching import request as fetch_request
from tests.broker.api.fetching import wanted
from tests.broker.api.producing import produced, request
from tests.broker.replica.gated import GatedDisk
from tests.broker.support import ask, ask_if_answered, batch, make_topic, running_broker

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


@asynccontextmanager
async def cut_off() -> AsyncGenerator[Context]:
    async with running_broker() as context:
        await make_topic(context, "orders")
        (before,) = await produced(context, (0, batch(b"a")), acks=1)
        assert before.error_code == ErrorCode.NONE
        context.member.registration.term.end()
        yield context


async def test_acks_all_is_protected_by_epochs_and_goes_on() -> None:
    async with cut_off() as context:
        (answer,) = await produced(context, (0, batch(b"b")), acks=-1)
        assert answer.error_code == ErrorCode.NONE


async def test_acks_1_is_refused_and_nothing_is_appended() -> None:
    async with cut_off() as context:
        (answer,) = await produced(context, (0, batch(b"b")), acks=1)
        assert answer.error_code == NOT_LEADER
        assert context.partitions.leader("orders", 0).log.log_end_offset == 1


async def test_acks_0_closes_the_connection() -> None:
    async with cut_off() as context:
        with pytest.raises(CloseConnection):
            await ask_if_answered(context, request((0, batch(b"b")), acks=0), 11)


async def test_acks_1_is_not_answered_when_the_lease_ended_while_the_device_was_waited_for() -> None:
    disk = GatedDisk()
    async with running_broker(disk=disk) as context:
        await make_topic(context, "orders", configs={"flush.messages": "1"})
        disk.is_gated = True
        producing = asyncio.ensure_future(produced(context, (0, batch(b"a")), acks=1))
        sync = await disk.next_sync()
        context.member.registration.term.end()
        disk.is_gated = False
        sync.let_go()
        (answer,) = await asyncio.wait_for(producing, 5)
        assert answer.error_code == NOT_LEADER


async def test_consumers_read_nothing() -> None:
    async with cut_off() as context:
        asked = fetch_request(wanted(), topic_id=context.metadata.image.topics["orders"].topic_id)
        response = await ask(context, asked, 17)
        assert response.responses[0].partitions[0].error_code == NOT_LEADER


@pytest.mark.parametrize("timestamp", [-1, -2, 0])
async def test_consumers_find_no_offsets(timestamp: int) -> None:
    async with cut_off() as context:
        asked = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=0,
            topics=[
                ListOffsetsTopic(
                    name="orders",
                    partitions=[ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)],
                )
            ],
        )
        response = await ask(context, asked, 7)
        assert response.topics[0].partitions[0].error_code == NOT_LEADER
        asked.replica_id = 1
        response = await ask(context, asked, 7)
        assert response.topics[0].partitions[0].error_code == ErrorCode.NONE, "followers are fenced by epochs"


async def test_a_renewal_brings_everything_back() -> None:
    async with cut_off() as context:
        context.member.registration.term.renewed(context.environment.lease_clock_ms(), 60_000.0)
        (answer,) = await produced(context, (0, batch(b"b")), acks=1)
        assert answer.error_code == ErrorCode.NONE
