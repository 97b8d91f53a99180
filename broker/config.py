"""The configuration of a broker and its topics: which value counts, where it came from, and how it is changed.

A broker's value comes from the first layer that has one: dynamic for this broker, dynamic for all brokers, static (file
and command line), default. A topic's value is its own, else the broker's under the synonym, else the default. What is
static is checked strictly. What is dynamic was checked when it was stored; if this version cannot use it nevertheless
(a newer one wrote it), it is left out with a warning, for a broker that does not start helps nobody.

Descriptions follow Kafka's ConfigHelper, in its sources and its order of synonyms. Changes are functions of what is
stored: they return all new overrides, or raise `ConfigError`, and nothing is half done.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from broker.option import LONG_MAX, ConfigError, ConfigType, Dynamic, Option, unknown_name
from broker.options import BROKER_OPTIONS, BrokerOptions
from broker.topic_options import TOPIC_OPTIONS, TopicOptions
from client.configuration.properties import parse_properties
from protocol.configs import Operation
from protocol.errors import ErrorCode

__all__ = [
    "Alteration",
    "BrokerConfig",
    "ConfigEntry",
    "ConfigError",
    "ConfigSource",
    "ConfigType",
    "Synonym",
    "TopicConfig",
    "alter_broker",
    "alter_topic",
    "load_static",
    "new_topic_overrides",
    "replace_broker",
]

logger = logging.getLogger(__name__)

VIEWS_MAX = 10_000
NOTHING: Mapping[str, str] = {}


class ConfigSource(IntEnum):
    """Where a value came from, with Kafka's numbers (DescribeConfigsResponse.ConfigSource)."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


class Synonym(NamedTuple):
    """A place from which the value could come, the one that counts first."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One option as DescribeConfigs answers it. `value` is None for no value, and for a sensitive one."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: ConfigType
    documentation: str
    synonyms: tuple[Synonym, ...]


class TopicConfig(TopicOptions):
    """What counts for one topic. Immutable; a change makes another one."""

    producer_id_expiration_ms: int
    """The broker's: the log forgets idle producers by it."""
    overrides: Mapping[str, str]
    """What the topic sets for itself."""
    takes_batches_as_sent: bool
    """Whether a leader appends what it was sent after a look at the header alone (log/validation.py): the usual case,
    decided here once and not for every batch."""

    def __init__(self, values: Mapping[str, Any], overrides: Mapping[str, str], producer_id_expiration_ms: int) -> None:
        self.__dict__.update(values)
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.overrides = _usable(overrides, TOPIC_OPTIONS, "a topic")
        for name, text in self.overrides.items():
            row = TOPIC_OPTIONS[name]
            self.__dict__[row.attribute] = row.parse(text)
        self.takes_batches_as_sent = (
            self.record_validation == "header"
            and self.compression_type == "producer"
            and self.message_timestamp_type == "CreateTime"
            and self.message_timestamp_before_max_ms == LONG_MAX
            and "compact" not in self.cleanup_policy
        )


class BrokerConfig(BrokerOptions):
    """What counts for this broker. `update` changes the dynamic part in place."""

    def __init__(
        self,
        static: Mapping[str, str] = NOTHING,
        dynamic_default: Mapping[str, str] = NOTHING,
        dynamic: Mapping[str, str] = NOTHING,
    ) -> None:
        """Raises ConfigError for anything wrong in `static`."""
        self._static = _checked_static(static)
        self._dynamic_default = NOTHING
        self._dynamic = NOTHING
        self._topic_values: dict[str, Any] = {}
        self._views: dict[int, tuple[Mapping[str, str], TopicConfig]] = {}
        self.update(dynamic_default, dynamic)

    def update(self, dynamic_default: Mapping[str, str], dynamic: Mapping[str, str]) -> None:
        """Takes over what is stored for all brokers and for this one. Views of topics are made anew when asked for."""
        self._dynamic_default = _usable(dynamic_default, BROKER_OPTIONS, "all brokers")
        self._dynamic = _usable(dynamic, BROKER_OPTIONS, "this broker")
        values = self.__dict__
        for row in BROKER_OPTIONS.values():
            text = self._dynamic.get(row.name, self._dynamic_default.get(row.name, self._static.get(row.name)))
            values[row.attribute] = row.default if text is None else row.parse(text)
        self._topic_values = {row.attribute: self._inherited(row) for row in TOPIC_OPTIONS.values()}
        self._views = {}

    @property
    def data_dirs(self) -> tuple[str, ...]:
        return self.log_dirs or self.log_dir

    def topic(self, overrides: Mapping[str, str] = NOTHING) -> TopicConfig:
        """What counts for a topic with these overrides.

        The same object for the same mapping (by identity; the cluster image keeps a topic's until it changes).
        """
        found = self._views.get(id(overrides))
        if found is not None:
            return found[1]
        view = TopicConfig(self._topic_values, overrides, self.producer_id_expiration_ms)
        if len(self._views) >= VIEWS_MAX:
            self._views.clear()
        self._views[id(overrides)] = overrides, view  # holding the mapping, so that its id is not given to another
        return view

    def _inherited(self, row: Option[Any]) -> Any:
        """What a topic without a value of its own gets."""
        if not row.synonym:
            return row.default
        broker_row = BROKER_OPTIONS[row.synonym]
        value = self.__dict__[broker_row.attribute]
        for fallback in broker_row.fallbacks:
            if value is not None:
                break
            coarse = self.__dict__[BROKER_OPTIONS[fallback.name].attribute]
            if coarse is not None:
                value = min(coarse * fallback.factor, LONG_MAX) if coarse >= 0 else -1
        return row.default if value is None else value

    # -- describing ---------------------------------------------------------------------------------------------

    def describe_topic(self, overrides: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
        """All options of a topic, or those named; unknown names are left out."""
        view = self.topic(overrides)
        entries: list[ConfigEntry] = []
        for row in _selected(TOPIC_OPTIONS, names):
            text = row.text(view.__dict__[row.attribute])
            synonyms = self._synonyms(row.synonym) if row.synonym else ()
            if row.name in view.overrides:
                synonyms = (Synonym(row.name, text, ConfigSource.DYNAMIC_TOPIC), *synonyms)
            entries.append(_entry(row, text, synonyms, is_read_only=False))
        return entries

    def describe_broker(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """All options of this broker, or those named."""
        return [
            _entry(row, row.text(self.__dict__[row.attribute]), self._synonyms(row.name), is_read_only=_is_fixed(row))
            for row in _selected(BROKER_OPTIONS, names)
        ]

    def describe_default_broker(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """What is set for all brokers at run time, and nothing else, as Kafka answers for the broker "" ."""
        entries: list[ConfigEntry] = []
        for row in _selected(BROKER_OPTIONS, names):
            if (text := self._dynamic_default.get(row.name)) is not None:
                synonyms = (Synonym(row.name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER),)
                entries.append(_entry(row, text, synonyms, is_read_only=_is_fixed(row)))
        return entries

    def _synonyms(self, name: str) -> tuple[Synonym, ...]:
        """By layer, then from the finer unit to the coarser. What stands before the first one of the very name is
        dropped, as Kafka does, so `log.retention.hours` is listed only behind a `log.retention.ms`."""
        names = (name, *(fallback.name for fallback in BROKER_OPTIONS[name].fallbacks))
        defaults = {each: text for each in names if (text := BROKER_OPTIONS[each].default_text) is not None}
        layers = (
            (self._dynamic, ConfigSource.DYNAMIC_BROKER),
            (self._dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._static, ConfigSource.STATIC_BROKER),
            (defaults, ConfigSource.DEFAULT),
        )
        found = [Synonym(each, layer[each], source) for layer, source in layers for each in names if each in layer]
        first = next((position for position, synonym in enumerate(found) if synonym.name == name), len(found))
        return tuple(found[first:])


def load_static(
    file_text: str | None, assignments: Iterable[str], source: str = "the configuration file"
) -> dict[str, str]:
    """The static layer: the text of a `--config` file, then each `--set name=value`. Raises ConfigError."""
    try:
        static = {} if file_text is None else parse_properties(file_text)
    except ValueError as error:
        raise ConfigError(f"{source}, {error}") from None
    static.update(parse_assignment(text) for text in assignments)
    return static


def parse_assignment(text: str) -> tuple[str, str]:
    """`name=value` of a command line. Raises ConfigError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"{text!r} is not of the form name=value")
    return name.strip(), value.strip()


def _checked_static(static: Mapping[str, str]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for name, text in static.items():
        row = BROKER_OPTIONS.get(name)
        if row is None:
            raise unknown_name("broker", name, tuple(BROKER_OPTIONS))
        checked[name] = _normalised(row, text)
    if checked.get("listeners") == "":
        raise ConfigError("Invalid value for configuration listeners: it must name at least one NAME://HOST:PORT.")
    # The older name and the newer one stand for each other, as in Kafka; defaults do not.
    node_id, broker_id = checked.get("node.id"), checked.get("broker.id")
    if node_id is not None and broker_id is not None and node_id != broker_id:
        raise ConfigError(f"broker.id ({broker_id}) and node.id ({node_id}) are one and the same; they must be equal.")
    if (either := node_id or broker_id) is not None:
        checked["broker.id"] = checked["node.id"] = _normalised(BROKER_OPTIONS["node.id"], either)
    return checked


def _usable(stored: Mapping[str, str], rows: Mapping[str, Option[Any]], what: str) -> dict[str, str]:
    usable: dict[str, str] = {}
    for name, text in stored.items():
        row = rows.get(name)
        if row is None:
            logger.warning("stored configuration of %s: %s is unknown to this version and has no effect", what, name)
            continue
        try:
            usable[name] = _normalised(row, text)
        except ConfigError as error:
            logger.warning("stored configuration of %s has no effect: %s", what, error)
    return usable


def _normalised(row: Option[Any], text: str) -> str:
    return row.text(row.parse(text)) or ""


def _selected(rows: Mapping[str, Option[Any]], names: Collection[str] | None) -> list[Option[Any]]:
    return [row for row in rows.values() if names is None or row.name in names]


def _is_fixed(row: Option[Any]) -> bool:
    return row.dynamic is Dynamic.READ_ONLY


def _entry(row: Option[Any], text: str | None, synonyms: tuple[Synonym, ...], *, is_read_only: bool) -> ConfigEntry:
    if row.is_sensitive:
        text, synonyms = None, tuple(synonym._replace(value=None) for synonym in synonyms)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigEntry(row.name, text, source, is_read_only, row.is_sensitive, row.kind, row.doc, synonyms)


# -- changing -------------------------------------------------------------------------------------------------------


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
    overrides = {name: _normalised(_topic_row(name), value) for name, value in values.items() if value is not None}
    _check_together(overrides)
    return overrides


def alter_topic(current: Mapping[str, str], alterations: Sequence[Alteration]) -> dict[str, str]:
    """A topic's overrides after IncrementalAlterConfigs. Raises ConfigError (INVALID_CONFIG, INVALID_REQUEST)."""
    overrides = _altered(current, alterations, TOPIC_OPTIONS)
    for name in {alteration.name: None for alteration in alterations}:
        if name in overrides:
            overrides[name] = _normalised(_topic_row(name), overrides[name])
    _check_together(overrides)
    return overrides


def alter_broker(current: Mapping[str, str], alterations: Sequence[Alteration], *, per_broker: bool) -> dict[str, str]:
    """The dynamic options of one broker, or of all, after IncrementalAlterConfigs.

    Raises ConfigError: INVALID_CONFIG, and INVALID_REQUEST for what may not change at run time.
    """
    _check_dynamic([alteration.name for alteration in alterations], per_broker=per_broker)
    overrides = _altered(current, alterations, BROKER_OPTIONS)
    for name in {alteration.name: None for alteration in alterations}:
        if name in overrides:
            overrides[name] = _normalised(_broker_row(name), overrides[name])
    return overrides


def replace_broker(values: Mapping[str, str | None], *, per_broker: bool) -> dict[str, str]:
    """The dynamic options of one broker, or of all, after AlterConfigs. Raises as `alter_broker` does."""
    nulls = sorted(name for name, value in values.items() if value is None)
    if nulls:
        raise ConfigError(f"Null value not supported for : {','.join(nulls)}", ErrorCode.INVALID_REQUEST)
    _check_dynamic(list(values), per_broker=per_broker)
    return {name: _normalised(_broker_row(name), value) for name, value in values.items() if value is not None}


def _altered(
    current: Mapping[str, str], alterations: Sequence[Alteration], rows: Mapping[str, Option[Any]]
) -> dict[str, str]:
    """The overrides with each operation applied, not yet checked by value."""
    times = Counter(alteration.name for alteration in alterations)
    twice = sorted(name for name, count in times.items() if count > 1)
    if twice:
        raise ConfigError(f"Error due to duplicate config keys : {','.join(twice)}", ErrorCode.INVALID_REQUEST)
    overrides = dict(current)
    for name, operation, value in alterations:
        if operation == Operation.DELETE:
            overrides.pop(name, None)
            continue
        if operation not in (Operation.SET, Operation.APPEND, Operation.SUBTRACT):
            raise ConfigError(f"Unknown operation {operation} for configuration {name}", ErrorCode.INVALID_REQUEST)
        if value is None:
            raise ConfigError(f"Null value not supported for : {name}", ErrorCode.INVALID_REQUEST)
        if operation == Operation.SET:
            overrides[name] = value
        else:
            overrides[name] = _edited_list(name, operation, value, current.get(name), rows)
    return overrides


def _edited_list(name: str, operation: int, value: str, current: str | None, rows: Mapping[str, Option[Any]]) -> str:
    row = rows.get(name)
    if row is None or row.kind is not ConfigType.LIST:
        word = Operation(operation).name
        raise ConfigError(f"Can't {word} to key {name} because its type is not LIST.")
    # As Kafka, from the default where the topic has no list of its own, even if the broker sets another one.
    items = _items(row.default_text or "" if current is None else current)
    given = _items(value)
    if operation == Operation.APPEND:
        items += given  # an item that is there already is dropped when the list is read
    else:
        items = [item for item in items if item not in given]
    return ",".join(items)


def _items(text: str) -> list[str]:
    return list(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))


def _topic_row(name: str) -> Option[Any]:
    row = TOPIC_OPTIONS.get(name)
    if row is not None:
        return row
    for each in TOPIC_OPTIONS.values():
        if each.synonym == name:
            raise ConfigError(f"Unknown topic config name: {name}; for a topic it is {each.name}")
    raise unknown_name("topic", name, tuple(TOPIC_OPTIONS))


def _broker_row(name: str) -> Option[Any]:
    row = BROKER_OPTIONS.get(name)
    if row is None:
        raise unknown_name("broker", name, tuple(BROKER_OPTIONS))
    return row


def _check_dynamic(names: Sequence[str], *, per_broker: bool) -> None:
    rows = [BROKER_OPTIONS[name] for name in names if name in BROKER_OPTIONS]
    fixed = [row.name for row in rows if _is_fixed(row)]
    if fixed:
        raise ConfigError(f"Cannot update these configs dynamically: [{', '.join(fixed)}]", ErrorCode.INVALID_REQUEST)
    single = [row.name for row in rows if row.dynamic is Dynamic.PER_BROKER]
    if single and not per_broker:
        raise ConfigError(
            f"Cannot update these configs at default cluster level, broker id must be specified: [{', '.join(single)}]",
            ErrorCode.INVALID_REQUEST,
        )


def _check_together(overrides: Mapping[str, str]) -> None:
    """What must hold between options of a topic."""
    shortest, longest = TopicOptions.min_compaction_lag_ms, TopicOptions.max_compaction_lag_ms
    low = shortest.parse(overrides.get(shortest.name, str(shortest.default)))
    high = longest.parse(overrides.get(longest.name, str(longest.default)))
    if low > high:
        raise ConfigError(f"conflict topic config setting {shortest.name} ({low}) > {longest.name} ({high})")
