"""DeleteGroups: groups without members go, with their offsets; each is answered for itself, in every version."""

import pytest

from odradek.broker.handling.context import Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.broker.groups import (
    GROUP,
    NOWHERE,
    Member,
    classic_group,
    commit,
    describe,
    fetch,
    generation,
    running_groups,
)
from tests.broker.support import ask

VERSIONS = range(3)


async def delete(context: Context, *group_ids: str, version: int = 2) -> list[tuple[str, ErrorCode]]:
    answer = await ask(context, DeleteGroupsRequest(groups_names=[*group_ids]), version)
    return [(each.group_id, ErrorCode(each.error_code)) for each in answer.results]


@pytest.mark.parametrize("version", VERSIONS)
async def test_each_is_answered_for_itself_and_once(version: int) -> None:
    async with running_groups() as context:
        for group_id in ("simple", "", "gone"):
            await commit(context, {("orders", 0): 7}, group_id=group_id)
        gone = Member(context, "gone")
        await generation(gone)
        await gone.leave()
        await generation(Member(context, "read"))
        assert await delete(context, "nothing", "simple", "read", "gone", "", "simple", version=version) == [
            ("nothing", ErrorCode.GROUP_ID_NOT_FOUND),
            ("simple", ErrorCode.NONE),
            ("read", ErrorCode.NON_EMPTY_GROUP),
            ("gone", ErrorCode.NONE),
            ("", ErrorCode.NONE),
        ]
        for group_id in ("simple", "", "gone"):
            assert await fetch(context, [("orders", 0)], group_id=group_id) == {("orders", 0): NOWHERE}
            assert (await describe(context, group_id)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert (await describe(context, "read")).group_state == "Stable"
        assert context.metrics.apis["DeleteGroups"].errors == {
            ErrorCode.GROUP_ID_NOT_FOUND: 1,
            ErrorCode.NON_EMPTY_GROUP: 1,
        }


async def test_nothing_is_deleted_where_nothing_is_named() -> None:
    async with running_groups() as context:
        assert await delete(context) == []


async def test_a_group_may_be_made_again_at_once() -> None:
    async with running_groups() as context:
        await commit(context, {("orders", 0): 7, ("orders", 1): 8})
        await delete(context, GROUP)
        await generation(Member(context))
        assert await fetch(context, None) == {}
        assert classic_group(context).generation == 1


async def test_groups_of_another_broker_stay() -> None:
    async with running_groups() as context:
        context.groups.stop()
        assert await delete(context, GROUP) == [(GROUP, ErrorCode.NOT_COORDINATOR)]
