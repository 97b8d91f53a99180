"""Counting: requests, bytes, errors, and each phase in the right bucket; what is not observed is worked out."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.observability.histogram import Histogram
from odradek.broker.observability.request_metrics import PHASE_BOUNDS_S, RequestMetrics
from odradek.broker.observability.request_times import RequestTimes
from odradek.protocol.errors import ErrorCode

Phases = tuple[float, float, float, float, float]
"""Read ahead, handler, waiting, reply queue, transport: seconds."""


def count(
    metrics: RequestMetrics,
    name: str,
    phases: Phases,
    size_bytes: int = 0,
    reply_bytes: int = 0,
    errors: Iterable[ErrorCode] = (),
) -> None:
    queue, local, remote, reply_queue, send = phases
    times = RequestTimes(1000.0, size_bytes)
    started_s = 1000.0 + queue
    times.understood(name, 9, started_s)
    if remote:
        times.waits(started_s + local)
    times.errors = list(errors) or None
    completed_s = started_s + local + remote
    times.completed(reply_bytes, completed_s)
    metrics.request_done(times, completed_s + reply_queue, completed_s + reply_queue + send)


def test_requests_bytes_and_errors_are_counted_by_api() -> None:
    metrics = RequestMetrics()
    none = (0.0, 0.0, 0.0, 0.0, 0.0)
    count(metrics, "Produce", none, 100, 5)
    count(metrics, "Produce", none, 11, 0, [ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE])
    count(metrics, "Fetch", none, 7, 0, [ErrorCode.OFFSET_OUT_OF_RANGE])
    produce, fetch = metrics.apis["Produce"], metrics.apis["Fetch"]
    assert (produce.requests, produce.versions, produce.size.sum, produce.bytes_out) == (2, {9: 2}, 111, 5)
    assert produce.errors == {ErrorCode.CORRUPT_MESSAGE: 2}
    assert (fetch.requests, fetch.size.sum, fetch.bytes_out) == (1, 7, 0)
    assert fetch.errors == {ErrorCode.OFFSET_OUT_OF_RANGE: 1}


def test_a_value_belongs_to_the_first_bound_that_is_not_below_it() -> None:
    histogram = Histogram(PHASE_BOUNDS_S)
    for value in (0.0, 0.0001, 0.00011, 0.001, 10.0, 10.1):
        histogram.observe(value)
    counts = dict(zip((*PHASE_BOUNDS_S, None), histogram.counts, strict=True))
    assert {bound: count for bound, count in counts.items() if count} == {
        0.0001: 2,
        0.00025: 1,
        0.001: 1,
        10.0: 1,
        None: 1,
    }
    assert list(histogram.cumulative())[-1] == ("+Inf", 6)


PHASE_S = st.sampled_from([0.0, 2**-14, 2**-13, 0.5, 3.0, 512.0, 32768.0])
"""Sums and differences of these are exact."""


@given(st.lists(st.tuples(PHASE_S, PHASE_S, PHASE_S, PHASE_S, PHASE_S), min_size=1, max_size=20))
def test_each_phase_is_as_if_every_request_had_been_observed_in_it(requests: list[Phases]) -> None:
    """What `request_done` leaves out for speed comes back by `add_up_to`."""
    metrics = RequestMetrics()
    for phases in requests:
        count(metrics, "Produce", phases)
    api = metrics.apis["Produce"]
    histograms = (api.queue, api.local, api.remote, api.reply_queue, api.send)
    for index, histogram in enumerate(histograms):
        expected = Histogram(PHASE_BOUNDS_S)
        for phases in requests:
            expected.observe(phases[index])
        told = histogram.add_up_to(api.requests)
        assert (told.counts, told.sum) == (expected.counts, expected.sum)
    assert api.total.sum == sum(map(sum, requests))
    assert sum(api.total.counts) == len(requests)


def test_a_request_waits_as_often_as_it_likes() -> None:
    times = RequestTimes(0.0, 0)
    times.understood("Fetch", 4, 10.0)
    for since_s in (20.0, 50.0):
        times.waits(since_s)
        times.goes_on(since_s + 10.0)
    times.completed(0, 100.0)
    assert (times.queue_s, times.remote_s, times.local_s) == (10.0, 20.0, 70.0)
