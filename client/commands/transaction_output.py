"""What is printed of transactions and producers, in rows for tables and for JSON. Pure.

Times are Unix times in milliseconds in JSON, and UTC to the second in tables.
"""

from typing import Final

from odradek.client.admin.producer_states import ProducerState
from odradek.client.admin.transactions import TransactionDescription, TransactionListing
from odradek.client.commands.hanging import OpenTransaction
from odradek.client.commands.moment import moment_text
from odradek.client.commands.output import Cell
from odradek.client.commands.partition_names import partition_names, partitions_json
from odradek.client.topic_partition import TopicPartition

__all__ = [
    "DESCRIBED_COLUMNS",
    "HANGING_COLUMNS",
    "LISTED_COLUMNS",
    "PRODUCER_COLUMNS",
    "described_json",
    "described_row",
    "hanging_json",
    "hanging_row",
    "listed_json",
    "listed_row",
    "producer_json",
    "producer_row",
]

LISTED_COLUMNS: Final = ("TRANSACTIONAL ID", "COORDINATOR", "PRODUCER", "STATE")
DESCRIBED_COLUMNS: Final = (
    "TRANSACTIONAL ID", "COORDINATOR", "PRODUCER", "EPOCH", "STATE", "TIMEOUT MS", "STARTED", "AGE S", "PARTITIONS",
)  # fmt: skip
HANGING_COLUMNS: Final = (
    "TOPIC", "PARTITION", "PRODUCER", "EPOCH", "COORDINATOR EPOCH", "START", "LAST BATCH", "AGE MIN",
)  # fmt: skip
PRODUCER_COLUMNS: Final = (
    "TOPIC", "PARTITION", "PRODUCER", "EPOCH", "COORDINATOR EPOCH", "LAST SEQUENCE", "LAST BATCH", "OPEN SINCE",
)  # fmt: skip
MS_PER_S: Final = 1000
MS_PER_MINUTE: Final = 60_000


# -------------------------------------------------------------------------------------------------- transactional ids
def listed_row(each: TransactionListing) -> list[Cell]:
    return [each.transactional_id, each.coordinator_id, each.producer_id, each.state]


def listed_json(each: TransactionListing) -> dict[str, object]:
    return {
        "transactional_id": each.transactional_id,
        "coordinator": each.coordinator_id,
        "producer_id": each.producer_id,
        "state": each.state,
    }


def described_row(each: TransactionDescription, now_ms: float) -> list[Cell]:
    started_ms = each.started_ms
    return [
        each.transactional_id,
        each.coordinator_id,
        each.producer_id,
        each.producer_epoch,
        each.state,
        each.timeout_ms,
        None if started_ms is None else moment_text(started_ms),
        None if started_ms is None else max(0, int(now_ms) - started_ms) // MS_PER_S,
        partition_names(each.partitions) or None,
    ]


def described_json(each: TransactionDescription) -> dict[str, object]:
    return {
        "transactional_id": each.transactional_id,
        "coordinator": each.coordinator_id,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "state": each.state,
        "timeout_ms": each.timeout_ms,
        "started_ms": each.started_ms,
        "partitions": partitions_json(each.partitions),
    }


# --------------------------------------------------------------------------------------------------------- partitions
def producer_row(partition: TopicPartition, each: ProducerState) -> list[Cell]:
    return [
        partition.topic,
        partition.partition,
        each.producer_id,
        each.producer_epoch,
        each.coordinator_epoch,
        each.last_sequence if each.last_sequence >= 0 else None,
        moment_text(each.last_timestamp_ms) if each.last_timestamp_ms >= 0 else None,
        each.transaction_start_offset,
    ]


def producer_json(partition: TopicPartition, each: ProducerState) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "coordinator_epoch": each.coordinator_epoch,
        "last_sequence": each.last_sequence if each.last_sequence >= 0 else None,
        "last_timestamp_ms": each.last_timestamp_ms if each.last_timestamp_ms >= 0 else None,
        "transaction_start_offset": each.transaction_start_offset,
    }


def hanging_row(each: OpenTransaction, now_ms: float) -> list[Cell]:
    producer = each.producer
    return [
        each.partition.topic,
        each.partition.partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        each.start_offset,
        moment_text(producer.last_timestamp_ms) if producer.last_timestamp_ms >= 0 else None,
        each.age_ms(now_ms) // MS_PER_MINUTE,
    ]


def hanging_json(each: OpenTransaction) -> dict[str, object]:
    return producer_json(each.partition, each.producer)
