"""Three nodes of Apache Kafka, each broker and controller, for tests and benchmarks.

with kafka_nodes(lambda node_id: {"broker.rack": f"rack-{node_id}"}, heap="256m") as nodes:
    nodes[2].stop()                                # the other two are a majority
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from processes.apache_kafka import ApacheKafka
from processes.free_ports import free_ports

NODE_IDS = (1, 2, 3)


@contextmanager
def kafka_nodes(
    properties_of: Callable[[int], Mapping[str, str]],
    *,
    heap: str,
    jvm_options: Sequence[str] | None = None,
    directory: Path | None = None,
) -> Generator[dict[int, ApacheKafka]]:
    """The nodes by their ids, all ready. `properties_of` an id: what is added to what makes them one cluster.

    With `directory` each has its own in there, else a temporary one.
    """
    ports = dict(zip(NODE_IDS, free_ports(len(NODE_IDS)), strict=True))
    voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in ports.items())
    nodes = {
        node_id: ApacheKafka(
            properties={**properties_of(node_id), "node.id": str(node_id), "controller.quorum.voters": voters},
            heap=heap,
            jvm_options=jvm_options,
            directory=None if directory is None else directory / f"node-{node_id}",
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
