"""Options as DescribeConfigs answers them: value, where it came from, and from where else it could have come (Kafka's
ConfigHelper). Pure."""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from odradek.broker.config.option import ConfigType, Option


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


def entry_of(
    row: Option[Any], text: str | None, synonyms: tuple[Synonym, ...], *, is_read_only: bool, is_hidden: bool = False
) -> ConfigEntry:
    """`is_hidden`: the value came by reference, and is as sensitive as a password."""
    is_sensitive = row.is_sensitive or is_hidden
    if row.is_sensitive:
        synonyms = tuple(synonym._replace(value=None) for synonym in synonyms)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    shown = None if is_sensitive else text
    return ConfigEntry(row.name, shown, source, is_read_only, is_sensitive, row.kind, row.doc, synonyms)


def unknown_entries(
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


def selected(rows: Mapping[str, Option[Any]], names: Collection[str] | None) -> list[Option[Any]]:
    """The rows with these names, in their order; None: all."""
    return [row for row in rows.values() if names is None or row.name in names]
