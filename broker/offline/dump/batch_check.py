"""Whether a batch is what it says of itself: checksum, counts, records, the largest timestamp, its marker."""

from odradek.broker.log.markers import read_marker
from odradek.broker.offline.dump.findings import Inconsistency
from odradek.broker.offline.dump.stored import Stored
from odradek.protocol.batches.batch import CRC_RANGE_START, HEADER_SIZE, crc_matches
from odradek.protocol.batches.crc32c import crc32c
from odradek.protocol.batches.records import iterate_records
from odradek.protocol.errors import KafkaError, MalformedMessage

NO_TIMESTAMP = -1
RECORDS_BYTES_MAX = 2**31 - 1
"""What is in a log was accepted once, by whatever bound was set then."""


def check_batch(path: str, stored: Stored) -> None:
    """Raises Inconsistency."""
    reason = _fault(stored)
    if reason is not None:
        raise Inconsistency(path, reason, position=stored.position, offset=stored.header.base_offset)


def _fault(stored: Stored) -> str | None:
    _, header, data = stored
    if not crc_matches(data):
        return (
            f"the batch carries the checksum {header.crc:#010x}, its content has {crc32c(data[CRC_RANGE_START:]):#010x}"
        )
    if header.last_offset_delta < 0:
        return f"a last_offset_delta of {header.last_offset_delta}"
    if not 0 <= header.record_count <= header.last_offset_delta + 1:
        return f"{header.record_count} records for the offsets {header.base_offset} to {header.last_offset}"
    if header.record_count == 0 and len(data) > HEADER_SIZE:
        return f"{len(data) - HEADER_SIZE} bytes follow the header of a batch without records"
    try:
        latest = latest_timestamp(stored)
        if header.is_control:
            read_marker(data, header)
    except KafkaError as error:
        return error.message
    except MalformedMessage as error:
        return str(error)
    if header.record_count and not header.is_log_append_time and latest != header.max_timestamp:
        return f"a max_timestamp of {header.max_timestamp}, where the largest of the records is {latest}"
    return None


def latest_timestamp(stored: Stored) -> int:
    """The largest timestamp of the records, -1 at least. Raises KafkaError: they are not what the header says."""
    records = iterate_records(stored.data, size_bytes_max=RECORDS_BYTES_MAX)
    return max((record.timestamp_ms for record in records), default=NO_TIMESTAMP)
