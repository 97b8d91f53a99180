"""Envelope: what a broker sends on is handled in the name of its client, and nothing else may be in one."""

from typing import Any

import pytest

from odradek.broker.access.access import Access, Asker
from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, Resource
from odradek.broker.handling.context import Caller, CloseConnection, Context
from odradek.broker.handling.dispatch import dispatch_alone
from odradek.protocol.codec.codec import decode, encode, encode_parts
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, MalformedMessage
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from odradek.protocol.principal_data import decode_principal, encode_principal
from tests.broker.api.controlling import controller
from tests.broker.support import ask, running_broker
from tests.broker.transactions import Denying

UNREGISTER = UnregisterBrokerRequest(broker_id=77)
ALICE = encode_principal("User", "alice")
HERE = bytes((10, 0, 0, 7))


def wrapped(
    request: Request[Any] = UNREGISTER, version: int = 0, principal: bytes | None = ALICE, host: bytes = HERE
) -> EnvelopeRequest:
    header = RequestHeader(request.api_key, version, 5, "client")
    frame = b"".join(request_frame(header, request.is_flexible(version), encode_parts(request, version)))[4:]
    return EnvelopeRequest(request_data=frame, request_principal=principal, client_host_address=host)


def raw(data: bytes) -> EnvelopeRequest:
    return EnvelopeRequest(request_data=data, request_principal=ALICE, client_host_address=HERE)


def inside(response: Response, cls: type[UnregisterBrokerResponse] = UnregisterBrokerResponse) -> Any:
    assert isinstance(response, EnvelopeResponse)
    assert response.error_code == ErrorCode.NONE
    assert response.response_data is not None
    correlation_id, position = read_response_header(response.response_data, True)
    assert correlation_id == 5
    return decode(cls, 0, response.response_data, position)


class Watching(Access):
    """Keeps who asked for what."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Operation]] = []
        self.is_enforced = True

    def permits(self, asker: Asker, operation: Operation, resource: Resource, *, logs_refusal: bool = True) -> bool:
        del logs_refusal
        self.asked.append((str(asker.principal), asker.host, operation))
        return operation is not Operation.ALTER or str(asker.principal) != "User:mallory"


async def sent(context: Context, envelope: EnvelopeRequest) -> EnvelopeResponse:
    answer = await ask(context, envelope, 0, caller=Caller("PLAINTEXT", "10.0.0.2:5", "10.0.0.2"))
    assert isinstance(answer, EnvelopeResponse)
    return answer


async def test_the_client_is_asked_for_and_the_broker_too() -> None:
    access = Watching()
    async with controller() as context:
        context.access = access
        answer = inside(await sent(context, wrapped()))
        assert (answer.error_code, answer.error_message) == (
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Broker ID 77 is not currently registered",
        )
        assert access.asked == [
            ("User:ANONYMOUS", "10.0.0.2", Operation.CLUSTER_ACTION),
            ("User:alice", "10.0.0.7", Operation.ALTER),
        ]
        refused = inside(await sent(context, wrapped(principal=encode_principal("User", "mallory"))))
        assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_who_is_not_the_controller_says_so_and_sends_nothing_on() -> None:
    async with running_broker() as context:
        assert inside(await sent(context, wrapped())).error_code == ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        (wrapped(MetadataRequest(topics=None), 12), ErrorCode.INVALID_REQUEST),
        (wrapped(ApiVersionsRequest(), 3), ErrorCode.INVALID_REQUEST),
        (wrapped(wrapped()), ErrorCode.INVALID_REQUEST),
        (raw(b"\x03\xe7\0\0\0\0\0\0"), ErrorCode.INVALID_REQUEST),
        (raw(b""), ErrorCode.INVALID_REQUEST),
        (
            raw(b"\0\x40\0\0\0\0\0\1\xff\xff"),
            ErrorCode.INVALID_REQUEST,
        ),
        (
            raw(b"\0\x40\0\7\0\0\0\1\xff\xff\0"),
            ErrorCode.INVALID_REQUEST,
        ),
        (wrapped(host=b""), ErrorCode.INVALID_REQUEST),
        (wrapped(host=b"\1" * 5), ErrorCode.INVALID_REQUEST),
        (wrapped(principal=b""), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (wrapped(principal=b"\0\1" + ALICE[2:]), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (wrapped(principal=ALICE[:-4]), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
    ],
)
async def test_what_may_not_be_in_one_is_refused(envelope: EnvelopeRequest, code: ErrorCode) -> None:
    async with controller() as context:
        assert (await sent(context, envelope)).error_code == code


async def test_it_is_taken_on_the_brokers_listener_alone_and_never_advertised() -> None:
    async with controller() as context:
        answer = await ask(context, wrapped(), 0, listener="EXTERNAL")
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        for listener in ("PLAINTEXT", "EXTERNAL"):
            told = await ask(context, ApiVersionsRequest(), 2, listener=listener)
            assert EnvelopeRequest.api_key not in [each.api_key for each in told.api_keys]


@pytest.mark.parametrize("end", [-1, 9])
async def test_an_envelope_that_is_cut_closes_the_connection(end: int) -> None:
    async with controller() as context:
        header = RequestHeader(EnvelopeRequest.api_key, 0, 1, "x")
        frame = b"".join(request_frame(header, True, [encode(wrapped(), 0)]))[4:]
        with pytest.raises((MalformedMessage, CloseConnection)):
            await dispatch_alone(context, Caller("PLAINTEXT"), memoryview(frame[:end]))


def test_a_principal_comes_back_as_java_writes_it() -> None:
    assert ALICE == b"\0\0" + b"\x05User" + b"\x06alice" + b"\0" + b"\0"
    assert decode_principal(ALICE) == ("User", "alice")


async def test_an_envelope_in_nobodys_name_is_refused() -> None:
    async with controller() as context:
        answer = await sent(context, wrapped(principal=None))
        assert answer.error_code == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


async def test_who_may_not_act_for_the_cluster_sends_nothing_on() -> None:
    async with controller() as context:
        context.access = Denying((Operation.CLUSTER_ACTION, CLUSTER))
        for principal in (ALICE, None):
            answer = await sent(context, wrapped(principal=principal))
            assert (answer.error_code, answer.response_data) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
