"""The configuration of a broker and its topics: which value counts, where it came from, and how it is changed.

A broker's value comes from the first layer that has one: dynamic for this broker, dynamic for all brokers, static (file
and command line), default. A topic's value is its own, else the broker's under the synonym, else the default; a
listener's its own, else the broker's (listener_config.py). What is static is checked strictly (static_options.py). What
is dynamic was checked when it was stored; if this version cannot use it nevertheless (a newer one wrote it), it is left
out with a warning, for a broker that does not start helps nobody.

Descriptions follow Kafka's ConfigHelper, in its sources and its order of synonyms (config_entries.py). How what is
stored changes stands in alterations.py.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from odradek.broker.config.broker_options import BROKER_OPTIONS, BrokerOptions
from odradek.broker.config.config_entries import ConfigEntry, ConfigSource, Synonym, entry_of, selected, unknown_entries
from odradek.broker.config.consumer_group_options import (
    CONSUMER_GROUP_OPTIONS,
    ConsumerGroupOptions,
    highest_of,
    lowest_of,
)
from odradek.broker.config.kafka_options import reason_for
from odradek.broker.config.listener_config import ListenerConfig
from odradek.broker.config.listener_options import PREFIX, row_of, scoped_option
from odradek.broker.config.option import LONG_MAX, ConfigError, ConfigType, Option, nearest
from odradek.broker.config.static_options import broker_row, checked_static, load_static, referred_names
from odradek.broker.config.topic_options import TOPIC_OPTIONS, TopicOptions

__all__ = [
    "BrokerConfig",
    "ConfigEntry",
    "ConfigError",
    "ConfigSource",
    "ConfigType",
    "ConsumerGroupConfig",
    "ListenerConfig",
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
        self._static = checked_static(static)
        self._referred = referred_names(static)
        self._static_shown: Mapping[str, str | None] = {
            name: None if name in self._referred else text for name, text in self._static.items()
        }
        self._dynamic_default = NOTHING
        self._dynamic = NOTHING
        self._scoped = NOTHING  # options of listeners, of all layers
        self._unknown: tuple[tuple[ConfigSource, frozenset[str]], ...] = ()
        self._unusable: dict[str, dict[str, str]] = {}
        self._topic_values: dict[str, Any] = {}
        self._group_view = ConsumerGroupConfig(NOTHING)
        self._views: dict[int, tuple[Mapping[str, str], TopicConfig]] = {}
        self._group_views: dict[int, tuple[Mapping[str, str], ConsumerGroupConfig]] = {}
        self._listener_views: dict[str, ListenerConfig] = {}
        self.update(dynamic_default, dynamic)

    def update(self, dynamic_default: Mapping[str, str], dynamic: Mapping[str, str]) -> None:
        """Takes over what is stored for all brokers and for this one. Views of topics, groups and listeners are made
        anew later.

        What has no effect is warned of when it is new, and not at each change of another option.
        """
        self._dynamic_default, unusable_of_all = _usable(dynamic_default, BROKER_OPTIONS)
        self._dynamic, unusable_of_one = _usable(dynamic, BROKER_OPTIONS)
        known = self._unusable
        self._unusable = {"all brokers": unusable_of_all, "this broker": unusable_of_one}
        for what, unusable in self._unusable.items():
            _warn(what, dict(unusable.items() - known.get(what, {}).items()), BROKER_OPTIONS)
        self._unknown = (
            (ConfigSource.DYNAMIC_BROKER, _unknown(dynamic)),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER, _unknown(dynamic_default)),
        )
        values = self.__dict__
        for row in BROKER_OPTIONS.values():
            text = self._dynamic.get(row.name, self._dynamic_default.get(row.name, self._static.get(row.name)))
            values[row.attribute] = row.default if text is None else row.parse(text)
        self._topic_values = {row.attribute: self._inherited(row) for row in TOPIC_OPTIONS.values()}
        self._group_view = ConsumerGroupConfig(
            {row.attribute: values[BROKER_OPTIONS[row.synonym].attribute] for row in CONSUMER_GROUP_OPTIONS.values()}
        )
        layers = (self._static, self._dynamic_default, self._dynamic)
        self._scoped = {name: text for layer in layers for name, text in layer.items() if name.startswith(PREFIX)}
        self._views, self._group_views, self._listener_views = {}, {}, {}

    @property
    def data_dirs(self) -> tuple[str, ...]:
        return self.log_dirs or self.log_dir

    def is_set(self, name: str) -> bool:
        """Whether a layer has a value for the option, be it the one that is the default."""
        return name in self._static or name in self._dynamic_default or name in self._dynamic

    @property
    def static_names(self) -> Collection[str]:
        """The options that were set when the broker was started."""
        return self._static.keys()

    def listener(self, name: str) -> ListenerConfig:
        """What counts for the listener with this name, in any case. The same object until options change."""
        key = name.upper()
        if (found := self._listener_views.get(key)) is None:
            values = {row.attribute: self.__dict__[row.attribute] for row in BROKER_OPTIONS.values()}
            found = self._listener_views[key] = ListenerConfig(key, values, self._scoped)
        return found

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
        for row in selected(TOPIC_OPTIONS, names):
            text = row.text(view.__dict__[row.attribute])
            synonyms, is_hidden = self._inheritance(row)
            if row.name in view.overrides:
                synonyms, is_hidden = (Synonym(row.name, text, ConfigSource.DYNAMIC_TOPIC), *synonyms), False
            entries.append(entry_of(row, text, synonyms, is_read_only=False, is_hidden=is_hidden))
        return entries

    def describe_group(self, overrides: Mapping[str, str], names: Collection[str] | None = None) -> list[ConfigEntry]:
        """All options of a consumer group, or those named; unknown names are left out."""
        entries: list[ConfigEntry] = []
        for row in selected(CONSUMER_GROUP_OPTIONS, names):
            text = row.text(self._group_view.__dict__[row.attribute])
            synonyms, is_hidden = self._inheritance(row)
            if row.name in overrides:
                text = overrides[row.name]
                synonyms, is_hidden = (Synonym(row.name, text, ConfigSource.GROUP), *synonyms), False
            entries.append(entry_of(row, text, synonyms, is_read_only=False, is_hidden=is_hidden))
        return entries

    def describe_broker(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """All options of this broker, or those named; of its listeners, those that are set."""
        entries: list[ConfigEntry] = []
        for row in selected(BROKER_OPTIONS, names):
            text, synonyms = row.text(self.__dict__[row.attribute]), self._synonyms(row.name)
            is_hidden = self._is_hidden(row.name)
            entries.append(entry_of(row, text, synonyms, is_read_only=row.is_read_only, is_hidden=is_hidden))
        entries += _scoped_entries(self._scoped, names, self._synonyms, self._is_hidden)
        return entries + unknown_entries(self._unknown, names)

    def describe_default_broker(self, names: Collection[str] | None = None) -> list[ConfigEntry]:
        """What is set for all brokers at run time, and nothing else, as Kafka answers for the broker "" ."""
        entries: list[ConfigEntry] = []
        for row in selected(BROKER_OPTIONS, names):
            if (text := self._dynamic_default.get(row.name)) is not None:
                synonyms = self._synonyms_of_all(row.name)
                entries.append(entry_of(row, text, synonyms, is_read_only=row.is_read_only))
        entries += _scoped_entries(self._dynamic_default, names, self._synonyms_of_all)
        return entries + unknown_entries(self._unknown[1:], names)

    def _inheritance(self, row: Option[Any]) -> tuple[tuple[Synonym, ...], bool]:
        """From where an option of a topic or group comes that it does not set; whether by reference."""
        if not row.synonym:
            return (), False
        fallbacks = BROKER_OPTIONS[row.synonym].fallbacks
        return self._synonyms(row.synonym), self._is_hidden(row.synonym, *(each.name for each in fallbacks))

    def _synonyms(self, name: str) -> tuple[Synonym, ...]:
        """By layer, then from the finer unit to the coarser, or from the listener to the broker. What stands before the
        first one of the very name is dropped, as Kafka does, so `log.retention.hours` is listed only behind a
        `log.retention.ms`."""
        names: tuple[str, ...]
        if (scoped := scoped_option(name, BROKER_OPTIONS)) is not None:
            names = (name, scoped.row.name)
        else:
            names = (name, *(fallback.name for fallback in BROKER_OPTIONS[name].fallbacks))
        defaults = {
            each: text
            for each in names
            if (row := BROKER_OPTIONS.get(each)) is not None and (text := row.default_text) is not None
        }
        layers: tuple[tuple[Mapping[str, str | None], ConfigSource], ...] = (
            (self._dynamic, ConfigSource.DYNAMIC_BROKER),
            (self._dynamic_default, ConfigSource.DYNAMIC_DEFAULT_BROKER),
            (self._static_shown, ConfigSource.STATIC_BROKER),
            (defaults, ConfigSource.DEFAULT),
        )
        found = [Synonym(each, layer[each], source) for layer, source in layers for each in names if each in layer]
        first = next((position for position, synonym in enumerate(found) if synonym.name == name), len(found))
        return tuple(found[first:])

    def _synonyms_of_all(self, name: str) -> tuple[Synonym, ...]:
        """Those of all brokers alone."""
        return tuple(each for each in self._synonyms(name) if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER)

    def _is_hidden(self, *names: str) -> bool:
        """Whether the value that counts, of the first of these options that is set, came by reference."""
        for name in names:
            if name in self._dynamic or name in self._dynamic_default:
                return False
            if name in self._static:
                return name in self._referred
        return False


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
        row = row_of(name, rows)
        try:
            if row is None:
                unusable[name] = text
            else:
                usable[name] = row.normalised(text, name)
        except ConfigError:
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
    if (row := row_of(name, rows)) is not None:
        try:
            row.normalised(text, name)
        except ConfigError as error:
            return f"{name} has no effect: {error}"
    if rows is BROKER_OPTIONS and (reason := reason_for(name)) is not None:
        return f"{name!r} has no effect here ({reason})"
    near = nearest(name, tuple(rows))
    return f"{name!r} is unknown and has no effect{'' if near is None else f'; did you mean {near}?'}"


def _unknown(stored: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name in stored if row_of(name, BROKER_OPTIONS) is None)


def _scoped_entries(
    stored: Mapping[str, str],
    names: Collection[str] | None,
    synonyms_of: Callable[[str], tuple[Synonym, ...]],
    is_hidden: Callable[[str], bool] = lambda _: False,
) -> list[ConfigEntry]:
    """Options of listeners as Kafka describes them: each read-only and without documentation, whatever it is, and with
    the broker's values behind its own."""
    entries: list[ConfigEntry] = []
    for name in sorted(stored):
        scoped = scoped_option(name, BROKER_OPTIONS)
        if scoped is not None and (names is None or name in names):
            synonyms = synonyms_of(name)
            entry = entry_of(scoped.row, stored[name], synonyms, is_read_only=True, is_hidden=is_hidden(name))
            entries.append(entry._replace(name=name, documentation=None))
    return entries
