"""What metadata records come to, one after another, as Kafka's own image takes them."""

import pytest

from odradek.broker.offline.adopt.kafka_metadata import Foreign, KafkaMetadata
from odradek.broker.offline.adopt.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
)
from odradek.protocol.codec.schema import Message
from odradek.protocol.configs import ResourceType
from tests.broker.offline.adopt.kafka_files import broker_config, config, id_of, topic_records


def image(*records: Message | int) -> KafkaMetadata:
    metadata = KafkaMetadata()
    for record in records:
        metadata.take(record)
    return metadata


def change(**values: object) -> PartitionChangeRecord:
    record = PartitionChangeRecord(partition_id=0, topic_id=id_of("orders"))
    for name, value in values.items():
        setattr(record, name, value)
    return record


def test_a_topic_comes_with_its_partitions_and_options() -> None:
    metadata = image(
        *topic_records("orders", 2, replicas=[1, 2], epoch=3),
        config("orders", "retention.ms", "5"),
        config("orders", "segment.bytes", "7"),
        config("orders", "retention.ms", None),
        broker_config("", "log.retention.ms", "9"),
        broker_config("1", "log.cleaner.threads", "2"),
    )
    topic = metadata.topic_named("orders")
    assert topic is not None
    assert topic is metadata.topics[id_of("orders")]
    assert {index: (each.replicas, each.isr, each.leader_epoch) for index, each in topic.partitions.items()} == {
        0: ((1, 2), (1, 2), 3),
        1: ((1, 2), (1, 2), 3),
    }
    assert metadata.configs_of(ResourceType.TOPIC, "orders") == {"segment.bytes": "7"}
    assert metadata.configs_of(ResourceType.BROKER, "") == {"log.retention.ms": "9"}
    assert metadata.configs_of(ResourceType.BROKER, "2") == {}
    assert metadata.topic_named("others") is None


def test_a_deleted_topic_takes_its_options_along_and_its_name_can_be_used_again() -> None:
    metadata = image(
        *topic_records("orders", 2),
        config("orders", "retention.ms", "5"),
        RemoveTopicRecord(topic_id=id_of("orders")),
        RemoveTopicRecord(topic_id=id_of("never")),
        *topic_records("orders", topic_id=id_of("again")),
    )
    assert [(topic.name, len(topic.partitions)) for topic in metadata.topics.values()] == [("orders", 1)]
    assert metadata.configs == {}


@pytest.mark.parametrize(
    ("changes", "epoch"),
    [
        ([change(isr=[2])], 5),
        ([change(leader=2)], 6),
        ([change(leader=1)], 6),  # the same leader, named so that its epoch grows
        ([change(leader=-1), change(leader=1, isr=[1])], 7),
    ],
)
def test_the_leader_epoch_grows_whenever_a_leader_is_named(changes: list[Message], epoch: int) -> None:
    metadata = image(*topic_records("orders", epoch=5), *changes)
    assert metadata.topics[id_of("orders")].partitions[0].leader_epoch == epoch


def test_who_has_every_record_is_in_sync_or_eligible() -> None:
    """The last replica in sync becomes an eligible leader when it stops, without being named in sync any more."""
    metadata = image(*topic_records("orders", replicas=[1, 2]))
    partition = metadata.topics[id_of("orders")].partitions[0]

    def complete() -> list[int]:
        return [node_id for node_id in (1, 2) if partition.is_complete_on(node_id)]

    assert complete() == [1, 2]
    metadata.take(change(isr=[1]))
    assert complete() == [1]
    metadata.take(change(isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]))
    assert complete() == [1]
    metadata.take(change(isr=[2]))
    assert complete() == [1, 2], "what is not named does not change"
    metadata.take(ClearElrRecord(topic_name="others"))
    assert complete() == [1, 2]
    metadata.take(ClearElrRecord(topic_name=""))
    assert complete() == [2]
    metadata.take(change(replicas=[2]))
    assert partition.replicas == (2,)


def test_changes_of_what_is_not_there_are_passed_over() -> None:
    later = PartitionChangeRecord(partition_id=7, topic_id=id_of("orders"), leader=1)
    metadata = image(change(leader=1), *topic_records("others")[1:], *topic_records("orders"), later)
    assert [topic.name for topic in metadata.topics.values()] == ["orders"]
    assert metadata.topics[id_of("orders")].partitions[0].leader_epoch == 0


def test_records_of_a_transaction_count_when_it_ends_and_not_when_it_is_aborted() -> None:
    metadata = image(BeginTransactionRecord(name="Bootstrap records"), *topic_records("orders"), 18)
    assert metadata.topics == {}
    metadata.take(EndTransactionRecord())
    assert [topic.name for topic in metadata.topics.values()] == ["orders"]
    assert metadata.foreign_counts[18] == 1
    for record in (BeginTransactionRecord(), *topic_records("others"), AbortTransactionRecord(reason="failed")):
        metadata.take(record)
    metadata.take(config("orders", "retention.ms", "5"))
    assert len(metadata.topics) == 1
    assert metadata.configs_of(ResourceType.TOPIC, "orders") == {"retention.ms": "5"}


def test_the_next_producer_id_is_the_largest_named() -> None:
    blocks = [ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=number) for number in (1000, 3000, 2000)]
    assert image().next_producer_id == 0
    assert image(*blocks).next_producer_id == 3000


def test_what_has_no_counterpart_is_told() -> None:
    acl, no_acl = Foreign.ACCESS_CONTROL_ENTRY, Foreign.REMOVE_ACCESS_CONTROL_ENTRY
    user, no_user = Foreign.USER_SCRAM_CREDENTIAL, Foreign.REMOVE_USER_SCRAM_CREDENTIAL
    assert list(image(12, 27, 20).foreign()) == []
    assert list(image(acl, no_acl, user, no_user).foreign()) == []
    assert list(image(acl, acl, no_acl, user, Foreign.CLIENT_QUOTA).foreign()) == [
        "access control lists",
        "users and their passwords (SCRAM)",
        "quotas of clients",
    ]
