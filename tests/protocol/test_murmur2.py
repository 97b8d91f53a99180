"""murmur2 equals the Java client's for a table of its values, and many keys have the partitions of each.

The table was printed by `Utils.murmur2` and `Utils.toPositive` of kafka-clients 4.3.1. A plain transcription of the
definition, byte by byte, stands beside it for the keys that Hypothesis finds.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.murmur2 import murmur2, partition_for_key, partitions_for_keys

LONG = bytes((index * 7 + 3) & 0xFF for index in range(1000))
# Key, hash as Java's int, and its partition among 12 and among 7919.
JAVA = [
    (bytes.fromhex(""), 275646681, 9, 2129),
    (bytes.fromhex("03"), 595382058, 6, 7881),
    (bytes.fromhex("030a"), 142799737, 1, 4329),
    (bytes.fromhex("030a11"), 1874617563, 3, 207),
    (bytes.fromhex("030a1118"), 98247749, 5, 4635),
    (bytes.fromhex("030a11181f"), -1938619839, 5, 184),
    (bytes.fromhex("030a11181f26"), 1657126659, 3, 4638),
    (bytes.fromhex("030a11181f262d"), 755336487, 3, 6429),
    (bytes.fromhex("030a11181f262d34"), -1733306552, 0, 5477),
    (bytes.fromhex("030a11181f262d343b"), -1329022564, 4, 758),
    (bytes.fromhex("030a11181f262d343b42"), 2020928152, 4, 7271),
    (bytes.fromhex("030a11181f262d343b4249"), -864519379, 1, 7079),
    (bytes.fromhex("030a11181f262d343b424950"), -251543453, 3, 4891),
    (bytes.fromhex("030a11181f262d343b42495057"), -1429234572, 8, 3695),
    (bytes.fromhex("030a11181f262d343b424950575e"), -988892301, 11, 2052),
    (bytes.fromhex("030a11181f262d343b424950575e65"), -1290190673, 3, 5792),
    (bytes.fromhex("030a11181f262d343b424950575e656c"), -1715277468, 8, 2998),
    (bytes.fromhex("030a11181f262d343b424950575e656c73"), 561949242, 6, 1164),
    (bytes.fromhex("ff"), -311467685, 3, 3732),
    (bytes.fromhex("ffff"), -1642832928, 8, 4526),
    (bytes.fromhex("ffffff"), 1548199422, 6, 3246),
    (bytes.fromhex("ffffffff"), 644171429, 5, 374),
    (bytes.fromhex("ffffffffff"), -363838622, 6, 1142),
    (bytes.fromhex("ffffffffffff"), 28450676, 8, 5628),
    (bytes.fromhex("ffffffffffffff"), -71293549, 7, 2517),
    (bytes.fromhex("ffffffffffffffff"), 185950397, 5, 4358),
    (bytes.fromhex("ffffffffffffffffff"), 1612811207, 11, 3910),
    (bytes.fromhex("80"), 857690492, 8, 7359),
    (bytes.fromhex("8080"), -1145267538, 2, 3308),
    (bytes.fromhex("808080"), -1134684817, 7, 6245),
    (bytes.fromhex("80808080"), -95523324, 8, 4882),
    (bytes.fromhex("8080808080"), -1525148316, 8, 4879),
    (bytes.fromhex("00"), 375494588, 8, 7284),
    (bytes.fromhex("00000000"), 850957120, 4, 5137),
    (bytes.fromhex("00000000000000000000000000000000"), -1795725688, 4, 3899),
    (b"21", -973932308, 0, 3054),
    (b"foobar", -790332482, 6, 865),
    (b"a-little-bit-long-string", -985981536, 8, 6544),
    (b"a-little-bit-longer-string", -1486304829, 11, 5671),
    (
        bytes.fromhex(
            "6c6b6a683233346c68396669756839307932336f697568736166756a6861646f66323239706872396831396838396838"
        ),
        -58897971,
        5,
        4860,
    ),
    (b"abc", 479470107, 3, 6333),
    ("Żułć 日本語".encode(), 1310575575, 3, 4832),
    (b"order-0000000001", 1900185846, 6, 5958),
    (LONG[:63], 1710882894, 6, 6701),
    (LONG[:64], -976334070, 2, 749),
    (LONG[:65], 1572597818, 2, 3203),
    (LONG[:255], -1402211497, 7, 7142),
    (LONG[:256], 755671709, 5, 1134),
    (LONG[:257], 1725296502, 6, 7729),
    (LONG[:1000], 115969645, 1, 3809),
]

PARTITION_COUNTS = st.one_of(st.integers(1, 50), st.integers(1, 2**31 - 1))


def plain(key: bytes) -> int:
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for start in range(0, whole, 4):
        k = key[start] + (key[start + 1] << 8) + (key[start + 2] << 16) + (key[start + 3] << 24)
        k = (k * m) & mask
        k ^= k >> 24
        k = (k * m) & mask
        h = ((h * m) & mask) ^ k
    rest = key[whole:]
    if len(rest) == 3:
        h ^= rest[2] << 16
    if len(rest) >= 2:
        h ^= rest[1] << 8
    if rest:
        h ^= rest[0]
        h = (h * m) & mask
    h ^= h >> 13
    h = (h * m) & mask
    return h ^ (h >> 15)


@pytest.mark.parametrize(("key", "signed", "of_12", "of_7919"), JAVA)
def test_equals_the_java_client(key: bytes, signed: int, of_12: int, of_7919: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF
    assert partition_for_key(key, 12) == of_12
    assert partition_for_key(key, 7919) == of_7919


@pytest.mark.parametrize(("partition_count", "column"), [(12, 2), (7919, 3)])
def test_many_keys_at_once_equal_the_java_client(partition_count: int, column: int) -> None:
    assert partitions_for_keys([row[0] for row in JAVA], partition_count) == [row[column] for row in JAVA]


@given(st.one_of(st.binary(max_size=40), st.binary(min_size=250, max_size=300)))
def test_equals_the_definition_byte_by_byte(key: bytes) -> None:
    assert murmur2(key) == plain(key)


@given(st.lists(st.binary(max_size=21), max_size=40), PARTITION_COUNTS)
def test_keys_of_any_lengths_at_once_equal_each_alone(keys: list[bytes], partition_count: int) -> None:
    assert partitions_for_keys(keys, partition_count) == [partition_for_key(key, partition_count) for key in keys]


def test_an_empty_key_is_a_key_and_no_keys_have_no_partitions() -> None:
    assert partition_for_key(b"", 12) == 9
    assert partitions_for_keys([b""] * 10, 12) == [9] * 10
    assert partitions_for_keys([], 12) == []
