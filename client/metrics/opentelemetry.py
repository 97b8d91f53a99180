"""The client's metrics for OpenTelemetry, through opentelemetry-api (the extra `opentelemetry`).

    async with Producer("localhost:9092", metrics=OpenTelemetryMetrics()) as producer: ...

`record-send-total` becomes `kafka.client.record_send`, with the attributes client_id and topic. As is the custom there,
milliseconds become seconds, and counters are not called totals. Without a meter provider nothing is recorded.
"""

from collections.abc import Callable, Iterable
from typing import Final

from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Meter, MeterProvider, Observation, get_meter

from odradek.client.metrics.metrics import BUCKETS, METRICS
from odradek.runtime.metric import Instrument, Metric, Unit

__all__ = ["OpenTelemetryMetrics"]

UNITS: Final = {
    Unit.RECORDS: "{record}",
    Unit.BATCHES: "{batch}",
    Unit.REQUESTS: "{request}",
    Unit.CONNECTIONS: "{connection}",
    Unit.TIMES: "{time}",
    Unit.TASKS: "{task}",
    Unit.BYTES: "By",
    Unit.MILLISECONDS: "s",
    Unit.RATIO: "1",
}
"""In UCUM, which OpenTelemetry writes units in."""

Attributes = dict[str, str]
Labels = tuple[str, ...]


class OpenTelemetryMetrics:
    """A hook (`odradek.client.metrics.metrics.Metrics`) that fills the instruments of a meter."""

    def __init__(self, meter_provider: MeterProvider | None = None, prefix: str = "kafka.client") -> None:
        """`meter_provider`: None for the global one."""
        meter = get_meter("odradek.client", meter_provider=meter_provider)
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._reads: dict[str, dict[Labels, list[Callable[[], float]]]] = {}
        for metric in METRICS:
            name = f"{prefix}.{metric.name.removesuffix('-total').replace('-', '_')}"
            match metric.instrument:
                case Instrument.COUNTER:
                    self._counters[metric.name] = meter.create_counter(name, UNITS[metric.unit], metric.doc)
                case Instrument.HISTOGRAM:
                    bounds = [bound * metric.unit.scale for bound in BUCKETS[metric.unit]]
                    self._histograms[metric.name] = meter.create_histogram(
                        name, UNITS[metric.unit], metric.doc, explicit_bucket_boundaries_advisory=bounds
                    )
                case Instrument.GAUGE:
                    self._gauge(meter, name, metric)

    def count(self, metric: Metric, amount: float, *labels: str) -> None:
        self._counters[metric.name].add(amount * metric.unit.scale, _attributes(metric, labels))

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        self._histograms[metric.name].record(value * metric.unit.scale, _attributes(metric, labels))

    def watch(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        """Clients by the same name are added up."""
        watched = self._reads[metric.name]
        watched.setdefault(labels, []).append(read)

        def unwatch() -> None:
            reads = watched.get(labels, [])
            if read in reads:
                reads.remove(read)
                if not reads:
                    del watched[labels]

        return unwatch

    def _gauge(self, meter: Meter, name: str, metric: Metric) -> None:
        watched = self._reads[metric.name] = {}

        def observations(_: CallbackOptions) -> Iterable[Observation]:
            # A copy: the reader has a thread of its own.
            return [
                Observation(sum(read() for read in list(reads)) * metric.unit.scale, _attributes(metric, labels))
                for labels, reads in list(watched.items())
            ]

        meter.create_observable_gauge(name, [observations], UNITS[metric.unit], metric.doc)


def _attributes(metric: Metric, labels: Labels) -> Attributes:
    names = ("client-id", *metric.labels)
    return {name.replace("-", "_"): value for name, value in zip(names, labels, strict=True)}
