"""Three nodes of Apache Kafka, each broker and controller, in three racks.

with kafka_cluster() as nodes:
    nodes[2].stop()                                # the other two are a majority
"""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from tests.apache_kafka import ApacheKafka, free_ports

NODE_IDS = (1, 2, 3)
OPTIONS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
}


@contextmanager
def kafka_cluster(**options: str) -> Generator[dict[int, ApacheKafka]]:
    """The nodes by their ids, all ready. `options` win over those here."""
    ports = dict(zip(NODE_IDS, free_ports(len(NODE_IDS)), strict=True))
    voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in ports.items())
    nodes = {
        node_id: ApacheKafka(
            properties=OPTIONS
            | options
            | {"node.id": str(node_id), "controller.quorum.voters": voters, "broker.rack": f"rack-{node_id}"},
            heap="256m",
            controller_port=port,
        )
        for node_id, port in ports.items()
    }
    with ExitStack() as running:
        # None is ready before a majority is there, so they start side by side.
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(running.enter_context, nodes.values()))
        yield nodes
        for node in nodes.values():
            node.kill()  # the last ones would wait for a majority, to be stopped cleanly
