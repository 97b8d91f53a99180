"""The client's metrics for Prometheus, through prometheus-client.

    async with Producer("localhost:9092", metrics=PrometheusMetrics()) as producer: ...

`record-send-total` becomes `kafka_client_record_send_total`, with the labels client_id and topic. As is the custom
there, milliseconds become seconds and names end in their unit. One adapter serves any number of clients; a second one
needs a registry or a prefix of its own.
"""

from collections.abc import Callable

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from odradek.client.metrics.metrics import BUCKETS, METRICS
from odradek.runtime.metric import Instrument, Metric, Unit

__all__ = ["PrometheusMetrics"]

Labels = tuple[str, ...]


class PrometheusMetrics:
    """A hook (`odradek.client.metrics.metrics.Metrics`) that fills the instruments of a registry."""

    def __init__(self, registry: CollectorRegistry = REGISTRY, prefix: str = "kafka_client") -> None:
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._gauges: dict[str, Gauge] = {}
        self._reads: dict[tuple[str, Labels], list[Callable[[], float]]] = {}
        for metric in METRICS:
            name, labels = f"{prefix}_{_name(metric)}", [_word(label) for label in ("client-id", *metric.labels)]
            match metric.instrument:
                case Instrument.COUNTER:
                    self._counters[metric.name] = Counter(name, metric.doc, labels, registry=registry)
                case Instrument.HISTOGRAM:
                    bounds = [bound * metric.unit.scale for bound in BUCKETS[metric.unit]]
                    self._histograms[metric.name] = Histogram(
                        name, metric.doc, labels, registry=registry, buckets=bounds
                    )
                case Instrument.GAUGE:
                    self._gauges[metric.name] = Gauge(name, metric.doc, labels, registry=registry)

    def count(self, metric: Metric, amount: float, *labels: str) -> None:
        self._counters[metric.name].labels(*labels).inc(amount * metric.unit.scale)

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        self._histograms[metric.name].labels(*labels).observe(value * metric.unit.scale)

    def watch(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        """Clients by the same name are added up."""
        reads = self._reads.setdefault((metric.name, labels), [])
        reads.append(read)
        gauge = self._gauges[metric.name]
        if len(reads) == 1:
            gauge.labels(*labels).set_function(lambda: sum(each() for each in list(reads)) * metric.unit.scale)

        def unwatch() -> None:
            if read in reads:
                reads.remove(read)
                if not reads:
                    del self._reads[metric.name, labels]
                    gauge.remove(*labels)

        return unwatch


def _name(metric: Metric) -> str:
    name = _word(metric.name.removesuffix("-total"))
    if metric.unit is Unit.MILLISECONDS:
        return f"{name}_seconds"
    return f"{name}_bytes" if metric.unit is Unit.BYTES and "byte" not in name else name


def _word(text: str) -> str:
    return text.replace("-", "_")
