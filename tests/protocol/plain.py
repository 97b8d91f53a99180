"""A second encoder of record batches, field by field after the format's description, slow and able to write nonsense.

The tests check `odradek.protocol.batches.records` against it, and use it to say what may be wrong with a batch: every
field of the header and of a record can be given, whether it fits the others or not. Its varints and its checksum are
its own too.
"""

from collections.abc import Iterable, Sequence
from struct import pack


def zigzag(number: int) -> bytes:
    """A signed number in base 128, least significant digit first, written as division by hand would."""
    unsigned = 2 * number if number >= 0 else -2 * number - 1
    digits: list[int] = []
    while True:
        unsigned, digit = divmod(unsigned, 128)
        digits.append(digit)
        if not unsigned:
            break
    return bytes([digit + 128 for digit in digits[:-1]] + digits[-1:])


def nullable(value: bytes | None) -> bytes:
    """A length and so many bytes, or the length -1."""
    return zigzag(-1) if value is None else zigzag(len(value)) + value


def record(
    offset_delta: int = 0,
    value: bytes | None = b"v",
    key: bytes | None = None,
    timestamp_delta: int = 0,
    headers: Sequence[tuple[bytes | None, bytes | None]] = (),
    header_count: int | None = None,
    length: int | None = None,
) -> bytes:
    """One record; `length` and `header_count` may lie."""
    body = b"\x00" + zigzag(timestamp_delta) + zigzag(offset_delta) + nullable(key) + nullable(value)
    body += zigzag(len(headers) if header_count is None else header_count)
    for header_key, header_value in headers:
        body += nullable(header_key) + nullable(header_value)
    return zigzag(len(body) if length is None else length) + body


def batch(
    records: Iterable[bytes] = (record(),),
    *,
    payload: bytes | None = None,
    base_offset: int = 0,
    batch_length: int | None = None,
    leader_epoch: int = -1,
    magic: int = 2,
    crc: int | None = None,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int = 1_700_000_000_000,
    max_timestamp: int = 1_700_000_000_000,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    record_count: int | None = None,
) -> bytes:
    """A batch around `records`, or around `payload`; the checksum is right unless it is given."""
    parts = tuple(records)
    count = len(parts) if record_count is None else record_count
    checked = pack(">h", attributes)
    checked += pack(">i", count - 1 if last_offset_delta is None else last_offset_delta)
    checked += pack(">qq", base_timestamp, max_timestamp)
    checked += pack(">qhi", producer_id, producer_epoch, base_sequence)
    checked += pack(">i", count) + (b"".join(parts) if payload is None else payload)
    head = pack(">q", base_offset)
    head += pack(">i", 4 + 1 + 4 + len(checked) if batch_length is None else batch_length)
    head += pack(">ib", leader_epoch, magic) + pack(">I", castagnoli(checked) if crc is None else crc)
    return head + checked


def resealed(damaged: bytes) -> bytes:
    """The same bytes with length and checksum made right again, so that what is wrong must be found by other means."""
    length = pack(">i", len(damaged) - 12)
    return damaged[:8] + length + damaged[12:17] + pack(">I", castagnoli(damaged[21:])) + damaged[21:]


def _table() -> list[int]:
    table: list[int] = []
    for remainder in range(256):
        for _ in range(8):
            # 0x82F63B78 is the Castagnoli polynomial with its bits reversed.
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
        table.append(remainder)
    return table


_TABLE = _table()


def castagnoli(data: bytes) -> int:
    """CRC-32C, a byte at a time."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF
