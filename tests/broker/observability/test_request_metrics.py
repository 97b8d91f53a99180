"""Counting: requests, bytes, errors, and latency in the right bucket."""

from odradek.broker.observability.request_metrics import LATENCY_BOUNDS_MS, RequestMetrics
from odradek.protocol.errors import ErrorCode


def test_requests_bytes_and_errors_are_counted_by_api() -> None:
    metrics = RequestMetrics()
    metrics.request_done("Produce", 100, [b"ab", memoryview(b"cde")], 1.0, None)
    metrics.request_done("Produce", 11, None, 2.0, [ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE])
    metrics.request_done("Fetch", 7, [], 0.0, [ErrorCode.OFFSET_OUT_OF_RANGE])
    produce, fetch = metrics.apis["Produce"], metrics.apis["Fetch"]
    assert (produce.requests, produce.bytes_in, produce.bytes_out) == (2, 111, 5)
    assert produce.errors == {ErrorCode.CORRUPT_MESSAGE: 2}
    assert produce.latency_ms_sum == 3.0
    assert (fetch.requests, fetch.bytes_in, fetch.bytes_out) == (1, 7, 0)
    assert fetch.errors == {ErrorCode.OFFSET_OUT_OF_RANGE: 1}


def test_a_latency_belongs_to_the_first_bound_that_is_not_below_it() -> None:
    metrics = RequestMetrics()
    for latency_ms in (0.0, 0.1, 0.11, 1.0, 10_000.0, 10_000.1):
        metrics.request_done("Fetch", 0, None, latency_ms, None)
    counts = dict(zip((*LATENCY_BOUNDS_MS, None), metrics.apis["Fetch"].latency_counts, strict=True))
    assert {bound: count for bound, count in counts.items() if count} == {0.1: 2, 0.25: 1, 1.0: 1, 10_000.0: 1, None: 1}
