"""Rows of metrics: what a broker and its clients measure is declared once, and pages, adapters and documents follow.

The rows of the clients stand in `odradek.client.metrics.metrics`, those of a broker in
`odradek.broker.observability.metric_rows`.
"""

from enum import Enum
from typing import NamedTuple


class Instrument(Enum):
    """How the values of a metric belong together."""

    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


class Unit(Enum):
    """What a value counts.

    Prometheus and OpenTelemetry have seconds as their unit of time: `scale` is what the clients' adapters multiply a
    value by. A broker's names are Kafka's, and so are their milliseconds.
    """

    RECORDS = "records"
    BATCHES = "batches"
    REQUESTS = "requests"
    CONNECTIONS = "connections"
    TIMES = "times"
    TASKS = "tasks"
    BYTES = "bytes"
    MILLISECONDS = "ms"
    SECONDS = "s"
    RATIO = "ratio"
    PERCENT = "%"
    ERRORS = "errors"
    PARTITIONS = "partitions"
    BROKERS = "brokers"
    DIRECTORIES = "directories"
    GROUPS = "groups"
    OFFSETS = "offsets"
    OFFSET = "offset"
    DAYS = "days"
    YES_OR_NO = "1 or 0"
    ACLS = "ACLs"

    @property
    def scale(self) -> float:
        return 0.001 if self is Unit.MILLISECONDS else 1


class Metric(NamedTuple):
    """One row. `labels` are the names of the label values that come with each value, after the client id of a
    client's."""

    name: str
    instrument: Instrument
    unit: Unit
    doc: str
    labels: tuple[str, ...] = ()
    is_ours: bool = False
    """Kafka has no such metric."""
    bounds: tuple[float, ...] = ()
    """Of a histogram: its upper bounds; without, those of its unit."""
