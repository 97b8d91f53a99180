"""From a frame to its reply: find the API, decode, handle, encode, count.

| the frame holds | what happens |
|---|---|
| an API key that is not advertised, or a version of it that is not | the connection closes, as Kafka does |
| ApiVersions in a version we do not know | its v0 answer with UNSUPPORTED_VERSION and our range (KIP-511) |
| an advertised version that is not served (Produce 0 to 2) | the connection closes; no current client sends it |
| a body that does not parse | the connection closes (`MalformedMessage`) |
| bytes after the body | ignored, as Kafka does: librdkafka sends some |
| a handler's unexpected failure | UNKNOWN_SERVER_ERROR in the API's own shape, and the trace in the log |
"""

import logging
from functools import partial
from typing import Any

from odradek.broker.handling.context import Api, Call, Caller, CloseConnection, Context
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Buffer
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage, TrailingBytes
from odradek.protocol.frames import peek_request, read_request_header, response_frame
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

logger = logging.getLogger(__name__)

API_VERSIONS = ApiVersionsRequest.api_key
FRAME_PREFIX_BYTES = 4
"""The length before each frame, which counts as received too."""


async def dispatch(
    context: Context, caller: Caller, frame: memoryview, *, is_forwarded: bool = False
) -> list[Buffer] | None:
    """The reply to one request frame, ready to be written; None where the protocol has no reply.

    Raises CloseConnection or MalformedMessage where the connection must close.
    """
    api_key, version, correlation_id = peek_request(frame)
    api = context.served.get(api_key)
    if api is None:
        raise CloseConnection(f"API key {api_key} (version {version}) is not served")
    lowest, highest = api.served
    if not lowest <= version <= highest:
        if api_key == API_VERSIONS:
            return _unsupported_api_versions(api, correlation_id)
        raise CloseConnection(f"{api.name} version {version} is not served; served are {lowest} to {highest}")
    started_ms = context.environment.monotonic_ms()
    is_flexible = api.request.is_flexible(version)
    header, position = read_request_header(frame, is_flexible)
    try:
        request = decode(api.request, version, frame, position)
    except TrailingBytes as error:
        # librdkafka 2.16 sends three bytes too many when it asks for all topics (Metadata v9 and later).
        request = error.message
    except MalformedMessage as error:
        raise MalformedMessage(f"{api.name} version {version} of client {header.client_id!r}: {error}") from error
    call = Call(caller, version, correlation_id, header.client_id, is_forwarded=is_forwarded)
    reply = None
    try:
        # ApiVersions answers with the old header always, so that a client can read it before it knows us (KIP-511).
        reply = await _reply(context, api, call, request, is_flexible and api_key != API_VERSIONS)
    finally:  # also where the connection closes, or the client is gone
        latency_ms = context.environment.monotonic_ms() - started_ms
        context.metrics.request_done(api.name, len(frame) + FRAME_PREFIX_BYTES, reply, latency_ms, call.errors)
    return reply


async def _reply(
    context: Context, api: Api, call: Call, request: Any, has_flexible_header: bool
) -> list[Buffer] | None:
    try:
        if context.interceptors.requests:
            handle = partial(api.handle, context, call)
            answer = await context.interceptors.answer(call, api, request, handle)
        else:
            answer = await api.handle(context, call, request)
        return _framed(call, has_flexible_header, answer)
    except KafkaError as error:
        code = call.failed(error)
    except CloseConnection:
        raise
    except Exception as error:
        logger.exception("%s version %d of %s failed", api.name, call.version, call.caller.peer)
        code = call.failed(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}"))
    return _framed(call, has_flexible_header, api.fail(request, code))


def _framed(call: Call, has_flexible_header: bool, response: Any) -> list[Buffer] | None:
    if response is None:
        return None
    return response_frame(call.correlation_id, has_flexible_header, encode_parts(response, call.version))


def _unsupported_api_versions(api: Api, correlation_id: int) -> list[Buffer]:
    lowest, highest = api.served
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=API_VERSIONS, min_version=lowest, max_version=highest)],
    )
    return response_frame(correlation_id, False, encode_parts(response, 0))
