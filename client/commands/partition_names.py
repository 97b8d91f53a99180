"""Partitions as commands take them, `orders` for all of a topic or `orders:0,1`, one as `orders-0`, and print them."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from odradek.client.commands.replicas import ID_MAX

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.topic_partition import TopicPartition

__all__ = ["OnePartition", "Partitions", "named_partitions", "partition_names", "partitions_json"]

WRITTEN: Final = re.compile(r"([^:]+)(?::(\d{1,10}(?:,\d{1,10})*))?")
ONE: Final = re.compile(r"([^:]+)[-:](\d{1,10})")


class Partitions(click.ParamType["tuple[str, tuple[int, ...]]"]):
    """A topic, and the numbers of partitions that are meant of it; none: all."""

    name = "TOPIC[:N,N…]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, tuple[int, ...]]:
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType]
        match = WRITTEN.fullmatch(str(value))
        numbers = tuple(map(int, match[2].split(","))) if match and match[2] else ()
        if match is None or any(each > ID_MAX for each in numbers):
            self.fail(f"{value!r}: write a topic, or a topic and some of its partitions, as in orders:0,1", param, ctx)
        return match[1], numbers


class OnePartition(click.ParamType["tuple[str, int]"]):
    """A topic, and the number of one of its partitions."""

    name = "TOPIC-N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType]
        match = ONE.fullmatch(str(value))
        if match is None or int(match[2]) > ID_MAX:
            self.fail(f"{value!r}: write a topic and one of its partitions, as in orders-0", param, ctx)
        return match[1], int(match[2])


async def named_partitions(admin: "Admin", named: Iterable[tuple[str, tuple[int, ...]]]) -> "list[TopicPartition]":
    """All that are meant, in their order. Raises ItemsFailed, InvalidPartition."""
    from odradek.client.errors.client_errors import InvalidPartition
    from odradek.client.topic_partition import TopicPartition

    wanted = list(named)
    topics = await admin.describe_topics({topic for topic, _ in wanted})
    found: set[TopicPartition] = set()
    for topic, numbers in wanted:
        known = {each.partition for each in topics[topic].partitions}
        if missing := sorted(set(numbers) - known):
            raise InvalidPartition(topic, missing[0], len(known), "the command")
        found |= {TopicPartition(topic, number) for number in numbers or known}
    return sorted(found)


def partition_names(partitions: "Iterable[TopicPartition]") -> str:
    """`orders:0,1 payments:3`; empty for none."""
    topics: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic, []).append(partition.partition)
    return " ".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in topics.items())


def partitions_json(partitions: "Iterable[TopicPartition]") -> list[dict[str, object]]:
    """What JSON has of them, in their order."""
    return [{"topic": each.topic, "partition": each.partition} for each in partitions]
