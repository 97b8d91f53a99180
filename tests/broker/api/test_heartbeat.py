"""Heartbeat: a member stays, and hears of rebalances, in every version; each refusal by its error."""

import asyncio

import pytest

from odradek.broker.coordinator.shard import ShardState
from odradek.protocol.errors import ErrorCode
from tests.broker.groups import Member, eventually, generation, loaded, running_groups

VERSIONS = range(5)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_member_of_the_generation_is_answered_without_an_error(version: int) -> None:
    async with running_groups() as context:
        member = Member(context)
        await member.join()
        assert await member.heartbeat(version) is ErrorCode.NONE, "it knows its generation, and not its assignment"
        await member.sync({})
        assert await member.heartbeat(version) is ErrorCode.NONE


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_and_when_is_checked(version: int) -> None:
    async with running_groups() as context:
        member = Member(context)
        assert await member.heartbeat(version) is ErrorCode.UNKNOWN_MEMBER_ID, "there is no group"
        await generation(member)
        member.generation = 2
        assert await member.heartbeat(version) is ErrorCode.ILLEGAL_GENERATION
        member.generation, member_id, member.member_id = 1, member.member_id, "nobody"
        assert await member.heartbeat(version) is ErrorCode.UNKNOWN_MEMBER_ID
        member.member_id = member_id
        await member.leave()
        assert await member.heartbeat(version) is ErrorCode.UNKNOWN_MEMBER_ID, "the group is empty"
        assert await Member(context, "").heartbeat(version) is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", [3, 4])
async def test_a_static_member_that_was_replaced_is_fenced(version: int) -> None:
    async with running_groups() as context:
        before, after = Member(context, instance_id="till-1"), Member(context, instance_id="till-1")
        await generation(before)
        await after.join()
        assert await before.heartbeat(version) is ErrorCode.FENCED_INSTANCE_ID


async def test_a_rebalance_is_told_and_the_session_goes_on() -> None:
    async with running_groups() as context:
        alice, bob = Member(context), Member(context)
        await generation(alice)
        joining = asyncio.ensure_future(bob.join())
        await eventually(alice.heartbeat, ErrorCode.REBALANCE_IN_PROGRESS)
        assert await alice.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        await asyncio.wait_for(asyncio.gather(alice.join(), joining), 5)
        assert await alice.heartbeat() is ErrorCode.NONE


async def test_who_is_silent_for_its_session_is_removed() -> None:
    async with running_groups() as context:
        member = Member(context, session_timeout_ms=20)
        await generation(member)
        await eventually(member.heartbeat, ErrorCode.UNKNOWN_MEMBER_ID, every_ms=40)


async def test_while_the_group_is_loaded_a_heartbeat_is_no_error_as_in_kafka() -> None:
    async with running_groups() as context:
        member = Member(context)
        await generation(member)
        for shard in context.groups.all:
            shard.state = ShardState.LOADING
        assert await member.heartbeat() is ErrorCode.NONE
        assert (await member.sync()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        for shard in context.groups.all:
            shard.state = ShardState.ACTIVE
        await loaded(context)
        context.groups.stop()
        assert await member.heartbeat() is ErrorCode.NOT_COORDINATOR
