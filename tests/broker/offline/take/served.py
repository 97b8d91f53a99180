"""The data directory of `odradek serve` with a partition, laid down on a disk."""

from collections.abc import Mapping

from odradek.broker.cluster.embedded import FILE_NAME
from odradek.broker.cluster.journal import encode_file
from odradek.broker.cluster.keys import (
    CLUSTER_KEY,
    NodeState,
    PartitionState,
    encode_cluster,
    node_key,
    partition_key,
    topic_key,
)
from odradek.broker.cluster.store import Entry
from odradek.broker.cluster.values import encode
from odradek.broker.directories import meta_properties
from odradek.broker.directories.meta_properties import MetaProperties
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.protocol.codec.schema import uuid_text

SERVE = "serve"
NODE = 7
ID = bytes(range(16))
TOPIC_ID = bytes(range(1, 17))
KNOWN = MetaProperties("Rk9P4m2xT0eXK1m0Vb7n1w", NODE, uuid_text(ID))
LOG = f"{SERVE}/orders-0/{0:020}.log"


def metadata(
    *,
    replicas: tuple[int, ...] = (NODE,),
    directories: tuple[bytes, ...] = (ID,),
    others: Mapping[str, bytes] | None = None,
) -> bytes:
    values = {
        CLUSTER_KEY: encode_cluster(KNOWN.cluster_id),
        node_key(NODE): NodeState(directories).encode(),
        topic_key("orders"): encode({"topic_id": uuid_text(TOPIC_ID), "partitions": 1}),
        partition_key("orders", 0): PartitionState(TOPIC_ID, replicas, replicas, replicas[0]).encode(),
        **(others or {}),
    }
    return encode_file({key: Entry(value, 5) for key, value in values.items()}, (), 5)


def laid_down(disk: MemoryDisk, log: bytes | None = None, known: MetaProperties = KNOWN) -> None:
    """The data directory of `odradek serve` with a partition."""
    disk.make_dir(f"{SERVE}/orders-0")
    for path in ("", SERVE):
        disk.sync_dir(path)
    meta_properties.store(disk, SERVE, known)
    disk.write_whole(f"{SERVE}/{FILE_NAME}", metadata() if log is None else log)
    disk.write_whole(LOG, b"records")
