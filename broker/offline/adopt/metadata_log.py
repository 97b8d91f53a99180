"""Reads `__cluster_metadata-0`, in which a Kafka of KRaft keeps what its cluster knows (KIP-595, KIP-630).

    <end offset, 20 digits>-<epoch, 10 digits>.checkpoint   all that is known before that offset, as batches
    <base offset, 20 digits>.log                            the records, some of them from before the newest checkpoint

The newest checkpoint and the records behind it give the image. How far the quorum had agreed is not on the disk of one
node: of a controller that stopped among others, the last records may never have been agreed upon.
"""

import re
from collections.abc import Iterator

from odradek.broker.disk.disk import Disk, File
from odradek.broker.log.batches import Damage, walk
from odradek.broker.offline.adopt.kafka_metadata import KafkaMetadata
from odradek.broker.offline.adopt.metadata_records import read_record
from odradek.protocol.batches.batch import HEADER_SIZE, MAGIC, BatchHeader, read_header
from odradek.protocol.batches.records import iterate_records
from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.primitives import Buffer

DIRECTORY = "__cluster_metadata-0"
_CHECKPOINT = re.compile(r"(\d{20})-\d{10}\.checkpoint")
_SEGMENT = re.compile(r"(\d{20})\.log")


class UnreadableMetadata(Exception):
    """What a cluster's metadata log holds cannot be told; the text names the file and says why."""


def read_metadata_log(disk: Disk, directory: str) -> KafkaMetadata:
    """The image that the log comes to. Raises UnreadableMetadata, OSError."""
    sizes = disk.sizes(directory)
    checkpoints = sorted(name for name in sizes if _CHECKPOINT.fullmatch(name))
    segments = sorted(name for name in sizes if _SEGMENT.fullmatch(name))
    metadata = KafkaMetadata()
    next_offset = 0
    if checkpoints:
        path = f"{directory}/{checkpoints[-1]}"
        for header, batch in _batches(disk, path, sizes[checkpoints[-1]], may_be_torn=False):
            _take(metadata, path, header, batch)
        next_offset = int(checkpoints[-1][:20])
    for name in segments:
        path = f"{directory}/{name}"
        end = 0
        for header, batch in _batches(disk, path, sizes[name], may_be_torn=name == segments[-1]):
            end += len(batch)
            if header.last_offset < next_offset:
                continue
            if header.base_offset != next_offset:
                raise UnreadableMetadata(
                    f"{path}: offset {header.base_offset} comes where {next_offset} is expected, so a part is missing"
                )
            _take(metadata, path, header, batch)
            next_offset = header.last_offset + 1
        metadata.torn_bytes = sizes[name] - end
    return metadata


def _take(metadata: KafkaMetadata, path: str, header: BatchHeader, batch: Buffer) -> None:
    if header.is_control:
        return  # of the quorum: who leads, where a checkpoint begins and ends
    offset = header.base_offset
    try:
        for record in iterate_records(batch):
            offset = record.offset
            metadata.take(read_record(record.value or b""))
    except (KafkaError, MalformedMessage) as error:
        raise UnreadableMetadata(f"{path}: the record with offset {offset} cannot be read: {error}") from error


def _batches(disk: Disk, path: str, size_bytes: int, *, may_be_torn: bool) -> Iterator[tuple[BatchHeader, Buffer]]:
    """Every batch of a file. Raises UnreadableMetadata, OSError."""
    file = disk.open(path, size_bytes)
    try:
        for position, header in walk(file, 0, size_bytes, with_crc=True):
            yield header, file.pread(header.size_bytes, position)
    except Damage as damage:
        if not (may_be_torn and _is_torn(file, damage.position, size_bytes)):
            raise UnreadableMetadata(f"{path} is damaged at position {damage.position}: {damage.reason}") from damage
    finally:
        file.close()


def _is_torn(file: File, position: int, size_bytes: int) -> bool:
    """Whether the damaged batch is the last one, not all of which was written, or room that was made and never used."""
    rest = file.pread(size_bytes - position, position)
    if len(rest) < HEADER_SIZE or rest.count(0) == len(rest):
        return True
    header = read_header(rest)
    return header.magic == MAGIC and header.size_bytes >= len(rest)
