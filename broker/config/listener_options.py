"""Options under the name of one listener, and of one mechanism of SASL in it, as Kafka writes them (KIP-85, KIP-103).

    listener.name.external.ssl.keystore.location=/etc/odradek/external.pem
    listener.name.external.scram-sha-256.sasl.jaas.config=…

Listener and mechanism stand in lower case, whatever case they have elsewhere (ListenerName.configPrefix). Kafka takes
any other name silently, and the listener goes without what it says; here it is refused. Which options may be set so
says their row (`Option.per_listener`, `per_mechanism`). What the values come to is listener_config.py. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from odradek.broker.config.option import ConfigError, Option, unknown_name

PREFIX: Final = "listener.name."
MECHANISMS: Final = ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer")
"""Those that are served. Kafka has GSSAPI, too."""
_SCOPED: Final = re.compile(r"listener\.name\.(?P<listener>[^.]+)\.(?P<rest>.+)", re.DOTALL)

Rows = Mapping[str, Option[Any]]


class ScopedOption(NamedTuple):
    """An option of one listener. Both names are lower case; `mechanism` is empty where it is for all of them."""

    listener: str
    mechanism: str
    row: Option[Any]


def prefix_of(listener: str) -> str:
    """What stands before the options of the listener with this name."""
    return f"{PREFIX}{listener.lower()}."


def scoped_option(name: str, rows: Rows) -> ScopedOption | None:
    """Which option of which listener the name stands for; None for any other name."""
    match = _SCOPED.fullmatch(name)
    if match is None or match["listener"] != match["listener"].lower():
        return None
    listener, rest = match["listener"], match["rest"]
    if (row := rows.get(rest)) is not None:
        return ScopedOption(listener, "", row) if row.per_listener else None
    mechanism, _, rest = rest.partition(".")
    if mechanism in MECHANISMS and (row := rows.get(rest)) is not None and row.per_mechanism:
        return ScopedOption(listener, mechanism, row)
    return None


def row_of(name: str, rows: Rows) -> Option[Any] | None:
    """The option that is set under this name, be it for a listener or for the broker."""
    if (row := rows.get(name)) is not None or not name.startswith(PREFIX):
        return row
    scoped = scoped_option(name, rows)
    return None if scoped is None else scoped.row


def refusal(name: str, rows: Rows) -> ConfigError:
    """Why a name that begins like that of a listener's option is none, and what to write instead."""
    match = _SCOPED.fullmatch(name)
    if match is None:
        return ConfigError(f"Unknown broker config name: {name}; an option of a listener is {PREFIX}NAME.OPTION")
    listener, rest = match["listener"], match["rest"]
    if listener != listener.lower():
        return ConfigError(
            f"Unknown broker config name: {name}; the listener's name is written in lower case there: "
            f"{prefix_of(listener)}{rest}"
        )
    if rest in rows:
        return ConfigError(f"{name}: {rest} cannot be set for one listener; write {rest}")
    mechanism, _, inner = rest.partition(".")
    if (row := rows.get(inner)) is not None:
        return ConfigError(f"{name}: {_why_not_of_mechanism(listener, mechanism, row)}")
    return unknown_name("broker", name, tuple(_names(listener, rows)))


def _why_not_of_mechanism(listener: str, mechanism: str, row: Option[Any]) -> str:
    if not row.per_mechanism:
        instead = f"{prefix_of(listener)}{row.name}" if row.per_listener else row.name
        return f"{row.name} cannot be set for one mechanism; write {instead}"
    if mechanism.lower() in MECHANISMS:
        return f"the mechanism is written in lower case there, {mechanism.lower()}"
    return f"{mechanism} is no mechanism of SASL that is served; those are {', '.join(MECHANISMS)}"


def _names(listener: str, rows: Rows) -> Iterator[str]:
    """Of all options that may be set for the listener."""
    prefix = prefix_of(listener)
    for row in rows.values():
        if row.per_listener:
            yield prefix + row.name
        if row.per_mechanism:
            yield from (f"{prefix}{mechanism}.{row.name}" for mechanism in MECHANISMS)


def listeners_in(names: Iterable[str], rows: Rows) -> dict[str, str]:
    """The listeners, in lower case, that options among these names are set for, each with the first of its names."""
    found: dict[str, str] = {}
    for name in names:
        if name.startswith(PREFIX) and (scoped := scoped_option(name, rows)) is not None:
            found.setdefault(scoped.listener, name)
    return found
