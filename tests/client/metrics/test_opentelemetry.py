"""Shows the adapter for OpenTelemetry with its own SDK: what an exporter reads after a client's calls."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint

from odradek.client.metrics.metrics import (
    BUFFER_AVAILABLE_BYTES,
    METADATA_AGE,
    METRICS,
    RECORD_SEND_TOTAL,
    REQUEST_LATENCY,
    client_metrics,
)
from odradek.client.metrics.opentelemetry import OpenTelemetryMetrics
from tests.client.recorded_metrics import tell_all


class Sdk(NamedTuple):
    provider: MeterProvider
    reader: InMemoryMetricReader


@pytest.fixture
def sdk() -> Iterator[Sdk]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    yield Sdk(provider, reader)
    provider.shutdown()


Point = NumberDataPoint | HistogramDataPoint


def collect(sdk: Sdk) -> dict[str, tuple[str, list[Point]]]:
    """Unit and points of each metric that has any."""
    data = sdk.reader.get_metrics_data()
    found: dict[str, tuple[str, list[Point]]] = {}
    for resource in data.resource_metrics if data is not None else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                points = [point for point in metric.data.data_points if isinstance(point, Point)]
                found[metric.name] = (metric.unit or "", points)
    return found


def values(sdk: Sdk, name: str) -> dict[tuple[str, ...], float]:
    """Of a counter or gauge, by the values of the attributes."""
    _, points = collect(sdk).get(name, ("", []))
    return {
        tuple(str(value) for value in (point.attributes or {}).values()): point.value
        for point in points
        if isinstance(point, NumberDataPoint)
    }


def test_a_counter_counts(sdk: Sdk) -> None:
    metrics = client_metrics(OpenTelemetryMetrics(sdk.provider), "me")
    metrics.count(RECORD_SEND_TOTAL, 3, "orders")
    metrics.count(RECORD_SEND_TOTAL, 4, "orders")
    metrics.count(RECORD_SEND_TOTAL, 1, "other")
    unit, points = collect(sdk)["kafka.client.record_send"]
    assert unit == "{record}"
    assert points[0].attributes == {"client_id": "me", "topic": "orders"}
    assert values(sdk, "kafka.client.record_send") == {("me", "orders"): 7, ("me", "other"): 1}


def test_a_histogram_of_milliseconds_shows_seconds(sdk: Sdk) -> None:
    metrics = client_metrics(OpenTelemetryMetrics(sdk.provider), "me")
    metrics.observe(REQUEST_LATENCY, 2.0, "1")
    metrics.observe(REQUEST_LATENCY, 70.0, "1")
    unit, (point,) = collect(sdk)["kafka.client.request_latency"]
    assert unit == "s"
    assert isinstance(point, HistogramDataPoint)
    assert point.attributes == {"client_id": "me", "node_id": "1"}
    assert point.count == 2
    assert point.sum == pytest.approx(0.072)
    assert list(point.explicit_bounds)[:2] == [0.001, 0.0025]
    assert [point.explicit_bounds[index] for index, count in enumerate(point.bucket_counts) if count] == [0.0025, 0.1]


def test_a_gauge_is_read_when_somebody_looks(sdk: Sdk) -> None:
    metrics = client_metrics(OpenTelemetryMetrics(sdk.provider), "me")
    free = [100]
    name = "kafka.client.buffer_available_bytes"
    unwatch = metrics.watch(BUFFER_AVAILABLE_BYTES, lambda: free[0])
    metrics.watch(METADATA_AGE, lambda: 2_500)
    assert collect(sdk)[name][0] == "By"
    assert values(sdk, name) == {("me",): 100}
    free[0] = 70
    assert values(sdk, name) == {("me",): 70}
    assert values(sdk, "kafka.client.metadata_age") == {("me",): 2.5}
    unwatch()
    unwatch()
    assert values(sdk, name) == {}


def test_clients_by_the_same_name_are_added_up(sdk: Sdk) -> None:
    hook = OpenTelemetryMetrics(sdk.provider)
    name = "kafka.client.buffer_available_bytes"
    unwatch = [client_metrics(hook, "me").watch(BUFFER_AVAILABLE_BYTES, lambda: 100) for _ in range(2)]
    client_metrics(hook, "you").watch(BUFFER_AVAILABLE_BYTES, lambda: 1)
    assert values(sdk, name) == {("me",): 200, ("you",): 1}
    unwatch[0]()
    assert values(sdk, name) == {("me",): 100, ("you",): 1}
    unwatch[1]()
    assert values(sdk, name) == {("you",): 1}


def test_it_serves_every_metric(sdk: Sdk) -> None:
    hook = OpenTelemetryMetrics(sdk.provider)
    tell_all(hook)
    found = collect(sdk)
    assert len(found) == len(METRICS)
    assert all(len(points) == 1 for _, points in found.values())


def test_without_a_provider_nothing_is_recorded() -> None:
    metrics = client_metrics(OpenTelemetryMetrics(), "me")
    metrics.count(RECORD_SEND_TOTAL, 3, "orders")
    metrics.observe(REQUEST_LATENCY, 3, "1")
    metrics.watch(BUFFER_AVAILABLE_BYTES, lambda: 1)()
