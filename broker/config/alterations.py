"""What AlterConfigs, IncrementalAlterConfigs and CreateTopics make of the options that are set.

These functions of what is stored return all new overrides, or raise `ConfigError`, and nothing is half done. The checks
and their order are Kafka's (ConfigAdminManager.scala, ConfigurationControlManager.java): the operations themselves,
what may change at run time, values, and what must hold between options.

A broker's option of a name that nobody knows is stored: a client may be newer than the broker, and a plug-in of Kafka's
may have options of its own. It has no effect, and whoever applies it logs so (`BrokerConfig.update`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.consumer_group_options import CONSUMER_GROUP_OPTIONS, group_row
from odradek.broker.config.kafka_options import is_fixed, needs_broker, needs_listener
from odradek.broker.config.listener_options import PREFIX, row_of
from odradek.broker.config.option import ConfigError, ConfigType, Dynamic, Option, has_reference, unknown_name
from odradek.broker.config.topic_options import TOPIC_OPTIONS, TopicOptions
from odradek.protocol.configs import Operation
from odradek.protocol.errors import ErrorCode


class Alteration(NamedTuple):
    """One option of one IncrementalAlterConfigs request; `operation` as it came."""

    name: str
    operation: int
    value: str | None


def new_topic_overrides(values: Mapping[str, str | None]) -> dict[str, str]:
    """What is stored for a new topic, and for one that AlterConfigs replaces all overrides of. Raises ConfigError."""
    nulls = sorted(name for name, value in values.items() if value is None)
    if nulls:
        raise ConfigError(f"Null value not supported for topic configs: {','.join(nulls)}")
    overrides = {name: _topic_row(name).normalised(value) for name, value in values.items() if value is not None}
    _check_together(overrides)
    return overrides


def alter_topic(current: Mapping[str, str], alterations: Sequence[Alteration]) -> dict[str, str]:
    """A topic's overrides after IncrementalAlterConfigs. Raises ConfigError (INVALID_CONFIG, INVALID_REQUEST)."""
    overrides = _altered(current, alterations, TOPIC_OPTIONS)
    for name in {alteration.name: None for alteration in alterations}:
        if name in overrides:
            overrides[name] = _topic_row(name).normalised(overrides[name])
    _check_together(overrides)
    return overrides


def alter_broker(current: Mapping[str, str], alterations: Sequence[Alteration], *, per_broker: bool) -> dict[str, str]:
    """The dynamic options of one broker, or of all, after IncrementalAlterConfigs.

    Raises ConfigError: INVALID_CONFIG, and INVALID_REQUEST for what may not change at run time.
    """
    overrides = _altered(current, alterations, BROKER_OPTIONS)
    # An option that no one may set may be deleted: an older version may have stored it.
    return overrides | _checked_of_broker(
        {name: overrides[name] for name, _, _ in alterations if name in overrides}, per_broker=per_broker
    )


def replace_broker(values: Mapping[str, str | None], *, per_broker: bool) -> dict[str, str]:
    """The dynamic options of one broker, or of all, after AlterConfigs. Raises as `alter_broker` does."""
    nulls = sorted(name for name, value in values.items() if value is None)
    if nulls:
        raise ConfigError(f"Null value not supported for : {','.join(nulls)}", ErrorCode.INVALID_REQUEST)
    return _checked_of_broker(
        {name: value for name, value in values.items() if value is not None}, per_broker=per_broker
    )


def alter_group(current: Mapping[str, str], alterations: Sequence[Alteration]) -> dict[str, str]:
    """A group's overrides after IncrementalAlterConfigs; the broker's bounds are another question
    (`BrokerConfig.check_group`). Raises ConfigError."""
    overrides = _altered(current, alterations, CONSUMER_GROUP_OPTIONS)
    changed = {name: overrides[name] for name, _, _ in alterations if name in overrides}
    return overrides | new_group_overrides(changed)


def new_group_overrides(values: Mapping[str, str | None]) -> dict[str, str]:
    """What is stored for a group that AlterConfigs replaces all overrides of, as `alter_group`. Raises ConfigError."""
    return {name: group_row(name).normalised(value) for name, value in values.items() if value is not None}


def check_operations(alterations: Sequence[Alteration], rows: Mapping[str, Option[Any]]) -> None:
    """Whether the operations are possible, whatever the resource has set. Raises ConfigError: INVALID_REQUEST, and
    INVALID_CONFIG for an option that is no list."""
    times = Counter(alteration.name for alteration in alterations)
    twice = sorted(name for name, count in times.items() if count > 1)
    if twice:
        raise ConfigError(f"Error due to duplicate config keys : {','.join(twice)}", ErrorCode.INVALID_REQUEST)
    nulls = [name for name, operation, value in alterations if operation != Operation.DELETE and value is None]
    if nulls:
        raise ConfigError(f"Null value not supported for : {', '.join(nulls)}", ErrorCode.INVALID_REQUEST)
    for name, operation, _ in alterations:
        if operation not in frozenset(Operation):
            raise ConfigError(f"Unknown operation {operation} for configuration {name}", ErrorCode.INVALID_REQUEST)
        row = rows.get(name)
        if operation in (Operation.APPEND, Operation.SUBTRACT) and (row is None or row.kind is not ConfigType.LIST):
            word = Operation(operation).name
            raise ConfigError(f"Can't {word} to key {name} because its type is not LIST.")


def _altered(
    current: Mapping[str, str], alterations: Sequence[Alteration], rows: Mapping[str, Option[Any]]
) -> dict[str, str]:
    """The overrides with each operation applied, not yet checked by value. Raises ConfigError: `check_operations`."""
    check_operations(alterations, rows)
    overrides = dict(current)
    for name, operation, value in alterations:
        if operation == Operation.DELETE:
            overrides.pop(name, None)
            continue
        assert value is not None, name
        if operation == Operation.SET:
            overrides[name] = value
        else:
            overrides[name] = _edited_list(rows[name], operation, value, current.get(name))
    return overrides


def _edited_list(row: Option[Any], operation: int, value: str, current: str | None) -> str:
    # As Kafka, from the default where the topic has no list of its own, even if the broker sets another one.
    items = _items(row.default_text or "" if current is None else current)
    given = _given_items(value)
    if operation == Operation.APPEND:
        items += given  # an item that is there already is dropped when the list is read
    else:
        items = [item for item in items if item not in given]
    return ",".join(items)


def _items(text: str) -> list[str]:
    return list(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))


def _given_items(text: str) -> list[str]:
    """What Java's String.split makes of it: empty items at the end are none, but for a text that is empty itself."""
    return [item.strip() for item in text.rstrip(",").split(",")] if text.strip(",") or not text else []


def _topic_row(name: str) -> Option[Any]:
    row = TOPIC_OPTIONS.get(name)
    if row is not None:
        return row
    for each in TOPIC_OPTIONS.values():
        if each.synonym == name:
            raise ConfigError(f"Unknown topic config name: {name}; for a topic it is {each.name}")
    raise unknown_name("topic", name, tuple(TOPIC_OPTIONS))


def _checked_of_broker(values: Mapping[str, str], *, per_broker: bool) -> dict[str, str]:
    """What is stored for these values. Raises ConfigError."""
    if names := [name for name in values if _is_fixed(name)]:
        raise ConfigError(f"Cannot update these configs dynamically: [{', '.join(names)}]", ErrorCode.INVALID_REQUEST)
    if names := [name for name in values if _needs_listener(name)]:
        raise ConfigError(
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"[{', '.join(names)}]",
            ErrorCode.INVALID_REQUEST,
        )
    if names := [name for name, value in values.items() if has_reference(value)]:
        raise ConfigError(
            "Values by reference count in the file and on the command line of a broker alone, for they would read any "
            f"file of its machine: [{', '.join(names)}]"
        )
    checked = {
        name: value if (row := row_of(name, BROKER_OPTIONS)) is None else row.normalised(value, name)
        for name, value in values.items()
    }
    if not per_broker and (names := [name for name in values if _is_of_one_broker(name)]):
        raise ConfigError(
            f"Cannot update these configs at default cluster level, broker id must be specified: [{', '.join(names)}]",
            ErrorCode.INVALID_REQUEST,
        )
    if per_broker and (names := [name for name in values if _is_of_all_brokers(name)]):
        raise ConfigError(
            f"Broker-level {', '.join(names)} cannot be altered: brokers must agree on it. Set it for all of them, or "
            "for topics."
        )
    return checked


def _is_fixed(name: str) -> bool:
    """Whether it cannot be changed while a broker runs. Of a listener's options Kafka stores all; those that it cannot
    apply count for nothing, after its next start, too, so here they are refused."""
    row = row_of(name, BROKER_OPTIONS)
    if row is None:
        return is_fixed(name)
    if name.startswith(PREFIX):
        return row.dynamic not in (Dynamic.PER_LISTENER, Dynamic.CLUSTER_WIDE)
    return row.is_read_only


def _needs_listener(name: str) -> bool:
    row = BROKER_OPTIONS.get(name)
    return needs_listener(name) if row is None else row.dynamic is Dynamic.PER_LISTENER


def _is_of_all_brokers(name: str) -> bool:
    row = BROKER_OPTIONS.get(name)
    return row is not None and row.dynamic is Dynamic.ALL_BROKERS


def _is_of_one_broker(name: str) -> bool:
    row = row_of(name, BROKER_OPTIONS)
    return needs_broker(name) if row is None else row.dynamic in (Dynamic.PER_BROKER, Dynamic.PER_LISTENER)


def _check_together(overrides: Mapping[str, str]) -> None:
    """What must hold between options of a topic."""
    shortest, longest = TopicOptions.min_compaction_lag_ms, TopicOptions.max_compaction_lag_ms
    low = shortest.parse(overrides.get(shortest.name, str(shortest.default)))
    high = longest.parse(overrides.get(longest.name, str(longest.default)))
    if low > high:
        raise ConfigError(f"conflict topic config setting {shortest.name} ({low}) > {longest.name} ({high})")
