"""What requests and answers are about: topics, partitions, groups, transactional ids. Read from the fields that their
declarations name (odradek/protocol/codec/schema.py), so that it is known of every API. Pure.

Topics stand in lists whose name says so (`topics`, `topic_data`, `topic_partitions`), of names or of structs with
`topic`, `name` or `topic_id`; the partitions of each in a list whose name says so, of numbers or of structs. Groups and
transactional ids are above these lists, in nobody's or in a list's structs.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from odradek.protocol.codec.schema import ZERO_UUID, Struct
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.metadata import MetadataRequest

__all__ = [
    "IsHit",
    "NameById",
    "asks_for_all_topics",
    "groups_in",
    "index_of",
    "list_in",
    "partitions_field",
    "structs_in",
    "topic_name",
    "topics_field",
    "topics_in",
    "transactional_ids_in",
]

NameById = Callable[[bytes], str]
"""The name of the topic with this id; "" where there is none."""
IsHit = Callable[[str, int | None], bool]
"""Whether a topic, or one of its partitions, is meant."""

TOPIC_NAMES: Final = ("topic", "name", "topic_name")
INDEXES: Final = ("partition_index", "partition", "index", "partition_id")
GROUPS: Final = frozenset({"group_id", "groups_names", "group_ids", "groups", "consumer_group_id"})
TRANSACTIONAL_IDS: Final = frozenset({"transactional_id", "v3_and_below_transactional_id", "transactional_ids"})
OF_GROUPS, OF_TRANSACTIONS = 0, 1
"""Kinds of keys in FindCoordinator."""


def topics_field(request: Struct) -> str | None:
    """The name of the field with its topics, if there are any in it."""
    for name in request.fields:
        if "topic" in name and not name.startswith(("forgotten", "subscribed")) and list_in(request, name):
            return name
    return None


def partitions_field(topic: Struct | str) -> str | None:
    """The name of the field with the partitions of a topic, if it has one."""
    if isinstance(topic, str):
        return None
    for name in topic.fields:
        if "partition" in name and isinstance(getattr(topic, name), list):
            return name
    return None


def structs_in(struct: Struct) -> Iterator[tuple[str, list[Struct]]]:
    """The lists of structs in it that are not empty, by the names of their fields."""
    for name in struct.fields:
        if (values := list_in(struct, name)) and isinstance(values[0], Struct):
            yield name, values


def list_in(struct: Struct, name: str) -> list[Any]:
    """What the field holds; empty where that is no list."""
    value: Any = getattr(struct, name)
    return [*value] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def topic_name(topic: Struct | str, name_by_id: NameById) -> str:
    """ "" where it is not known."""
    if isinstance(topic, str):
        return topic
    for field in TOPIC_NAMES:
        if field in topic.fields and (name := getattr(topic, field)):
            return str(name)
    topic_id = getattr(topic, "topic_id", ZERO_UUID)
    return name_by_id(topic_id) if topic_id != ZERO_UUID else ""


def index_of(partition: Struct | int) -> int:
    """Its number."""
    if isinstance(partition, int):
        return partition
    for field in INDEXES:
        if field in partition.fields:
            return int(getattr(partition, field))
    raise AssertionError(f"{type(partition).__name__} has none of {INDEXES}")


def topics_in(message: Struct, name_by_id: NameById) -> Iterator[tuple[str, int | None]]:
    """Each topic and partition that it names; None for the partition where it names the topic alone."""
    field = topics_field(message)
    if field is None:
        for _, structs in structs_in(message):
            for struct in structs:
                yield from topics_in(struct, name_by_id)
        return
    for topic in getattr(message, field):
        name = topic_name(topic, name_by_id)
        within = partitions_field(topic)
        if within is None:
            yield name, None
        else:
            for partition in getattr(topic, within):
                yield name, index_of(partition)


def asks_for_all_topics(message: Struct) -> bool:
    """Whether it is about every topic without naming any."""
    return isinstance(message, MetadataRequest) and message.topics is None


def groups_in(message: Struct) -> Iterator[str]:
    """The ids of consumer groups that it names."""
    if isinstance(message, FindCoordinatorRequest):
        if message.key_type == OF_GROUPS:
            yield from (message.key, *message.coordinator_keys)
        return
    yield from _texts(message, GROUPS)


def transactional_ids_in(message: Struct) -> Iterator[str]:
    """The transactional ids that it names."""
    if isinstance(message, FindCoordinatorRequest):
        if message.key_type == OF_TRANSACTIONS:
            yield from (message.key, *message.coordinator_keys)
        return
    yield from _texts(message, TRANSACTIONAL_IDS)
    for _, structs in structs_in(message):
        for struct in structs:
            yield from _texts(struct, TRANSACTIONAL_IDS)


def _texts(struct: Struct, fields: frozenset[str]) -> Iterator[str]:
    for name in struct.fields:
        if name in fields:
            for each in list_in(struct, name) or [getattr(struct, name)]:
                if isinstance(each, str):
                    yield each
                elif isinstance(each, Struct):
                    yield from _texts(each, fields)
