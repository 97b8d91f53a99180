"""What a Kafka cluster knew of its topics: the image that its metadata records come to (KIP-631). Pure.

Records are taken one after another, as MetadataDelta.java does; those between the begin and the end of a transaction
(KIP-868) count only with its end.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from odradek.broker.offline.adopt.metadata_records import (
    LEADER_UNCHANGED,
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from odradek.protocol.codec.schema import Message
from odradek.protocol.configs import ResourceType


class Foreign(IntEnum):
    """Types of records whose content is not read, of which an adoption has to tell (MetadataRecordType.java)."""

    USER_SCRAM_CREDENTIAL = 11
    CLIENT_QUOTA = 14
    ACCESS_CONTROL_ENTRY = 18
    REMOVE_ACCESS_CONTROL_ENTRY = 19
    REMOVE_USER_SCRAM_CREDENTIAL = 22


@dataclass(slots=True)
class KafkaPartition:
    """A partition as the controller had it last."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible_leaders: tuple[int, ...]
    """Replicas that hold all that was acknowledged, without being in sync (KIP-966)."""
    leader_epoch: int

    def is_complete_on(self, node_id: int) -> bool:
        """Whether this replica has every acknowledged record. At its stop Kafka moves the last one in sync to the
        eligible leaders."""
        return node_id in self.isr or node_id in self.eligible_leaders


@dataclass(slots=True)
class KafkaTopic:
    name: str
    topic_id: bytes
    partitions: dict[int, KafkaPartition] = field(default_factory=dict[int, KafkaPartition])


Resource = tuple[int, str]
"""Type (odradek.protocol.configs.ResourceType) and name."""


class KafkaMetadata:
    """The image, and `take` to move it on."""

    def __init__(self) -> None:
        self.topics: dict[bytes, KafkaTopic] = {}
        self.configs: dict[Resource, dict[str, str]] = {}
        self.next_producer_id = 0
        self.foreign_counts: Counter[int] = Counter()
        """How many records of each type came that is not declared."""
        self.torn_bytes = 0
        """What stands behind the last whole batch of the log."""
        self._waiting: list[Message | int] | None = None

    def topic_named(self, name: str) -> KafkaTopic | None:
        return next((topic for topic in self.topics.values() if topic.name == name), None)

    def configs_of(self, resource_type: ResourceType, name: str) -> dict[str, str]:
        return self.configs.get((resource_type, name), {})

    def foreign(self) -> Iterator[str]:
        """What may be set in this cluster and has no counterpart here."""
        counts = self.foreign_counts
        if counts[Foreign.ACCESS_CONTROL_ENTRY] > counts[Foreign.REMOVE_ACCESS_CONTROL_ENTRY]:
            yield "access control lists"
        if counts[Foreign.USER_SCRAM_CREDENTIAL] > counts[Foreign.REMOVE_USER_SCRAM_CREDENTIAL]:
            yield "users and their passwords (SCRAM)"
        if counts[Foreign.CLIENT_QUOTA]:
            yield "quotas of clients"

    def take(self, record: Message | int) -> None:
        """The next record; of one that is not declared, its type."""
        match record:
            case BeginTransactionRecord():
                self._waiting = []
            case AbortTransactionRecord():
                self._waiting = None
            case EndTransactionRecord():
                waiting, self._waiting = self._waiting or [], None
                for each in waiting:
                    self._apply(each)
            case _ if self._waiting is not None:
                self._waiting.append(record)
            case _:
                self._apply(record)

    def _apply(self, record: Message | int) -> None:
        match record:
            case int():
                self.foreign_counts[record] += 1
            case ConfigRecord():
                self._configure(record)
            case ProducerIdsRecord():
                self.next_producer_id = max(self.next_producer_id, record.next_producer_id)
            case _:
                self._apply_to_topics(record)

    def _apply_to_topics(self, record: Message) -> None:
        match record:
            case TopicRecord():
                self.topics[record.topic_id] = KafkaTopic(record.name, record.topic_id)
            case RemoveTopicRecord():
                if (removed := self.topics.pop(record.topic_id, None)) is not None:
                    self.configs.pop((ResourceType.TOPIC, removed.name), None)
            case PartitionRecord():
                if (topic := self.topics.get(record.topic_id)) is not None:
                    topic.partitions[record.partition_id] = KafkaPartition(
                        tuple(record.replicas),
                        tuple(record.isr),
                        tuple(record.eligible_leader_replicas or ()),
                        record.leader_epoch,
                    )
            case PartitionChangeRecord():
                self._change(record)
            case ClearElrRecord():
                for topic in self.topics.values():
                    if record.topic_name in ("", topic.name):
                        for partition in topic.partitions.values():
                            partition.eligible_leaders = ()
            case _:
                raise AssertionError(f"{type(record).__name__} is declared, and nobody takes it")

    def _change(self, change: PartitionChangeRecord) -> None:
        """PartitionRegistration.merge."""
        topic = self.topics.get(change.topic_id)
        partition = None if topic is None else topic.partitions.get(change.partition_id)
        if partition is None:
            return
        if change.replicas is not None:
            partition.replicas = tuple(change.replicas)
        if change.isr is not None:
            partition.isr = tuple(change.isr)
        if change.eligible_leader_replicas is not None:
            partition.eligible_leaders = tuple(change.eligible_leader_replicas)
        if change.leader != LEADER_UNCHANGED:
            partition.leader_epoch += 1

    def _configure(self, record: ConfigRecord) -> None:
        configs = self.configs.setdefault((record.resource_type, record.resource_name), {})
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
