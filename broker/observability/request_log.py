"""Each request in a line of the log (logger `kafka.request.logger`), as Apache Kafka writes it.

    Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":0,…},"connection":"127.0.0.1:51234",
    "totalTimeMs":0.31,"requestQueueTimeMs":0.05,"localTimeMs":0.2,"remoteTimeMs":0.0,"throttleTimeMs":0.0,
    "responseQueueTimeMs":0.06,"sendTimeMs":0.0,"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS",…}

DEBUG writes that, TRACE the request and the answer as well, without what is sensitive (`contents`). With
`request.log.slower.than.ms` only what took longer is written. A logger that is off costs one question a request.
"""

import json
import logging
from typing import Any, Final

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.topic_options import TOPIC_OPTIONS
from odradek.broker.observability.logged_request import LoggedRequest
from odradek.broker.observability.request_times import MS_PER_S, RequestTimes
from odradek.protocol.codec.contents import contents
from odradek.protocol.codec.schema import Struct

LOGGER_NAME: Final = "kafka.request.logger"
TRACE: Final = 5
"""Below DEBUG, which is the lowest level that Python names."""

request_logger: Final = logging.getLogger(LOGGER_NAME)


def log_request(
    logged: LoggedRequest, times: RequestTimes, written_s: float, sent_s: float, slower_than_ms: int
) -> None:
    """Writes one line, if it took so long."""
    if (sent_s - times.received_s) * MS_PER_S >= slower_than_ms:
        described = describe(logged, times, written_s, sent_s, has_contents=request_logger.isEnabledFor(TRACE))
        request_logger.debug("Completed request:%s", json.dumps(described, separators=(",", ":")))


def describe(
    logged: LoggedRequest, times: RequestTimes, written_s: float, sent_s: float, *, has_contents: bool
) -> dict[str, Any]:
    """The line's object, under the names of RequestConvertToJson.java."""
    name, _, version = logged.software.partition(" ")
    told: dict[str, Any] = {
        "isForwarded": logged.is_forwarded,
        "requestHeader": {
            "requestApiKey": logged.api_key,
            "requestApiKeyName": logged.api_name,
            "requestApiVersion": logged.version,
            "correlationId": logged.correlation_id,
            "clientId": logged.client_id,
        },
    }
    if has_contents:
        told["request"] = contents(logged.request, logged.version, may_be_shown)
        if logged.response is not None:
            told["response"] = contents(logged.response, logged.version, may_be_shown)
    return told | {
        "connection": logged.peer,
        "totalTimeMs": _ms(sent_s - times.received_s),
        "requestQueueTimeMs": _ms(times.queue_s),
        "localTimeMs": _ms(times.local_s),
        "remoteTimeMs": _ms(times.remote_s),
        "throttleTimeMs": _ms(times.throttle_s),
        "responseQueueTimeMs": _ms(written_s - times.completed_s),
        "sendTimeMs": _ms(sent_s - written_s),
        "securityProtocol": logged.security_protocol,
        "principal": logged.principal,
        "listener": logged.listener,
        "clientInformation": {"softwareName": name or "unknown", "softwareVersion": version or "unknown"},
    }


def may_be_shown(struct: Struct) -> bool:
    """Whether the value of an option may stand in the log: it is known, and none that is sensitive."""
    name = getattr(struct, "name", None)
    option = TOPIC_OPTIONS.get(name) or BROKER_OPTIONS.get(name) if isinstance(name, str) else None
    return option is not None and not option.is_sensitive


def _ms(duration_s: float) -> float:
    return round(duration_s * MS_PER_S, 3)
