"""Partitions on command lines and in tables."""

import click
import pytest

from odradek.client.commands.partition_names import Partitions, partition_names
from odradek.client.topic_partition import TopicPartition


@pytest.mark.parametrize(
    ("text", "named"),
    [("orders", ("orders", ())), ("orders:3", ("orders", (3,))), ("or.d-e_rs:0,12,5", ("or.d-e_rs", (0, 12, 5)))],
)
def test_a_topic_is_named_whole_or_with_some_partitions(text: str, named: tuple[str, tuple[int, ...]]) -> None:
    assert Partitions().convert(text, None, None) == named
    assert Partitions().convert(named, None, None) == named


@pytest.mark.parametrize(
    "text", ["", ":0", "orders:", "orders:x", "orders:0,", "orders:-1", "orders:²", "o:2147483648"]
)
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write a topic"):
        Partitions().convert(text, None, None)


def test_partitions_are_printed_by_topic_in_their_order() -> None:
    partitions = [TopicPartition("b", 3), TopicPartition("a", 10), TopicPartition("a", 2)]
    assert partition_names(partitions) == "a:2,10 b:3"
    assert partition_names([]) == ""
