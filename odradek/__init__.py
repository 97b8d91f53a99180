"""Odradek: a Kafka-compatible broker in asyncio Python, with a client and PySpark jobs.

This package is the front door: the command line and the public names. The work is done in the packages beside it, whose
names are common words, so a `broker`, `client` or `protocol` of somebody else that comes earlier on the import path is
told here, before it causes an error that nobody understands.
"""

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from client.acks import Acks as Acks
    from client.admin import Admin as Admin
    from client.config import AdminConfig as AdminConfig
    from client.config import ProducerConfig as ProducerConfig
    from client.delivery import Delivery as Delivery
    from client.errors import AuthenticationFailed as AuthenticationFailed
    from client.errors import AuthorizationError as AuthorizationError
    from client.errors import BatchError as BatchError
    from client.errors import BrokerError as BrokerError
    from client.errors import BufferExhausted as BufferExhausted
    from client.errors import BufferFull as BufferFull
    from client.errors import ClientError as ClientError
    from client.errors import ConfigError as ConfigError
    from client.errors import ConnectionFailed as ConnectionFailed
    from client.errors import DeliveryTimeout as DeliveryTimeout
    from client.errors import MetadataMissing as MetadataMissing
    from client.errors import MetadataTimeout as MetadataTimeout
    from client.errors import RecordTooLarge as RecordTooLarge
    from client.errors import SerializationError as SerializationError
    from client.errors import UndeliveredRecords as UndeliveredRecords
    from client.interceptors import Interceptor as Interceptor
    from client.metrics_opentelemetry import OpenTelemetryMetrics as OpenTelemetryMetrics
    from client.metrics_prometheus import PrometheusMetrics as PrometheusMetrics
    from client.partitioner import Partitioner as Partitioner
    from client.producer import Producer as Producer
    from client.record import ProducerRecord as ProducerRecord
    from client.results import Ack as Ack

__version__: str

PUBLIC = {
    "Ack": "client.results",
    "Acks": "client.acks",
    "Admin": "client.admin",
    "AdminConfig": "client.config",
    "AuthenticationFailed": "client.errors",
    "AuthorizationError": "client.errors",
    "BatchError": "client.errors",
    "BrokerError": "client.errors",
    "BufferExhausted": "client.errors",
    "BufferFull": "client.errors",
    "ClientError": "client.errors",
    "ConfigError": "client.errors",
    "ConnectionFailed": "client.errors",
    "Delivery": "client.delivery",
    "DeliveryTimeout": "client.errors",
    "Interceptor": "client.interceptors",
    "MetadataMissing": "client.errors",
    "MetadataTimeout": "client.errors",
    "OpenTelemetryMetrics": "client.metrics_opentelemetry",
    "Partitioner": "client.partitioner",
    "Producer": "client.producer",
    "ProducerConfig": "client.config",
    "ProducerRecord": "client.record",
    "PrometheusMetrics": "client.metrics_prometheus",
    "RecordTooLarge": "client.errors",
    "SerializationError": "client.errors",
    "UndeliveredRecords": "client.errors",
}
OUR_PACKAGES = ("broker", "client", "protocol")


def refuse_hidden_packages(home: Path, names: tuple[str, ...] = OUR_PACKAGES) -> None:
    """Raises ImportError, with both paths, when one of our packages is not the one that lies in `home`."""
    for name in names:
        ours = home / name
        found = find_package(name)
        if found is None:
            raise ImportError(f"Odradek's package `{name}` is missing: it should lie at {ours}; install odradek again.")
        if found.resolve() != ours.resolve():
            raise ImportError(f"Another `{name}` at {found} hides Odradek's own at {ours}: rename or remove it.")


def find_package(name: str) -> Path | None:
    """Where `import name` would find, or has found, its directory or its file."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin or "<unknown>")


refuse_hidden_packages(Path(__file__).resolve().parent.parent)


def __getattr__(name: str) -> Any:
    """The version and the client's public names are looked up when they are first used: a broker needs neither."""
    if name == "__version__":
        from importlib.metadata import version

        return version("odradek")
    module = PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'odradek' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC, "__version__"})
