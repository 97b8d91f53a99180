"""CreateAcls: what is stored, refused one by one, told to the audit, and when it is answered."""

import asyncio
import logging

import pytest

from odradek.broker.access.acl import AclBinding, PatternType
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, ResourceType, of_topic
from odradek.broker.cluster.keys import CONTROLLER_KEY, encode_controller
from odradek.broker.cluster.store import Txn
from odradek.broker.controller import acl_spread
from odradek.broker.handling import acl_changes
from odradek.broker.handling.context import Caller, CloseConnection, Context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tests.broker.access.rules import Asking, acl, deny
from tests.broker.api.acls import RULES, caller, create, creation, describe, known, ruled_broker, told
from tests.broker.api.controlling import OTHERS, controller
from tests.broker.cluster.faulty_store import FaultyStore
from tests.broker.support import ask, running_broker

ALTER_CLUSTER = acl(Operation.ALTER, CLUSTER.name, kind=ResourceType.CLUSTER)


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_they_are_there_and_count_when_it_is_answered(version: int) -> None:
    async with ruled_broker() as context:
        asker, topic = caller("alice"), of_topic("orders")
        assert not context.access.authorized_operations(_asking(asker), topic)
        bindings = acl(), deny(Operation.WRITE, pattern=PatternType.PREFIXED), acl(name="*", principal="User:*")
        answer = await create(context, *bindings, version=version)
        assert [(each.error_code, each.error_message) for each in answer.results] == [(ErrorCode.NONE, None)] * 3
        assert known(context) == set(bindings)
        assert context.access.permits(_asking(asker), Operation.READ, topic)
        assert told(await describe(context)) == set(bindings)


def _asking(asker: Caller) -> Asking:
    return Asking(asker.principal, asker.host)


async def test_one_that_is_there_already_is_no_mistake() -> None:
    async with ruled_broker() as context:
        for _ in range(2):
            answer = await create(context, acl(), acl())
            assert [each.error_code for each in answer.results] == [ErrorCode.NONE] * 2
        revision = context.metadata.image.revision
        await create(context, acl())
        assert context.metadata.image.revision == revision, "nothing was written"
        assert known(context) == {acl()}


async def test_each_has_a_result_of_its_own() -> None:
    async with ruled_broker() as context:
        answer = await create(
            context,
            creation(acl(name="a")),
            creation(acl(), resource_name=""),
            creation(acl(), resource_type=4),
            creation(acl(), operation=1),
            creation(acl(), principal="alice"),
            creation(acl(name="b")),
        )
        codes = [each.error_code for each in answer.results]
        assert codes == [0, *[ErrorCode.INVALID_REQUEST] * 4, 0]
        assert [each.error_message for each in answer.results[1:4]] == [
            "Invalid empty resource name",
            "The only valid name for the CLUSTER resource is kafka-cluster",
            "Invalid operation ANY",
        ]
        assert known(context) == {acl(name="a"), acl(name="b")}


async def test_none_at_all_is_no_mistake() -> None:
    async with ruled_broker() as context:
        assert (await create(context)).results == []
        assert (await create(context, creation(acl(), resource_name=""))).results[0].error_code


async def test_more_than_a_commit_takes() -> None:
    async with ruled_broker() as context:
        bindings = [acl(name=f"t{number}") for number in range(250)]
        answer = await create(context, *bindings)
        assert not any(each.error_code for each in answer.results)
        assert known(context) == set(bindings)


@pytest.mark.parametrize("field", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
async def test_unknown_closes_the_connection(field: str) -> None:
    async with ruled_broker() as context:
        with pytest.raises(CloseConnection, match="CreateAcls version 3 has UNKNOWN elements"):
            await create(context, acl(), creation(acl(), **{field: 0}))
        assert known(context) == set()


async def test_who_may_not_alter_the_cluster_is_refused() -> None:
    async with ruled_broker() as context:
        answer = await create(context, acl(), acl(name="b"), by=caller("alice"))
        assert [each.error_code for each in answer.results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        assert known(context) == set()
        await create(context, ALTER_CLUSTER)
        assert not (await create(context, acl(), by=caller("alice"))).results[0].error_code


async def test_who_may_change_them_is_asked_before_the_rules_count() -> None:
    """Else whoever is quick gives himself what he may do then."""
    async with ruled_broker() as context:
        assert context.enforcement is not None
        context.enforcement.access.enforce(False)
        assert (await create(context, acl(), by=caller("alice"))).results[0].error_code
        assert not (await create(context, acl())).results[0].error_code


async def test_without_an_authorizer_it_is_said_that_there_is_none() -> None:
    async with running_broker() as context:
        answer = await create(context, acl(), acl(name="b"))
        assert [each.error_code for each in answer.results] == [ErrorCode.SECURITY_DISABLED] * 2


async def test_the_audit_says_who_created_what(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kafka.authorizer.logger")
    async with ruled_broker() as context:
        await create(context, acl(), acl(), creation(acl(), resource_name=""))
        await create(context, acl())
    assert [record.getMessage() for record in caplog.records] == [
        "User:admin from host 10.0.0.9 has created an ACL: ALLOW READ on TOPIC orders (LITERAL) to User:alice "
        "from host *"
    ]


# ------------------------------------------------------------------------------------------------------ three brokers
@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_spread, "TERM_MS", 50)


async def says(context: Context, number: int, revision: int | None = None) -> None:
    broker_id = OTHERS[number].broker_id
    image = context.metadata.image
    request = BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=image.brokers[broker_id].epoch,
        current_metadata_offset=image.revision if revision is None else revision,
    )
    assert not (await ask(context, request, 1, caller=caller("broker-1"))).error_code


async def until_known(context: Context, binding: AclBinding) -> None:
    async with asyncio.timeout(5):
        while binding not in known(context):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)


@pytest.mark.usefixtures("_quick")
async def test_it_is_answered_when_every_broker_has_said_that_it_knows() -> None:
    async with controller(RULES) as context:
        creating = asyncio.ensure_future(create(context, acl()))
        await until_known(context, acl())
        await says(context, 0)
        await says(context, 1, context.metadata.image.revision - 1)
        await asyncio.sleep(0.1)
        assert not creating.done()
        await says(context, 1)
        assert not (await asyncio.wait_for(creating, 5)).results[0].error_code


@pytest.mark.usefixtures("_quick")
async def test_time_is_up_when_one_does_not_say_so_and_the_change_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_changes, "TIMEOUT_MS", 100)
    async with controller(RULES) as context:
        answer = await create(context, acl(), creation(acl(), resource_name=""))
        assert answer.results[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        assert "have not confirmed" in (answer.results[0].error_message or "")
        assert answer.results[1].error_code == ErrorCode.INVALID_REQUEST
        assert known(context) == {acl()}
        again = await create(context, acl())
        assert again.results[0].error_code == ErrorCode.REQUEST_TIMED_OUT, "it is not done because it is there"
        for number in (0, 1):
            await says(context, number)
        assert not (await create(context, acl())).results[0].error_code


@pytest.mark.usefixtures("_quick")
async def test_a_controller_that_was_replaced_does_not_say_that_there_is_nothing_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another broker is elected, and this one does not see it."""
    monkeypatch.setattr(acl_changes, "TIMEOUT_MS", 300)
    store = FaultyStore()
    async with ruled_broker(store=store) as context:
        assert not (await create(context, acl())).results[0].error_code
        store.blind()
        await store.store.commit(Txn(put={CONTROLLER_KEY: encode_controller(2)}))
        assert context.member.controller.is_active, "as far as it knows"
        answer = await create(context, acl())
        assert answer.results[0].error_code in (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)
        store.see()
