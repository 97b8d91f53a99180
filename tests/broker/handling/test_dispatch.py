"""Dispatch: each row of the table in `broker/handling/dispatch.py`, and what the metrics say afterwards."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from odradek.broker.handling.context import Api, Call, Caller, CloseConnection, Context
from odradek.broker.handling.dispatch import dispatch_alone
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.frames import RequestHeader, read_response_header, request_frame
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.broker.support import ask, make_topic, running_broker

CALLER = Caller("PLAINTEXT", "192.0.2.1:1234")
Handler = Callable[[Context, Call, Any], Awaitable[Any]]


def frame(api_key: int, version: int, body: bytes = b"", *, flexible: bool = False) -> memoryview:
    """A request frame without its length, as the connection hands it on."""
    header = RequestHeader(api_key, version, 42, "a client")
    return memoryview(b"".join(request_frame(header, flexible, [body])))[4:]


def with_handler(context: Context, api_key: int, handler: Handler) -> None:
    """Another handler for one API, in this context alone."""
    api: Api = context.served[api_key]
    context.served = {**context.served, api_key: replace(api, handle=handler)}


async def body_of(context: Context, request_frame: memoryview, *, flexible_header: bool) -> tuple[int, bytes]:
    reply = await dispatch_alone(context, CALLER, request_frame)
    assert reply is not None
    data = b"".join(reply)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    correlation_id, position = read_response_header(data[4:], flexible_header)
    return correlation_id, data[4 + position :]


@pytest.mark.parametrize(
    ("api_key", "version", "said"),
    [
        (999, 0, r"API key 999 \(version 0\) is not served"),
        (-1, 0, r"API key -1"),
        (MetadataRequest.api_key, 99, r"Metadata version 99 is not served; served are 0 to 13"),
        (MetadataRequest.api_key, -1, r"Metadata version -1"),
        (ListOffsetsRequest.api_key, 0, r"ListOffsets version 0 is not served; served are 1 to 11"),
        # Advertised for the sake of librdkafka, which switches codecs off otherwise, and used by no current client.
        (ProduceRequest.api_key, 2, r"Produce version 2 is not served; served are 3 to 13"),
    ],
)
async def test_what_is_not_served_closes_the_connection(api_key: int, version: int, said: str) -> None:
    async with running_broker() as context:
        with pytest.raises(CloseConnection, match=said):
            await dispatch_alone(context, CALLER, frame(api_key, version))


@pytest.mark.parametrize("version", [6, 99, -1])
async def test_an_unknown_version_of_api_versions_is_answered_in_v0_with_our_range(version: int) -> None:
    """KIP-511: whatever the rest of the frame looks like, for its header may be of a kind that we do not know."""
    async with running_broker() as context:
        request = memoryview(bytes(frame(ApiVersionsRequest.api_key, version)) + b"\xff" * 20)
        correlation_id, body = await body_of(context, request, flexible_header=False)
    answer = decode(ApiVersionsResponse, 0, body)
    assert (correlation_id, answer.error_code) == (42, ErrorCode.UNSUPPORTED_VERSION)
    (ours,) = answer.api_keys
    assert (ours.api_key, ours.min_version, ours.max_version) == (18, 0, 5)


async def test_api_versions_has_the_old_header_at_every_version_and_others_the_new_one() -> None:
    async with running_broker() as context:
        request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
        api_versions = frame(ApiVersionsRequest.api_key, 4, encode(request, 4), flexible=True)
        correlation_id, body = await body_of(context, api_versions, flexible_header=False)
        assert (correlation_id, decode(ApiVersionsResponse, 4, body).error_code) == (42, 0)
        metadata = frame(MetadataRequest.api_key, 12, encode(MetadataRequest(topics=[]), 12), flexible=True)
        correlation_id, body = await body_of(context, metadata, flexible_header=True)
        assert (correlation_id, decode(MetadataResponse, 12, body).topics) == (42, [])


async def test_a_body_that_does_not_parse_closes_the_connection_and_says_whose_it_was() -> None:
    async with running_broker() as context:
        with pytest.raises(MalformedMessage, match=r"^Metadata version 4 of client 'a client': "):
            await dispatch_alone(context, CALLER, frame(MetadataRequest.api_key, 4, b"\x7f\xff\xff\xff"))
        with pytest.raises(MalformedMessage):
            await dispatch_alone(context, CALLER, memoryview(b"\x00"))
        assert context.metrics.apis == {}


async def test_bytes_after_the_body_are_ignored() -> None:
    """librdkafka 2.16 sends three of them with some Metadata requests."""
    async with running_broker() as context:
        body = encode(MetadataRequest(topics=[]), 9) + bytes(3)
        request = frame(MetadataRequest.api_key, 9, body, flexible=True)
        _, answer = await body_of(context, request, flexible_header=True)
    assert decode(MetadataResponse, 9, answer).topics == []


async def test_a_handlers_kafka_error_is_answered_in_the_apis_own_shape() -> None:
    async def refuse(context: Context, call: Call, request: Any) -> Any:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "no")

    async with running_broker() as context:
        await make_topic(context, "orders")
        with_handler(context, ProduceRequest.api_key, refuse)
        answer = await ask(context, produce(1), 9)
        assert code_of(answer) == ErrorCode.INVALID_REQUEST
        assert context.metrics.apis["Produce"].errors == {ErrorCode.INVALID_REQUEST: 1}


@pytest.mark.parametrize("mistake", ["raises", "answers nonsense"])
async def test_a_handlers_mistake_answers_unknown_server_error_and_logs_the_trace(
    mistake: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nonsense is found when it is encoded; the connection must get an answer then, too."""

    async def stumble(context: Context, call: Call, request: Any) -> Any:
        if mistake == "raises":
            raise ZeroDivisionError("our mistake")
        return ProduceResponse(responses=[None])  # type: ignore[list-item]  # pyright: ignore

    async with running_broker() as context:
        with_handler(context, ProduceRequest.api_key, stumble)
        answer = await ask(context, produce(1), 9)
        assert code_of(answer) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert context.metrics.apis["Produce"].errors == {ErrorCode.UNKNOWN_SERVER_ERROR: 1}
    (record,) = caplog.records
    assert record.getMessage().startswith("Produce version 9 of unknown failed")
    assert record.exc_info is not None


async def test_the_metrics_count_what_came_and_went() -> None:
    async with running_broker() as context:
        request = frame(MetadataRequest.api_key, 4, encode(MetadataRequest(topics=[]), 4))
        reply = await dispatch_alone(context, CALLER, request)
        assert reply is not None
        counted = context.metrics.apis["Metadata"]
        assert (counted.requests, counted.size.sum, counted.bytes_out) == (
            1,
            len(request) + 4,
            sum(len(part) for part in reply),
        )
        assert sum(counted.total.counts) == 1


async def test_a_request_that_closes_the_connection_is_counted_with_its_bytes_and_errors() -> None:
    async with running_broker() as context:
        body = encode(produce(0, topic="nowhere"), 9)
        request = frame(ProduceRequest.api_key, 9, body, flexible=True)
        with pytest.raises(CloseConnection, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await dispatch_alone(context, CALLER, request)
        counted = context.metrics.apis["Produce"]
        assert (counted.requests, counted.size.sum, counted.bytes_out) == (1, len(request) + 4, 0)
        assert counted.errors == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 1}


def produce(acks: int, topic: str = "orders") -> ProduceRequest:
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=b"")])
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=[data])


def code_of(answer: ProduceResponse) -> int:
    ((partition,),) = (topic.partition_responses for topic in answer.responses)
    return partition.error_code
