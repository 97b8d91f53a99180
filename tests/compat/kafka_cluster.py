"""Three nodes of Apache Kafka, each broker and controller, in three racks.

with kafka_cluster() as nodes:
    nodes[2].stop()                                # the other two are a majority
"""

from collections.abc import Generator
from contextlib import contextmanager

from processes.apache_kafka import ApacheKafka
from processes.kafka_nodes import kafka_nodes

OPTIONS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
}


@contextmanager
def kafka_cluster(**options: str) -> Generator[dict[int, ApacheKafka]]:
    """The nodes by their ids, all ready. `options` win over those here."""
    with kafka_nodes(lambda node_id: OPTIONS | options | {"broker.rack": f"rack-{node_id}"}, heap="256m") as nodes:
        yield nodes
