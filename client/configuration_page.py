"""docs/client-configuration.md, made from the rows: `python -m odradek.client.configuration_page` prints it."""

import sys
from dataclasses import MISSING
from typing import Any

from odradek.client.admin.config import AdminConfig
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.configuration.security_settings import SecuritySettings
from odradek.client.configuration.settings import Kind, Row, rows
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.fetching.config import FetchConfig
from odradek.client.metrics.metrics import METRICS
from odradek.client.producer.config import ProducerConfig

__all__ = ["documentation"]


def _own(kind: type[SecuritySettings], *bases: type[SecuritySettings]) -> dict[str, Row]:
    """The rows that a class adds to its bases, or has otherwise."""
    inherited: dict[str, Row] = {}
    for base in bases:
        inherited |= rows(base)
    return {name: row for name, row in rows(kind).items() if inherited.get(name) != row}


def _table(own: dict[str, Row]) -> list[str]:
    lines = ["| setting | in Kafka | default | allowed | meaning |", "|---|---|---|---|---|"]
    for name, row in own.items():
        kafka_name = "–" if row.is_ours else f"`{row.kafka_name}`"
        allowed = row.expected.replace("|", "\\|")
        doc = f"{row.doc} *Never shown.*" if row.is_secret else row.doc
        lines.append(f"| `{name}` | {kafka_name} | {_default(row)} | {allowed} | {doc} |")
    return lines


def _default(row: Row) -> str:
    if row.kind is Kind.OBJECT:
        return "none" if not row.default else "the real world"
    default: Any = row.default
    if default is MISSING:
        return "required"
    if default is None or default in ("", ()):
        return "unset" if default is None else "empty"
    is_list = row.kind is Kind.CONVERTED and not isinstance(default, str)
    return f"`{', '.join(default) if is_list else default}`"


def _metrics() -> list[str]:
    lines = ["| metric | kind | unit | labels | meaning |", "|---|---|---|---|---|"]
    for metric in METRICS:
        labels = ", ".join(("client-id", *metric.labels))
        doc = f"{metric.doc} *Not in Kafka.*" if metric.is_ours else metric.doc
        lines.append(f"| `{metric.name}` | {metric.instrument.value} | {metric.unit.value} | {labels} | {doc} |")
    return lines


def documentation() -> str:
    """The text of docs/client-configuration.md."""
    return "\n".join(
        [
            "# Configuration of the clients",
            "",
            "<!-- Made from the rows in client/ by",
            "     `python -m odradek.client.configuration_page > docs/client-configuration.md`. -->",
            "",
            "Names are those of Apache Kafka's own clients with underscores for dots; defaults, bounds and meanings",
            "are those of 4.3. What has no name in Kafka is ours. Settings are given by name",
            '(`Producer("localhost:9092", linger_ms=20)`), as one object (`Producer(config=ProducerConfig(...))`), or',
            "read from Kafka's dotted names with `ProducerConfig.from_dict`, where values may be texts as in a",
            "property file. Serializers, interceptors, partitioners and metrics are Python objects.",
            "",
            "A wrong type, a value out of bounds, an unknown name and a contradiction are refused with a `ConfigError`",
            "that names all settings involved. Secrets are never shown.",
            "",
            "## Every client",
            "",
            *_table(_own(ClientConfig, SecuritySettings)),
            "",
            "## Security",
            "",
            "A setting that the `security_protocol` has no use for is refused. Files are PEM.",
            "",
            *_table(rows(SecuritySettings)),
            "",
            "## Producer",
            "",
            "- Idempotence is on by default. Unset, it is switched off by `acks` other than `all` and by `retries=0`,",
            "  with one line at level INFO; `enable_idempotence=True` with either of them is refused. Unless it is",
            "  switched off by `enable_idempotence=False`, more than 5 requests in flight are refused.",
            "- `delivery_timeout_ms` below `linger_ms` + `request_timeout_ms` is refused if it was set, else raised",
            "  to the sum with a warning.",
            "",
            *_table(_own(ProducerConfig, ClientConfig)),
            "",
            "## Admin",
            "",
            *_table(_own(AdminConfig, ClientConfig)),
            "",
            "## Fetching",
            "",
            *_table(_own(FetchConfig, ClientConfig)),
            "",
            "## Consumer",
            "",
            "These, and those of fetching. [consumer.md](consumer.md) says what follows from them.",
            "",
            "- `topics`, `group_instance_id` and callbacks need a `group_id`.",
            "- `session_timeout_ms` and `heartbeat_interval_ms` are refused with `group_protocol=consumer`, where the",
            "  broker decides both; with `classic`, the interval must be below the timeout.",
            "- `partition_assignment_strategy` takes names of built-in assignors (`range`, `roundrobin`, `sticky`,",
            "  `cooperative-sticky`), whose bytes are those of Java's, and objects. They need a rebalance protocol in",
            "  common.",
            "",
            *_table(_own(ConsumerConfig, FetchConfig)),
            "",
            "## Metrics",
            "",
            "What the hook in `metrics` is told. `odradek.PrometheusMetrics` and `odradek.OpenTelemetryMetrics` are",
            "hooks for these two; they show seconds for milliseconds.",
            "",
            *_metrics(),
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(documentation())
