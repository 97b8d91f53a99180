"""What clients and brokers say about transactions: another Apache Kafka, whose broker asks itself through a proxy, too.

Each client commits a transaction with a record, one with a record and the offsets of a group, and has a third one
aborted, by an administrator where it has one. It sees our ranges, and the features that Kafka has finalized: so Java 4
picks transaction.version 2, and the others ask in their own older ways. The broker is told nothing of our ranges. Over
its listener for brokers it verifies with the coordinator what a producer without version 2 appends, or adds what one
with it appends, and writes markers.
"""

from importlib import import_module
from typing import Any

from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.describe_producers import DescribeProducersRequest
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from odradek.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from processes.apache_kafka import ApacheKafka
from processes.jars import APACHE_KAFKA, fetch, resolve
from tests.protocol.golden import files
from tests.protocol.golden.clients import OLD_JAVA, address, run_java, until
from tests.protocol.golden.tee import Exchange, Tee

kafka_python: Any = import_module("kafka")
kafka_admin: Any = import_module("kafka.admin")
confluent_kafka: Any = import_module("confluent_kafka")
confluent_admin: Any = import_module("confluent_kafka.admin")

TOPIC, GROUP = files.TOPIC, files.GROUP
TRANSACTIONAL_ID = "golden"
VALUE = b"the first value"
BROKERS_LISTENER = "BROKERS"

BETWEEN_BROKERS = (AddPartitionsToTxnRequest.api_key, WriteTxnMarkersRequest.api_key)
OF_TRANSACTIONS = (
    *BETWEEN_BROKERS,
    AddOffsetsToTxnRequest.api_key,
    EndTxnRequest.api_key,
    TxnOffsetCommitRequest.api_key,
    DescribeProducersRequest.api_key,
    DescribeTransactionsRequest.api_key,
    ListTransactionsRequest.api_key,
)

SAID_OF_TRANSACTIONS: dict[str, dict[str, Any]] = {
    "AddPartitionsToTxnRequest": {
        "v3_and_below_transactional_id": TRANSACTIONAL_ID,
        "v3_and_below_topics[0].name": TOPIC,
        "v3_and_below_topics[0].partitions[0]": 0,
        "transactions[0].transactional_id": TRANSACTIONAL_ID,
        "transactions[0].topics[0].name": TOPIC,
        "transactions[0].topics[0].partitions[0]": 0,
    },
    "AddPartitionsToTxnResponse": {
        "error_code": 0,
        "results_by_topic_v3_and_below[0].name": TOPIC,
        "results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code": 0,
        "results_by_transaction[0].transactional_id": TRANSACTIONAL_ID,
        "results_by_transaction[0].topic_results[0].name": TOPIC,
        "results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code": 0,
    },
    "AddOffsetsToTxnRequest": {"transactional_id": TRANSACTIONAL_ID, "group_id": GROUP},
    "AddOffsetsToTxnResponse": {"error_code": 0},
    "EndTxnRequest": {"transactional_id": TRANSACTIONAL_ID, "committed": True},
    "EndTxnResponse": {"error_code": 0},
    "WriteTxnMarkersRequest": {"markers[0].topics[0].name": TOPIC, "markers[0].coordinator_epoch": 0},
    "WriteTxnMarkersResponse": {
        "markers[0].topics[0].name": TOPIC,
        "markers[0].topics[0].partitions[0].error_code": 0,
    },
    "TxnOffsetCommitRequest": {
        "transactional_id": TRANSACTIONAL_ID,
        "group_id": GROUP,
        "topics[0].name": TOPIC,
        "topics[0].partitions[0].committed_offset": 1,
    },
    "TxnOffsetCommitResponse": {"topics[0].name": TOPIC, "topics[0].partitions[0].error_code": 0},
    "DescribeProducersRequest": {"topics[0].name": TOPIC, "topics[0].partition_indexes[0]": 0},
    "DescribeProducersResponse": {
        "topics[0].name": TOPIC,
        "topics[0].partitions[0].error_code": 0,
        "topics[0].partitions[0].active_producers[0].coordinator_epoch": 0,
    },
    "DescribeTransactionsRequest": {"transactional_ids[0]": TRANSACTIONAL_ID},
    "DescribeTransactionsResponse": {
        "transaction_states[0].error_code": 0,
        "transaction_states[0].transactional_id": TRANSACTIONAL_ID,
        "transaction_states[0].transaction_state": "Ongoing",
    },
    "ListTransactionsRequest": {"state_filters[0]": "Ongoing"},
    "ListTransactionsResponse": {"error_code": 0, "transaction_states[0].transactional_id": TRANSACTIONAL_ID},
}
"""As `EXPECTED` in capture.py."""


def transactions() -> list[Exchange]:
    """Has each client do its transactions, and returns what was said about them."""
    with Tee() as tee, Tee(narrows=False) as between_brokers:
        between_brokers.source = "broker"
        protocols = ("CONTROLLER", "PLAINTEXT", BROKERS_LISTENER)
        properties = {
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in protocols),
            "inter.broker.listener.name": BROKERS_LISTENER,
            "advertised.listeners": f"PLAINTEXT://{address(tee)},{BROKERS_LISTENER}://{address(between_brokers)}",
        }
        with ApacheKafka(properties=properties, listeners=[BROKERS_LISTENER]) as kafka:
            tee.upstream = (kafka.host, kafka.port)
            between_brokers.upstream = (kafka.host, kafka.ports[BROKERS_LISTENER])
            # Java 4 first: of frames of one length the first is kept, and what the broker says under version 2 is new.
            tee.source = "java"
            run_java(tee, resolve(*APACHE_KAFKA), "java_transactions.jsh")
            tee.source = "java-3.9"
            run_java(tee, fetch(OLD_JAVA), "java_transactions.jsh")
            tee.source = "kafka-python"
            run_kafka_python(address(tee))
            tee.source = "librdkafka"
            run_librdkafka(address(tee))
    asked = [exchange for exchange in tee.exchanges if exchange.api_key in OF_TRANSACTIONS]
    return asked + [exchange for exchange in between_brokers.exchanges if exchange.api_key in BETWEEN_BROKERS]


def run_kafka_python(bootstrap: str) -> None:
    admin = kafka_python.KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics({TOPIC: {"num_partitions": 1, "replication_factor": 1}})
    partition = kafka_python.TopicPartition(TOPIC, 0)
    producer = kafka_python.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=TRANSACTIONAL_ID)
    producer.init_transactions()

    def begin() -> None:
        """A transaction with one record."""
        producer.begin_transaction()
        producer.send(TOPIC, VALUE, partition=0).get(10)

    begin()
    producer.commit_transaction()
    member = kafka_python.KafkaConsumer(
        TOPIC, bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False
    )
    until(lambda: member.poll(500))
    begin()
    consumed = {partition: kafka_python.OffsetAndMetadata(1, "", 0)}
    producer.send_offsets_to_transaction(consumed, member.group_metadata())
    admin.list_transactions(state_filters=["Ongoing"], transactional_id_pattern=f"{TRANSACTIONAL_ID}.*")
    admin.describe_transactions([TRANSACTIONAL_ID])
    producer.commit_transaction()
    member.close()

    begin()
    (known,) = admin.describe_producers([partition])[partition].active_producers
    spec = kafka_admin.AbortTransactionSpec(partition, known.producer_id, known.producer_epoch, known.coordinator_epoch)
    admin.abort_transaction(spec)
    producer.abort_transaction()
    producer.close()
    admin.delete_groups([GROUP])
    admin.delete_topics([TOPIC])
    admin.close()


def run_librdkafka(bootstrap: str) -> None:
    """It has no administrator of transactions."""
    settings = {"bootstrap.servers": bootstrap}
    admin = confluent_admin.AdminClient(settings)
    admin.create_topics([confluent_admin.NewTopic(TOPIC, 1, 1)])[TOPIC].result(10)
    producer = confluent_kafka.Producer(settings | {"transactional.id": TRANSACTIONAL_ID})
    producer.init_transactions(30)

    def begin() -> None:
        """A transaction with one record."""
        producer.begin_transaction()
        producer.produce(TOPIC, VALUE, partition=0)
        producer.flush(30)

    begin()
    producer.commit_transaction(30)
    member = confluent_kafka.Consumer(
        settings | {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    member.subscribe([TOPIC])
    until(lambda: member.poll(1))
    begin()
    consumed = [confluent_kafka.TopicPartition(TOPIC, 0, 1)]
    producer.send_offsets_to_transaction(consumed, member.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    member.close()

    begin()
    producer.abort_transaction(30)
    admin.delete_consumer_groups([GROUP])[GROUP].result(10)
    admin.delete_topics([TOPIC])[TOPIC].result(10)
