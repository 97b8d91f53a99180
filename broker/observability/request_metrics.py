"""What the broker counts. Counting is on every request's path and therefore plain additions; `prometheus_page.py` puts
the numbers into Prometheus' form when somebody asks for them.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from odradek.protocol.codec.schema import Buffer
from odradek.protocol.errors import ErrorCode

LATENCY_BOUNDS_MS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 10000.0)

LOOP_LAG_BOUNDS_MS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)


class ApiMetrics:
    """The counters of one API."""

    __slots__ = ("bytes_in", "bytes_out", "errors", "latency_counts", "latency_ms_sum", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.errors: dict[ErrorCode, int] = {}
        self.latency_counts = [0] * (len(LATENCY_BOUNDS_MS) + 1)
        self.latency_ms_sum = 0.0


class RequestMetrics:
    """All counters of one broker, changed by the event loop's thread only."""

    __slots__ = (
        "apis",
        "connections",
        "connections_refused",
        "loop_lag_counts",
        "loop_lag_ms_sum",
        "malformed_requests",
    )

    def __init__(self) -> None:
        self.apis: dict[str, ApiMetrics] = {}
        self.connections = 0
        self.connections_refused = 0
        self.malformed_requests = 0
        self.loop_lag_counts = [0] * (len(LOOP_LAG_BOUNDS_MS) + 1)
        self.loop_lag_ms_sum = 0.0

    def request_done(
        self,
        api: str,
        bytes_in: int,
        reply: Sequence[Buffer] | None,
        latency_ms: float,
        errors: Iterable[ErrorCode] | None,
    ) -> None:
        metrics = self.apis.get(api)
        if metrics is None:
            metrics = self.apis[api] = ApiMetrics()
        metrics.requests += 1
        metrics.bytes_in += bytes_in
        if reply is not None:
            metrics.bytes_out += sum(map(len, reply))
        metrics.latency_ms_sum += latency_ms
        metrics.latency_counts[bisect_left(LATENCY_BOUNDS_MS, latency_ms)] += 1
        if errors is not None:
            for code in errors:
                metrics.errors[code] = metrics.errors.get(code, 0) + 1
