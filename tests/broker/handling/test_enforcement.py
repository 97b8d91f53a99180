"""From when on the rules count, what is said while they do not, and when no broker may start with them."""

import logging
from dataclasses import replace

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.access.principal import ANONYMOUS, BROKER_ITSELF, Principal
from odradek.broker.access.resource import CLUSTER, ResourceType, of_topic
from odradek.broker.api import metadata
from odradek.broker.cluster.acls import acl_key, add_acls, encode_acl
from odradek.broker.cluster.features import ACLS, ENVELOPE, SUPPORTED
from odradek.broker.cluster.keys import FEATURES_KEY, NodeState, encode_features, node_key
from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Call, CloseConnection, Context
from odradek.broker.handling.dispatch import dispatch_alone
from odradek.broker.handling.enforcement import WARNING_INTERVAL_MS
from odradek.broker.membership.standing import TERM_MS
from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.access_samples import access_samples
from odradek.broker.observability.histogram import Histogram
from odradek.broker.startup_errors import StartRefused
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.errors import ErrorCode
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.runtime.metric import Metric
from odradek.runtime.tasks import Tasks
from tests.broker.access.rules import Asking, acl
from tests.broker.api.acls import RULES, caller, creation
from tests.broker.api.controlling import OTHERS
from tests.broker.controller.brokers import settle, sleep_ms
from tests.broker.support import HERE, ask, running_broker
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

OLD = NodeState((bytes(16),), features={ENVELOPE: 1})
NEW = NodeState((bytes(16),), features=SUPPORTED)


def told(context: Context) -> dict[Metric, float | Histogram]:
    return {row: value for row, _, value in access_samples(context.access, len(context.metadata.image.acls))}


async def commit(context: Context, txn: Txn) -> None:
    await context.metadata.applied(await context.metadata.store.commit(txn))


def is_enforced(context: Context) -> bool:
    assert context.access.is_enforced is not context.access.permits(Asking(), Operation.READ, of_topic("orders"))
    return context.access.is_enforced


async def test_the_rules_follow_the_metadata() -> None:
    store = MemoryStore()
    await add_acls(store, [acl(name="before")], {}, lambda _: None)
    async with running_broker(RULES, store=store) as context:
        assert context.access.permits(Asking(), Operation.READ, of_topic("before"))
        assert not context.access.permits(Asking(), Operation.READ, of_topic("orders"))
        generation = context.access.generation
        await commit(context, Txn(put={acl_key(acl()): encode_acl(acl())}))
        assert context.access.permits(Asking(), Operation.READ, of_topic("orders"))
        assert context.access.generation > generation
        await commit(context, Txn(delete=(acl_key(acl()),)))
        assert not context.access.permits(Asking(), Operation.READ, of_topic("orders"))


async def test_they_count_once_it_is_finalized() -> None:
    async with running_broker(RULES) as context:
        assert is_enforced(context)
        await commit(context, Txn(put={FEATURES_KEY: encode_features({ENVELOPE: 1})}))
        assert not is_enforced(context)
        await commit(context, Txn(put={FEATURES_KEY: encode_features({ACLS: 1})}))
        assert is_enforced(context)


async def test_they_count_already_when_all_that_are_registered_can() -> None:
    """From the first request of a new cluster on, before the controller has written it down."""
    async with running_broker(RULES) as context:
        await commit(context, Txn(delete=(FEATURES_KEY,), put={node_key(0): NEW.encode()}))
        assert is_enforced(context)
        await commit(context, Txn(put={node_key(1): OLD.encode()}))
        assert not is_enforced(context)
        await commit(context, Txn(put={node_key(1): NEW.encode()}))
        assert is_enforced(context)


async def test_one_that_comes_later_and_cannot_takes_nothing_back() -> None:
    async with running_broker(RULES) as context:
        await commit(context, Txn(put={node_key(0): NEW.encode(), node_key(1): OLD.encode()}))
        assert is_enforced(context)


async def test_an_authorizer_without_effect_is_told_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    async with running_broker(RULES) as context:
        assert context.enforcement is not None
        await commit(context, Txn(delete=(FEATURES_KEY,), put={node_key(0): NEW.encode(), node_key(3): OLD.encode()}))
        tasks = Tasks(context.environment.loop)
        await context.enforcement.begin(tasks)
        await sleep_ms(3 * WARNING_INTERVAL_MS + 1)
        warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert len(warnings) == 4
        assert "EVERYBODY MAY DO EVERYTHING until broker(s) 3 are upgraded" in warnings[-1].getMessage()
        samples = told(context)
        assert samples[rows.AUTHORIZER_WITHOUT_EFFECT] == 1
        await commit(context, Txn(put={node_key(3): NEW.encode()}))
        await sleep_ms(3 * WARNING_INTERVAL_MS)
        assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 4
        samples = told(context)
        assert samples[rows.AUTHORIZER_WITHOUT_EFFECT] == 0
        assert samples[rows.ACLS_UNCERTAIN] == 0
        await tasks.close()


async def test_a_broker_that_is_cut_off_answers_super_users_alone() -> None:
    environment = VirtualEnvironment()
    async with running_broker(RULES, brokers=(HERE, *OTHERS), environment=environment) as context:
        await commit(context, Txn(put={acl_key(acl()): encode_acl(acl())}))
        everything = MetadataRequest(topics=None)
        await ask(context, everything, 9, caller=caller("alice"))
        registration = context.member.registration
        registration.epoch += 1  # the store does not confirm what it believes to be
        await sleep_ms(TERM_MS)
        with pytest.raises(CloseConnection, match="does not know whether it has the newest ACLs"):
            await ask(context, everything, 9, caller=caller("alice"))
        await ask(context, everything, 9, caller=caller("admin"))
        await ask(context, ApiVersionsRequest(), 2, caller=caller("alice"))
        registration.epoch -= 1
        await sleep_ms(TERM_MS)
        await ask(context, everything, 9, caller=caller("alice"))


async def test_what_brokers_are_called_must_be_allowed_to_do_what_brokers_do() -> None:
    async with running_broker(RULES) as context:
        assert context.enforcement is not None
        with pytest.raises(StartRefused, match=r"as User:ANONYMOUS, who may not do .* add User:ANONYMOUS to"):
            context.enforcement.refuse_unable_brokers(ANONYMOUS)
        context.enforcement.refuse_unable_brokers(Principal("User", "broker-1"))
        action = acl(Operation.CLUSTER_ACTION, CLUSTER.name, kind=ResourceType.CLUSTER, principal="User:ANONYMOUS")
        await commit(context, Txn(put={acl_key(action): encode_acl(action)}))
        context.enforcement.refuse_unable_brokers(ANONYMOUS)


async def test_without_an_authorizer_there_are_no_rules() -> None:
    async with running_broker() as context:
        assert context.enforcement is None
        assert context.member.standing is None
        assert context.member.acl_spread is None
        await commit(context, Txn(put={acl_key(acl()): encode_acl(acl())}))
        await settle()
        assert context.access.permits(Asking(), Operation.WRITE, of_topic("orders"))
        assert told(context) == {
            rows.ACL_COUNT: 1,
            rows.DENIALS: 0,
            rows.AUTHORIZER_WITHOUT_EFFECT: 0,
            rows.ACLS_UNCERTAIN: 0,
        }


async def test_what_waits_while_the_broker_is_cut_off_is_not_answered() -> None:
    """It was certain when the request began."""
    async with running_broker(RULES, brokers=(HERE, *OTHERS), environment=VirtualEnvironment()) as context:
        await commit(context, Txn(put={acl_key(acl()): encode_acl(acl())}))
        begun: list[str] = []

        async def slow(context: Context, call: Call, request: MetadataRequest) -> MetadataResponse:
            begun.append(call.principal.name)
            context.member.registration.epoch += 1
            await sleep_ms(TERM_MS)
            context.member.registration.epoch -= 1
            return await metadata.handle(context, call, request)

        api = context.served[MetadataRequest.api_key]
        context.served = {**context.served, api.key: replace(api, handle=slow)}
        with pytest.raises(CloseConnection, match="does not know whether it has the newest ACLs"):
            await ask(context, MetadataRequest(topics=None), 9, caller=caller("alice"))
        assert begun == ["alice"]
        await sleep_ms(TERM_MS)
        await ask(context, MetadataRequest(topics=None), 9, caller=caller("admin"))


async def test_a_broker_that_sent_it_on_is_told_to_ask_another_one() -> None:
    """Its client's connection would have been closed for what this broker does not know."""
    async with running_broker(RULES, brokers=(HERE, *OTHERS), environment=VirtualEnvironment()) as context:
        context.member.registration.epoch += 1
        await sleep_ms(TERM_MS)
        request = CreateAclsRequest(creations=[creation(acl())])
        header = RequestHeader(request.api_key, 3, 7, "client")
        frame = b"".join(request_frame(header, True, encode_parts(request, 3)))
        reply = await dispatch_alone(context, caller("alice"), memoryview(frame)[4:], is_forwarded=True)
        assert reply is not None
        body = b"".join(reply)[4:]
        _, position = read_response_header(body, True)
        answer = decode(CreateAclsResponse, 3, body, position)
        assert [each.error_code for each in answer.results] == [ErrorCode.NOT_CONTROLLER]


async def test_what_a_broker_asks_for_itself_is_allowed() -> None:
    """In an Envelope, in nobody's name: more replicas for an internal topic."""
    async with running_broker(RULES) as context:
        assert context.access.permits(Asking(BROKER_ITSELF), Operation.ALTER, CLUSTER)
        assert not context.access.permits(Asking(ANONYMOUS), Operation.ALTER, CLUSTER)
        assert not context.access.permits(Asking(Principal("User", "itself")), Operation.ALTER, CLUSTER)
