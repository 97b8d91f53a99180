"""Writes the golden files: `python -m tests.protocol.golden.capture` (Java with jshell is needed; about a minute).

With names of APIs behind it (`ElectLeaders DescribeQuorum`) it writes only the files of these.

Apache Kafka is started behind a proxy that narrows its ApiVersions answer to our ranges (tee.py), and the clients do
what their users do (clients.py); then another one, where they authenticate, and one whose broker speaks with its
controller through the proxy. Of all that passes, one request per API, version and client is kept, and one response of
Apache Kafka per API and version: the longest, since it says most.
"""

import shutil
import socket
import struct
import sys
from collections.abc import Collection, Iterable
from importlib import import_module
from importlib.metadata import version as version_of
from typing import Any, NamedTuple

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from odradek.protocol.batches.batch import read_header
from odradek.protocol.codec import codec
from odradek.protocol.codec.schema import Request
from odradek.protocol.declared import declared_messages
from odradek.protocol.frames import read_request_header
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from odradek.protocol.messages.envelope import EnvelopeRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from processes.apache_kafka import ApacheKafka
from processes.free_ports import free_ports
from processes.jars import APACHE_KAFKA, KAFKA_VERSION, fetch, resolve
from tests.protocol.golden import files
from tests.protocol.golden.annotation import Piece, annotate, annotate_batch, lines, snake_case
from tests.protocol.golden.clients import (
    OLD_JAVA,
    OLD_JAVA_VERSION,
    PASSWORD,
    USER,
    address,
    authenticate_kafka_python,
    authenticate_librdkafka,
    run_java,
    run_kafka_python,
    run_librdkafka,
    until,
)
from tests.protocol.golden.security import SAID_OF_SECURITY, security
from tests.protocol.golden.tee import Exchange, Tee, receive_frame, send_frame
from tests.protocol.golden.transactions import SAID_OF_TRANSACTIONS, transactions

TOPIC = files.TOPIC
GROUP = files.GROUP
CLIENTS = {
    "kafka-python": f"kafka-python {version_of('kafka-python')}",
    "librdkafka": f"librdkafka {import_module('confluent_kafka').libversion()[0]}",
    "java": f"the Java client {KAFKA_VERSION}",
    "java-3.9": f"the Java client {OLD_JAVA_VERSION}",
    "broker": f"a broker of Apache Kafka {KAFKA_VERSION}",
}
EVERY_CODEC = ("none", "gzip", "snappy", "lz4", "zstd")
BATCHES_OF = {"kafka-python": ("none", "gzip"), "librdkafka": EVERY_CODEC, "java": EVERY_CODEC}
SIZE_BYTES_MAX = 6000  # a longer response is not kept: it says the same thing too often

# What the messages say by the way they were made, where a version carries it; each file gets what applies to it.
EXPECTED: dict[str, dict[str, Any]] = {
    "ProduceRequest": {
        "acks": -1,
        "topic_data[0].name": TOPIC,
        "topic_data[0].partition_data[0].index": 0,
        "transactional_id": None,
    },
    "ProduceResponse": {"responses[0].name": TOPIC, "responses[0].partition_responses[0].error_code": 0},
    "FetchRequest": {"replica_id": -1, "topics[0].partitions[0].partition": 0, "topics[0].topic": TOPIC},
    "FetchResponse": {"error_code": 0, "responses[0].topic": TOPIC, "responses[0].partitions[0].error_code": 0},
    "ListOffsetsRequest": {"replica_id": -1, "topics[0].name": TOPIC},
    "ListOffsetsResponse": {"topics[0].name": TOPIC, "topics[0].partitions[0].error_code": 0},
    "MetadataRequest": {"topics[0].name": TOPIC},
    "MetadataResponse": {"brokers[0].node_id": 1, "brokers[0].host": "127.0.0.1", "topics[0].name": TOPIC},
    "ApiVersionsRequest": {},
    "ApiVersionsResponse": {"error_code": 0, "api_keys[0].api_key": 0, "api_keys[0].max_version": 13},
    "CreateTopicsRequest": {
        "topics[0].name": TOPIC,
        "topics[0].num_partitions": 1,
        "topics[0].replication_factor": 1,
        "topics[0].configs[0].name": "retention.ms",
        "topics[0].configs[0].value": "86400000",
        "validate_only": False,
    },
    "CreateTopicsResponse": {"topics[0].name": TOPIC, "topics[0].error_code": 0, "topics[0].num_partitions": 1},
    "DeleteTopicsRequest": {"topics[0].name": TOPIC, "topic_names[0]": TOPIC},
    "DeleteTopicsResponse": {"responses[0].name": TOPIC, "responses[0].error_code": 0},
    "CreatePartitionsRequest": {"topics[0].name": TOPIC, "topics[0].count": 2, "topics[0].assignments": None},
    "CreatePartitionsResponse": {"results[0].name": TOPIC, "results[0].error_code": 0},
    "DeleteRecordsRequest": {"topics[0].name": TOPIC, "topics[0].partitions[0].offset": 1},
    "DeleteRecordsResponse": {"topics[0].name": TOPIC, "topics[0].partitions[0].low_watermark": 1},
    "InitProducerIdRequest": {"transactional_id": None},
    "InitProducerIdResponse": {"error_code": 0, "producer_epoch": 0},
    "OffsetForLeaderEpochRequest": {
        "replica_id": -1,
        "topics[0].topic": TOPIC,
        "topics[0].partitions[0].leader_epoch": 0,
    },
    "OffsetForLeaderEpochResponse": {"topics[0].topic": TOPIC, "topics[0].partitions[0].error_code": 0},
    "DescribeConfigsRequest": {"resources[0].resource_type": 2, "resources[0].resource_name": TOPIC},
    "DescribeConfigsResponse": {"results[0].error_code": 0, "results[0].resource_name": TOPIC},
    "AlterConfigsRequest": {
        "resources[0].resource_name": TOPIC,
        "resources[0].configs[0].name": "retention.ms",
        "resources[0].configs[0].value": "90000000",
    },
    "AlterConfigsResponse": {"responses[0].error_code": 0, "responses[0].resource_name": TOPIC},
    "IncrementalAlterConfigsRequest": {
        "resources[0].resource_name": TOPIC,
        "resources[0].configs[0].name": "retention.ms",
        "resources[0].configs[0].config_operation": 0,
        "resources[0].configs[0].value": "90000000",
    },
    "IncrementalAlterConfigsResponse": {"responses[0].error_code": 0, "responses[0].resource_name": TOPIC},
    "FindCoordinatorRequest": {"key": GROUP, "coordinator_keys[0]": GROUP, "key_type": 0},
    "FindCoordinatorResponse": {
        "error_code": 0,
        "node_id": 1,
        "host": "127.0.0.1",
        "coordinators[0].key": GROUP,
        "coordinators[0].error_code": 0,
    },
    "JoinGroupRequest": {"group_id": GROUP, "protocol_type": "consumer"},
    "JoinGroupResponse": {"error_code": 0, "generation_id": 1},
    "SyncGroupRequest": {"group_id": GROUP, "generation_id": 1},
    "SyncGroupResponse": {"error_code": 0},
    "HeartbeatRequest": {"group_id": GROUP, "generation_id": 1},
    "HeartbeatResponse": {"error_code": 0},
    "LeaveGroupRequest": {"group_id": GROUP},
    "LeaveGroupResponse": {"error_code": 0},
    "OffsetCommitRequest": {"group_id": GROUP, "topics[0].name": TOPIC},
    "OffsetCommitResponse": {"topics[0].name": TOPIC, "topics[0].partitions[0].error_code": 0},
    "OffsetFetchRequest": {"group_id": GROUP, "groups[0].group_id": GROUP},
    "OffsetFetchResponse": {"error_code": 0, "groups[0].group_id": GROUP, "groups[0].error_code": 0},
    "OffsetDeleteRequest": {"group_id": GROUP, "topics[0].name": TOPIC},
    "OffsetDeleteResponse": {"error_code": 0, "topics[0].name": TOPIC},
    "DescribeGroupsRequest": {"groups[0]": GROUP},
    "DescribeGroupsResponse": {
        "groups[0].group_id": GROUP,
        "groups[0].error_code": 0,
        "groups[0].group_state": "Stable",
    },
    "ListGroupsRequest": {},
    "ListGroupsResponse": {"error_code": 0, "groups[0].group_id": GROUP},
    "DeleteGroupsRequest": {"groups_names[0]": GROUP},
    "DeleteGroupsResponse": {"results[0].group_id": GROUP, "results[0].error_code": 0},
    "ConsumerGroupHeartbeatRequest": {"group_id": GROUP},
    "ConsumerGroupHeartbeatResponse": {"error_code": 0},
    "ConsumerGroupDescribeRequest": {"group_ids[0]": GROUP},
    "ConsumerGroupDescribeResponse": {
        "groups[0].group_id": GROUP,
        "groups[0].error_code": 0,
        "groups[0].assignor_name": "uniform",
    },
    "ListConfigResourcesRequest": {},
    "ListConfigResourcesResponse": {"error_code": 0},
    "UpdateFeaturesRequest": {"feature_updates[0].feature": "group.version"},
    "UpdateFeaturesResponse": {"error_code": 0},
    "SaslHandshakeRequest": {"mechanism": "PLAIN"},
    "SaslHandshakeResponse": {"error_code": 0, "mechanisms[0]": "PLAIN"},
    "SaslAuthenticateRequest": {},
    "SaslAuthenticateResponse": {"error_code": 0, "session_lifetime_ms": 0},
    "DescribeClusterRequest": {"endpoint_type": 1},
    "DescribeClusterResponse": {"error_code": 0, "brokers[0].broker_id": 1, "brokers[0].host": "127.0.0.1"},
    "DescribeTopicPartitionsRequest": {"topics[0].name": TOPIC, "cursor": None},
    "DescribeTopicPartitionsResponse": {"topics[0].name": TOPIC, "topics[0].partitions[0].leader_id": 1},
    "DescribeLogDirsRequest": {},
    "DescribeLogDirsResponse": {"results[0].error_code": 0},
    "ElectLeadersRequest": {"topic_partitions[0].topic": TOPIC},
    "ElectLeadersResponse": {"error_code": 0, "replica_election_results[0].topic": TOPIC},
    "AlterPartitionReassignmentsRequest": {"topics[0].name": TOPIC, "topics[0].partitions[0].replicas[0]": 1},
    "AlterPartitionReassignmentsResponse": {"error_code": 0, "responses[0].name": TOPIC},
    "ListPartitionReassignmentsRequest": {},
    "ListPartitionReassignmentsResponse": {"error_code": 0},
    "DescribeQuorumRequest": {"topics[0].topic_name": "__cluster_metadata"},
    "DescribeQuorumResponse": {"error_code": 0, "topics[0].partitions[0].leader_id": 1},
    "UnregisterBrokerRequest": {"broker_id": 99},
    "UnregisterBrokerResponse": {"error_code": 102},
    "BrokerHeartbeatRequest": {"broker_id": 1, "want_shut_down": False},
    "BrokerHeartbeatResponse": {"error_code": 0, "is_caught_up": True},
    "EnvelopeRequest": {},
    "EnvelopeResponse": {"error_code": 0},
    **SAID_OF_TRANSACTIONS,
    **SAID_OF_SECURITY,
}


class Kept(NamedTuple):
    """A frame that may become a file, read by Kafka's descriptions, and who sent it."""

    pieces: list[Piece]
    expected: dict[str, Any]
    sender: str

    @property
    def size_bytes(self) -> int:
        return sum(len(piece.data) for piece in self.pieces)


def main(only: Collection[str] = ()) -> None:
    """Captures everything and writes the files anew; with names of APIs, theirs."""
    with Tee() as tee, ApacheKafka(properties={"advertised.listeners": f"PLAINTEXT://{address(tee)}"}) as kafka:
        tee.upstream = (kafka.host, kafka.port)
        tee.source = "kafka-python"
        run_kafka_python(tee, kafka)
        tee.source = "librdkafka"
        run_librdkafka(tee)
        tee.source = "java"
        run_java(tee, resolve(*APACHE_KAFKA))
        tee.source = "java-3.9"
        run_java(tee, fetch(OLD_JAVA))
        answer = ask_for_unknown_version(kafka)
    exchanges = [*tee.exchanges, *authentications(), *to_the_controller(), *transactions(), *security()]
    directories = [files.MESSAGES / snake_case(api) for api in only] or [files.MESSAGES, files.BATCHES]
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
    write_messages(exchanges, only)
    if not only:
        write_unknown_version(answer)
        write_batches(tee.exchanges)


def authentications() -> Iterable[Exchange]:
    """What is sent where a listener asks for SASL, of which only the authentication itself is new."""
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    with Tee() as tee:
        properties = {
            # Nobody connects to the plaintext listener by what is advertised.
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:1,SASL_PLAINTEXT://{address(tee)}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login} required user_{USER}="{PASSWORD}";',
        }
        with ApacheKafka(properties=properties, listeners=["SASL_PLAINTEXT"]) as kafka:
            tee.upstream = (kafka.host, kafka.ports["SASL_PLAINTEXT"])
            tee.source = "kafka-python"
            authenticate_kafka_python(tee)
            tee.source = "librdkafka"
            authenticate_librdkafka(tee)
            tee.source = "java"
            run_java(tee, resolve(*APACHE_KAFKA), "java_sasl.jsh")
            tee.source = "java-3.9"
            run_java(tee, fetch(OLD_JAVA), "java_sasl.jsh")
    keys = (SaslHandshakeRequest.api_key, SaslAuthenticateRequest.api_key)
    return [exchange for exchange in tee.exchanges if exchange.api_key in keys]


def to_the_controller() -> list[Exchange]:
    """What a broker tells its controller, and sends on to it. With static voters it connects to the address that these
    have."""
    (controller_port,) = free_ports(1)
    with Tee(narrows=False) as tee:
        tee.upstream = ("127.0.0.1", controller_port)
        tee.source = "broker"
        properties = {"controller.quorum.voters": f"1@{address(tee)}"}
        with ApacheKafka(properties=properties, controller_port=controller_port) as kafka:
            until(lambda: sum(exchange.api_key == BrokerHeartbeatRequest.api_key for exchange in tee.exchanges) > 1)
            with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
                admin.create_topics([NewTopic(TOPIC, 1, 1)])
    keys = (BrokerHeartbeatRequest.api_key, EnvelopeRequest.api_key)
    return [exchange for exchange in tee.exchanges if exchange.api_key in keys]


def write_messages(exchanges: Iterable[Exchange], only: Collection[str] = ()) -> None:
    """Chooses what is kept, and writes it; a comment per field for the oldest and the newest version of each API."""
    declared = {
        cls.api_key: cls.__name__.removesuffix("Request")
        for cls in declared_messages().values()
        if issubclass(cls, Request)
    }
    names = {key: api for key, api in declared.items() if not only or api in only}
    kept: dict[tuple[str, int, str], Kept] = {}
    for source, api_key, version, request, response in exchanges:
        if (api := names.get(api_key)) is None:
            continue
        # The same version from both Java clients says nothing new.
        if source != "java-3.9" or (f"{api}Request", version, "request-java") not in kept:
            offer(kept, f"{api}Request", version, f"request-{source}", request, CLIENTS[source])
        offer(
            kept, f"{api}Response", version, "response", response, f"Apache Kafka {KAFKA_VERSION}, to {CLIENTS[source]}"
        )
    for api in sorted(names.values()):
        versions = sorted({version for name, version, _ in kept if name == f"{api}Request"})
        assert versions == sorted({version for name, version, _ in kept if name == f"{api}Response"})
        assert versions, f"no client sent {api}"
        for (name, version, suffix), one in kept.items():
            if name in (f"{api}Request", f"{api}Response"):
                path = files.MESSAGES / snake_case(api) / f"v{version:02}-{suffix}.hex"
                text = lines(one.pieces, with_comments=version in (versions[0], versions[-1]))
                files.write(path, [f"{name} v{version}", f"sent by {one.sender}"], one.expected, text)


def offer(
    kept: dict[tuple[str, int, str], Kept], name: str, version: int, suffix: str, frame: bytes, sender: str
) -> None:
    """Keeps a frame if it says what is expected and is the longest so far."""
    pieces = annotate(frame, name, version)
    said = {piece.path: piece.value for piece in pieces if piece.path}
    expected = {path: value for path, value in EXPECTED[name].items() if path in said}
    says_it = all(said[path] == value for path, value in expected.items()) and (expected or not EXPECTED[name])
    before = kept.get((name, version, suffix))
    if says_it and (before.size_bytes if before else 0) < len(frame) <= SIZE_BYTES_MAX:
        kept[name, version, suffix] = Kept(pieces, expected, sender)


def ask_for_unknown_version(kafka: ApacheKafka) -> bytes:
    """No client asks for a version of ApiVersions that Kafka does not know. Its answer has version 0 (KIP-511)."""
    with socket.create_connection((kafka.host, kafka.port)) as sock:
        send_frame(sock, struct.pack(">hhih", ApiVersionsRequest.api_key, 99, 7, -1) + b"\x00")
        answer = receive_frame(sock)
    assert answer is not None
    return answer


def write_unknown_version(frame: bytes) -> None:
    pieces = annotate(frame, "ApiVersionsResponse", 0)
    title = ["ApiVersionsResponse v0", f"sent by Apache Kafka {KAFKA_VERSION}, to a raw request of version 99"]
    expected = {"error_code": 35, "api_keys[0].api_key": 18, "api_keys[0].max_version": 4}
    files.write(
        files.MESSAGES / "api_versions" / "v00-response-unknown-version.hex",
        title,
        expected,
        lines(pieces, with_comments=True),
    )


def write_batches(exchanges: Iterable[Exchange]) -> None:
    """The batch of all records that each client sent with each codec, each to a topic of its own."""
    missing = [f"{client}-{kind}" for client, kinds in BATCHES_OF.items() for kind in kinds]
    for source, api_key, version, frame, _ in exchanges:
        if api_key != ProduceRequest.api_key:
            continue
        _, position = read_request_header(frame, ProduceRequest.is_flexible(version))
        (topic,) = codec.decode(ProduceRequest, version, frame, position).topic_data
        (partition,) = topic.partition_data
        kind = topic.name.removeprefix(f"{TOPIC}-")
        batch = bytes(partition.records or b"")
        # A batch may be sent again, to a topic that is just being created.
        if f"{source}-{kind}" in missing and read_header(batch).record_count == len(files.RECORDS):
            missing.remove(f"{source}-{kind}")
            title = [f"Record batch, {kind}", f"sent by {CLIENTS[source]}"]
            text = lines(annotate_batch(batch), with_comments=True)
            files.write(files.BATCHES / f"{source}-{kind}.hex", title, {}, text)
    assert not missing, f"no batch of all records: {missing}"


if __name__ == "__main__":
    main(sys.argv[1:])
