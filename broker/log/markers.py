"""Transaction markers: the control records with which a coordinator ends a transaction in a partition (KIP-98).

A control batch holds one record (EndTransactionMarker.java, ControlRecordType.java):

    key    i16 version, i16 type: 0 abort, 1 commit
    value  i16 version, i32 epoch of the coordinator

Fields that a later version adds stand behind these and are passed over. A control batch without records is what
compaction leaves where all of a transaction is gone.
"""

from struct import Struct, error
from typing import NamedTuple

from odradek.protocol.batches.batch import BatchHeader, read_header
from odradek.protocol.batches.records import iterate_records
from odradek.protocol.errors import KafkaError, MalformedMessage
from odradek.protocol.primitives import Buffer

ABORT = 0
COMMIT = 1

_KEY = Struct(">hh")
_VALUE = Struct(">hi")


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    is_abort: bool
    coordinator_epoch: int


def read_marker(batch: Buffer, header: BatchHeader | None = None) -> Marker | None:
    """The marker in a control batch; None where it holds none, or a control record of another type.

    Raises MalformedMessage for one that cannot be read: the log is damaged there, or not of a version known here.
    """
    header = read_header(batch) if header is None else header
    assert header.is_control, "only control batches hold markers"
    if header.record_count == 0:
        return None
    try:
        record = next(iterate_records(batch))
    except (KafkaError, StopIteration) as reason:
        raise _no_marker(header.base_offset, reason) from reason
    return marker_of(record.key, record.value, header.base_offset)


def marker_of(key: bytes | None, value: bytes | None, base_offset: int) -> Marker | None:
    """The marker in the record of the control batch at `base_offset`. Returns and raises as `read_marker`."""
    try:
        key_version, kind = _KEY.unpack_from(key or b"")
        if key_version >= 0 and kind not in (ABORT, COMMIT):
            return None
        value_version, coordinator_epoch = _VALUE.unpack_from(value or b"")
        if min(key_version, value_version) < 0:
            raise ValueError(f"version {min(key_version, value_version)}")
    except (ValueError, error) as reason:
        raise _no_marker(base_offset, reason) from reason
    return Marker(kind == ABORT, coordinator_epoch)


def encode_marker(marker: Marker) -> tuple[bytes, bytes]:
    """Key and value of the record that is this marker."""
    return _KEY.pack(0, ABORT if marker.is_abort else COMMIT), _VALUE.pack(0, marker.coordinator_epoch)


def _no_marker(base_offset: int, reason: Exception) -> MalformedMessage:
    return MalformedMessage(f"the control batch at offset {base_offset} holds no marker: {reason}")
