"""The resources whose configuration clients read and change: topics, groups, this broker ("0"), all brokers ("").

A change reads what is stored, computes all new overrides of the resource, and stores them only if nobody else has
stored any meanwhile; otherwise it starts anew. So concurrent changes of different options never undo one another, and
a change of several options happens whole or not at all.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from odradek.broker.access.operations import Operation
from odradek.broker.access.resource import CLUSTER, of_group, of_topic
from odradek.broker.cluster.keys import (
    broker_config_key,
    check_topic_name,
    decode_configs,
    encode_configs,
    group_config_key,
    topic_config_key,
)
from odradek.broker.cluster.store import Conflict, MetadataStore, Txn
from odradek.broker.cluster.topic_image import TopicImage
from odradek.broker.cluster.topics import write_topic_configs
from odradek.broker.config.consumer_group_options import CONSUMER_GROUP_OPTIONS
from odradek.broker.handling.context import Call, Context
from odradek.broker.handling.internal_protection import require_configs
from odradek.broker.handling.metadata_change import MetadataChange
from odradek.protocol.configs import ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError

ATTEMPTS_MAX = 10

Overrides = Mapping[str, str]
Change = Callable[[Overrides], dict[str, str]]
"""From the present overrides to the new ones. Raises ConfigError."""

Resource = tuple[int, str]
"""Type, as it came, and name."""


def unsupported(resource_type: int) -> KafkaError:
    """INVALID_REQUEST for a resource of another type than these."""
    try:
        kind = ResourceType(resource_type).name
    except ValueError:
        return KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"Resources of type {kind} are not supported; TOPIC, BROKER, BROKER_LOGGER and GROUP are",
    )


def broker_of(context: Context, name: str) -> int | None:
    """The broker that a resource of type BROKER names, None for all. Raises KafkaError INVALID_REQUEST.

    A broker answers for itself only, and clients send such requests to the broker that they name.
    """
    if not name:
        return None
    if not (name.isascii() and name.removeprefix("-").isdecimal()):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if name != str(context.identity.node_id):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {context.identity.node_id} or an empty string, but received {name}",
        )
    return context.identity.node_id


def topic_of(context: Context, name: str) -> TopicImage:
    """Raises KafkaError: INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION."""
    check_topic_name(name)
    topic = context.metadata.image.topics.get(name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    return topic


def require(context: Context, call: Call, operation: Operation, resource: Resource) -> None:
    """Raises KafkaError: the options of brokers, and of what clients measure, are the cluster's. A type that is none
    of these asks for nothing, and is refused for that."""
    kind, name = resource
    if kind == ResourceType.TOPIC:
        context.require(call, operation, of_topic(name))
    elif kind == ResourceType.GROUP:
        context.require(call, operation, of_group(name))
    elif kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS):
        context.require(call, operation, CLUSTER)


def repeated(resources: Sequence[Resource]) -> dict[Resource, KafkaError]:
    """The error of each resource that a request which changes them names more than once."""
    error = KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    return {resource: error for resource, count in Counter(resources).items() if count > 1}


async def change_topic(
    context: Context, changes: MetadataChange, name: str, change: Change, *, validate_only: bool
) -> None:
    """Raises KafkaError: as `topic_of`, as `change`, and as `MetadataChange.apply`.

    A mistake in the options is answered before a topic that does not exist (ConfigurationControlManager.java).
    """
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_topic_name(name)
    require_configs(name, change(context.metadata.image.topic_configs(name)))
    topic = topic_of(context, name)
    if not validate_only:
        await changes.apply(lambda: _store_of_topic(context.metadata.store, topic, change))


async def change_broker(
    context: Context, changes: MetadataChange, broker_id: int | None, change: Change, *, validate_only: bool
) -> None:
    """Raises KafkaError: as `change`, and as `MetadataChange.apply`."""
    change(context.metadata.image.configs_of_broker(broker_id))
    if not validate_only:
        await changes.apply(lambda: _store_at(context.metadata.store, broker_config_key(broker_id), change))


async def change_group(
    context: Context, changes: MetadataChange, group_id: str, change: Change, *, validate_only: bool
) -> None:
    """Whether there is such a group does not matter, as in Kafka. Raises KafkaError: as `change`, as
    `BrokerConfig.check_group`, and as `MetadataChange.apply`."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")

    def checked(present: Overrides) -> dict[str, str]:
        changed = change(present)
        context.config.check_group({name: changed[name] for name in changed.keys() & CONSUMER_GROUP_OPTIONS.keys()})
        return changed

    checked(context.metadata.image.configs_of_group(group_id))
    if not validate_only:
        await changes.apply(lambda: _store_at(context.metadata.store, group_config_key(group_id), checked))


async def _store_of_topic(store: MetadataStore, topic: TopicImage, change: Change) -> int:
    key = topic_config_key(topic.name)
    for _ in range(ATTEMPTS_MAX):
        revision, present = await _read(store, key)
        try:
            return await write_topic_configs(store, topic, change(present), {key: revision})
        except Conflict:
            continue
    raise Conflict(f"others keep changing {key}")


async def _store_at(store: MetadataStore, key: str, change: Change) -> int:
    """What is set under a key that exists only while anything is."""
    for _ in range(ATTEMPTS_MAX):
        revision, present = await _read(store, key)
        configs = change(present)
        put, delete = ({key: encode_configs(configs)}, ()) if configs else ({}, (key,))
        try:
            return await store.commit(Txn(expect={key: revision}, put=put, delete=delete))
        except Conflict:
            continue
    raise Conflict(f"others keep changing {key}")


async def _read(store: MetadataStore, key: str) -> tuple[int, Overrides]:
    entry = (await store.read(key)).entries.get(key)
    return (0, {}) if entry is None else (entry.revision, decode_configs(entry.value, key))
