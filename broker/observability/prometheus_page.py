"""The page that Prometheus scrapes (`--metrics HOST:PORT`): every sample of a broker, by its row (metric_rows.py).

`prometheus_client` is imported when the first scrape comes, so a broker without `--metrics` never pays for it.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from odradek.broker.observability.histogram import Histogram
from odradek.broker.observability.sample import Sample
from odradek.runtime.environment import Environment
from odradek.runtime.metric import Instrument, Metric

if TYPE_CHECKING:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


HTTP_REQUEST_BYTES_MAX = 8192
HTTP_TIMEOUT_S = 5.0


class Collector:
    """Puts samples into Prometheus' form, at each scrape."""

    def __init__(self, sources: Sequence[Callable[[], Iterable[Sample]]]) -> None:
        """`sources`: each called once a scrape; a metric is told by one of them."""
        self._sources = sources

    def collect(self) -> "Iterable[Family]":
        families: dict[Metric, Family] = {}
        for source in self._sources:
            for row, labels, value in source():
                family = families.get(row)
                if family is None:
                    family = families[row] = _family(row)
                _add(family, labels, value)
        return families.values()


def _add(family: Any, labels: Sequence[str], value: float | Histogram) -> None:
    if isinstance(value, Histogram):
        family.add_metric(labels, list(value.cumulative()), value.sum)
    else:
        family.add_metric(labels, value)


def _family(row: Metric) -> "Family":
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    match row.instrument:
        case Instrument.COUNTER:
            return CounterMetricFamily(row.name, row.doc, labels=row.labels)
        case Instrument.HISTOGRAM:
            return HistogramMetricFamily(row.name, row.doc, labels=row.labels)
        case Instrument.GAUGE:
            return GaugeMetricFamily(row.name, row.doc, labels=row.labels)


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
