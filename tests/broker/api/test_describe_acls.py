"""DescribeAcls: what a filter matches, by resource pattern, for whom may see it."""

from typing import Any

import pytest

from odradek.broker.access.acl import PatternType
from odradek.broker.access.acl_filter import MATCH
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, ResourceType
from odradek.broker.handling.context import CloseConnection
from odradek.protocol.errors import ErrorCode
from tests.broker.access.rules import acl, deny
from tests.broker.api.acls import caller, create, describe, ruled_broker, told
from tests.broker.support import running_broker

ALL = (
    acl(),
    deny(Operation.WRITE),
    acl(name="ord", pattern=PatternType.PREFIXED),
    acl(name="*", principal="User:bob"),
    acl(kind=ResourceType.USER, name="alice", operation=Operation.CREATE_TOKENS),
)


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_they_are_told_by_resource_pattern(version: int) -> None:
    async with ruled_broker() as context:
        await create(context, *ALL)
        answer = await describe(context, version=version)
        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
        assert told(answer) == set(ALL)
        patterns = [(each.resource_type, each.resource_name, each.pattern_type) for each in answer.resources]
        assert len(patterns) == len(set(patterns)) == 4


async def test_a_filter_chooses() -> None:
    async with ruled_broker() as context:
        await create(context, *ALL)
        assert told(await describe(context, principal_filter="User:bob")) == {ALL[3]}
        assert told(await describe(context, resource_name_filter="orders")) == {*ALL[:2]}
        assert told(await describe(context, resource_name_filter="orders", pattern_type_filter=MATCH)) == {*ALL[:4]}
        assert told(await describe(context, resource_name_filter="")) == set()
        assert told(await describe(context, resource_type_filter=99)) == set()
        assert told(await describe(context, resource_type_filter=ResourceType.USER)) == {ALL[4]}


async def test_who_may_not_describe_the_cluster_is_refused() -> None:
    async with ruled_broker() as context:
        await create(context, acl())
        answer = await describe(context, by=caller("alice"))
        assert (answer.error_code, answer.resources) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
        await create(context, acl(Operation.DESCRIBE, CLUSTER.name, kind=ResourceType.CLUSTER))
        assert told(await describe(context, by=caller("alice")))


async def test_without_an_authorizer_it_is_said_that_there_is_none() -> None:
    """By which MirrorMaker knows that there is nothing to copy."""
    async with running_broker() as context:
        assert (await describe(context)).error_code == ErrorCode.SECURITY_DISABLED


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
async def test_unknown_closes_the_connection(field: str) -> None:
    async with ruled_broker() as context:
        unknown: dict[str, Any] = {field: 0}
        with pytest.raises(CloseConnection, match="DescribeAcls version 3 has UNKNOWN elements"):
            await describe(context, **unknown)
