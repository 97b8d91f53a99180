"""Odradek: a Kafka-compatible broker in asyncio Python, with a client and PySpark jobs.

What stands here is the front door: the command line, the client's public names, and a broker to start in a program.
The work is done in the packages `odradek.broker`, `odradek.client`, `odradek.protocol` and `odradek.spark_jobs`. In a
checkout these four are symbolic links to the folders at its top level (docs/decisions/014-rooms.md); in site-packages
they are ordinary packages.

pytest loads a plugin of ours and would rewrite this module: PYTEST_DONT_REWRITE (testing/pytest_plugin.py).
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from odradek.broker.launch.serving import ServedBroker as ServedBroker
    from odradek.broker.launch.serving import serving as serving
    from odradek.broker.launch.serving_in_thread import serving_in_thread as serving_in_thread
    from odradek.client.admin.acls import AclBinding as AclBinding
    from odradek.client.admin.acls import AclFilter as AclFilter
    from odradek.client.admin.acls import AclOperation as AclOperation
    from odradek.client.admin.acls import AclPatternType as AclPatternType
    from odradek.client.admin.acls import AclPermission as AclPermission
    from odradek.client.admin.acls import AclResourceType as AclResourceType
    from odradek.client.admin.admin import Admin as Admin
    from odradek.client.admin.cluster import BrokerDescription as BrokerDescription
    from odradek.client.admin.cluster import ClusterDescription as ClusterDescription
    from odradek.client.admin.cluster import LogDirDescription as LogDirDescription
    from odradek.client.admin.cluster import ReplicaDescription as ReplicaDescription
    from odradek.client.admin.config import AdminConfig as AdminConfig
    from odradek.client.admin.configs import ConfigChange as ConfigChange
    from odradek.client.admin.configs import ConfigEntry as ConfigEntry
    from odradek.client.admin.configs import ConfigResource as ConfigResource
    from odradek.client.admin.configs import ConfigSource as ConfigSource
    from odradek.client.admin.configs import ConfigType as ConfigType
    from odradek.client.admin.configs import Operation as Operation
    from odradek.client.admin.configs import ResourceType as ResourceType
    from odradek.client.admin.errors import ItemsFailed as ItemsFailed
    from odradek.client.admin.group_offsets import CommittedOffset as CommittedOffset
    from odradek.client.admin.groups import GroupDescription as GroupDescription
    from odradek.client.admin.groups import GroupListing as GroupListing
    from odradek.client.admin.groups import GroupRebalance as GroupRebalance
    from odradek.client.admin.groups import MemberDescription as MemberDescription
    from odradek.client.admin.groups import MemberToRemove as MemberToRemove
    from odradek.client.admin.producer_states import MarkerUncertain as MarkerUncertain
    from odradek.client.admin.producer_states import ProducerState as ProducerState
    from odradek.client.admin.quotas import QuotaComponent as QuotaComponent
    from odradek.client.admin.quotas import QuotaEntity as QuotaEntity
    from odradek.client.admin.quotas import QuotaFilter as QuotaFilter
    from odradek.client.admin.replication import ElectionType as ElectionType
    from odradek.client.admin.replication import QuorumDescription as QuorumDescription
    from odradek.client.admin.replication import QuorumReplica as QuorumReplica
    from odradek.client.admin.replication import Reassignment as Reassignment
    from odradek.client.admin.scram_users import ScramCredential as ScramCredential
    from odradek.client.admin.scram_users import ScramDeletion as ScramDeletion
    from odradek.client.admin.scram_users import ScramMechanism as ScramMechanism
    from odradek.client.admin.scram_users import ScramUpsertion as ScramUpsertion
    from odradek.client.admin.topics import CreatedTopic as CreatedTopic
    from odradek.client.admin.topics import NewTopic as NewTopic
    from odradek.client.admin.topics import PartitionDescription as PartitionDescription
    from odradek.client.admin.topics import TopicDescription as TopicDescription
    from odradek.client.admin.topics import TopicListing as TopicListing
    from odradek.client.admin.transaction_ends import OtherOutcome as OtherOutcome
    from odradek.client.admin.transactions import FencedProducer as FencedProducer
    from odradek.client.admin.transactions import TransactionDescription as TransactionDescription
    from odradek.client.admin.transactions import TransactionListing as TransactionListing
    from odradek.client.admin.transactions import UnknownStates as UnknownStates
    from odradek.client.consumer.assignment.assignor import Assignor as Assignor
    from odradek.client.consumer.config import ConsumerConfig as ConsumerConfig
    from odradek.client.consumer.config import RebalanceCallback as RebalanceCallback
    from odradek.client.consumer.consumer import Consumer as Consumer
    from odradek.client.consumer.deserialization import DeserializationError as DeserializationError
    from odradek.client.consumer.deserialization import Deserializer as Deserializer
    from odradek.client.consumer.errors import ConsumerClosed as ConsumerClosed
    from odradek.client.consumer.errors import ConsumerNotStarted as ConsumerNotStarted
    from odradek.client.consumer.errors import GroupFailed as GroupFailed
    from odradek.client.consumer.errors import NoGroup as NoGroup
    from odradek.client.consumer.errors import NotAssigned as NotAssigned
    from odradek.client.consumer.errors import PositionMissing as PositionMissing
    from odradek.client.consumer.errors import TakenAway as TakenAway
    from odradek.client.consumer.group.offsets import CommitFailed as CommitFailed
    from odradek.client.consumer.group.offsets import CommitOutcome as CommitOutcome
    from odradek.client.consumer.group.offsets import OffsetAndMetadata as OffsetAndMetadata
    from odradek.client.consumer.records import ConsumerBatch as ConsumerBatch
    from odradek.client.consumer.records import ConsumerRecord as ConsumerRecord
    from odradek.client.consumer.records import PartitionRecords as PartitionRecords
    from odradek.client.errors.base import ClientError as ClientError
    from odradek.client.errors.broker_errors import AuthenticationFailed as AuthenticationFailed
    from odradek.client.errors.broker_errors import AuthorizationError as AuthorizationError
    from odradek.client.errors.broker_errors import BrokerError as BrokerError
    from odradek.client.errors.broker_errors import InvalidTopic as InvalidTopic
    from odradek.client.errors.broker_errors import NotEnoughReplicas as NotEnoughReplicas
    from odradek.client.errors.broker_errors import ProducerFenced as ProducerFenced
    from odradek.client.errors.broker_errors import RecordRefused as RecordRefused
    from odradek.client.errors.broker_errors import RecordTooLarge as RecordTooLarge
    from odradek.client.errors.broker_errors import SequenceError as SequenceError
    from odradek.client.errors.broker_errors import TopicExists as TopicExists
    from odradek.client.errors.broker_errors import UnknownTopic as UnknownTopic
    from odradek.client.errors.broker_errors import UnsupportedVersion as UnsupportedVersion
    from odradek.client.errors.client_errors import BatchError as BatchError
    from odradek.client.errors.client_errors import BufferExhausted as BufferExhausted
    from odradek.client.errors.client_errors import BufferFull as BufferFull
    from odradek.client.errors.client_errors import ClientClosed as ClientClosed
    from odradek.client.errors.client_errors import ClientNotStarted as ClientNotStarted
    from odradek.client.errors.client_errors import ConfigError as ConfigError
    from odradek.client.errors.client_errors import ConnectionFailed as ConnectionFailed
    from odradek.client.errors.client_errors import DeliveryPending as DeliveryPending
    from odradek.client.errors.client_errors import DeliveryTimeout as DeliveryTimeout
    from odradek.client.errors.client_errors import InvalidPartition as InvalidPartition
    from odradek.client.errors.client_errors import MalformedResponse as MalformedResponse
    from odradek.client.errors.client_errors import MetadataMissing as MetadataMissing
    from odradek.client.errors.client_errors import MetadataTimeout as MetadataTimeout
    from odradek.client.errors.client_errors import PartitionerFailed as PartitionerFailed
    from odradek.client.errors.client_errors import PartitionVanished as PartitionVanished
    from odradek.client.errors.client_errors import ProducerClosed as ProducerClosed
    from odradek.client.errors.client_errors import ProducerNotStarted as ProducerNotStarted
    from odradek.client.errors.client_errors import RequestTimedOut as RequestTimedOut
    from odradek.client.errors.client_errors import SerializationError as SerializationError
    from odradek.client.errors.client_errors import UndeliveredRecords as UndeliveredRecords
    from odradek.client.errors.client_errors import WrongLoop as WrongLoop
    from odradek.client.errors.client_errors import WrongUse as WrongUse
    from odradek.client.errors.transaction_errors import CommitOutcomeUnknown as CommitOutcomeUnknown
    from odradek.client.errors.transaction_errors import NoTransaction as NoTransaction
    from odradek.client.errors.transaction_errors import NoTransactionalId as NoTransactionalId
    from odradek.client.errors.transaction_errors import NotTwoPhase as NotTwoPhase
    from odradek.client.errors.transaction_errors import TransactionFailed as TransactionFailed
    from odradek.client.errors.transaction_errors import TransactionOpen as TransactionOpen
    from odradek.client.errors.transaction_errors import TransactionOver as TransactionOver
    from odradek.client.fetching.list_offsets import EARLIEST as EARLIEST
    from odradek.client.fetching.list_offsets import LATEST as LATEST
    from odradek.client.fetching.list_offsets import MAX_TIMESTAMP as MAX_TIMESTAMP
    from odradek.client.fetching.list_offsets import ListedOffset as ListedOffset
    from odradek.client.fetching.position import LogTruncated as LogTruncated
    from odradek.client.fetching.position import OffsetOutOfRange as OffsetOutOfRange
    from odradek.client.metrics.metrics import Metrics as Metrics
    from odradek.client.metrics.opentelemetry import OpenTelemetryMetrics as OpenTelemetryMetrics
    from odradek.client.metrics.prometheus import PrometheusMetrics as PrometheusMetrics
    from odradek.client.producer.config import ProducerConfig as ProducerConfig
    from odradek.client.producer.hooks.interceptors import Interceptor as Interceptor
    from odradek.client.producer.hooks.partitioner import NewBatchListener as NewBatchListener
    from odradek.client.producer.hooks.partitioner import Partitioner as Partitioner
    from odradek.client.producer.hooks.serialization import Serializer as Serializer
    from odradek.client.producer.hooks.serialization import serialize_bytes as serialize_bytes
    from odradek.client.producer.hooks.serialization import serialize_double as serialize_double
    from odradek.client.producer.hooks.serialization import serialize_int as serialize_int
    from odradek.client.producer.hooks.serialization import serialize_json as serialize_json
    from odradek.client.producer.hooks.serialization import serialize_long as serialize_long
    from odradek.client.producer.hooks.serialization import serialize_str as serialize_str
    from odradek.client.producer.producer import Producer as Producer
    from odradek.client.producer.record import ProducerRecord as ProducerRecord
    from odradek.client.producer.results.bulk_acks import BulkAcks as BulkAcks
    from odradek.client.producer.results.delivery import Delivery as Delivery
    from odradek.client.producer.results.produce_results import Ack as Ack
    from odradek.client.producer.transaction import Transaction as Transaction
    from odradek.client.producer.transactions.prepared import PreparedTransaction as PreparedTransaction
    from odradek.client.topic_partition import TopicPartition as TopicPartition
    from odradek.runtime.metric import Metric as Metric

__version__: str

PUBLIC = {
    "Ack": "odradek.client.producer.results.produce_results",
    "AclBinding": "odradek.client.admin.acls",
    "AclFilter": "odradek.client.admin.acls",
    "AclOperation": "odradek.client.admin.acls",
    "AclPatternType": "odradek.client.admin.acls",
    "AclPermission": "odradek.client.admin.acls",
    "AclResourceType": "odradek.client.admin.acls",
    "Admin": "odradek.client.admin.admin",
    "AdminConfig": "odradek.client.admin.config",
    "Assignor": "odradek.client.consumer.assignment.assignor",
    "AuthenticationFailed": "odradek.client.errors.broker_errors",
    "AuthorizationError": "odradek.client.errors.broker_errors",
    "BatchError": "odradek.client.errors.client_errors",
    "BrokerDescription": "odradek.client.admin.cluster",
    "BrokerError": "odradek.client.errors.broker_errors",
    "BufferExhausted": "odradek.client.errors.client_errors",
    "BufferFull": "odradek.client.errors.client_errors",
    "BulkAcks": "odradek.client.producer.results.bulk_acks",
    "ClientClosed": "odradek.client.errors.client_errors",
    "ClientError": "odradek.client.errors.base",
    "ClientNotStarted": "odradek.client.errors.client_errors",
    "ClusterDescription": "odradek.client.admin.cluster",
    "CommitFailed": "odradek.client.consumer.group.offsets",
    "CommitOutcome": "odradek.client.consumer.group.offsets",
    "CommitOutcomeUnknown": "odradek.client.errors.transaction_errors",
    "CommittedOffset": "odradek.client.admin.group_offsets",
    "ConfigChange": "odradek.client.admin.configs",
    "ConfigEntry": "odradek.client.admin.configs",
    "ConfigError": "odradek.client.errors.client_errors",
    "ConfigResource": "odradek.client.admin.configs",
    "ConfigSource": "odradek.client.admin.configs",
    "ConfigType": "odradek.client.admin.configs",
    "ConnectionFailed": "odradek.client.errors.client_errors",
    "Consumer": "odradek.client.consumer.consumer",
    "ConsumerBatch": "odradek.client.consumer.records",
    "ConsumerClosed": "odradek.client.consumer.errors",
    "ConsumerConfig": "odradek.client.consumer.config",
    "ConsumerNotStarted": "odradek.client.consumer.errors",
    "ConsumerRecord": "odradek.client.consumer.records",
    "CreatedTopic": "odradek.client.admin.topics",
    "Delivery": "odradek.client.producer.results.delivery",
    "DeliveryPending": "odradek.client.errors.client_errors",
    "DeliveryTimeout": "odradek.client.errors.client_errors",
    "DeserializationError": "odradek.client.consumer.deserialization",
    "Deserializer": "odradek.client.consumer.deserialization",
    "EARLIEST": "odradek.client.fetching.list_offsets",
    "ElectionType": "odradek.client.admin.replication",
    "FencedProducer": "odradek.client.admin.transactions",
    "GroupDescription": "odradek.client.admin.groups",
    "GroupFailed": "odradek.client.consumer.errors",
    "GroupListing": "odradek.client.admin.groups",
    "GroupRebalance": "odradek.client.admin.groups",
    "Interceptor": "odradek.client.producer.hooks.interceptors",
    "InvalidPartition": "odradek.client.errors.client_errors",
    "InvalidTopic": "odradek.client.errors.broker_errors",
    "ItemsFailed": "odradek.client.admin.errors",
    "LATEST": "odradek.client.fetching.list_offsets",
    "ListedOffset": "odradek.client.fetching.list_offsets",
    "LogDirDescription": "odradek.client.admin.cluster",
    "LogTruncated": "odradek.client.fetching.position",
    "MAX_TIMESTAMP": "odradek.client.fetching.list_offsets",
    "MarkerUncertain": "odradek.client.admin.producer_states",
    "MalformedResponse": "odradek.client.errors.client_errors",
    "MemberDescription": "odradek.client.admin.groups",
    "MemberToRemove": "odradek.client.admin.groups",
    "MetadataMissing": "odradek.client.errors.client_errors",
    "MetadataTimeout": "odradek.client.errors.client_errors",
    "Metric": "odradek.runtime.metric",
    "Metrics": "odradek.client.metrics.metrics",
    "NewBatchListener": "odradek.client.producer.hooks.partitioner",
    "NewTopic": "odradek.client.admin.topics",
    "NoGroup": "odradek.client.consumer.errors",
    "NoTransaction": "odradek.client.errors.transaction_errors",
    "NoTransactionalId": "odradek.client.errors.transaction_errors",
    "NotAssigned": "odradek.client.consumer.errors",
    "NotEnoughReplicas": "odradek.client.errors.broker_errors",
    "NotTwoPhase": "odradek.client.errors.transaction_errors",
    "OffsetAndMetadata": "odradek.client.consumer.group.offsets",
    "OffsetOutOfRange": "odradek.client.fetching.position",
    "OpenTelemetryMetrics": "odradek.client.metrics.opentelemetry",
    "Operation": "odradek.client.admin.configs",
    "OtherOutcome": "odradek.client.admin.transaction_ends",
    "PartitionDescription": "odradek.client.admin.topics",
    "PartitionRecords": "odradek.client.consumer.records",
    "PartitionVanished": "odradek.client.errors.client_errors",
    "Partitioner": "odradek.client.producer.hooks.partitioner",
    "PartitionerFailed": "odradek.client.errors.client_errors",
    "PositionMissing": "odradek.client.consumer.errors",
    "PreparedTransaction": "odradek.client.producer.transactions.prepared",
    "Producer": "odradek.client.producer.producer",
    "ProducerClosed": "odradek.client.errors.client_errors",
    "ProducerConfig": "odradek.client.producer.config",
    "ProducerFenced": "odradek.client.errors.broker_errors",
    "ProducerNotStarted": "odradek.client.errors.client_errors",
    "ProducerRecord": "odradek.client.producer.record",
    "ProducerState": "odradek.client.admin.producer_states",
    "PrometheusMetrics": "odradek.client.metrics.prometheus",
    "QuorumDescription": "odradek.client.admin.replication",
    "QuorumReplica": "odradek.client.admin.replication",
    "QuotaComponent": "odradek.client.admin.quotas",
    "QuotaEntity": "odradek.client.admin.quotas",
    "QuotaFilter": "odradek.client.admin.quotas",
    "Reassignment": "odradek.client.admin.replication",
    "RebalanceCallback": "odradek.client.consumer.config",
    "RecordRefused": "odradek.client.errors.broker_errors",
    "RecordTooLarge": "odradek.client.errors.broker_errors",
    "ReplicaDescription": "odradek.client.admin.cluster",
    "RequestTimedOut": "odradek.client.errors.client_errors",
    "ResourceType": "odradek.client.admin.configs",
    "ScramCredential": "odradek.client.admin.scram_users",
    "ScramDeletion": "odradek.client.admin.scram_users",
    "ScramMechanism": "odradek.client.admin.scram_users",
    "ScramUpsertion": "odradek.client.admin.scram_users",
    "SequenceError": "odradek.client.errors.broker_errors",
    "SerializationError": "odradek.client.errors.client_errors",
    "Serializer": "odradek.client.producer.hooks.serialization",
    "ServedBroker": "odradek.broker.launch.serving",
    "TakenAway": "odradek.client.consumer.errors",
    "TopicDescription": "odradek.client.admin.topics",
    "TopicExists": "odradek.client.errors.broker_errors",
    "TopicListing": "odradek.client.admin.topics",
    "TopicPartition": "odradek.client.topic_partition",
    "Transaction": "odradek.client.producer.transaction",
    "TransactionDescription": "odradek.client.admin.transactions",
    "TransactionFailed": "odradek.client.errors.transaction_errors",
    "TransactionListing": "odradek.client.admin.transactions",
    "TransactionOpen": "odradek.client.errors.transaction_errors",
    "TransactionOver": "odradek.client.errors.transaction_errors",
    "UndeliveredRecords": "odradek.client.errors.client_errors",
    "UnknownStates": "odradek.client.admin.transactions",
    "UnknownTopic": "odradek.client.errors.broker_errors",
    "UnsupportedVersion": "odradek.client.errors.broker_errors",
    "WrongLoop": "odradek.client.errors.client_errors",
    "WrongUse": "odradek.client.errors.client_errors",
    "serialize_bytes": "odradek.client.producer.hooks.serialization",
    "serialize_double": "odradek.client.producer.hooks.serialization",
    "serialize_int": "odradek.client.producer.hooks.serialization",
    "serialize_json": "odradek.client.producer.hooks.serialization",
    "serialize_long": "odradek.client.producer.hooks.serialization",
    "serialize_str": "odradek.client.producer.hooks.serialization",
    "serving": "odradek.broker.launch.serving",
    "serving_in_thread": "odradek.broker.launch.serving_in_thread",
}


def __getattr__(name: str) -> Any:
    """The version and the public names are looked up when they are first used: a broker needs neither."""
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
