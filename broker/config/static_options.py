"""The static layer of a broker's options: what an operator starts it with, in a file and on the command line.

It is checked strictly: who brings a file of Kafka's is told of every mistake at once. Values by reference are looked up
here (config_providers.py), and stay marked as such.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.kafka_options import reason_for
from odradek.broker.config.listener_options import PREFIX, refusal, row_of
from odradek.broker.config.option import ByReference, ConfigError, ConfigMistakes, Option, has_reference, unknown_name
from odradek.broker.config.secure_options import PARAMETERS, PROVIDERS
from odradek.runtime.properties import parse_properties

logger = logging.getLogger(__name__)

NODE_ID, BROKER_ID = "node.id", "broker.id"
_NAME_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Sources(NamedTuple):
    """Where values by reference are looked up. `read` gives the content of a file, or raises OSError."""

    environ: Mapping[str, str]
    read: Callable[[str], bytes]


def load_static(
    file_text: str | None,
    assignments: Iterable[str],
    source: str = "the configuration file",
    sources: Sources | None = None,
) -> dict[str, str]:
    """The static layer: the text of a `--config` file, then each `--set name=value`, with values by reference looked up
    in `sources`; None: each text counts as it stands. Logs a warning for each secret that stands on the command line.
    Raises ConfigError."""
    try:
        static = {} if file_text is None else parse_properties(file_text)
    except ValueError as error:
        raise ConfigError(f"{source}, {error}") from None
    given = dict(map(parse_assignment, assignments))
    _warn_of_command_line(given)
    static |= given
    if sources is None or not any(name.startswith(PROVIDERS) or has_reference(text) for name, text in static.items()):
        return static
    from odradek.broker.config.config_providers import resolved  # few have any

    return resolved(static, *sources)


def parse_assignment(text: str) -> tuple[str, str]:
    """`name=value` of a command line. Raises ConfigError, which shows what may be a name and nothing else: the rest may
    be a secret."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        shown = name if name and _NAME_CHARACTERS.issuperset(name) else "[hidden]"
        raise ConfigError(f"{shown!r} is not of the form name=value")
    return name.strip(), value.strip()


def checked_static(static: Mapping[str, str]) -> dict[str, str]:
    """The texts as they are reported, by name. Raises ConfigError, which names every mistake."""
    checked: dict[str, str] = {}
    mistakes = _without_effect_here(static)
    for name, text in static.items():
        try:
            if row_of(name, BROKER_OPTIONS) is not None or reason_for(name) is None:
                checked[name] = _normalised(name, text)
        except ConfigError as error:
            mistakes.append(str(error))
    if checked.get("listeners") == "":
        mistakes.append("Invalid value for configuration listeners: it must name at least one NAME://HOST:PORT.")
    # The older name and the newer one stand for each other, as in Kafka; defaults do not.
    node_id, broker_id = checked.get(NODE_ID), checked.get(BROKER_ID)
    if node_id is not None and broker_id is not None and node_id != broker_id:
        shown = {name: f"{name} ({checked[name]})" for name in (BROKER_ID, NODE_ID)}
        shown |= {name: name for name in referred_names(static)}
        mistakes.append(f"{shown[BROKER_ID]} and {shown[NODE_ID]} are one and the same; they must be equal.")
    if mistakes:
        raise ConfigMistakes(mistakes)
    if (either := node_id or broker_id) is not None:
        checked[BROKER_ID] = checked[NODE_ID] = BROKER_OPTIONS[NODE_ID].normalised(either)
    return checked


def referred_names(static: Mapping[str, str]) -> frozenset[str]:
    """The options whose values came by reference, and are shown nowhere."""
    names = {name for name, text in static.items() if isinstance(text, ByReference)}
    return frozenset(names | {NODE_ID, BROKER_ID} if names & {NODE_ID, BROKER_ID} else names)


def broker_row(name: str) -> Option[Any]:
    """The option of this name, also under that of a listener. Raises ConfigError, which says why there is none."""
    if (row := row_of(name, BROKER_OPTIONS)) is not None:
        return row
    if (reason := reason_for(name)) is not None:
        raise ConfigError(f"{name} is an option of Apache Kafka's without effect here ({reason})")
    if name.startswith(PREFIX):
        raise refusal(name, BROKER_OPTIONS)
    if name.startswith(PARAMETERS):
        raise ConfigError(f"{name}: values by reference are looked up in a --config file and in --set alone")
    raise unknown_name("broker", name, tuple(BROKER_OPTIONS))


def is_sensitive(name: str) -> bool:
    """Whether the value under this name is a secret, or may be one, for nobody knows the name."""
    row = row_of(name, BROKER_OPTIONS)
    return row is None or row.is_sensitive


def has_secret(name: str, text: str) -> bool:
    """Whether this is a known option with a secret for a value, and not one by reference."""
    row = row_of(name, BROKER_OPTIONS)
    return row is not None and row.is_sensitive and text != "" and not has_reference(text)


def _warn_of_command_line(given: Mapping[str, str]) -> None:
    for name, text in given.items():
        if has_secret(name, text):
            logger.warning(
                "--set %s=… has a secret on the command line, which `ps` shows to everybody on this machine: write it "
                "into a file for --config, or set it by reference, ${file:/path:key}",
                name,
            )


def _normalised(name: str, text: str) -> str:
    """Raises ConfigError."""
    return broker_row(name).normalised(text, name)


def _without_effect_here(static: Mapping[str, str]) -> list[str]:
    """Of Kafka's options that are not here, a sentence for those of each reason."""
    names_of: dict[str, list[str]] = {}
    for name in static:
        if row_of(name, BROKER_OPTIONS) is None and (reason := reason_for(name)) is not None:
            names_of.setdefault(reason, []).append(name)
    return [
        f"{names[0]} is an option of Apache Kafka's without effect here ({reason}): remove it"
        if len(names) == 1
        else f"{', '.join(names)} are options of Apache Kafka's without effect here ({reason}): remove them"
        for reason, names in names_of.items()
    ]
