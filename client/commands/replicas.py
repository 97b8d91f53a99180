"""Lists of brokers and partitions, as commands take and print them.

A file says which brokers several partitions shall have, in the form of Kafka's own tool (ReassignPartitionsCommand):

    {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3]}]}

`log_dirs`, by which Kafka moves a replica to another directory of its broker, is refused unless it says "any".
"""

import json
import re
import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

if TYPE_CHECKING:
    from odradek.client.topic_partition import TopicPartition

__all__ = ["ID_MAX", "broker_ids", "parse_replicas", "read_targets"]

ID_MAX: Final = 2**31 - 1
"""Of partitions and brokers: Kafka has 32 bits for them."""
ANY_DIRECTORY: Final = "any"


def broker_ids(numbers: Iterable[int] | None) -> str | None:
    """`1,2,3`; None for none."""
    return ",".join(map(str, numbers or ())) or None


def parse_replicas(text: str, option: str = "--replicas") -> list[int]:
    """The inverse, for one broker at least, of what an option says. Raises UsageError."""
    written = text.split(",")
    if not all(re.fullmatch("[0-9]{1,10}", each) and int(each) <= ID_MAX for each in written):
        raise click.UsageError(f"{option} {text}: write ids of brokers, from 0 to {ID_MAX}, as in 1,2,3")
    found = [int(each) for each in written]
    if len(set(found)) != len(found):
        raise click.UsageError(f"{option} {text}: names a broker twice")
    return found


def read_targets(path: str) -> "dict[TopicPartition, list[int]]":
    """What a file says, by partition. Raises UsageError, with the place."""
    try:
        content: object = json.loads(Path(path).read_text(encoding="utf-8"))
    except RecursionError:
        raise click.UsageError(f"{path}: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path}: {error}") from error
    if not isinstance(content, dict):
        raise click.UsageError(f"{path}: it is no JSON object")
    found = cast("Mapping[str, object]", content)
    if found.get("version", 1) != 1:
        raise click.UsageError(f"{path}: it has version {reprlib.repr(found['version'])}, only 1 is known")
    listed = found.get("partitions")
    if not isinstance(listed, list) or not listed:
        raise click.UsageError(f"{path}: it has no list `partitions`")
    targets: dict[TopicPartition, list[int]] = {}
    for number, each in enumerate(cast("list[object]", listed), 1):
        partition, replicas = _target(f"{path}, partition {number} of the list", each)
        if partition in targets:
            raise click.UsageError(f"{path}: it has {partition} twice")
        targets[partition] = replicas
    return targets


def _target(where: str, each: object) -> "tuple[TopicPartition, list[int]]":
    from odradek.client.topic_partition import TopicPartition

    found = cast("Mapping[str, object]", each if isinstance(each, dict) else {})
    topic, partition, listed = (found.get(name) for name in ("topic", "partition", "replicas"))
    items = cast("list[object]", listed if isinstance(listed, list) else [])
    replicas = [each for each in items if _is_id(each)]
    is_right = isinstance(topic, str) and topic != "" and _is_id(partition)
    if not is_right or not replicas or len(replicas) != len(items) or len(set(replicas)) != len(items):
        raise click.UsageError(f'{where}: write "topic", "partition", and "replicas" with ids of brokers, each once')
    _refuse_directories(where, found)
    return TopicPartition(cast(str, topic), cast(int, partition)), cast("list[int]", replicas)


def _is_id(value: object) -> bool:
    # bool is an int in Python, and no number in JSON
    return type(value) is int and 0 <= value <= ID_MAX


def _refuse_directories(where: str, found: Mapping[str, object]) -> None:
    directories = found.get("log_dirs", [])
    if not isinstance(directories, list) or any(each != ANY_DIRECTORY for each in cast("list[object]", directories)):
        raise click.UsageError(f'{where}: "log_dirs" other than "{ANY_DIRECTORY}" is not supported; leave it out')
