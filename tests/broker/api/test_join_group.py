"""JoinGroup: who comes in, what the leader and the others are told, in every version; each refusal by its error."""

import asyncio

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from tests.broker.groups import Member, classic_group, describe, eventually, generation, machine, running_groups


@pytest.mark.parametrize("version", range(10))
async def test_one_member_leads_its_generation(version: int) -> None:
    async with running_groups() as context:
        member = Member(context)
        answer = await member.join(version)
    [listed] = answer.members
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (ErrorCode.NONE, 1, "range")
    assert answer.leader == answer.member_id == listed.member_id
    assert answer.member_id.startswith("support-"), "named after the client, as in Kafka"
    assert (listed.metadata, listed.group_instance_id) == (member.metadata, None)
    assert answer.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", range(10))
async def test_a_new_member_has_to_come_back_with_its_id_since_version_4(version: int) -> None:
    async with running_groups() as context:
        member = Member(context)
        answer = await member.ask_to_join(version)
        if version < 4:
            assert answer.error_code == ErrorCode.NONE
            return
        assert (answer.error_code, answer.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
        assert (answer.leader, answer.members) == ("", [])
        assert answer.protocol_name == (None if version >= 7 else "")
        assert context.metrics.apis["JoinGroup"].errors == {ErrorCode.MEMBER_ID_REQUIRED: 1}
        assert (await describe(context)).members == [], "it is expected, and not a member yet"
        member.member_id = answer.member_id
        again = await member.ask_to_join(version)
        assert (again.error_code, again.member_id) == (ErrorCode.NONE, answer.member_id)


async def test_only_the_leader_is_told_who_else_there_is() -> None:
    async with running_groups() as context:
        alice, bob = Member(context), Member(context, topics=("bills",))
        await generation(alice)
        joining = asyncio.ensure_future(bob.join())
        await eventually(alice.heartbeat, ErrorCode.REBALANCE_IN_PROGRESS)
        to_alice, to_bob = await asyncio.wait_for(asyncio.gather(alice.join(), joining), 5)
        assert (to_alice.generation_id, to_bob.generation_id) == (2, 2)
        assert to_alice.leader == to_bob.leader == alice.member_id
        assert to_bob.members == []
        told = {each.member_id: each.metadata for each in to_alice.members}
        assert told == {alice.member_id: alice.metadata, bob.member_id: bob.metadata}


@pytest.mark.parametrize("version", range(5, 10))
async def test_a_static_member_is_never_asked_to_come_back(version: int) -> None:
    async with running_groups() as context:
        answer = await Member(context, instance_id="till-1").ask_to_join(version)
        assert answer.error_code == ErrorCode.NONE
        assert [each.group_instance_id for each in answer.members] == ["till-1"]
        assert answer.member_id.startswith("till-1-")


@pytest.mark.parametrize("version", range(5, 10))
async def test_a_static_member_that_comes_back_takes_over_without_a_rebalance(version: int) -> None:
    async with running_groups() as context:
        before, after = Member(context, instance_id="till-1"), Member(context, instance_id="till-1")
        await generation(before)
        answer = await after.join(version)
        assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
        assert answer.skip_assignment == (version >= 9)
        assert answer.leader == (answer.member_id if version >= 9 else before.member_id)
        assert await before.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
        assert await after.heartbeat() is ErrorCode.NONE


def refused(answer: JoinGroupResponse, member_id: str = "", version: int = 9) -> ErrorCode:
    assert (answer.generation_id, answer.leader, answer.members) == (-1, "", [])
    assert answer.protocol_name == (None if version >= 7 else "")
    assert answer.member_id == member_id
    return ErrorCode(answer.error_code)


async def test_an_empty_group_id_is_invalid() -> None:
    async with running_groups() as context:
        for version in range(10):
            assert refused(await Member(context, "").ask_to_join(version), "", version) is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("session_timeout_ms", [999, 2001])
async def test_a_session_outside_of_the_options_is_refused_and_leaves_no_group(session_timeout_ms: int) -> None:
    bounds = {"group.min.session.timeout.ms": "1000", "group.max.session.timeout.ms": "2000"}
    async with running_groups(bounds) as context:
        member = Member(context, session_timeout_ms=session_timeout_ms)
        assert refused(await member.ask_to_join()) is ErrorCode.INVALID_SESSION_TIMEOUT
        assert machine(context).groups == {}


async def test_a_member_that_the_group_does_not_know_is_told_so() -> None:
    async with running_groups() as context:
        member = Member(context)
        member.member_id = "nobody"
        assert refused(await member.ask_to_join(), "nobody") is ErrorCode.UNKNOWN_MEMBER_ID
        assert machine(context).groups == {}
        await generation(Member(context))
        assert refused(await member.ask_to_join(), "nobody") is ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_member_whose_instance_id_another_one_has_is_fenced() -> None:
    async with running_groups() as context:
        before, after = Member(context, instance_id="till-1"), Member(context, instance_id="till-1")
        await generation(before)
        await after.join()
        answer = await before.ask_to_join()
        assert refused(answer, before.member_id) is ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize(
    "other",
    [{"protocols": ("sticky",)}, {"protocol_type": "connect"}, {"protocols": ()}],
    ids=["other protocol", "other type", "no protocol"],
)
async def test_a_protocol_that_the_group_does_not_have_is_inconsistent(other: dict[str, str]) -> None:
    async with running_groups() as context:
        await generation(Member(context))
        assert refused(await Member(context, **other).ask_to_join()) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[arg-type]


async def test_an_empty_group_takes_neither_no_type_nor_no_protocols() -> None:
    async with running_groups() as context:
        assert refused(await Member(context, protocol_type="").ask_to_join()) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert refused(await Member(context, protocols=()).ask_to_join()) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert machine(context).groups == {}


async def test_a_group_that_is_full_takes_nobody_else() -> None:
    async with running_groups({"group.max.size": "1"}) as context:
        await generation(Member(context))
        assert refused(await Member(context).ask_to_join()) is ErrorCode.GROUP_MAX_SIZE_REACHED


async def test_a_group_of_another_type_works_with_its_own_bytes() -> None:
    async with running_groups() as context:
        worker = Member(context, "connect-cluster", protocol_type="connect", protocols=("sessioned", "default"))
        worker.metadata = b"\x00\xffnot a subscription"
        await generation(worker)
        group = await describe(context, "connect-cluster")
        assert (group.protocol_type, group.protocol_data) == ("connect", "sessioned")
        assert [each.member_metadata for each in group.members] == [worker.metadata]


async def test_before_version_1_the_session_is_also_the_time_to_join_again() -> None:
    async with running_groups() as context:
        await Member(context, session_timeout_ms=12_345).join(0)
        [member] = classic_group(context)._group.roster.members.values()  # pyright: ignore[reportPrivateUsage]
        assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (12_345, 12_345)


async def test_another_broker_coordinates_where_this_one_does_not() -> None:
    async with running_groups() as context:
        context.groups.stop()
        assert refused(await Member(context).ask_to_join()) is ErrorCode.NOT_COORDINATOR
