"""docs/metrics.md, made from the rows of metrics: `python -m odradek.broker.pages.metrics_page` prints it."""

import sys

from odradek.broker.observability.metric_rows import METRICS
from odradek.runtime.metric import Instrument


def documentation() -> str:
    """The text of docs/metrics.md."""
    lines = [
        "# Metrics of a broker",
        "",
        "<!-- Made from the rows in broker/observability/metric_rows.py by",
        "     `python -m odradek.broker.pages.metrics_page > docs/metrics.md`. -->",
        "",
        "`odradek serve --metrics HOST:PORT` serves these to Prometheus at `/metrics`. Counters begin at zero with",
        "each start. Names are those of Apache Kafka's MBeans, in the spelling of the usual JMX exporter rules.",
        "[operations.md](operations.md) says which of them to look at, and what the phases of a request tell.",
        "",
        "| metric | kind | unit | labels | meaning |",
        "|---|---|---|---|---|",
    ]
    for row in METRICS:
        name = f"{row.name}_total" if row.instrument is Instrument.COUNTER else row.name
        doc = f"{row.doc} *Not in Kafka.*" if row.is_ours else row.doc
        lines.append(f"| `{name}` | {row.instrument.value} | {row.unit.value} | {', '.join(row.labels)} | {doc} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(documentation())
