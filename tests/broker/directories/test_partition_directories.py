"""The names of partitions' directories: read, told from other names, and made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.directories.partition_directories import NAME_BYTES_MAX, partition_of, renamed, suffix_of

HEX = "0123456789abcdef" * 2
topics = st.text("abcXYZ019._-", min_size=1, max_size=249)


@given(topics, st.integers(0, 2**31 - 1))
def test_a_partition_is_read_from_its_name(topic: str, index: int) -> None:
    assert partition_of(f"{topic}-{index}") == (topic, index)


@pytest.mark.parametrize("name", ["", "orders", "orders-", "-0", "orders-x", "orders-1x", "orders-\u0661", "orders--"])
def test_other_names_are_no_partitions(name: str) -> None:
    assert partition_of(name) is None


def test_a_name_that_is_never_given_says_what_it_would_be() -> None:
    assert partition_of("orders-007") == ("orders", 7)


@given(topics, st.sampled_from(["-delete", "-stray", "-future"]))
def test_a_renamed_directory_is_told_by_its_suffix_and_is_no_partition(name: str, suffix: str) -> None:
    made = renamed(name, HEX, suffix)
    assert len(made.encode()) <= NAME_BYTES_MAX
    assert made.startswith(name[:100])
    assert suffix_of(made) == suffix
    assert partition_of(made) is None


@pytest.mark.parametrize(
    "name",
    ["orders-0", "notes-delete", f"orders-0.{HEX}", f"orders-0.{HEX[1:]}-delete", f".{HEX}-stray", f"a.{HEX}-new"],
)
def test_what_nobody_renamed_has_no_suffix(name: str) -> None:
    assert suffix_of(name) is None
