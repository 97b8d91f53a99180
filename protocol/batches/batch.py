"""The record batch (magic 2, KIP-98): the unit in which records are sent, stored and fetched, seen from outside.

    offset  size  field
         0     8  base_offset             set by the leader
         8     4  batch_length            bytes after this field, hence the batch has 12 more
        12     4  partition_leader_epoch  set by the leader
        16     1  magic                   2
        17     4  crc                     CRC-32C of everything after this field
        21     2  attributes              bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control, 6 delete horizon
        23     4  last_offset_delta
        27     8  base_timestamp          ms since 1970; the records' timestamps are relative to it; -1 for none
        35     8  max_timestamp
        43     8  producer_id             -1 for none, as the next two
        51     2  producer_epoch
        53     4  base_sequence
        57     4  record_count
        61        records, compressed as one run (odradek.protocol.batches.records)

A broker needs no more than this header: `check_batch` decides whether a client's batch may be appended, and the two
fields that the leader always sets stand before the checksummed range, so `patched_prefix` renews the first 16 bytes and
the rest is passed on untouched. Where a topic wants other fields changed, or other payload, `rebuild_batch` makes the
batch anew. What the records say inside is checked by `odradek.protocol.batches.records.check_records`.

Source: DefaultRecordBatch.java; the rules of `check_batch` are those of ProduceRequest.validateRecords,
UnifiedLog.analyzeAndValidateRecords and LogValidator.validateBatch.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from odradek.protocol.batches.compression import Codec
from odradek.protocol.batches.crc32c import crc32c
from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage
from odradek.protocol.primitives import Buffer

__all__ = [
    "CRC_RANGE_START",
    "HEADER_SIZE",
    "MAGIC",
    "RECORD_SIZE_MIN",
    "BatchHeader",
    "check_batch",
    "crc_matches",
    "iterate_batches",
    "pack_batch",
    "patched_prefix",
    "read_header",
    "rebuild_batch",
]

_HEADER: Final = Struct(
    ">"
    "q"  # base_offset
    "i"  # batch_length
    "i"  # partition_leader_epoch
    "b"  # magic
    "I"  # crc
    "h"  # attributes
    "i"  # last_offset_delta
    "q"  # base_timestamp
    "q"  # max_timestamp
    "q"  # producer_id
    "h"  # producer_epoch
    "i"  # base_sequence
    "i"  # record_count
)
_PREFIX: Final = Struct(">qii")  # base_offset, batch_length, partition_leader_epoch: what lies before the magic
_BEFORE_CRC_RANGE: Final = Struct(">qiibI")
_CRC_RANGE: Final = Struct(">hiqqqhii")  # attributes to record_count
_CRC: Final = Struct(">I")

HEADER_SIZE: Final = 61
MAGIC: Final = 2
CRC_RANGE_START: Final = 21
_MAGIC_POSITION: Final = 16
_CRC_POSITION: Final = 17
_FLAGS_POSITION: Final = 22  # the lower byte of the attributes
_LENGTH_OVERHEAD: Final = 12  # base_offset and batch_length are not counted in batch_length
assert _HEADER.size == HEADER_SIZE == CRC_RANGE_START + _CRC_RANGE.size

RECORD_SIZE_MIN: Final = 7
"""A record takes at least a byte each for its length, attributes, timestamp, offset, key, value and header count."""

_CODEC_MASK: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_CODECS: Final = {codec.value: codec for codec in Codec}
_SEQUENCE_MODULUS: Final = 1 << 31


class BatchHeader(NamedTuple):
    """The header of a batch, field by field as on the wire. A tuple, since one is made for every batch that passes."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch, header included."""
        return self.batch_length + _LENGTH_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> Codec:
        """Raises KafkaError: UNSUPPORTED_COMPRESSION_TYPE for 5, 6 and 7, which no codec has."""
        codec = _CODECS.get(self.attributes & _CODEC_MASK)
        if codec is None:
            raise _no_codec(self.attributes)
        return codec

    @property
    def is_log_append_time(self) -> bool:
        """Whether `max_timestamp` is the time of the append and stands for every record's own timestamp."""
        return self.attributes & _LOG_APPEND_TIME != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & _TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """Whether the batch holds a transaction marker, which only a broker writes."""
        return self.attributes & _CONTROL != 0

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record: sequences wrap from 2**31 - 1 to 0. -1 when there are none."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCE_MODULUS


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """Reads the header that begins at `pos`; nothing in it is checked. Raises MalformedMessage when it is cut."""
    if not 0 <= pos <= len(buf) - HEADER_SIZE:
        raise MalformedMessage(f"{len(buf) - pos} bytes are too few for the header of a batch")
    return BatchHeader._make(_HEADER.unpack_from(buf, pos))


def is_of_transaction(view: Buffer) -> bool:
    """Whether the batch says that it belongs to a transaction: what `read_header` would say, for a look at each batch.
    Nothing else in it is looked at; what is too short for a batch belongs to none."""
    return len(view) >= HEADER_SIZE and view[_MAGIC_POSITION] == MAGIC and bool(view[_FLAGS_POSITION] & _TRANSACTIONAL)


def crc_matches(view: Buffer) -> bool:
    """Whether the bytes of exactly one batch, at least `HEADER_SIZE` of them, carry the checksum of their content."""
    crc: int
    (crc,) = _CRC.unpack_from(view, _CRC_POSITION)
    return crc32c(memoryview(view)[CRC_RANGE_START:]) == crc


def check_batch(view: memoryview) -> BatchHeader:
    """Returns the header of the one batch that a client sent for a partition, if a leader may append it.

    Whether the producer's epoch and sequence continue what the log knows, and whether the size is allowed, is for the
    log to say. Raises KafkaError: CORRUPT_MESSAGE (damaged on the way), UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD
    (everything else, which sending again does not mend).
    """
    if len(view) <= _MAGIC_POSITION:
        raise _invalid("there is no batch" if not len(view) else f"{len(view)} bytes are too few for a batch")
    magic = view[_MAGIC_POSITION]
    if magic != MAGIC:
        # "Produce requests with version 3 and later are only allowed to contain record batches with magic version 2".
        raise _invalid(f"magic {magic} instead of {MAGIC}: message formats before Kafka 0.11 are not accepted")
    if len(view) < HEADER_SIZE:
        raise _invalid(f"{len(view)} bytes are too few for a batch")
    header = read_header(view)
    size_bytes = header.size_bytes
    if size_bytes < HEADER_SIZE:
        raise _corrupt(f"a batch_length of {header.batch_length} is less than the header's")
    if size_bytes != len(view):
        raise _invalid(f"the batch takes {size_bytes} bytes and {len(view)} were sent: exactly one is allowed")
    if crc32c(view[CRC_RANGE_START:]) != header.crc:
        raise _corrupt(f"the content of the batch does not have the checksum {header.crc:#010x}")
    _check_claims(header)
    return header


def _check_claims(header: BatchHeader) -> None:
    """The rules for what a header may claim, once its bytes are known to be those that the client sent."""
    attributes = header.attributes  # its bits are looked at here: for each batch, a property each takes longer
    if header.base_offset != 0:
        raise _invalid(f"base_offset is {header.base_offset}; a client's is 0, since the leader assigns offsets")
    if header.record_count <= 0:
        raise _invalid(f"a batch of {header.record_count} records")
    if header.last_offset_delta != header.record_count - 1:
        raise _invalid(f"{header.record_count} records do not end at offset delta {header.last_offset_delta}")
    if attributes & _CONTROL:
        raise _invalid("clients may not write control records")
    if attributes & _LOG_APPEND_TIME:
        # Kafka clears the bit where the topic keeps the clients' timestamps and these are within its bounds; otherwise
        # it answers as we always do. No client sets it.
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "clients may not say when their records are appended")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise _invalid(
            f"producer {header.producer_id} with epoch {header.producer_epoch} and sequence {header.base_sequence}"
        )
    if attributes & _CODEC_MASK:
        if attributes & _CODEC_MASK not in _CODECS:
            raise _no_codec(attributes)
    elif RECORD_SIZE_MIN * header.record_count > header.size_bytes - HEADER_SIZE:
        raise _invalid(f"{header.record_count} records cannot fit in {header.size_bytes - HEADER_SIZE} bytes")


def _no_codec(attributes: int) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"no codec has number {attributes & _CODEC_MASK}")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, why)


def _corrupt(why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, why)


def patched_prefix(header: BatchHeader, base_offset: int, leader_epoch: int) -> bytes:
    """The 16 bytes that replace a batch's first 16 when the leader of `leader_epoch` puts it at `base_offset`."""
    return _PREFIX.pack(base_offset, header.batch_length, leader_epoch)


def iterate_batches(buf: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Yields position and header of each whole batch in `buf`, and stops where the last one is cut.

    A fetch ends in part of a batch where a broker cuts it by size, a log where a write was torn. Neither checksums nor
    content are looked at. Raises MalformedMessage where no batch begins: other magic, or a length that cannot be.
    """
    position = 0
    while len(buf) - position >= HEADER_SIZE:
        header = read_header(buf, position)
        if header.magic != MAGIC:
            raise MalformedMessage(f"magic {header.magic} at position {position} instead of {MAGIC}")
        if header.size_bytes < HEADER_SIZE:
            raise MalformedMessage(f"a batch_length of {header.batch_length} at position {position}")
        if header.size_bytes > len(buf) - position:
            return
        yield position, header
        position += header.size_bytes


def pack_batch(
    *payload: Buffer,
    record_count: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """Puts a header before the payload, given in parts: encoded records that `codec` has been applied to already."""
    crc_range = _CRC_RANGE.pack(
        codec | is_transactional * _TRANSACTIONAL | is_control * _CONTROL,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    return _joined(base_offset, leader_epoch, crc_range, payload)


def rebuild_batch(
    header: BatchHeader, payload: Buffer, *, codec: Codec, max_timestamp: int, is_log_append_time: bool
) -> bytes:
    """A batch with this header and payload but for what is named; length and checksum are made to fit.

    `codec` has been applied to the payload already. As in Kafka, `base_timestamp` and the records' own timestamps stay,
    whatever `max_timestamp` becomes.
    """
    attributes = header.attributes & ~(_CODEC_MASK | _LOG_APPEND_TIME) | codec | is_log_append_time * _LOG_APPEND_TIME
    crc_range = _CRC_RANGE.pack(
        attributes,
        header.last_offset_delta,
        header.base_timestamp,
        max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    return _joined(header.base_offset, header.partition_leader_epoch, crc_range, (payload,))


def _joined(base_offset: int, leader_epoch: int, crc_range: bytes, payload: tuple[Buffer, ...]) -> bytes:
    """A batch: what comes before the checksummed range of the header, that, and the payload."""
    batch_length = HEADER_SIZE - _LENGTH_OVERHEAD + sum(map(len, payload))
    crc = crc32c(crc_range)
    for part in payload:
        crc = crc32c(part, crc)
    return b"".join((_BEFORE_CRC_RANGE.pack(base_offset, batch_length, leader_epoch, MAGIC, crc), crc_range, *payload))
