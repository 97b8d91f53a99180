"""SyncGroup: what the leader assigns is what each member gets, in every version; each refusal by its error."""

import asyncio

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tests.broker.groups import GROUP, Member, eventually, generation, running_groups
from tests.broker.support import ask


@pytest.mark.parametrize("version", range(6))
async def test_the_leader_assigns_to_itself(version: int) -> None:
    async with running_groups() as context:
        member = Member(context)
        await member.join()
        answer = await member.sync({member.member_id: b"all"}, version)
        assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"all")
        expected = ("consumer", "range") if version >= 5 else (None, None)
        assert (answer.protocol_type, answer.protocol_name) == expected
        again = await member.sync(version=version)
        assert again.assignment == b"all", "once the group is stable everybody is told at once"


async def test_followers_wait_for_the_leader_and_who_was_forgotten_gets_nothing() -> None:
    async with running_groups() as context:
        alice, bob = Member(context), Member(context)
        await generation(alice, bob)
        await asyncio.gather(alice.join(), bob.join())
        waiting = asyncio.ensure_future(bob.sync())
        await alice.heartbeat()  # which comes behind it
        assert not waiting.done()
        await alice.sync({alice.member_id: b"all", "nobody": b"lost"})
        answer = await asyncio.wait_for(waiting, 5)
        assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"")


def refused(answer: SyncGroupResponse) -> ErrorCode:
    assert (answer.assignment, answer.protocol_type, answer.protocol_name) == (b"", None, None)
    return ErrorCode(answer.error_code)


async def test_a_group_that_there_is_not_has_no_members() -> None:
    async with running_groups() as context:
        for version in range(6):
            assert refused(await Member(context).sync(version=version)) is ErrorCode.UNKNOWN_MEMBER_ID


async def test_who_and_when_is_checked() -> None:
    async with running_groups() as context:
        member = Member(context)
        await generation(member)
        member.generation = 2
        assert refused(await member.sync()) is ErrorCode.ILLEGAL_GENERATION
        member.generation, member.member_id = 1, "nobody"
        assert refused(await member.sync()) is ErrorCode.UNKNOWN_MEMBER_ID
        assert refused(await Member(context, "").sync()) is ErrorCode.INVALID_GROUP_ID


async def test_a_static_member_that_was_replaced_is_fenced() -> None:
    async with running_groups() as context:
        before, after = Member(context, instance_id="till-1"), Member(context, instance_id="till-1")
        await generation(before)
        await after.join()
        assert refused(await before.sync(version=3)) is ErrorCode.FENCED_INSTANCE_ID


async def test_during_a_rebalance_a_member_has_to_join_again() -> None:
    async with running_groups() as context:
        alice, bob = Member(context), Member(context)
        await generation(alice)
        joining = asyncio.ensure_future(bob.join())
        await eventually(alice.heartbeat, ErrorCode.REBALANCE_IN_PROGRESS)
        assert refused(await alice.sync()) is ErrorCode.REBALANCE_IN_PROGRESS
        joining.cancel()


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name"),
    [(None, "range"), ("consumer", None), (None, None), ("connect", "range"), ("consumer", "sticky")],
)
async def test_version_5_has_to_name_the_groups_protocol(protocol_type: str | None, protocol_name: str | None) -> None:
    async with running_groups() as context:
        member = Member(context)
        await member.join()
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=1,
            member_id=member.member_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[],
        )
        assert refused(await ask(context, request, 5)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
