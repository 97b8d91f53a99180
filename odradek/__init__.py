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
    from client.admin.admin import Admin as Admin
    from client.admin.cluster import BrokerDescription as BrokerDescription
    from client.admin.cluster import ClusterDescription as ClusterDescription
    from client.admin.cluster import LogDirDescription as LogDirDescription
    from client.admin.cluster import ReplicaDescription as ReplicaDescription
    from client.admin.config import AdminConfig as AdminConfig
    from client.admin.configs import ConfigChange as ConfigChange
    from client.admin.configs import ConfigEntry as ConfigEntry
    from client.admin.configs import ConfigResource as ConfigResource
    from client.admin.configs import ConfigSource as ConfigSource
    from client.admin.configs import ConfigType as ConfigType
    from client.admin.configs import Operation as Operation
    from client.admin.configs import ResourceType as ResourceType
    from client.admin.errors import ItemsFailed as ItemsFailed
    from client.admin.replication import ElectionType as ElectionType
    from client.admin.replication import QuorumDescription as QuorumDescription
    from client.admin.replication import QuorumReplica as QuorumReplica
    from client.admin.replication import Reassignment as Reassignment
    from client.admin.topics import CreatedTopic as CreatedTopic
    from client.admin.topics import NewTopic as NewTopic
    from client.admin.topics import PartitionDescription as PartitionDescription
    from client.admin.topics import TopicDescription as TopicDescription
    from client.admin.topics import TopicListing as TopicListing
    from client.broker_errors import AuthenticationFailed as AuthenticationFailed
    from client.broker_errors import AuthorizationError as AuthorizationError
    from client.broker_errors import BrokerError as BrokerError
    from client.broker_errors import InvalidTopic as InvalidTopic
    from client.broker_errors import NotEnoughReplicas as NotEnoughReplicas
    from client.broker_errors import RecordRefused as RecordRefused
    from client.broker_errors import RecordTooLarge as RecordTooLarge
    from client.broker_errors import SequenceError as SequenceError
    from client.broker_errors import TopicExists as TopicExists
    from client.broker_errors import UnknownTopic as UnknownTopic
    from client.broker_errors import UnsupportedVersion as UnsupportedVersion
    from client.client_error import ClientError as ClientError
    from client.errors import BatchError as BatchError
    from client.errors import BufferExhausted as BufferExhausted
    from client.errors import BufferFull as BufferFull
    from client.errors import ClientClosed as ClientClosed
    from client.errors import ClientNotStarted as ClientNotStarted
    from client.errors import ConfigError as ConfigError
    from client.errors import ConnectionFailed as ConnectionFailed
    from client.errors import DeliveryPending as DeliveryPending
    from client.errors import DeliveryTimeout as DeliveryTimeout
    from client.errors import InvalidPartition as InvalidPartition
    from client.errors import MalformedResponse as MalformedResponse
    from client.errors import MetadataMissing as MetadataMissing
    from client.errors import MetadataTimeout as MetadataTimeout
    from client.errors import PartitionerFailed as PartitionerFailed
    from client.errors import PartitionVanished as PartitionVanished
    from client.errors import ProducerClosed as ProducerClosed
    from client.errors import ProducerNotStarted as ProducerNotStarted
    from client.errors import RequestTimedOut as RequestTimedOut
    from client.errors import SerializationError as SerializationError
    from client.errors import UndeliveredRecords as UndeliveredRecords
    from client.errors import WrongLoop as WrongLoop
    from client.errors import WrongUse as WrongUse
    from client.fetching.list_offsets import EARLIEST as EARLIEST
    from client.fetching.list_offsets import LATEST as LATEST
    from client.fetching.list_offsets import MAX_TIMESTAMP as MAX_TIMESTAMP
    from client.fetching.list_offsets import ListedOffset as ListedOffset
    from client.metrics.metrics import Metric as Metric
    from client.metrics.metrics import Metrics as Metrics
    from client.metrics.opentelemetry import OpenTelemetryMetrics as OpenTelemetryMetrics
    from client.metrics.prometheus import PrometheusMetrics as PrometheusMetrics
    from client.producer.acks import Acks as Acks
    from client.producer.config import ProducerConfig as ProducerConfig
    from client.producer.delivery import Delivery as Delivery
    from client.producer.interceptors import Interceptor as Interceptor
    from client.producer.partitioner import NewBatchListener as NewBatchListener
    from client.producer.partitioner import Partitioner as Partitioner
    from client.producer.producer import Producer as Producer
    from client.producer.record import ProducerRecord as ProducerRecord
    from client.producer.results import Ack as Ack
    from client.producer.serialization import Serializer as Serializer
    from client.producer.serialization import serialize_bytes as serialize_bytes
    from client.producer.serialization import serialize_double as serialize_double
    from client.producer.serialization import serialize_int as serialize_int
    from client.producer.serialization import serialize_json as serialize_json
    from client.producer.serialization import serialize_long as serialize_long
    from client.producer.serialization import serialize_str as serialize_str
    from client.topic_partition import TopicPartition as TopicPartition

__version__: str

PUBLIC = {
    "Ack": "client.producer.results",
    "Acks": "client.producer.acks",
    "Admin": "client.admin.admin",
    "AdminConfig": "client.admin.config",
    "AuthenticationFailed": "client.broker_errors",
    "AuthorizationError": "client.broker_errors",
    "BatchError": "client.errors",
    "BrokerDescription": "client.admin.cluster",
    "BrokerError": "client.broker_errors",
    "BufferExhausted": "client.errors",
    "BufferFull": "client.errors",
    "ClientClosed": "client.errors",
    "ClientError": "client.client_error",
    "ClientNotStarted": "client.errors",
    "ClusterDescription": "client.admin.cluster",
    "ConfigChange": "client.admin.configs",
    "ConfigEntry": "client.admin.configs",
    "ConfigError": "client.errors",
    "ConfigResource": "client.admin.configs",
    "ConfigSource": "client.admin.configs",
    "ConfigType": "client.admin.configs",
    "ConnectionFailed": "client.errors",
    "CreatedTopic": "client.admin.topics",
    "Delivery": "client.producer.delivery",
    "DeliveryPending": "client.errors",
    "DeliveryTimeout": "client.errors",
    "EARLIEST": "client.fetching.list_offsets",
    "ElectionType": "client.admin.replication",
    "Interceptor": "client.producer.interceptors",
    "InvalidPartition": "client.errors",
    "InvalidTopic": "client.broker_errors",
    "ItemsFailed": "client.admin.errors",
    "LATEST": "client.fetching.list_offsets",
    "ListedOffset": "client.fetching.list_offsets",
    "LogDirDescription": "client.admin.cluster",
    "MAX_TIMESTAMP": "client.fetching.list_offsets",
    "MalformedResponse": "client.errors",
    "MetadataMissing": "client.errors",
    "MetadataTimeout": "client.errors",
    "Metric": "client.metrics.metrics",
    "Metrics": "client.metrics.metrics",
    "NewBatchListener": "client.producer.partitioner",
    "NewTopic": "client.admin.topics",
    "NotEnoughReplicas": "client.broker_errors",
    "OpenTelemetryMetrics": "client.metrics.opentelemetry",
    "Operation": "client.admin.configs",
    "PartitionDescription": "client.admin.topics",
    "Partitioner": "client.producer.partitioner",
    "PartitionVanished": "client.errors",
    "PartitionerFailed": "client.errors",
    "Producer": "client.producer.producer",
    "ProducerClosed": "client.errors",
    "ProducerConfig": "client.producer.config",
    "ProducerNotStarted": "client.errors",
    "ProducerRecord": "client.producer.record",
    "PrometheusMetrics": "client.metrics.prometheus",
    "QuorumDescription": "client.admin.replication",
    "QuorumReplica": "client.admin.replication",
    "Reassignment": "client.admin.replication",
    "RecordRefused": "client.broker_errors",
    "RecordTooLarge": "client.broker_errors",
    "ReplicaDescription": "client.admin.cluster",
    "RequestTimedOut": "client.errors",
    "ResourceType": "client.admin.configs",
    "SequenceError": "client.broker_errors",
    "SerializationError": "client.errors",
    "Serializer": "client.producer.serialization",
    "TopicDescription": "client.admin.topics",
    "TopicExists": "client.broker_errors",
    "TopicListing": "client.admin.topics",
    "TopicPartition": "client.topic_partition",
    "UndeliveredRecords": "client.errors",
    "UnknownTopic": "client.broker_errors",
    "UnsupportedVersion": "client.broker_errors",
    "WrongLoop": "client.errors",
    "WrongUse": "client.errors",
    "serialize_bytes": "client.producer.serialization",
    "serialize_double": "client.producer.serialization",
    "serialize_int": "client.producer.serialization",
    "serialize_json": "client.producer.serialization",
    "serialize_long": "client.producer.serialization",
    "serialize_str": "client.producer.serialization",
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
