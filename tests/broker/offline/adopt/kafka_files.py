"""Data directories as Apache Kafka leaves them, made by hand on a memory disk, and the records of its metadata log."""

from collections.abc import Iterable, Sequence
from struct import Struct
from zlib import crc32

from odradek.broker.directories.checkpoints import CLEAN_SHUTDOWN
from odradek.broker.directories.meta_properties import FILE_NAME
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.log.checkpoint import write_partition_metadata
from odradek.broker.log.producers import Producers
from odradek.broker.log.snapshots import encode_snapshot
from odradek.broker.offline.adopt.metadata_log import DIRECTORY
from odradek.broker.offline.adopt.metadata_records import ConfigRecord, PartitionRecord, TopicRecord
from odradek.protocol.batches.batch import read_header
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.schema import Message
from odradek.protocol.configs import ResourceType
from odradek.protocol.primitives import unsigned_varint, uuid_text

DATA = "data"
NODE_ID = 1
CLUSTER_ID = "b2RyYWRlay10ZXN0cy0wMQ"
NOW = 1_700_000_000_000
_OLD_HEADER = Struct(">qiIb")


def id_of(name: str) -> bytes:
    """A topic id that tests can tell by the topic's name."""
    return name.encode().rjust(16, b".")[:16]


# -- batches and logs -------------------------------------------------------------------------------------------------


def batch(
    base_offset: int,
    count: int = 1,
    *,
    epoch: int = 0,
    producer_id: int = -1,
    sequence: int = 0,
    gaps: Sequence[int] = (),
    value: bytes = b"v",
) -> bytes:
    """A batch in a log. `gaps`: offset deltas that compaction took away."""
    records = [Record(base_offset + delta, NOW, b"k", value) for delta in range(count) if delta not in gaps]
    is_idempotent = producer_id >= 0
    return build_batch(
        records,
        base_offset=base_offset,
        leader_epoch=epoch,
        producer_id=producer_id,
        producer_epoch=0 if is_idempotent else -1,
        base_sequence=sequence if is_idempotent else -1,
    )


def transactional(offset: int, *, producer_id: int) -> bytes:
    """A record of a transaction."""
    record = [Record(offset, NOW, b"k", b"v")]
    return build_batch(
        record, base_offset=offset, leader_epoch=0, producer_id=producer_id, producer_epoch=0, base_sequence=0,
        is_transactional=True,
    )  # fmt: skip


def marker(offset: int, *, producer_id: int, is_commit: bool = True) -> bytes:
    """The end of a transaction (EndTransactionMarker.java)."""
    record = [Record(offset, NOW, bytes((0, 0, 0, is_commit)), bytes(6))]
    return build_batch(
        record, base_offset=offset, leader_epoch=0, producer_id=producer_id, producer_epoch=0, is_transactional=True,
        is_control=True,
    )  # fmt: skip


def old_message(offset: int, version: int, value: bytes = b"v" * 80) -> bytes:
    """A message of format 0 or 1, with the checksum of that time."""
    rest = bytes((version, 0)) + bytes(8 * version) + (-1).to_bytes(4, "big", signed=True)
    rest += len(value).to_bytes(4, "big") + value
    return _OLD_HEADER.pack(offset, len(rest) + 4, crc32(rest), version)[:16] + rest


def snapshot(*producer_ids: int) -> bytes:
    producers = Producers()
    for producer_id in producer_ids:
        producers.update(read_header(batch(0, producer_id=producer_id)), 0)
    return encode_snapshot(producers)


# -- metadata ---------------------------------------------------------------------------------------------------------


def metadata_value(record: Message, version: int | None = None) -> bytes:
    """A metadata record as the value of a record of the log."""
    version = record.max_version if version is None else version
    return unsigned_varint(1) + unsigned_varint(record.api_key) + unsigned_varint(version) + encode(record, version)


def metadata_batch(base_offset: int, values: Iterable[bytes], *, is_control: bool = False) -> bytes:
    records = [Record(base_offset + index, NOW, None, value) for index, value in enumerate(values)]
    return build_batch(records, base_offset=base_offset, leader_epoch=1, is_control=is_control)


def topic_records(
    name: str, partitions: int = 1, *, replicas: Sequence[int] = (NODE_ID,), epoch: int = 0, topic_id: bytes = b""
) -> list[Message]:
    """A topic's creation."""
    topic_id = topic_id or id_of(name)
    partition_records = [
        PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(replicas),
            isr=list(replicas),
            removing_replicas=[],
            adding_replicas=[],
            leader=replicas[0],
            leader_epoch=epoch,
            partition_epoch=0,
            directories=[bytes(16)] * len(replicas),
        )
        for index in range(partitions)
    ]
    return [TopicRecord(name=name, topic_id=topic_id), *partition_records]


def config(topic: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.TOPIC, resource_name=topic, name=name, value=value)


def broker_config(broker: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.BROKER, resource_name=broker, name=name, value=value)


def group_config(group_id: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=ResourceType.GROUP, resource_name=group_id, name=name, value=value)


# -- the directory ----------------------------------------------------------------------------------------------------


class KafkaDirectory:
    """A data directory on a memory disk. By default Kafka stopped cleanly."""

    def __init__(
        self,
        *,
        is_clean: bool = True,
        node_id: int = NODE_ID,
        disk: MemoryDisk | None = None,
        path: str = DATA,
        directory_id: bytes = bytes(range(16)),
        cluster_id: str = CLUSTER_ID,
    ) -> None:
        self.disk = MemoryDisk() if disk is None else disk
        self.path = path
        self.disk.make_dir(path)
        text = f"#\n#Thu May 01 10:00:00 UTC 2025\nnode.id={node_id}\ndirectory.id={uuid_text(directory_id)}\n"
        self.write(FILE_NAME, f"{text}version=1\ncluster.id={cluster_id}\n".encode())
        if is_clean:
            self.write(CLEAN_SHUTDOWN, b'{"version":0,"brokerEpoch":11}')

    def write(self, name: str, data: bytes) -> None:
        self.disk.write_whole(f"{self.path}/{name}", data)

    def read(self, name: str) -> bytes:
        return self.disk.read_whole(f"{self.path}/{name}")

    def offsets(self, name: str, offsets: dict[tuple[str, int], int]) -> None:
        rows = "".join(f"{topic} {index} {offset}\n" for (topic, index), offset in offsets.items())
        self.write(name, f"0\n{len(offsets)}\n{rows}".encode())

    def partition(
        self,
        name: str,
        *batches: bytes,
        topic_id: bytes | None = None,
        epochs: Sequence[tuple[int, int]] = ((0, 0),),
        snapshots: dict[int, bytes] | None = None,
        has_metadata: bool = True,
    ) -> None:
        """A partition of one segment. `snapshots` by their offsets; a topic's id is told by its name."""
        self.disk.make_dir(f"{self.path}/{name}")
        if has_metadata:
            topic_id = topic_id or id_of(name.rpartition("-")[0])
            write_partition_metadata(self.disk, f"{self.path}/{name}", topic_id)
        rows = "".join(f"{epoch} {offset}\n" for epoch, offset in epochs)
        self.write(f"{name}/leader-epoch-checkpoint", f"0\n{len(epochs)}\n{rows}".encode())
        self.segment(name, 0, *batches)
        for offset, data in (snapshots or {}).items():
            self.write(f"{name}/{offset:020d}.snapshot", data)

    def segment(self, name: str, base_offset: int, *batches: bytes, index: bytes = b"") -> None:
        path = f"{name}/{base_offset:020d}"
        self.write(f"{path}.log", b"".join(batches))
        self.write(f"{path}.index", index)
        self.write(f"{path}.timeindex", b"")

    def metadata(self, *records: Message, name: str = f"{0:020d}.log", base_offset: int = 0) -> None:
        """`__cluster_metadata-0` with these records behind a control batch, as a new leader writes one."""
        self.disk.make_dir(f"{self.path}/{DIRECTORY}")
        data = metadata_batch(base_offset, [b"\0\0\0\0"], is_control=True)
        for number, record in enumerate(records, base_offset + 1):
            data += metadata_batch(number, [metadata_value(record)])
        self.write(f"{DIRECTORY}/{name}", data)

    def files(self) -> dict[str, bytes]:
        """The content of every file, by its path."""
        return dict(_files(self.disk, self.path))


def _files(disk: MemoryDisk, path: str) -> Iterable[tuple[str, bytes]]:
    for name in disk.list_dir(path):
        inner = f"{path}/{name}"
        if disk.is_dir(inner):
            yield from _files(disk, inner)
        else:
            yield inner, disk.read_whole(inner)
