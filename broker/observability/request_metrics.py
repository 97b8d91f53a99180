"""What the broker counts of requests and connections. Counting is on every request's path, and therefore plain
additions; `request_samples.py` reads the numbers when somebody asks for them.

What is nearly always 0 is added up where it is not: phases that did not happen, and waits below the first bound. Those
are in the first bucket, which is worked out when somebody looks.
"""

from bisect import bisect_left
from typing import Final

from odradek.broker.observability.histogram import Histogram
from odradek.broker.observability.request_times import MS_PER_S, RequestTimes
from odradek.protocol.errors import ErrorCode

PHASE_BOUNDS_MS: Final = (
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 10000.0,
)  # fmt: skip
PHASE_BOUNDS_S: Final = tuple(bound / MS_PER_S for bound in PHASE_BOUNDS_MS)
SHORTEST_S: Final = PHASE_BOUNDS_S[0]
REQUEST_BOUNDS_BYTES: Final = tuple(4.0**power for power in range(3, 14))
LOOP_LAG_BOUNDS_S: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


class ApiMetrics:
    """The counters of one API."""

    __slots__ = (
        "bytes_out",
        "conversions",
        "errors",
        "local",
        "queue",
        "remote",
        "reply_queue",
        "send",
        "size",
        "throttle",
        "total",
        "versions",
    )

    def __init__(self) -> None:
        self.versions: dict[int, int] = {}
        """How many requests, by version."""
        self.bytes_out = 0
        self.errors: dict[ErrorCode, int] = {}
        self.size = Histogram(REQUEST_BOUNDS_BYTES)
        self.total = Histogram(PHASE_BOUNDS_S)  # phases are in seconds
        self.queue = Histogram(PHASE_BOUNDS_S)
        self.local = Histogram(PHASE_BOUNDS_S)
        self.remote = Histogram(PHASE_BOUNDS_S)
        self.throttle = Histogram(PHASE_BOUNDS_S)
        self.reply_queue = Histogram(PHASE_BOUNDS_S)
        self.send = Histogram(PHASE_BOUNDS_S)
        self.conversions = Histogram(PHASE_BOUNDS_S)

    @property
    def requests(self) -> int:
        return sum(self.versions.values())


class RequestMetrics:
    """All counters of one broker, changed by the event loop's thread only."""

    __slots__ = (
        "apis",
        "connections",
        "connections_refused",
        "connections_unauthenticated",
        "loop_lag",
        "malformed_requests",
        "tls_handshakes_failed",
    )

    def __init__(self) -> None:
        self.apis: dict[str, ApiMetrics] = {}
        self.connections = 0
        self.connections_refused = 0
        self.connections_unauthenticated = 0
        self.tls_handshakes_failed: dict[str, int] = {}
        """By listener."""
        self.malformed_requests = 0
        self.loop_lag = Histogram(LOOP_LAG_BOUNDS_S)

    def request_done(self, times: RequestTimes, written_s: float, sent_s: float) -> None:
        """A request has ended: its answer is given to the transport, and the transport has room for another one."""
        api = self.apis.get(times.name)
        if api is None:
            api = self.apis[times.name] = ApiMetrics()
        version, versions = times.version, api.versions
        versions[version] = versions.get(version, 0) + 1
        api.bytes_out += times.reply_bytes
        size, size_bytes = api.size, times.size_bytes
        size.sum += size_bytes
        size.counts[bisect_left(REQUEST_BOUNDS_BYTES, size_bytes)] += 1
        started_s, completed_s = times.started_s, times.completed_s
        total, total_s = api.total, sent_s - times.received_s
        total.sum += total_s
        total.counts[bisect_left(PHASE_BOUNDS_S, total_s)] += 1
        local_s = completed_s - started_s
        if (remote_s := times.remote_s) > 0.0:
            local_s -= remote_s
            api.remote.observe(remote_s)
        api.local.sum += local_s
        if total_s > SHORTEST_S:  # else no phase is longer
            if local_s > SHORTEST_S:
                api.local.counts[bisect_left(PHASE_BOUNDS_S, local_s)] += 1
            _observe(api.queue, started_s - times.received_s)
            _observe(api.reply_queue, written_s - completed_s)
        else:
            api.queue.sum += started_s - times.received_s
            api.reply_queue.sum += written_s - completed_s
        if sent_s > written_s:
            api.send.observe(sent_s - written_s)
        if times.throttle_s > 0.0:
            api.throttle.observe(times.throttle_s)
        if times.conversions_s > 0.0:
            api.conversions.observe(times.conversions_s)
        if times.errors is not None:
            for code in times.errors:
                api.errors[code] = api.errors.get(code, 0) + 1


def _observe(histogram: Histogram, value_s: float) -> None:
    histogram.sum += value_s
    if value_s > SHORTEST_S:
        histogram.counts[bisect_left(PHASE_BOUNDS_S, value_s)] += 1
