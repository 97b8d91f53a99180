"""DescribeGroups: state, protocol and members of classic groups, in every version."""

from odradek.broker.access.operations import NOT_ASKED, Operation, bit_field
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.broker.groups import GROUP, Member, commit, describe, generation, running_groups
from tests.broker.support import ask

VERSIONS = range(7)


async def test_a_stable_group_is_described_with_its_members() -> None:
    async with running_groups() as context:
        alice, till = Member(context), Member(context, instance_id="till-1")
        await generation(alice, till)
        for version in VERSIONS:
            group = await describe(context, version=version)
            assert (group.error_code, group.error_message, group.group_id) == (ErrorCode.NONE, None, GROUP)
            assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
            assert group.authorized_operations == NOT_ASKED
            assert {each.member_id: each.group_instance_id for each in group.members} == {
                alice.member_id: None,
                till.member_id: "till-1" if version >= 4 else None,
            }
            for each in group.members:
                assert (each.client_id, each.client_host) == ("support", "/")
                assert (each.member_metadata, each.member_assignment) == (alice.metadata, each.member_id.encode())


async def test_before_the_group_is_stable_nothing_is_said_of_its_protocol() -> None:
    async with running_groups() as context:
        member = Member(context)
        await member.join()
        group = await describe(context)
        assert (group.group_state, group.protocol_type, group.protocol_data) == ("CompletingRebalance", "consumer", "")
        assert [(each.member_metadata, each.member_assignment) for each in group.members] == [(b"", b"")]
        await member.leave()
        group = await describe(context)
        assert (group.group_state, group.protocol_type, group.members) == ("Empty", "consumer", [])


async def test_a_group_that_there_is_not_is_dead_and_since_version_6_not_found() -> None:
    async with running_groups() as context:
        for version in VERSIONS:
            group = await describe(context, version=version)
            assert (group.group_id, group.group_state, group.members) == (GROUP, "Dead", [])
            if version >= 6:
                assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
                assert GROUP in (group.error_message or "")
            else:
                assert group.error_code == ErrorCode.NONE


async def test_several_groups_are_answered_in_order_and_each_for_itself() -> None:
    async with running_groups() as context:
        for version in VERSIONS:
            await commit(context, {("orders", 0): 1}, group_id="a")
            await commit(context, {("orders", 0): 1}, group_id="")
            answer = await ask(context, DescribeGroupsRequest(groups=["b", "a", "", "a"]), version)
            described = [(group.group_id, group.group_state) for group in answer.groups]
            assert described == [("b", "Dead"), ("a", "Empty"), ("", "Empty"), ("a", "Empty")]
            assert (await ask(context, DescribeGroupsRequest(groups=[]), version)).groups == []


async def test_what_may_be_done_is_told_where_it_is_asked() -> None:
    async with running_groups() as context:
        for version in VERSIONS[3:]:
            await commit(context, {("orders", 0): 1})
            request = DescribeGroupsRequest(groups=[GROUP, "b"], include_authorized_operations=True)
            known, unknown = (await ask(context, request, version)).groups
            operations = bit_field(
                *(Operation.READ, Operation.DELETE, Operation.DESCRIBE),
                *(Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
            )
            assert known.authorized_operations == operations
            assert unknown.authorized_operations == (operations if version < 6 else NOT_ASKED)


async def test_a_group_of_another_broker_is_not_described_here() -> None:
    async with running_groups() as context:
        context.groups.stop()
        group = await describe(context)
        assert (group.error_code, group.group_state) == (ErrorCode.NOT_COORDINATOR, "")


async def test_why_the_group_rebalanced_is_told_where_there_are_tags() -> None:
    async with running_groups() as context:
        alice, till = Member(context), Member(context, instance_id="till-1")
        await generation(alice, till)
        await till.leave()
        for version in VERSIONS:
            told = (await describe(context, version=version)).rebalances
            if version < 5:
                assert told == []
                continue
            first, left = told
            assert (first.cause, first.generation, first.last_heard_ms) == ("member joined", 0, -1)
            assert (left.cause, left.generation, left.member_id) == ("member left", 1, till.member_id)
            assert (left.instance_id, left.reason) == ("till-1", f"member {till.member_id} left")
            assert 0 < left.last_heard_ms <= left.started_ms
