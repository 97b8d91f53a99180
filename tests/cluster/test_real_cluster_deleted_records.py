"""Records that DeleteRecords removed do not come back with another leader, though the old one dies with the answer."""

import socket
import statistics
import time
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from odradek.protocol.codec.codec import decode, encode_parts
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from processes.apache_kafka import ask
from tests.cluster.real_cluster import NOBODY, PATIENCE_S, TOPIC, PlainCluster, RealCluster, plain_cluster

RECORDS: Final = 500
PARTITIONS: Final = 21
LEADER_1: Final = ([1, 2, 3],) * PARTITIONS
EARLIEST: Final = -2
MEDIAN_MS_MAX: Final = 200.0
"""A third of what a follower's fetch may wait for news. 50 ms and less on a machine that does nothing else."""


def test_what_was_deleted_stays_so_with_the_next_leader_and_the_answer_comes_soon(tmp_path: Path) -> None:
    with plain_cluster(tmp_path, assignments=LEADER_1) as cluster:
        write(cluster)
        with socket.create_connection(cluster.addresses()[0], timeout=PATIENCE_S) as connection:
            took_ms: list[float] = []
            for index in range(1, PARTITIONS):
                began_s = time.monotonic()
                assert deleted(connection, index).error_code == 0
                took_ms.append((time.monotonic() - began_s) * 1000)
            assert statistics.median(took_ms) < MEDIAN_MS_MAX, took_ms
            answer = deleted(connection, 0)
            cluster.brokers[0].kill()
        assert (answer.error_code, answer.low_watermark) == (0, RECORDS)
        cluster.wait_until(lambda: set(cluster.leaders()) <= {2, 3})
        assert starts(cluster) == [RECORDS] * PARTITIONS
        cluster.brokers[0].start()
        cluster.wait_until_whole()
        cluster.wait_until(lambda: elected(cluster) == [1] * PARTITIONS)
        assert starts(cluster) == [RECORDS] * PARTITIONS


def write(cluster: PlainCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 50})
    for index in range(PARTITIONS):
        for number in range(RECORDS):
            producer.produce(TOPIC, str(number).encode(), partition=index)
    assert producer.flush(PATIENCE_S) == 0


def deleted(connection: socket.socket, index: int) -> DeleteRecordsPartitionResult:
    """The answer to a DeleteRecords of all of a partition."""
    partition = DeleteRecordsPartition(partition_index=index, offset=RECORDS)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=[partition])], timeout_ms=30_000)
    body = b"".join(encode_parts(request, 1))
    answer = decode(DeleteRecordsResponse, 1, ask(connection, api_key=21, api_version=1, body=body))
    return answer.topics[0].partitions[0]


def elected(cluster: RealCluster) -> list[int]:
    """Who leads after preferred elections; on a busy machine one may be refused, and a broker be fenced meanwhile."""
    request = ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=30_000)
    body = b"".join(encode_parts(request, 1))
    with socket.create_connection(cluster.addresses()[0], timeout=PATIENCE_S) as connection:
        answer = decode(ElectLeadersResponse, 1, ask(connection, api_key=43, api_version=1, body=body))
    assert answer.error_code == 0
    return cluster.leaders()


def starts(cluster: RealCluster) -> list[int]:
    """Where each partition starts, as its leader says."""
    found = [NOBODY] * PARTITIONS
    by_leader: dict[int, list[int]] = {}
    for index, leader in enumerate(cluster.leaders()):
        by_leader.setdefault(leader, []).append(index)
    for leader, indexes in by_leader.items():
        broker = cluster.brokers[leader - 1]
        partitions = [ListOffsetsPartition(partition_index=index, timestamp=EARLIEST) for index in indexes]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=partitions)])
        body = b"".join(encode_parts(request, 2))
        with socket.create_connection((broker.host, broker.port), timeout=PATIENCE_S) as connection:
            answer = decode(ListOffsetsResponse, 2, ask(connection, api_key=2, api_version=2, body=body))
        for told in answer.topics[0].partitions:
            assert told.error_code == 0, told
            found[told.partition_index] = told.offset
    return found
