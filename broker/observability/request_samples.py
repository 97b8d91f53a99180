"""What a broker tells of its requests and connections.

As in Kafka, Fetches stand there twice: those of consumers and those of followers apart, `FetchConsumer` and
`FetchFollower`, and all together as `Fetch`.
"""

from collections.abc import Iterable, Sequence

from odradek.broker.observability import metric_rows as rows
from odradek.broker.observability.histogram import Histogram, merged
from odradek.broker.observability.request_metrics import PHASE_BOUNDS_MS, ApiMetrics, RequestMetrics
from odradek.broker.observability.request_times import FETCH_CONSUMER, FETCH_FOLLOWER, MS_PER_S
from odradek.broker.observability.sample import Sample
from odradek.runtime.metric import Metric

FETCH = "Fetch"
"""In itself, one that did not come as far as to tell who sent it."""


def request_samples(metrics: RequestMetrics) -> Iterable[Sample]:
    """Of each API that was asked for."""
    for name, apis in _by_name(metrics).items():
        yield from _counts(name, apis)
        total = sum(api.requests for api in apis)
        yield rows.REQUEST_SIZE, (name,), merged([api.size for api in apis])
        for row, histograms in _phases(apis):
            in_seconds = merged(histograms).add_up_to(total)
            yield row, (name,), in_seconds.in_other_unit(PHASE_BOUNDS_MS, MS_PER_S)
    yield rows.MALFORMED, (), metrics.malformed_requests
    yield rows.CONNECTION_COUNT, (), metrics.connections
    yield rows.CONNECTIONS_REFUSED, (), metrics.connections_refused
    yield rows.CONNECTIONS_UNAUTHENTICATED, (), metrics.connections_unauthenticated
    for listener, count in metrics.tls_handshakes_failed.items():
        yield rows.TLS_HANDSHAKES_FAILED, (listener,), count
    yield rows.LOOP_LAG, (), metrics.loop_lag


def _by_name(metrics: RequestMetrics) -> dict[str, list[ApiMetrics]]:
    by_name = {name: [api] for name, api in metrics.apis.items()}
    if fetches := [metrics.apis[name] for name in (FETCH, FETCH_CONSUMER, FETCH_FOLLOWER) if name in metrics.apis]:
        by_name[FETCH] = fetches
    return by_name


def _counts(name: str, apis: Sequence[ApiMetrics]) -> Iterable[Sample]:
    for version in sorted({version for api in apis for version in api.versions}):
        yield rows.REQUESTS, (name, str(version)), sum(api.versions.get(version, 0) for api in apis)
    yield rows.BYTES_OUT, (name,), sum(api.bytes_out for api in apis)
    for code in sorted({code for api in apis for code in api.errors}):
        yield rows.ERRORS, (name, code.name), sum(api.errors.get(code, 0) for api in apis)


def _phases(apis: Sequence[ApiMetrics]) -> Iterable[tuple[Metric, list[Histogram]]]:
    yield rows.TOTAL_TIME, [api.total for api in apis]
    yield rows.REQUEST_QUEUE_TIME, [api.queue for api in apis]
    yield rows.LOCAL_TIME, [api.local for api in apis]
    yield rows.REMOTE_TIME, [api.remote for api in apis]
    yield rows.THROTTLE_TIME, [api.throttle for api in apis]
    yield rows.RESPONSE_QUEUE_TIME, [api.reply_queue for api in apis]
    yield rows.RESPONSE_SEND_TIME, [api.send for api in apis]
    yield rows.MESSAGE_CONVERSIONS_TIME, [api.conversions for api in apis]
