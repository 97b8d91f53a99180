"""DeleteAcls: which ACLs go, what is answered of them, and that nothing else goes."""

import logging

import pytest

from odradek.broker.access.acl import PatternType
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import of_topic
from odradek.broker.controller import acl_spread
from odradek.broker.handling import acl_changes
from odradek.broker.handling.context import CloseConnection
from odradek.protocol.errors import ErrorCode
from tests.broker.access.rules import Asking, acl, deny
from tests.broker.api.acls import RULES, caller, create, delete, everything, known, ruled_broker
from tests.broker.api.controlling import controller
from tests.broker.support import running_broker

ALL = acl(), deny(Operation.WRITE), acl(name="ord", pattern=PatternType.PREFIXED), acl(name="*", principal="User:bob")


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_what_a_filter_matches_goes_and_is_told(version: int) -> None:
    async with ruled_broker() as context:
        await create(context, *ALL)
        assert context.access.permits(Asking(), Operation.READ, of_topic("orders"))
        answer = await delete(context, everything(resource_name_filter="orders"), version=version)
        (result,) = answer.filter_results
        assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
        assert {(each.resource_name, each.permission_type, each.error_code) for each in result.matching_acls} == {
            ("orders", 3, 0),
            ("orders", 2, 0),
        }
        assert known(context) == set(ALL[2:])
        assert context.access.permits(Asking(), Operation.READ, of_topic("orders")), "by the prefix"
        await delete(context, everything(pattern_type_filter=PatternType.PREFIXED))
        assert not context.access.permits(Asking(), Operation.READ, of_topic("orders"))


async def test_an_empty_name_is_a_name_that_nothing_has() -> None:
    async with ruled_broker() as context:
        await create(context, *ALL)
        answer = await delete(
            context,
            everything(resource_name_filter=""),
            everything(principal_filter=""),
            everything(host_filter=""),
        )
        assert [each.matching_acls for each in answer.filter_results] == [[], [], []]
        assert known(context) == set(ALL)


async def test_each_filter_has_a_result_of_its_own() -> None:
    async with ruled_broker() as context:
        await create(context, *ALL)
        answer = await delete(
            context,
            everything(principal_filter="User:bob"),
            everything(resource_type_filter=99),
            everything(operation=99),
            everything(principal_filter="User:nobody"),
            everything(principal_filter="User:bob"),
        )
        found = [(each.error_code, each.error_message, len(each.matching_acls)) for each in answer.filter_results]
        assert found == [
            (0, None, 1),
            (ErrorCode.INVALID_REQUEST, "Unknown patternFilter.", 0),
            (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.", 0),
            (0, None, 0),
            (0, None, 1),
        ]
        assert known(context) == set(ALL[:3])


async def test_more_than_a_commit_takes() -> None:
    async with ruled_broker() as context:
        await create(context, *(acl(name=f"t{number}") for number in range(250)))
        answer = await delete(context, everything())
        assert len(answer.filter_results[0].matching_acls) == 250
        assert known(context) == set()


@pytest.mark.parametrize("field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"])
async def test_unknown_closes_the_connection(field: str) -> None:
    async with ruled_broker() as context:
        await create(context, acl())
        with pytest.raises(CloseConnection, match="DeleteAcls version 3 has UNKNOWN elements"):
            await delete(context, everything(), everything(**{field: 0}))
        assert known(context) == {acl()}


async def test_who_may_not_alter_the_cluster_is_refused() -> None:
    async with ruled_broker() as context:
        await create(context, acl())
        for is_enforced in (True, False):
            assert context.enforcement is not None
            context.enforcement.access.enforce(is_enforced)
            answer = await delete(context, everything(), everything(), by=caller("alice"))
            assert [each.error_code for each in answer.filter_results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        assert known(context) == {acl()}


async def test_without_an_authorizer_it_is_said_that_there_is_none() -> None:
    async with running_broker() as context:
        answer = await delete(context, everything())
        assert [each.error_code for each in answer.filter_results] == [ErrorCode.SECURITY_DISABLED]


async def test_the_audit_says_who_deleted_what(caplog: pytest.LogCaptureFixture) -> None:
    async with ruled_broker() as context:
        await create(context, acl())
        caplog.set_level(logging.INFO, "kafka.authorizer.logger")
        caplog.clear()
        await delete(context, everything(), everything())
        await delete(context, everything())
    assert [record.getMessage() for record in caplog.records] == [
        "User:admin from host 10.0.0.9 has deleted an ACL: ALLOW READ on TOPIC orders (LITERAL) to User:alice "
        "from host *"
    ]


async def test_it_is_not_answered_as_long_as_a_broker_may_go_by_the_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is whoever repeats it, though there is nothing to delete any more."""
    monkeypatch.setattr(acl_spread, "TERM_MS", 50)
    monkeypatch.setattr(acl_changes, "TIMEOUT_MS", 200)
    async with controller(RULES) as context:
        await create(context, acl())
        for _ in range(2):
            (result,) = (await delete(context, everything())).filter_results
            assert (result.error_code, result.matching_acls) == (ErrorCode.REQUEST_TIMED_OUT, [])
            assert "have not confirmed" in (result.error_message or "")
        assert known(context) == set()
