"""From a frame to its reply: find the API, decode, handle, encode, count.

| the frame holds | what happens |
|---|---|
| an API key that is not advertised, or a version of it that is not | the connection closes, as Kafka does |
| ApiVersions in a version we do not know | its v0 answer with UNSUPPORTED_VERSION and our range (KIP-511) |
| an advertised version that is not served (Produce 0 to 2) | the connection closes; no current client sends it |
| a body that does not parse | the connection closes (`MalformedMessage`) |
| bytes after the body | ignored, as Kafka does: librdkafka sends some |
| more than `LARGE_BYTES` that are no records | a helper thread decodes it, and encodes the answer |
| rights that may be older than the newest ACLs | the connection closes (membership/standing.py) |
| a handler's unexpected failure | UNKNOWN_SERVER_ERROR in the API's own shape, and the trace in the log |
| what was allowed and is not any more, when the answer is there | refused (reauthorization.py) |
"""

import logging
from functools import partial
from typing import Any, NamedTuple

from odradek.broker.handling.context import Api, Call, Caller, CloseConnection, Context
from odradek.broker.handling.large_requests import is_large
from odradek.broker.handling.log_text import shown
from odradek.broker.handling.reauthorization import error_of_now, reauthorized, refusal_of, refused, rights_lost
from odradek.broker.observability.logged_request import LoggedRequest
from odradek.broker.observability.request_log import log_request, request_logger
from odradek.broker.observability.request_times import RequestTimes
from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.codec.schema import Buffer, Message
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage, TrailingBytes
from odradek.protocol.frames import FRAME_PREFIX_BYTES, peek_request, read_request_header, response_frame
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

logger = logging.getLogger(__name__)
is_logged = request_logger.isEnabledFor

API_VERSIONS = ApiVersionsRequest.api_key


async def dispatch(
    context: Context, caller: Caller, frame: memoryview, times: RequestTimes, *, is_forwarded: bool = False
) -> list[Buffer] | None:
    """The reply to one request frame, ready to be written; None where the protocol has no reply.

    What becomes of it is noted in `times`; in the end the caller calls `request_ended`. Raises CloseConnection or
    MalformedMessage where the connection must close.
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
    started_s = context.environment.precise_s()
    quotas = context.quotas
    is_flexible = api.request.is_flexible(version)
    header, position = read_request_header(frame, is_flexible)
    large = is_large(api, times.size_bytes)
    try:
        if large:
            request = await context.environment.run_computing(decode, api.request, version, frame, position)
        else:
            request = decode(api.request, version, frame, position)
    except TrailingBytes as error:
        # librdkafka 2.16 sends three bytes too many when it asks for all topics (Metadata v9 and later).
        request = error.message
    except MalformedMessage as error:
        raise MalformedMessage(
            f"{api.name} version {version} of client {shown(header.client_id)!r}: {error}"
        ) from error
    times.understood(api.name, version, started_s)
    call = Call(caller, version, correlation_id, header.client_id, times, is_forwarded=is_forwarded)
    if is_logged(logging.DEBUG):
        times.logged = _logged(api, call, request)
    reply = None
    try:
        if quotas is not None:
            await quotas.begins(api, call, request)
        # ApiVersions answers with the old header always, so that a client can read it before it knows us (KIP-511).
        reply = await _reply(context, api, call, request, is_flexible and api_key != API_VERSIONS, large)
    finally:  # also where the connection closes, or the client is gone
        size_bytes = 0 if reply is None else sum(map(len, reply))
        times.completed(size_bytes, context.environment.precise_s())
        if quotas is not None:
            quotas.completed(call)
    return reply


def request_ended(context: Context, times: RequestTimes, written_s: float, sent_s: float) -> None:
    """Counts a request that `dispatch` was given, if it was understood, and writes it to the request log."""
    times.rests_upon = None
    if times.name:
        context.metrics.request_done(times, written_s, sent_s)
        if times.logged is not None:
            log_request(times.logged, times, written_s, sent_s, context.config.request_log_slower_than_ms)


async def dispatch_alone(
    context: Context, caller: Caller, frame: memoryview, *, is_forwarded: bool = False
) -> list[Buffer] | None:
    """`dispatch` of a request that has no connection, and has ended when it is answered; it is counted then."""
    times = RequestTimes(context.environment.precise_s(), len(frame) + FRAME_PREFIX_BYTES)
    try:
        return await dispatch(context, caller, frame, times, is_forwarded=is_forwarded)
    finally:
        request_ended(context, times, times.completed_s, times.completed_s)


async def _reply(
    context: Context, api: Api, call: Call, request: Any, has_flexible_header: bool, large: bool
) -> list[Buffer] | None:
    try:
        answer = await _answered(context, api, call, request)
        if large:
            reply = await context.environment.run_computing(_framed, call, has_flexible_header, answer)
            if lost := rights_lost(context, call):
                raise refusal_of(lost)
        else:
            reply = _framed(call, has_flexible_header, answer)
        if api.is_eager and call.decisions is not None and reply is not None:
            call.times.rests_upon = Granted(context, api, call, request, has_flexible_header, answer)
        return reply
    except KafkaError as error:
        code = call.failed(error_of_now(context, call, error))
    except CloseConnection:
        raise
    except Exception as error:
        logger.exception("%s version %d of %s failed", api.name, call.version, call.caller.peer)
        code = call.failed(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{type(error).__name__}: {error}"))
    answer = api.fail(request, code)
    if context.quotas is not None:
        answer = context.quotas.answered(call, answer)
    return _framed(call, has_flexible_header, answer)


async def _answered(context: Context, api: Api, call: Call, request: Any) -> Any:
    """The answer, by the rights of now. Raises KafkaError, CloseConnection, and what else the handler raises."""
    if context.access.is_enforced and not context.access.is_certain(call):
        _turn_away(context, api, call)
    if context.interceptors.requests:
        answer = await _handled(context, api, call, request)
    else:
        answer = await api.handle(context, call, request)
    # Again: while it waited rights may have gone that it had when it began.
    if context.access.is_enforced and not context.access.is_certain(call):
        _turn_away(context, api, call)
    if answer is not None and (lost := rights_lost(context, call)):
        handle = partial(_handled, context, api, call)
        answer = await reauthorized(context, api, call, request, answer, lost, handle)
    return answer if context.quotas is None else context.quotas.answered(call, answer)


async def _handled(context: Context, api: Api, call: Call, request: Any) -> Any:
    """The handler's answer, through all interceptors. Raises KafkaError, CloseConnection, and what else they raise."""
    return await context.interceptors.answer(call, api, request, partial(api.handle, context, call))


class Granted(NamedTuple):
    """What the reply to a request of an eager API rests upon, which may be written behind others that still wait."""

    context: Context
    api: Api
    call: Call
    request: Any
    has_flexible_header: bool
    answer: Any

    def reply_of_now(self, reply: list[Buffer] | None) -> list[Buffer] | None:
        """The reply, or what takes its place where rights were lost while it waited for its turn."""
        context, api, call, request, has_flexible_header, answer = self
        if not (lost := rights_lost(context, call)):
            return reply
        try:
            return _framed(call, has_flexible_header, refused(context, api, call, answer, lost))
        except KafkaError as error:
            return _framed(call, has_flexible_header, api.fail(request, call.failed(error)))


def _turn_away(context: Context, api: Api, call: Call) -> None:
    """Raises CloseConnection, for this broker may not have the newest ACLs. An error that says so would end Java's
    clients, or be taken for a refusal; but a broker that sent the request on knows whom else to ask (KafkaError
    NOT_CONTROLLER). Who has not authenticated may go on: nothing is given away by that."""
    if api.is_before_authentication:
        return
    why = f"broker {context.identity.node_id} does not know whether it has the newest ACLs"
    if call.is_forwarded:
        raise KafkaError(ErrorCode.NOT_CONTROLLER, why)
    raise CloseConnection(f"{api.name} is not answered: {why}")


def _framed(call: Call, has_flexible_header: bool, response: Any) -> list[Buffer] | None:
    if response is None:
        return None
    if call.times.logged is not None:
        call.times.logged = call.times.logged._replace(response=response)
    return response_frame(call.correlation_id, has_flexible_header, encode_parts(response, call.version))


def _logged(api: Api, call: Call, request: Message) -> LoggedRequest:
    caller = call.caller
    return LoggedRequest(
        api_key=api.key,
        api_name=api.name,
        version=call.version,
        correlation_id=call.correlation_id,
        client_id=call.client_id,
        is_forwarded=call.is_forwarded,
        peer=caller.peer,
        principal=str(call.principal),
        listener=caller.listener,
        security_protocol=caller.protocol.name,
        software=caller.software,
        request=request,
        response=None,
    )


def _unsupported_api_versions(api: Api, correlation_id: int) -> list[Buffer]:
    lowest, highest = api.advertised
    response = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=API_VERSIONS, min_version=lowest, max_version=highest)],
    )
    return response_frame(correlation_id, False, encode_parts(response, 0))
