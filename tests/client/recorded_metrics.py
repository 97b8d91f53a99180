"""A hook for metrics that writes down what it is told, for tests: `counts`, `values` and, when asked, `gauges()`."""

from collections import defaultdict
from collections.abc import Callable

from odradek.client.metrics.metrics import METRICS, Metrics
from odradek.runtime.metric import Instrument, Metric

Key = tuple[str, tuple[str, ...]]


class RecordedMetrics:
    """Keys are the metric's name and its label values, the client id first. Wrong instruments and labels fail."""

    def __init__(self) -> None:
        self.counts: dict[Key, float] = defaultdict(float)
        self.values: dict[Key, list[float]] = defaultdict(list)
        self.watched: dict[Key, Callable[[], float]] = {}

    def count(self, metric: Metric, amount: float, *labels: str) -> None:
        assert amount >= 0
        self.counts[self._key(metric, Instrument.COUNTER, labels)] += amount

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        self.values[self._key(metric, Instrument.HISTOGRAM, labels)].append(value)

    def watch(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        key = self._key(metric, Instrument.GAUGE, labels)
        self.watched[key] = read

        def unwatch() -> None:
            if self.watched.get(key) is read:
                del self.watched[key]

        return unwatch

    def gauges(self) -> dict[Key, float]:
        return {key: read() for key, read in self.watched.items()}

    def total(self, metric: Metric) -> float:
        """Of a counter, whatever its labels."""
        return sum(amount for (name, _), amount in self.counts.items() if name == metric.name)

    def _key(self, metric: Metric, instrument: Instrument, labels: tuple[str, ...]) -> Key:
        assert metric.instrument is instrument, f"{metric.name} is a {metric.instrument.value}"
        assert len(labels) == 1 + len(metric.labels), f"{metric.name} has client-id and {metric.labels}, not {labels}"
        assert all(isinstance(label, str) for label in labels)  # pyright: ignore[reportUnnecessaryIsInstance]
        return metric.name, labels


def tell_all(hook: Metrics) -> None:
    """Tells a hook each metric once: a count, a value or a gauge of 1."""
    for metric in METRICS:
        labels = ["me", *metric.labels]
        match metric.instrument:
            case Instrument.COUNTER:
                hook.count(metric, 1, *labels)
            case Instrument.HISTOGRAM:
                hook.observe(metric, 1, *labels)
            case Instrument.GAUGE:
                hook.watch(metric, lambda: 1, *labels)
