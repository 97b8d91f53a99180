"""What the clients measure, and the hook through which it leaves them: counters, histograms and gauges.

Names, meanings and labels follow Kafka's client metrics (SenderMetricsRegistry.java, SelectorMetrics), but for average,
maximum and rate, which the reader of a histogram or counter works out. `METRICS` lists them all with their units.

A `Metrics` is given to a client by the setting `metrics`; adapters for prometheus-client and OpenTelemetry stand in
`prometheus` and `opentelemetry` beside this module. Nothing is measured per record: counters grow by a batch at a time,
a gauge is a callable that is read when somebody looks. So a client without a hook pays for a few empty calls per batch.

The hook is called in the event loop, gauges may be read in any thread. It must not raise and not block.
"""

from collections.abc import Callable
from typing import Final, Protocol

from odradek.runtime.metric import Instrument, Metric, Unit

BUCKETS: Final[dict[Unit, tuple[float, ...]]] = {
    Unit.MILLISECONDS: (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000),
    Unit.BYTES: tuple(4**power for power in range(4, 13)),
    Unit.RECORDS: tuple(10**power for power in range(6)),
    Unit.RATIO: (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1),
}
"""Upper bounds for the histograms of each unit. Values are handed to the hook in the units of their rows."""


class Metrics(Protocol):
    """The hook. `labels`: the client id, then the values of the metric's labels."""

    def count(self, metric: Metric, amount: float, *labels: str) -> None:
        """A counter grows by `amount`."""
        ...

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """A histogram takes a value."""
        ...

    def watch(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        """A gauge is read by `read` from now on, until the function returned is called."""
        ...


class _NoMetrics:
    """The hook of a client that has none."""

    __slots__ = ()

    def count(self, metric: Metric, amount: float, *labels: str) -> None: ...

    def observe(self, metric: Metric, value: float, *labels: str) -> None: ...

    def watch(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        return _nothing


def _nothing() -> None: ...


NO_METRICS: Final[Metrics] = _NoMetrics()


class Labelled:
    """A hook with the first labels filled in: the client's id."""

    __slots__ = ("_hook", "_labels")

    def __init__(self, hook: Metrics, *labels: str) -> None:
        self._hook = hook
        self._labels = labels

    def count(self, metric: Metric, amount: float, *labels: str) -> None:
        self._hook.count(metric, amount, *self._labels, *labels)

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        self._hook.observe(metric, value, *self._labels, *labels)

    def watch(self, metric: Metric, read: Callable[[], float], *labels: str) -> Callable[[], None]:
        return self._hook.watch(metric, read, *self._labels, *labels)


def client_metrics(hook: Metrics | None, client_id: str) -> Metrics:
    """The hook that a client's parts use: they leave the client id out."""
    return NO_METRICS if hook is None else Labelled(hook, client_id)


# ---------------------------------------------------------------------------------------------------------- the rows
_COUNTER, _HISTOGRAM, _GAUGE = Instrument.COUNTER, Instrument.HISTOGRAM, Instrument.GAUGE
_TOPIC: Final = ("topic",)
_NODE: Final = ("node-id",)

RECORD_SEND_TOTAL: Final = Metric(
    "record-send-total", _COUNTER, Unit.RECORDS, "Records acknowledged by a broker, or written with acks=0.", _TOPIC
)
RECORD_ERROR_TOTAL: Final = Metric("record-error-total", _COUNTER, Unit.RECORDS, "Records that failed.", _TOPIC)
RECORD_RETRY_TOTAL: Final = Metric("record-retry-total", _COUNTER, Unit.RECORDS, "Records sent once more.", _TOPIC)
BYTE_TOTAL: Final = Metric("byte-total", _COUNTER, Unit.BYTES, "Bytes of batches that ended well.", _TOPIC)
BATCH_SPLIT_TOTAL: Final = Metric("batch-split-total", _COUNTER, Unit.BATCHES, "Batches split as too large.", _TOPIC)
BUFFER_EXHAUSTED_TOTAL: Final = Metric(
    "buffer-exhausted-total", _COUNTER, Unit.RECORDS, "Records not accepted for lack of buffer_memory in time."
)
PRODUCER_EPOCH_BUMP_TOTAL: Final = Metric(
    "producer-epoch-bump-total", _COUNTER, Unit.TIMES, "New epochs of the idempotent producer.", is_ours=True
)
POSSIBLE_LOSS_TOTAL: Final = Metric(
    "possible-loss-total",
    _COUNTER,
    Unit.TIMES,
    "Answers by which a broker showed that it may have lost acknowledged records.",
    _TOPIC,
    is_ours=True,
)
UNOBSERVED_ERROR_TOTAL: Final = Metric(
    "unobserved-error-total", _COUNTER, Unit.RECORDS, "Records that failed while nobody waited.", is_ours=True
)
CONNECTION_CREATION_TOTAL: Final = Metric(
    "connection-creation-total", _COUNTER, Unit.CONNECTIONS, "Connections opened.", _NODE
)
CONNECTION_CLOSE_TOTAL: Final = Metric("connection-close-total", _COUNTER, Unit.CONNECTIONS, "And closed.", _NODE)
CONNECTION_FAILURE_TOTAL: Final = Metric(
    "connection-failure-total", _COUNTER, Unit.TIMES, "Attempts to connect that failed.", _NODE, is_ours=True
)
SUCCESSFUL_AUTHENTICATION_TOTAL: Final = Metric(
    "successful-authentication-total", _COUNTER, Unit.TIMES, "Authentications by SASL that succeeded.", _NODE
)
SUCCESSFUL_REAUTHENTICATION_TOTAL: Final = Metric(
    "successful-reauthentication-total", _COUNTER, Unit.TIMES, "And those on an open connection (KIP-368).", _NODE
)
FAILED_AUTHENTICATION_TOTAL: Final = Metric(
    "failed-authentication-total", _COUNTER, Unit.TIMES, "Those that failed.", _NODE
)
FAILED_REAUTHENTICATION_TOTAL: Final = Metric(
    "failed-reauthentication-total", _COUNTER, Unit.TIMES, "And those on an open connection, which closes.", _NODE
)
REQUEST_TOTAL: Final = Metric("request-total", _COUNTER, Unit.REQUESTS, "Requests sent.", _NODE)
RESPONSE_TOTAL: Final = Metric("response-total", _COUNTER, Unit.REQUESTS, "Responses received.", _NODE)
OUTGOING_BYTE_TOTAL: Final = Metric("outgoing-byte-total", _COUNTER, Unit.BYTES, "Bytes sent.", _NODE)
INCOMING_BYTE_TOTAL: Final = Metric("incoming-byte-total", _COUNTER, Unit.BYTES, "Bytes received.", _NODE)

BATCH_SIZE: Final = Metric("batch-size", _HISTOGRAM, Unit.BYTES, "Size of a batch as it is sent.", _TOPIC)
RECORDS_PER_REQUEST: Final = Metric("records-per-request", _HISTOGRAM, Unit.RECORDS, "Records in a Produce request.")
COMPRESSION_RATE: Final = Metric(
    "compression-rate", _HISTOGRAM, Unit.RATIO, "Size of a batch divided by its size before compression.", _TOPIC
)
RECORD_QUEUE_TIME: Final = Metric(
    "record-queue-time", _HISTOGRAM, Unit.MILLISECONDS, "From the first record of a batch until it is first sent."
)
BUFFERPOOL_WAIT_TIME: Final = Metric(
    "bufferpool-wait-time", _HISTOGRAM, Unit.MILLISECONDS, "How long a record waited for buffer_memory."
)
METADATA_WAIT_TIME: Final = Metric(
    "metadata-wait-time", _HISTOGRAM, Unit.MILLISECONDS, "How long a call waited for the partitions of a topic."
)
REQUEST_LATENCY: Final = Metric(
    "request-latency", _HISTOGRAM, Unit.MILLISECONDS, "From sending a request to its response.", _NODE
)
PRODUCE_THROTTLE_TIME: Final = Metric(
    "produce-throttle-time",
    _HISTOGRAM,
    Unit.MILLISECONDS,
    "For how long a quota silences the client, by each answer to a Produce.",
    _NODE,
)

BUFFER_TOTAL_BYTES: Final = Metric("buffer-total-bytes", _GAUGE, Unit.BYTES, "buffer_memory.")
BUFFER_AVAILABLE_BYTES: Final = Metric("buffer-available-bytes", _GAUGE, Unit.BYTES, "What of it is free.")
WAITING_THREADS: Final = Metric("waiting-threads", _GAUGE, Unit.TASKS, "Tasks, here, that wait for buffer_memory.")
REQUESTS_IN_FLIGHT: Final = Metric("requests-in-flight", _GAUGE, Unit.REQUESTS, "Sent, without a response yet.")
CONNECTION_COUNT: Final = Metric("connection-count", _GAUGE, Unit.CONNECTIONS, "Connections open.")
METADATA_AGE: Final = Metric("metadata-age", _GAUGE, Unit.MILLISECONDS, "Time since metadata was last learned.")

METRICS: Final = tuple(value for value in dict(globals()).values() if isinstance(value, Metric))
"""Every row."""
