"""ListGroups: the groups of this broker, by state and type, in every version."""

import pytest

from odradek.broker.api import list_groups
from odradek.broker.coordinator.shard import ShardState
from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from tests.broker.groups import Member, commit, generation, running_groups
from tests.broker.support import ask, running_broker

VERSIONS = range(6)


async def some_groups(context: Context) -> None:
    """Of both shards: a simple one, one with members, and one that they have left."""
    await commit(context, {("orders", 0): 1}, group_id="simple")
    await generation(Member(context, "read"), Member(context, "read"))
    gone = Member(context, "gone")
    await generation(gone)
    await gone.leave()
    assert {context.groups.index_of(each) for each in ("simple", "read", "gone")} == {0, 1}


async def listed(context: Context, states: list[str] | None = None, types: list[str] | None = None) -> set[str]:
    request = ListGroupsRequest(states_filter=states or [], types_filter=types or [])
    answer = await ask(context, request, 5 if types else 4)
    return {group.group_id for group in answer.groups}


async def test_all_groups_of_all_shards_are_listed() -> None:
    async with running_groups() as context:
        await some_groups(context)
        for version in VERSIONS:
            answer = await ask(context, ListGroupsRequest(), version)
            assert answer.error_code == ErrorCode.NONE
            kind = "classic" if version >= 5 else ""
            assert sorted(answer.groups, key=lambda group: group.group_id) == [
                ListedGroup(
                    group_id=group_id, protocol_type=type_, group_state=state if version >= 4 else "", group_type=kind
                )
                for group_id, type_, state in (
                    ("gone", "consumer", "Empty"),
                    ("read", "consumer", "Stable"),
                    ("simple", "", "Empty"),
                )
            ]


async def test_they_are_listed_by_state_however_it_is_written() -> None:
    async with running_groups() as context:
        await some_groups(context)
        assert await listed(context, ["Stable"]) == await listed(context, [" sTABLE "]) == {"read"}
        assert await listed(context, ["Empty", "Stable"]) == {"gone", "read", "simple"}
        assert await listed(context, ["Dead"]) == await listed(context, ["no state"]) == set()


async def test_they_are_listed_by_type_however_it_is_written() -> None:
    async with running_groups() as context:
        await some_groups(context)
        assert await listed(context, types=["Classic"]) == {"gone", "read", "simple"}
        assert await listed(context, types=["consumer"]) == await listed(context, types=["no type"]) == set()
        assert await listed(context, ["Stable"], ["consumer", "classic"]) == {"read"}


async def test_without_the_offsets_topic_there_are_none() -> None:
    async with running_broker() as context:
        answer = await ask(context, ListGroupsRequest(), 5)
        assert (answer.error_code, answer.groups) == (ErrorCode.NONE, [])


@pytest.mark.parametrize("version", VERSIONS)
async def test_while_a_shard_is_loaded_there_is_no_list(version: int) -> None:
    async with running_groups() as context:
        await some_groups(context)
        last = [*context.groups.all][-1]
        last.state = ShardState.LOADING
        answer = await ask(context, ListGroupsRequest(), version)
        assert (answer.error_code, answer.groups) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
        assert context.metrics.apis["ListGroups"].errors == {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: 1}


async def test_what_cannot_be_loaded_is_left_out() -> None:
    async with running_groups() as context:
        await some_groups(context)
        index = context.groups.index_of("read")
        [*context.groups.all][index or 0].failed("the log is damaged")
        assert "read" not in await listed(context)


async def test_others_have_their_turn_while_many_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[None] = []

    async def breathe() -> None:
        turns.append(None)

    monkeypatch.setattr(list_groups, "GROUPS_TOGETHER", 2)
    monkeypatch.setattr(list_groups, "breathe", breathe)
    async with running_groups() as context:
        for number in range(9):
            await commit(context, {("orders", 0): 1}, group_id=f"group {number}")
        assert len(await listed(context)) == 9
        assert len(turns) == 4
