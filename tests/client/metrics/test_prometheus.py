"""Shows the adapter for prometheus-client with that library: what a scrape reads after a client's calls."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from odradek.client.metrics.metrics import (
    BATCH_SIZE,
    BUFFER_AVAILABLE_BYTES,
    METADATA_AGE,
    METRICS,
    OUTGOING_BYTE_TOTAL,
    RECORD_SEND_TOTAL,
    REQUEST_LATENCY,
    client_metrics,
)
from odradek.client.metrics.prometheus import PrometheusMetrics
from tests.client.recorded_metrics import tell_all


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def scrape(registry: CollectorRegistry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Samples by name and labels, as a Prometheus server would read them."""
    families = text_string_to_metric_families(generate_latest(registry).decode())
    samples = [sample for family in families for sample in family.samples if not sample.name.endswith("_created")]
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}


def test_a_counter_counts(registry: CollectorRegistry) -> None:
    metrics = client_metrics(PrometheusMetrics(registry), "me")
    metrics.count(RECORD_SEND_TOTAL, 3, "orders")
    metrics.count(RECORD_SEND_TOTAL, 4, "orders")
    metrics.count(RECORD_SEND_TOTAL, 1, "other")
    metrics.count(OUTGOING_BYTE_TOTAL, 500, "1")
    assert scrape(registry) == {
        ("kafka_client_record_send_total", (("client_id", "me"), ("topic", "orders"))): 7,
        ("kafka_client_record_send_total", (("client_id", "me"), ("topic", "other"))): 1,
        ("kafka_client_outgoing_byte_total", (("client_id", "me"), ("node_id", "1"))): 500,
    }


def test_a_histogram_of_milliseconds_shows_seconds(registry: CollectorRegistry) -> None:
    metrics = client_metrics(PrometheusMetrics(registry), "me")
    metrics.observe(REQUEST_LATENCY, 2.0, "1")
    metrics.observe(REQUEST_LATENCY, 70.0, "1")
    samples = scrape(registry)
    labels = (("client_id", "me"), ("node_id", "1"))
    assert samples["kafka_client_request_latency_seconds_count", labels] == 2
    assert samples["kafka_client_request_latency_seconds_sum", labels] == pytest.approx(0.072)
    at_most = {dict(key[1])["le"]: value for key, value in samples.items() if key[0].endswith("_bucket")}
    assert at_most["0.001"] == 0
    assert at_most["0.0025"] == 1
    assert at_most["0.1"] == 2
    assert at_most["120.0"] == 2


def test_a_histogram_of_bytes_shows_bytes(registry: CollectorRegistry) -> None:
    client_metrics(PrometheusMetrics(registry), "me").observe(BATCH_SIZE, 16_384, "orders")
    samples = scrape(registry)
    assert samples["kafka_client_batch_size_bytes_sum", (("client_id", "me"), ("topic", "orders"))] == 16_384


def test_a_gauge_is_read_when_somebody_looks(registry: CollectorRegistry) -> None:
    metrics = client_metrics(PrometheusMetrics(registry), "me")
    free = [100]
    unwatch = metrics.watch(BUFFER_AVAILABLE_BYTES, lambda: free[0])
    metrics.watch(METADATA_AGE, lambda: 2_500)
    key = ("kafka_client_buffer_available_bytes", (("client_id", "me"),))
    assert scrape(registry)[key] == 100
    free[0] = 70
    assert scrape(registry)[key] == 70
    assert scrape(registry)["kafka_client_metadata_age_seconds", (("client_id", "me"),)] == 2.5
    unwatch()
    unwatch()
    assert key not in scrape(registry)


def test_clients_by_the_same_name_are_added_up(registry: CollectorRegistry) -> None:
    hook = PrometheusMetrics(registry)
    unwatch = [client_metrics(hook, "me").watch(BUFFER_AVAILABLE_BYTES, lambda: 100) for _ in range(2)]
    key = ("kafka_client_buffer_available_bytes", (("client_id", "me"),))
    assert scrape(registry)[key] == 200
    unwatch[0]()
    assert scrape(registry)[key] == 100
    unwatch[1]()
    assert key not in scrape(registry)
    client_metrics(hook, "me").watch(BUFFER_AVAILABLE_BYTES, lambda: 5)
    assert scrape(registry)[key] == 5


def test_it_serves_every_metric(registry: CollectorRegistry) -> None:
    hook = PrometheusMetrics(registry)
    tell_all(hook)
    families = {family.name: family for family in text_string_to_metric_families(generate_latest(registry).decode())}
    families = {name: family for name, family in families.items() if not name.endswith("_created")}
    assert len(families) == len(METRICS)
    assert all(name.startswith("kafka_client_") for name in families)
    assert {family.documentation for family in families.values()} == {metric.doc for metric in METRICS}


def test_a_second_one_has_a_prefix_of_its_own(registry: CollectorRegistry) -> None:
    PrometheusMetrics(registry)
    with pytest.raises(ValueError, match="Duplicated"):
        PrometheusMetrics(registry)
    client_metrics(PrometheusMetrics(registry, prefix="orders"), "me").count(RECORD_SEND_TOTAL, 1, "t")
    assert scrape(registry) == {("orders_record_send_total", (("client_id", "me"), ("topic", "t"))): 1}
