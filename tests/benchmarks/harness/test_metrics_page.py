"""A histogram is read from a page as prometheus_client writes it, and says in which bucket a share of it lies."""

import http.server
import threading
from math import inf

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Histogram as Metric

from benchmarks.harness.metrics_page import Histogram, parse_histogram, read_page

NAME = "odradek_loop_lag_seconds"


def page(*samples: float) -> str:
    registry = CollectorRegistry()
    metric = Metric(NAME, "Lag", buckets=(0.001, 0.05, 0.5), registry=registry)
    Metric(f"{NAME}_more", "Another", ["kind"], registry=registry).labels("a").observe(1)
    for sample in samples:
        metric.observe(sample)
    return generate_latest(registry).decode()


def test_buckets_are_read_by_their_bounds() -> None:
    histogram = parse_histogram(page(0.0005, 0.02, 0.03, 9.0), NAME)
    assert histogram == Histogram(((0.001, 1.0), (0.05, 3.0), (0.5, 3.0), (inf, 4.0)))


def test_a_page_without_it_has_none() -> None:
    assert parse_histogram(page(), "odradek_loop_lag") is None
    assert parse_histogram("", NAME) is None


def test_a_share_lies_in_the_first_bucket_that_holds_it() -> None:
    histogram = Histogram(((0.001, 989.0), (0.05, 999.0), (0.5, 999.0), (inf, 1000.0)))
    assert histogram.bound_of(0.5) == 0.001
    assert histogram.bound_of(0.99) == 0.05
    assert histogram.bound_of(0.999) == 0.05
    assert histogram.bound_of(0.9991) == inf


def test_what_was_there_before_does_not_count() -> None:
    before, after = (parse_histogram(text, NAME) for text in (page(9.0), page(9.0, 0.02)))
    assert before is not None
    assert after is not None
    added = after.since(before)
    assert added.count == 1
    assert added.bound_of(1.0) == 0.05
    with pytest.raises(AssertionError, match="of no sample"):
        after.since(after).bound_of(0.5)


def test_a_page_is_fetched() -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(page(0.02).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that it has there
            """Nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        histogram = parse_histogram(read_page(f"127.0.0.1:{server.server_address[1]}"), NAME)
        serving.join()
    assert histogram is not None
    assert histogram.count == 1
