"""The configuration of a broker and its topics: which value counts, where it came from, and how it is changed.

A broker's value comes from the first layer that has one: dynamic for this broker, dynamic for all brokers, static (file
and command line), default. A topic's value is its own, else the broker's under the synonym, else the default. What is
static is checked strictly. What is dynamic was checked when it was stored; if this version cannot use it nevertheless
(a newer one wrote it), it is left out with a warning, for a broker that does not start helps nobody.

Descriptions follow Kafka's ConfigHelper, in its sources and its order of synonyms. How what is stored changes stands in
alterations.py.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

from odradek.broker.config.broker_options import BROKER_OPTIONS, BrokerOptions
from odradek.broker.config.consumer_group_options import (
    CONSUMER_GROUP_OPTIONS,
    ConsumerGroupOptions,
    highest_of,
    lowest_of,
)
from odradek.broker.config.kafka_options import reason_for
from odradek.broker.config.option import (
    LONG_MAX,
    ConfigError,
    ConfigMistakes,
    ConfigType,
    Option,
    nearest,
    unknown_name,
)
from odradek.broker.config.topic_options import TOPIC_OPTIONS, TopicOptions
from odradek.runtime.properties import parse_properties

__all__ = [
    "BrokerConfig",
    "ConfigEntry",
    "ConfigError",
    "ConfigSource",
    "ConfigType",
    "ConsumerGroupConfig",
    "Synonym",
    "TopicConfig",
    "broker_row",
    "load_static",
]

logger = logging.getLogger(__name__)

V = TypeVar("V")

VIEWS_MAX = 10_000
WARNINGS_MAX = 20
"""Of one layer at one change: finding the nearest name of each takes a millisecond."""
NOTHING: Mapping[str, str] = {}


class ConfigSource(IntEnum):
    """Where a value came from, with Kafka's numbers (DescribeConfigsResponse.ConfigSource)."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    GROUP = 8


class Synonym(NamedTuple):
    """A place from which the value could come, the one that counts first."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """One option as DescribeConfigs answers it.

    `value` is None for no value, and for a sensitive one; `documentation` is None for an option that is unknown.
    """

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool
    is_sensitive: bool
    type: ConfigType
    documentation: str | None
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
        self.overrides, unusable = _usable(overrides, TOPIC_OPTIONS)
        _warn("a topic", unusable, TOPIC_OPTIONS)
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


class ConsumerGroupConfig(ConsumerGroupOptions):
    """What counts for one consumer group. Immutable; a change makes another one."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)


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
        self._unknown: tuple[tuple[ConfigSource, frozenset[str]], ...] = ()
        self._unusable: dict[str, dict[str, str]] = {}
        self._topic_values: dict[str, Any] = {}
        self._group_view = ConsumerGroupConfig(NOTHING)
        self._views: dict[int, tuple[Mapping[str, str], TopicConfig]] = {}
        self._group_views: dict[int, tuple[Mapping[str, str], ConsumerGroupConfig]] = {}
        self.update(dynamic_default, dynamic)

    def update(self, dynamic_default: Mapping[str, str], dynamic: Mapping[str, str]) -> None:
        """Takes over what is stored for all brokers and for this one. Views of topics and groups are made anew later.

        What has no effect is warned of when it is new, and not at each change of another option.
        """
        self._dynamic_default, unusable_of_all = _usable(dynamic_default, BROKER_OPTIONS)
        self._dynamic, unusable_of_one = _usable(dynamic, BROKER_OPTIONS)
        known = self._unusable
        self._unusable = {"all brokers": unusable_of_all, "this broker": unusable_of_one}
        for what, unusable in self._unusable.items():
            _warn(what, dict(unusable.items() - known.get(what, {}).items()), BROKER_OPTIONS)
        self._unknown = (
            (ConfigSource.DYNAMIC_BROKER, frozenset(dynamic.keys() - BROKER_OPTIONS.keys())),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, frozenset(dynamic_default.keys() - BROKER_OPTIONS.keys())),
        )
        values = self.__dict__
        for row in BROKER_OPTIONS.values():
            text = self._dynamic.get(row.name, self._dynamic_default.get(row.name, self._static.get(row.name)))
            values[row.attribute] = row.default if text is None else row.parse(text)
        self._topic_values = {row.attribute: self._inherited(row) for row in TOPIC_OPTIONS.values()}
        self._group_view = ConsumerGroupConfig(
            {row.attribute: values[BROKER_OPTIONS[row.synonym].attribute] for row in CONSUMER_GROUP_OPTIONS.values()}
        )
        self._views, self._group_views = {}, {}

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
        return _kept(self._views, overrides, TopicConfig(self._topic_values, overrides, self.producer_id_expiration_ms))

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

    def consumer_group(self, overrides: Mapping[str, str] = NOTHING) -> ConsumerGroupConfig:
        """What counts for a group with these overrides; those that cannot be used are left out. The same object for
        the same mapping, as `topic`: each heartbeat asks."""
        if not overrides:
            return self._group_view
        if (found := self._group_views.get(id(overrides))) is not None:
            return found[1]
        usable, _ = _usable(overrides, CONSUMER_GROUP_OPTIONS)
        values = dict(self._group_view.__dict__)
        for name, text in usable.items():
            row = CONSUMER_GROUP_OPTIONS[name]
            lowest, highest = self._bounds_of(name)
            values[row.attribute] = max(lowest, min(row.parse(text), highest))
        return _kept(self._group_views, overrides, ConsumerGroupConfig(values))

    def check_group(self, overrides: Mapping[str, str]) -> None:
        """Whether a group may have these overrides, which are usable each for itself (GroupConfig.validateValues).
        Raises ConfigError."""
        for name, text in overrides.items():
            lowest, highest = self._bounds_of(name)
            value = CONSUMER_GROUP_OPTIONS[name].parse(text)
            if value < lowest:
                raise ConfigError(f"{name} must be greater than or equal to {lowest_of(name)}, which is {lowest}")
            if value > highest:
                raise ConfigError(f"{name} must be less than or equal to {highest_of(name)}, which is {highest}")
        view = self.consumer_group(overrides)
        if view.consumer_session_timeout_ms <= view.consumer_heartbeat_interval_ms:
            session, heartbeat = (
                ConsumerGroupOptions.consumer_session_timeout_ms,
                ConsumerGroupOptions.consumer_heartbeat_interval_ms,
            )
            raise ConfigError(f"{session.name} must be greater than {heartbeat.name}")

    def _bounds_of(self, name: str) -> tuple[int, int]:
        """Of an option of groups."""
        lowest, highest = BROKER_OPTIONS[lowest_of(name)], BROKER_OPTIONS[highest_of(name)]
        return self.__dict__[lowest.attribute], self.__dict__[highest.attribute]

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

    def describe_group(self, overrides: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
        """All options of a consumer group, or those named; unknown names are left out."""
        entries: list[ConfigEntry] = []
        for row in _selected(CONSUMER_GROUP_OPTIONS, names):
            text, synonyms = row.text(self._group_view.__dict__[row.attribute]), self._synonyms(row.synonym)
            if row.name in overrides:
                text = overrides[row.name]
                synonyms = (Synonym(row.name, text, ConfigSource.GROUP), *synonyms)
            entries.append(_entry(row, text, synonyms, is_read_only=False))
        return entries

    def describe_broker(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """All options of this broker, or those named."""
        entries = [
            _entry(row, row.text(self.__dict__[row.attribute]), self._synonyms(row.name), is_read_only=row.is_read_only)
            for row in _selected(BROKER_OPTIONS, names)
        ]
        return entries + _unknown_entries(self._unknown, names)

    def describe_default_broker(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """What is set for all brokers at run time, and nothing else, as Kafka answers for the broker "" ."""
        entries: list[ConfigEntry] = []
        for row in _selected(BROKER_OPTIONS, names):
            if (text := self._dynamic_default.get(row.name)) is not None:
                synonyms = (Synonym(row.name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER),)
                entries.append(_entry(row, text, synonyms, is_read_only=row.is_read_only))
        return entries + _unknown_entries(self._unknown[1:], names)

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
    """Raises ConfigError, which names every mistake: who brings a file of Kafka's corrects it once."""
    checked: dict[str, str] = {}
    mistakes = _without_effect_here(static)
    for name, text in static.items():
        try:
            if reason_for(name) is None:
                checked[name] = broker_row(name).normalised(text)
        except ConfigError as error:
            mistakes.append(str(error))
    if checked.get("listeners") == "":
        mistakes.append("Invalid value for configuration listeners: it must name at least one NAME://HOST:PORT.")
    # The older name and the newer one stand for each other, as in Kafka; defaults do not.
    node_id, broker_id = checked.get("node.id"), checked.get("broker.id")
    if node_id is not None and broker_id is not None and node_id != broker_id:
        mistakes.append(f"broker.id ({broker_id}) and node.id ({node_id}) are one and the same; they must be equal.")
    if mistakes:
        raise ConfigMistakes(mistakes)
    if (either := node_id or broker_id) is not None:
        checked["broker.id"] = checked["node.id"] = BROKER_OPTIONS["node.id"].normalised(either)
    return checked


def _without_effect_here(static: Mapping[str, str]) -> list[str]:
    """Of Kafka's options that are not here, a sentence for those of each reason."""
    names_of: dict[str, list[str]] = {}
    for name in static:
        if (reason := reason_for(name)) is not None:
            names_of.setdefault(reason, []).append(name)
    return [
        f"{names[0]} is an option of Apache Kafka's without effect here ({reason}): remove it"
        if len(names) == 1
        else f"{', '.join(names)} are options of Apache Kafka's without effect here ({reason}): remove them"
        for reason, names in names_of.items()
    ]


def broker_row(name: str) -> Option[Any]:
    """The option of this name. Raises ConfigError, which says why there is none."""
    if (row := BROKER_OPTIONS.get(name)) is not None:
        return row
    if (reason := reason_for(name)) is not None:
        raise ConfigError(f"{name} is an option of Apache Kafka's without effect here ({reason})")
    raise unknown_name("broker", name, tuple(BROKER_OPTIONS))


def _kept(views: dict[int, tuple[Mapping[str, str], V]], overrides: Mapping[str, str], view: V) -> V:
    """By the identity of the mapping, which is held, so that its id is not given to another."""
    if len(views) >= VIEWS_MAX:
        views.clear()
    views[id(overrides)] = overrides, view
    return view


def _usable(stored: Mapping[str, str], rows: Mapping[str, Option[Any]]) -> tuple[dict[str, str], dict[str, str]]:
    """What of it has an effect, and what has none."""
    usable: dict[str, str] = {}
    unusable: dict[str, str] = {}
    for name, text in stored.items():
        try:
            usable[name] = rows[name].normalised(text)
        except (KeyError, ConfigError):
            unusable[name] = text
    return usable, unusable


def _warn(what: str, unusable: Mapping[str, str], rows: Mapping[str, Option[Any]]) -> None:
    """A warning for each; of the first, where somebody has stored very many."""
    for name in sorted(unusable)[:WARNINGS_MAX]:
        logger.warning("stored configuration of %s: %s", what, _why_without_effect(name, unusable[name], rows))
    if len(unusable) > WARNINGS_MAX:
        logger.warning("stored configuration of %s: %d more have no effect", what, len(unusable) - WARNINGS_MAX)


def _why_without_effect(name: str, text: str, rows: Mapping[str, Option[Any]]) -> str:
    """The name is a client's, who may have sent anything: it is quoted."""
    if (row := rows.get(name)) is not None:
        try:
            row.normalised(text)
        except ConfigError as error:
            return f"{name} has no effect: {error}"
    if rows is BROKER_OPTIONS and (reason := reason_for(name)) is not None:
        return f"{name!r} has no effect here ({reason})"
    near = nearest(name, tuple(rows))
    return f"{name!r} is unknown and has no effect{'' if near is None else f'; did you mean {near}?'}"


def _unknown_entries(
    layers: Iterable[tuple[ConfigSource, Collection[str]]], names: Collection[str] | None
) -> list[ConfigEntry]:
    """Stored options that are unknown, as Kafka reports them: their values may be secrets, for nobody knows."""
    found: dict[str, list[Synonym]] = {}
    for source, unknown in layers:
        for name in unknown:
            if names is None or name in names:
                found.setdefault(name, []).append(Synonym(name, None, source))
    return [
        ConfigEntry(
            name,
            value=None,
            source=synonyms[0].source,
            is_read_only=True,
            is_sensitive=True,
            type=ConfigType.UNKNOWN,
            documentation=None,
            synonyms=tuple(synonyms),
        )
        for name, synonyms in sorted(found.items())
    ]


def _selected(rows: Mapping[str, Option[Any]], names: Collection[str] | None) -> list[Option[Any]]:
    return [row for row in rows.values() if names is None or row.name in names]


def _entry(row: Option[Any], text: str | None, synonyms: tuple[Synonym, ...], *, is_read_only: bool) -> ConfigEntry:
    if row.is_sensitive:
        text, synonyms = None, tuple(synonym._replace(value=None) for synonym in synonyms)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigEntry(row.name, text, source, is_read_only, row.is_sensitive, row.kind, row.doc, synonyms)
