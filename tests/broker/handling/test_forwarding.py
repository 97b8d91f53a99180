"""What only the controller can answer, asked of a broker that is not: over sockets in memory."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from odradek.broker.access.principal import Principal
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
from odradek.broker.handling.context import Call as HandlerCall
from odradek.broker.handling.context import Caller, Context
from odradek.broker.handling.forwarding import RETRY_MS, forward
from odradek.broker.membership.peers import Peers
from odradek.broker.observability.request_times import RequestTimes
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.frames import read_request_header, response_frame
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from odradek.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from odradek.protocol.principal_data import decode_principal
from tests.broker.support import HERE, LISTENER, NODE_ID, ask, running_broker
from tests.client.broker_handlers import Call
from tests.client.memory_network import MemoryNetwork
from tests.client.scripted_broker import ScriptedCluster

pytestmark = pytest.mark.virtual_time

FIRST, SECOND = 1, 2
TIMEOUT_MS = 5_000
UNREGISTER = UnregisterBrokerRequest(broker_id=7)
NOBODY_THERE = UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message="who?")


class World:
    """Broker 0 is real, and brokers 1 and 2 are scripted."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.scripted = ScriptedCluster(self.network, brokers=2)
        self.asked: list[tuple[int, int, Any]] = []
        """Who was asked what, and in which version."""
        self.answers: dict[int, Any] = {}
        for request in (UnregisterBrokerRequest, ElectLeadersRequest, AlterPartitionReassignmentsRequest):
            self.scripted.serve(request, self.answer)

    def answer(self, call: Call) -> Any:
        node_id = call.broker.node_id + 1
        self.asked.append((node_id, call.exchange.version, call.exchange.request))
        return self.answers.get(node_id, UnregisterBrokerResponse(error_code=ErrorCode.NOT_CONTROLLER))

    @property
    def brokers(self) -> list[BrokerState]:
        return [
            HERE,
            *(
                BrokerState(each.node_id + 1, {LISTENER: (each.address, each.port)})
                for each in self.scripted.brokers.values()
            ),
        ]


@asynccontextmanager
async def world(controller_id: int = FIRST) -> AsyncGenerator[tuple[World, Context]]:
    here = World()
    async with running_broker(brokers=here.brokers) as context:
        context.member.peers = Peers(here.scripted.environment, NODE_ID, LISTENER)
        await elect(context, controller_id)
        yield here, context
    here.network.stop()


async def elect(context: Context, node_id: int) -> None:
    put = {CONTROLLER_KEY: encode_controller(node_id)}
    await context.metadata.applied(await context.metadata.store.commit(Txn(put=put)))


def call(client_id: str = "client") -> HandlerCall:
    return HandlerCall(Caller(LISTENER), 0, 1, client_id, RequestTimes(0.0, 0))


async def unregistered(context: Context) -> UnregisterBrokerResponse | None:
    return await forward(context, call(), UNREGISTER, TIMEOUT_MS)


async def test_the_answer_of_the_controller_is_handed_back() -> None:
    async with world() as (here, context):
        here.answers[FIRST] = NOBODY_THERE
        answer = await ask(context, UNREGISTER, 0)
        assert (answer.error_code, answer.error_message) == (ErrorCode.BROKER_ID_NOT_REGISTERED, "who?")
        assert [(who, request.broker_id) for who, _, request in here.asked] == [(FIRST, 7)]


async def test_an_old_request_is_forwarded_in_the_newest_version_and_answered_in_its_own() -> None:
    async with world() as (here, context):
        results = [ReplicaElectionResult(topic="orders", partition_result=[PartitionResult(partition_id=3)])]
        here.answers[FIRST] = ElectLeadersResponse(replica_election_results=results)
        topics = [TopicPartitions(topic="orders", partitions=[3])]
        answer = await ask(context, ElectLeadersRequest(topic_partitions=topics, timeout_ms=TIMEOUT_MS), 0)
        assert answer.replica_election_results == results
        [(_, version, request)] = here.asked
        assert (version, request.election_type, request.topic_partitions) == (2, 0, topics)


async def test_reassignments_are_sent_on_too() -> None:
    async with world() as (here, context):
        here.answers[FIRST] = AlterPartitionReassignmentsResponse(responses=[], error_message="done")
        request = AlterPartitionReassignmentsRequest(topics=[], timeout_ms=TIMEOUT_MS)
        assert (await ask(context, request, 1)).error_message == "done"


async def test_another_one_is_asked_when_the_first_is_not_the_controller_any_more() -> None:
    async with world() as (here, context):
        here.answers[SECOND] = NOBODY_THERE
        asking = context.tasks.start(unregistered(context), "ask")
        await context.environment.sleep(RETRY_MS / 2)
        await elect(context, SECOND)
        assert (await asking) == NOBODY_THERE
        assert [who for who, _, _ in here.asked] == [FIRST, SECOND]


async def test_another_one_is_asked_when_nobody_listens_at_the_first() -> None:
    async with world() as (here, context):
        here.answers[SECOND] = NOBODY_THERE
        here.scripted.brokers[FIRST - 1].stop()
        asking = context.tasks.start(unregistered(context), "ask")
        await context.environment.sleep(3 * RETRY_MS)
        await elect(context, SECOND)
        assert (await asking) == NOBODY_THERE


async def test_a_broker_that_becomes_the_controller_meanwhile_answers_itself() -> None:
    async with world() as (here, context):
        asking = context.tasks.start(unregistered(context), "ask")
        await context.environment.sleep(RETRY_MS / 2)
        await context.metadata.applied(await context.metadata.store.commit(Txn(delete=(CONTROLLER_KEY,))))
        await context.member.controller.work()
        assert context.member.controller.is_active
        assert await asking is None
        assert {who for who, _, _ in here.asked} == {FIRST}


async def test_while_nobody_is_the_controller_the_request_waits_for_as_long_as_it_may() -> None:
    async with world() as (here, context):
        await context.metadata.applied(await context.metadata.store.commit(Txn(delete=(broker_key(FIRST),))))
        began_ms = context.environment.monotonic_ms()
        with pytest.raises(KafkaError) as raised:
            await forward(context, call(), UNREGISTER, TIMEOUT_MS)
        assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert TIMEOUT_MS <= context.environment.monotonic_ms() - began_ms < TIMEOUT_MS + RETRY_MS
        assert here.asked == []


async def test_what_another_broker_sent_on_is_not_sent_on_again() -> None:
    async with world() as (here, context):
        with pytest.raises(KafkaError) as raised:
            await forward(context, call("broker-2"), UNREGISTER, TIMEOUT_MS)
        assert raised.value.code is ErrorCode.NOT_CONTROLLER
        assert here.asked == []


# -- in an Envelope, once all brokers can take one --------------------------------------------------------------------


@asynccontextmanager
async def world_with_envelopes() -> AsyncGenerator[tuple[World, Context]]:
    async with world() as (here, context):
        here.scripted.serve(EnvelopeRequest, here.answer)
        put = {FEATURES_KEY: encode_features(SUPPORTED)}
        await context.metadata.applied(await context.metadata.store.commit(Txn(put=put)))
        yield here, context


def in_envelope(response: Response, correlation_id: int = 1) -> EnvelopeResponse:
    frame = b"".join(response_frame(correlation_id, True, encode_parts(response, 0)))
    return EnvelopeResponse(response_data=frame[4:])


async def test_a_request_goes_in_an_envelope_and_its_answer_is_handed_back() -> None:
    async with world_with_envelopes() as (here, context):
        here.answers[FIRST] = in_envelope(NOBODY_THERE)
        asker = HandlerCall(Caller(LISTENER, "10.1.2.3:4", "10.1.2.3"), 0, 1, "client", RequestTimes(0.0, 0))
        asker.caller.principal = Principal("User", "alice")
        assert await forward(context, asker, UNREGISTER, TIMEOUT_MS) == NOBODY_THERE
        [(_, version, envelope)] = here.asked
        assert version == 0
        assert envelope.client_host_address == bytes((10, 1, 2, 3))
        assert decode_principal(envelope.request_principal) == ("User", "alice")
        header, position = read_request_header(envelope.request_data, True)
        assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (64, 0, 1, "client")
        assert decode(UnregisterBrokerRequest, 0, envelope.request_data, position) == UNREGISTER


async def test_a_client_id_is_believed_no_longer() -> None:
    async with world_with_envelopes() as (here, context):
        here.answers[FIRST] = in_envelope(NOBODY_THERE)
        assert await forward(context, call("broker-2"), UNREGISTER, TIMEOUT_MS) == NOBODY_THERE


async def test_what_came_in_an_envelope_is_not_sent_on_again() -> None:
    async with world_with_envelopes() as (here, context):
        again = HandlerCall(Caller(LISTENER), 0, 1, "client", RequestTimes(0.0, 0), is_forwarded=True)
        with pytest.raises(KafkaError) as raised:
            await forward(context, again, UNREGISTER, TIMEOUT_MS)
        assert raised.value.code is ErrorCode.NOT_CONTROLLER
        assert here.asked == []


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (EnvelopeResponse(response_data=b"\0\0"), ErrorCode.REQUEST_TIMED_OUT),
    ],
)
async def test_what_is_wrong_with_an_envelope_is_told(answer: EnvelopeResponse, code: ErrorCode) -> None:
    async with world_with_envelopes() as (here, context):
        here.answers[FIRST] = answer
        with pytest.raises(KafkaError) as raised:
            await forward(context, call(), UNREGISTER, TIMEOUT_MS)
        assert raised.value.code is code
