"""LeaveGroup: one member, or several with an error each, in every version."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tests.broker.groups import GROUP, Member, classic_group, describe, generation, machine, running_groups
from tests.broker.support import ask

SINGLE, SEVERAL = range(3), range(3, 6)


@pytest.mark.parametrize("version", [*SINGLE, *SEVERAL])
async def test_the_last_member_leaves_an_empty_group(version: int) -> None:
    async with running_groups() as context:
        member = Member(context)
        await generation(member)
        answer = await member.leave(version)
        assert answer.error_code == ErrorCode.NONE
        assert [each.error_code for each in answer.members] == ([] if version in SINGLE else [ErrorCode.NONE])
        assert (await describe(context)).group_state == "Empty"


@pytest.mark.parametrize("version", SINGLE)
async def test_who_is_not_a_member_is_told_in_the_answer_itself_before_version_3(version: int) -> None:
    async with running_groups() as context:
        assert (await Member(context).leave(version)).error_code == ErrorCode.UNKNOWN_MEMBER_ID, "there is no group"
        await generation(Member(context))
        assert (await Member(context).leave(version)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert context.metrics.apis["LeaveGroup"].errors == {ErrorCode.UNKNOWN_MEMBER_ID: 2}


async def test_a_group_that_there_is_not_is_said_of_each_member() -> None:
    async with running_groups() as context:
        for version in SEVERAL:
            members = [MemberIdentity(member_id="a"), MemberIdentity(member_id="", group_instance_id="till-1")]
            answer = await ask(context, LeaveGroupRequest(group_id=GROUP, members=members), version)
            assert answer.error_code == ErrorCode.NONE
            assert [(each.member_id, each.group_instance_id, each.error_code) for each in answer.members] == [
                ("a", None, ErrorCode.UNKNOWN_MEMBER_ID),
                ("", "till-1", ErrorCode.UNKNOWN_MEMBER_ID),
            ]
            assert machine(context).groups == {}


@pytest.mark.parametrize("version", SEVERAL)
async def test_each_of_several_members_has_its_own_error(version: int) -> None:
    async with running_groups() as context:
        alice, till = Member(context), Member(context, instance_id="till-1")
        await generation(alice, till)
        asked = [
            MemberIdentity(member_id="nobody"),
            MemberIdentity(member_id="nobody", group_instance_id="till-1"),
            MemberIdentity(member_id="", group_instance_id="till-2"),
            MemberIdentity(member_id=alice.member_id),
            MemberIdentity(member_id="", group_instance_id="till-1"),
        ]
        answer = await ask(context, LeaveGroupRequest(group_id=GROUP, members=asked), version)
        assert [each.error_code for each in answer.members] == [
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_INSTANCE_ID,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.NONE,
            ErrorCode.NONE,
        ]
        assert (await describe(context)).members == []


async def test_nobody_leaves_where_nobody_is_named() -> None:
    async with running_groups() as context:
        await generation(Member(context))
        answer = await ask(context, LeaveGroupRequest(group_id=GROUP, members=[]), 5)
        assert (answer.error_code, answer.members) == (ErrorCode.NONE, [])
        assert (await describe(context)).group_state == "Stable"


async def test_a_reason_is_kept_for_operators() -> None:
    async with running_groups() as context:
        alice, bob = Member(context), Member(context)
        await generation(alice, bob)
        bob.reason = "the consumer is being closed"
        await bob.leave()
        last = classic_group(context).rebalances[-1]
        assert "the consumer is being closed" in last.reason


async def test_an_empty_group_id_is_invalid() -> None:
    async with running_groups() as context:
        for version in (*SINGLE, *SEVERAL):
            answer = await Member(context, "").leave(version)
            assert (answer.error_code, answer.members) == (ErrorCode.INVALID_GROUP_ID, [])
