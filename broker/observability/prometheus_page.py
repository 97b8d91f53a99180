"""The page that Prometheus scrapes (`--metrics HOST:PORT`): the broker's counters and the sizes of its logs.

`prometheus_client` is imported when the first scrape comes, so a broker without `--metrics` never pays for it. Names
follow Kafka's MBeans, in the spelling of the usual JMX exporter rules:
`kafka.network:type=RequestMetrics,name=RequestsPerSec,request=Produce` is
`kafka_network_requestmetrics_requests_total{request="Produce"}`.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, cast

from odradek.broker.observability.cluster_gauges import Gauge
from odradek.broker.observability.request_metrics import LATENCY_BOUNDS_MS, LOOP_LAG_BOUNDS_MS, RequestMetrics
from odradek.broker.partitions.table import Partitions
from odradek.runtime.environment import Environment

if TYPE_CHECKING:
    from prometheus_client.core import Metric


HTTP_REQUEST_BYTES_MAX = 8192
HTTP_TIMEOUT_S = 5.0


class Collector:
    """Puts the counters and the sizes of the logs into Prometheus' form, at each scrape."""

    def __init__(self, metrics: RequestMetrics, partitions: Partitions, gauges: Callable[[], Iterable[Gauge]]) -> None:
        """`gauges`: what else there is to be told (`Member.gauges`)."""
        self._metrics = metrics
        self._partitions = partitions
        self._gauges = gauges

    def collect(self) -> Iterable["Metric"]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        by_request = ("request",)
        requests = CounterMetricFamily("kafka_network_requestmetrics_requests", "Requests handled", labels=by_request)
        bytes_in = CounterMetricFamily("kafka_network_requestmetrics_request_bytes", "Bytes in", labels=by_request)
        bytes_out = CounterMetricFamily("kafka_network_requestmetrics_response_bytes", "Bytes out", labels=by_request)
        errors = CounterMetricFamily(
            "kafka_network_requestmetrics_errors", "Errors answered", labels=("request", "error")
        )
        latency = HistogramMetricFamily(
            "kafka_network_requestmetrics_totaltimems", "Milliseconds from frame to reply", labels=by_request
        )
        for name, api in self._metrics.apis.items():
            requests.add_metric((name,), api.requests)
            bytes_in.add_metric((name,), api.bytes_in)
            bytes_out.add_metric((name,), api.bytes_out)
            for code, count in api.errors.items():
                errors.add_metric((name, code.name), count)
            latency.add_metric((name,), _cumulative(LATENCY_BOUNDS_MS, api.latency_counts), api.latency_ms_sum)
        yield from (requests, bytes_in, bytes_out, errors, latency)
        lag = HistogramMetricFamily("odradek_loop_lag_seconds", "How late the event loop rings a timer")
        bounds_s = [bound / 1000 for bound in LOOP_LAG_BOUNDS_MS]
        lag.add_metric((), _cumulative(bounds_s, self._metrics.loop_lag_counts), self._metrics.loop_lag_ms_sum / 1000)
        yield lag
        for name, text, value in (
            ("kafka_server_socketservermetrics_connection_count", "Open connections", self._metrics.connections),
            ("kafka_server_replicamanager_partitioncount", "Partitions on this broker", len(self._partitions)),
            ("kafka_server_replicamanager_leadercount", "Partitions led", _leaders(self._partitions)),
            (
                "kafka_server_replicamanager_underreplicatedpartitions",
                "Partitions led that lack a replica in sync",
                sum(partition.is_under_replicated for partition in self._partitions),
            ),
            (
                "kafka_server_replicamanager_underminisrpartitioncount",
                "Partitions led with too few in sync for acks=all",
                sum(partition.is_under_min_isr for partition in self._partitions),
            ),
            (
                "kafka_log_logmanager_offlinelogdirectorycount",
                "Data directories that cannot be used",
                len(self._partitions.directories.offline),
            ),
            (
                "kafka_server_replicamanager_offlinereplicacount",
                "Partitions on this broker in such directories",
                len(self._partitions.offline),
            ),
            *self._gauges(),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        yield CounterMetricFamily(
            "kafka_server_socketservermetrics_connections_refused",
            "Connections over max.connections",
            value=self._metrics.connections_refused,
        )
        yield CounterMetricFamily(
            "kafka_network_requestmetrics_malformed",
            "Connections closed for what they sent",
            value=self._metrics.malformed_requests,
        )
        yield from self._logs()

    def _logs(self) -> Iterable["Metric"]:
        from prometheus_client.core import GaugeMetricFamily

        labels = ("topic", "partition")
        size = GaugeMetricFamily("kafka_log_log_size", "Bytes of the log", labels=labels)
        start = GaugeMetricFamily("kafka_log_log_logstartoffset", "Log start offset", labels=labels)
        end = GaugeMetricFamily("kafka_log_log_logendoffset", "Log end offset", labels=labels)
        for partition in self._partitions:
            values = partition.topic, str(partition.index)
            size.add_metric(values, partition.log.size_bytes)
            start.add_metric(values, partition.log.log_start_offset)
            end.add_metric(values, partition.log.log_end_offset)
        yield from (size, start, end)


def _leaders(partitions: Partitions) -> int:
    return sum(partition.is_leader for partition in partitions)


def _cumulative(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    buckets: list[tuple[str, float]] = []
    total = 0
    for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
        total += count
        buckets.append((bound, total))
    return buckets


class MetricsPage(asyncio.Protocol):
    """Answers each HTTP request on its port with the metrics page, and closes: all that a scrape needs."""

    def __init__(self, environment: Environment, collector: Collector) -> None:
        self._environment = environment
        self._collector = collector
        self._request = b""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._timer = self._environment.loop.call_later(HTTP_TIMEOUT_S, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._request += data
        if b"\r\n\r\n" in self._request:
            self._transport.write(self._answer())
            self._transport.close()
        elif len(self._request) > HTTP_REQUEST_BYTES_MAX:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _answer(self) -> bytes:
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

        method, _, rest = self._request.partition(b" ")
        path = rest.split(b" ", 1)[0].split(b"?", 1)[0]
        if method not in (b"GET", b"HEAD") or path not in (b"/metrics", b"/"):
            return b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self._collector)
        page = generate_latest(registry)
        head = f"HTTP/1.0 200 OK\r\nContent-Type: {CONTENT_TYPE_LATEST}\r\nContent-Length: {len(page)}\r\n\r\n"
        return head.encode() + (b"" if method == b"HEAD" else page)
