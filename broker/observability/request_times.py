"""One request on its way through the broker: when it came, when each phase ended, and how it is counted.

| phase | in Kafka | here |
|---|---|---|
| read ahead | RequestQueueTimeMs | from the last byte of the request until it begins; those before it come first |
| handler | LocalTimeMs | the broker works for it: decoding, log, disk, encoding |
| waiting | RemoteTimeMs | for replicas, for data, for the metadata store, for another broker |
| quota | ThrottleTimeMs | for how long a quota silences the client after this |
| reply queue | ResponseQueueTimeMs | the answer is there, and those before it are written first |
| transport | ResponseSendTimeMs | the client does not read: its socket is full |

All but the handler's time are measured; that is what is left (`kafka.network.RequestChannel.Request`).
"""

from typing import Final, Protocol

from odradek.broker.observability.logged_request import LoggedRequest
from odradek.protocol.errors import ErrorCode
from odradek.protocol.primitives import Buffer

MS_PER_S: Final = 1000.0
FETCH_CONSUMER: Final = "FetchConsumer"
FETCH_FOLLOWER: Final = "FetchFollower"
"""Fetches are counted apart, as in Kafka: the one waits for data, the other one most of the time."""


class Rights(Protocol):
    """What was granted to a request whose reply may be written behind others."""

    def reply_of_now(self, reply: list[Buffer] | None) -> list[Buffer] | None:
        """The reply, or what takes its place by the rights of now."""
        ...


class RequestTimes:
    """Times and durations in seconds of `Environment.precise_s`."""

    __slots__ = (
        "completed_s",
        "conversions_s",
        "counted_s",
        "errors",
        "logged",
        "name",
        "received_s",
        "remote_s",
        "reply_bytes",
        "rests_upon",
        "size_bytes",
        "started_s",
        "throttle_s",
        "throttled_until_ms",
        "version",
        "waits_since_s",
    )

    def __init__(self, received_s: float, size_bytes: int) -> None:
        """`size_bytes`: of the request, with the length before it."""
        self.received_s = received_s
        self.size_bytes = size_bytes
        self.name = ""
        """Of its API, as Kafka's metrics have it; empty until the request has been understood."""
        self.remote_s = self.throttle_s = self.conversions_s = self.waits_since_s = self.completed_s = 0.0
        self.counted_s = 0.0
        """What of the handler's time a quota has counted already; infinite: none of it counts."""
        self.throttled_until_ms = 0.0
        """Until when a quota wants the client to be silent, by `Environment.monotonic_ms`; 0: no quota does."""
        self.errors: list[ErrorCode] | None = None
        self.logged: LoggedRequest | None = None
        """None: the request log is off."""
        self.rests_upon: Rights | None = None
        """Without an authorizer, and where the reply is written at once: None."""

    def understood(self, name: str, version: int, started_s: float) -> None:
        """It is one of these, and was begun at that time; it will be completed."""
        self.name = name
        self.version = version
        self.started_s = started_s

    def waits(self, now_s: float) -> None:
        """From now on it waits for others, until `goes_on` or its end."""
        self.waits_since_s = now_s

    def goes_on(self, now_s: float) -> None:
        """It waits no longer."""
        if self.waits_since_s:
            self.remote_s += now_s - self.waits_since_s
            self.waits_since_s = 0.0

    def completed(self, reply_bytes: int, now_s: float) -> None:
        """The answer is there, or that there is none."""
        if self.waits_since_s:
            self.goes_on(now_s)
        self.reply_bytes = reply_bytes
        self.completed_s = now_s

    @property
    def queue_s(self) -> float:
        return self.started_s - self.received_s

    @property
    def local_s(self) -> float:
        return max(0.0, self.completed_s - self.started_s - self.remote_s)

    def worked_s(self, now_s: float) -> float:
        """The handler's time of a request that has begun, so far."""
        if self.completed_s:
            return self.local_s
        waited_s = self.remote_s + (now_s - self.waits_since_s if self.waits_since_s else 0.0)
        return max(0.0, now_s - self.started_s - waited_s)
