"""Changes of ACLs at a broker that is not the controller: sent on with who asked, and asked here first."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from odradek.broker.access.operations import Operation
from odradek.broker.cluster.features import SUPPORTED
from odradek.broker.cluster.keys import (
    CONTROLLER_KEY,
    FEATURES_KEY,
    BrokerState,
    broker_key,
    encode_controller,
    encode_features,
)
from odradek.broker.cluster.store import Txn
from odradek.broker.handling.context import Context
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.frames import read_request_header, response_frame
from odradek.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsResponse
from odradek.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.protocol.principal_data import decode_principal
from tests.broker.access.rules import acl
from tests.broker.api.acls import RULES, caller, create, creation, delete, everything, known
from tests.broker.support import LISTENER, running_broker
from tests.client.broker_handlers import Call as ScriptedCall
from tests.client.memory_network import MemoryNetwork
from tests.client.scripted_broker import ScriptedCluster

pytestmark = pytest.mark.virtual_time

THERE = 1


class World:
    """Broker 0 asks; broker 1, which is scripted, is the controller."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.scripted = ScriptedCluster(self.network, brokers=1)
        self.scripted.serve(EnvelopeRequest, self.answer)
        self.asked: list[EnvelopeRequest] = []
        self.answers: list[Response] = []

    def answer(self, call: ScriptedCall) -> EnvelopeResponse:
        request = call.exchange.request
        assert isinstance(request, EnvelopeRequest)
        self.asked.append(request)
        frame = b"".join(response_frame(1, True, encode_parts(self.answers.pop(0), 3)))
        return EnvelopeResponse(response_data=frame[4:])


@asynccontextmanager
async def world() -> AsyncGenerator[tuple[World, Context]]:
    here = World()
    async with running_broker(RULES, environment=here.scripted.environment) as context:
        broker = here.scripted.brokers[0]
        state = BrokerState(THERE, {LISTENER: (broker.address, broker.port)})
        put = {
            broker_key(THERE): state.encode(),
            CONTROLLER_KEY: encode_controller(THERE),
            FEATURES_KEY: encode_features(SUPPORTED),
        }
        await context.metadata.applied(await context.metadata.store.commit(Txn(put=put)))
        yield here, context
    here.network.stop()


async def test_the_controller_is_asked_with_who_asked_and_its_answer_handed_back() -> None:
    async with world() as (here, context):
        here.answers.append(CreateAclsResponse(results=[AclCreationResult()]))
        assert not (await create(context, acl(), by=caller("admin", "10.1.2.3"))).results[0].error_code
        (envelope,) = here.asked
        assert decode_principal(envelope.request_principal or b"") == ("User", "admin")
        assert envelope.client_host_address == bytes((10, 1, 2, 3))
        header, position = read_request_header(envelope.request_data, True)
        assert (header.api_key, header.api_version) == (CreateAclsRequest.api_key, 3)
        request = decode(CreateAclsRequest, 3, envelope.request_data, position)
        assert request.creations == [creation(acl())]
        assert known(context) == set(), "the controller writes them"


async def test_one_that_is_not_it_any_more_is_asked_again() -> None:
    async with world() as (here, context):
        replaced = DeleteAclsFilterResult(error_code=ErrorCode.NOT_CONTROLLER)
        here.answers += [
            DeleteAclsResponse(filter_results=[replaced, replaced]),
            DeleteAclsResponse(filter_results=[DeleteAclsFilterResult()] * 2),
        ]
        answer = await delete(context, everything(), everything())
        assert [each.error_code for each in answer.filter_results] == [0, 0]
        assert len(here.asked) == 2


async def test_who_may_not_is_refused_here() -> None:
    """While requests are sent on in the name of the broker, whoever sent them, the controller could not tell."""
    async with world() as (here, context):
        answer = await create(context, acl(Operation.ALL, "*"), by=caller("alice"))
        assert answer.results[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert here.asked == []
