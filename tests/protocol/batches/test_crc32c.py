"""CRC-32C equals published check values, a computation byte by byte, and itself in parts, for any kind of buffer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.batches.crc32c import crc32c
from tests.protocol.plain import castagnoli


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0x00000000),
        (b"123456789", 0xE3069283),
        # RFC 3720, B.4 (which prints the bytes in the order of the wire, lowest first).
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_published_check_values(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@given(st.binary(max_size=300))
def test_equals_a_computation_byte_by_byte(data: bytes) -> None:
    assert crc32c(data) == castagnoli(data)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_continues_from_the_checksum_of_what_stands_before(data: bytes, cut: int) -> None:
    assert crc32c(data[cut:], crc32c(data[:cut])) == crc32c(data)


def test_takes_slices_of_any_buffer_without_a_copy() -> None:
    data = bytes(range(256))
    assert crc32c(memoryview(data)[3:200]) == crc32c(bytearray(data[3:200])) == crc32c(data[3:200])
