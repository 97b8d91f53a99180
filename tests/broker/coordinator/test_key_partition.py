"""Keys go where Kafka puts them: by Java's hash of their UTF-16 code units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.coordinator.key_partition import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("Aa", 2112),
        ("BB", 2112),
        ("\N{GRINNING FACE}", 1772899),
    ],
)
def test_hashes_are_those_of_java(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_the_hash_without_a_positive_value_goes_to_partition_0() -> None:
    assert partition_of("polygenelubricants", 50) == 0


@given(st.text(max_size=30), st.integers(1, 200))
def test_each_key_has_a_partition_that_there_is(key: str, count: int) -> None:
    assert 0 <= partition_of(key, count) < count
    assert -(2**31) <= java_hash(key) < 2**31
