"""Shows the rows of the metrics, that a client without a hook costs nothing, and how the client's id is filled in."""

import re
from pathlib import Path

import pytest

from odradek.client.metrics import metrics
from odradek.client.metrics.metrics import (
    BATCH_SIZE,
    BUCKETS,
    BUFFER_AVAILABLE_BYTES,
    METRICS,
    NO_METRICS,
    RECORD_SEND_TOTAL,
    REQUEST_LATENCY,
    client_metrics,
)
from odradek.runtime.metric import Instrument, Metric, Unit
from tests.client.recorded_metrics import RecordedMetrics

# Sensors of SenderMetricsRegistry.java, SelectorMetrics (Selector.java), BufferPool.java and Metadata's, without the
# suffixes -avg, -max and -rate of what a histogram or counter holds together.
KAFKAS = {
    "batch-size", "batch-split-total", "buffer-available-bytes", "buffer-exhausted-total", "buffer-total-bytes",
    "bufferpool-wait-time", "byte-total", "compression-rate", "connection-close-total", "connection-count",
    "connection-creation-total", "failed-authentication-total", "failed-reauthentication-total",
    "incoming-byte-total", "metadata-age",
    "metadata-wait-time", "outgoing-byte-total", "produce-throttle-time", "record-error-total", "record-queue-time",
    "record-retry-total", "record-send-total", "records-per-request", "request-latency", "request-total",
    "requests-in-flight", "response-total", "successful-authentication-total", "successful-reauthentication-total",
    "waiting-threads",
}  # fmt: skip


def test_names_are_kafkas_or_marked_as_ours() -> None:
    assert {metric.name for metric in METRICS if not metric.is_ours} == KAFKAS
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_every_row_of_the_module_is_listed() -> None:
    rows = [value for name, value in vars(metrics).items() if isinstance(value, Metric) and name.isupper()]
    assert list(METRICS) == rows
    for name, value in vars(metrics).items():
        if isinstance(value, Metric):
            assert value.name == name.lower().replace("_", "-")


def test_every_row_is_measured_somewhere() -> None:
    """By its name in the sources: an import that nothing uses is refused by ruff."""
    own = Path(metrics.__file__)
    texts = [path.read_text() for path in own.parent.parent.rglob("*.py") if path != own]
    assert len(texts) > 50
    rows = {metric.name.upper().replace("-", "_") for metric in METRICS}
    assert {row for row in rows if not any(re.search(rf"\b{row}\b", text) for text in texts)} == set()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_row_says_what_it_is(metric: Metric) -> None:
    assert metric.doc.endswith(".")
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", metric.name)
    assert metric.name.endswith("-total") is (metric.instrument is Instrument.COUNTER)
    assert metric.labels in ((), ("topic",), ("node-id",))
    if metric.instrument is Instrument.HISTOGRAM:
        assert list(BUCKETS[metric.unit]) == sorted(set(BUCKETS[metric.unit]))


def test_milliseconds_are_shown_as_seconds() -> None:
    assert {unit: unit.scale for unit in Unit if unit.scale != 1} == {Unit.MILLISECONDS: 0.001}


def test_the_clients_name_comes_first() -> None:
    hook = RecordedMetrics()
    mine = client_metrics(hook, "me")
    mine.count(RECORD_SEND_TOTAL, 3, "orders")
    mine.count(RECORD_SEND_TOTAL, 2, "orders")
    mine.observe(REQUEST_LATENCY, 12.5, "1")
    unwatch = mine.watch(BUFFER_AVAILABLE_BYTES, lambda: 17)
    assert hook.counts == {("record-send-total", ("me", "orders")): 5}
    assert hook.values == {("request-latency", ("me", "1")): [12.5]}
    assert hook.gauges() == {("buffer-available-bytes", ("me",)): 17}
    assert hook.total(RECORD_SEND_TOTAL) == 5
    unwatch()
    unwatch()
    assert hook.gauges() == {}


def test_without_a_hook_nothing_happens() -> None:
    nothing = client_metrics(None, "me")
    assert nothing is NO_METRICS
    nothing.count(RECORD_SEND_TOTAL, 3, "orders")
    nothing.observe(BATCH_SIZE, 3, "orders")

    def read() -> float:
        raise AssertionError("nobody looks")

    nothing.watch(BUFFER_AVAILABLE_BYTES, read)()


def test_the_tests_own_hook_refuses_wrong_calls() -> None:
    """So that whoever tests with it finds a wrong label or instrument."""
    hook = RecordedMetrics()
    with pytest.raises(AssertionError):
        hook.count(RECORD_SEND_TOTAL, 1, "me")
    with pytest.raises(AssertionError):
        hook.count(REQUEST_LATENCY, 1, "me", "1")
    with pytest.raises(AssertionError):
        hook.observe(RECORD_SEND_TOTAL, 1, "me", "orders")
