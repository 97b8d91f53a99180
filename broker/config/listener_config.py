"""What counts for one listener, and for one mechanism of SASL in it (AbstractConfig.valuesWithPrefixOverride).

    config.listener("EXTERNAL").ssl_keystore_location
    config.listener("EXTERNAL").mechanism("PLAIN").sasl_jaas_config

An option that is set for the listener counts before the broker's, from whichever layer either comes; one that is set
for the mechanism before both. An option that counts for nothing without a mechanism (`sasl.jaas.config`) has its
default in any other view. Views are immutable: when options change at run time, `BrokerConfig` makes others, so who
holds one asks again.
"""

from collections.abc import Mapping
from typing import Any, Final

from odradek.broker.config.broker_options import BROKER_OPTIONS, BrokerOptions
from odradek.broker.config.listener_options import prefix_of, scoped_option
from odradek.broker.config.option import Option


class MechanismConfig(BrokerOptions):
    """What counts for one mechanism of one listener."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)


class ListenerConfig(BrokerOptions):
    """What counts for one listener."""

    def __init__(self, name: str, values: Mapping[str, Any], scoped: Mapping[str, str]) -> None:
        """`values`: the broker's, by attribute. `scoped`: texts that were checked, by their full names; those of other
        listeners are passed over."""
        self.listener_name: Final = name.upper()
        own: dict[str, Any] = {}
        of_mechanisms: dict[str, dict[str, Any]] = {}
        for row, mechanism, text in _of_listener(name, scoped):
            (of_mechanisms.setdefault(mechanism, {}) if mechanism else own)[row.attribute] = row.parse(text)
        common = dict(values) | own
        for row in BROKER_OPTIONS.values():
            if row.mechanism_alone:
                common[row.attribute] = row.default
        self.__dict__.update(common)
        self._own: Final = frozenset(own)
        self._common: Final = MechanismConfig(common)
        self._mechanisms: Final = {
            mechanism: MechanismConfig(common | of_one) for mechanism, of_one in of_mechanisms.items()
        }

    def mechanism(self, name: str) -> MechanismConfig:
        """What counts for the mechanism with this name, in any case. Nothing is kept for names that clients make up."""
        return self._mechanisms.get(name.lower(), self._common)

    def is_own(self, row: Option[Any]) -> bool:
        """Whether the option is set for the listener itself. On a listener of SASL_SSL, `ssl.client.auth` counts only
        then (KIP-684)."""
        return row.attribute in self._own


def _of_listener(name: str, scoped: Mapping[str, str]) -> list[tuple[Option[Any], str, str]]:
    """Row, mechanism and text of the options that are set for the listener."""
    prefix = prefix_of(name)
    found: list[tuple[Option[Any], str, str]] = []
    for full_name, text in scoped.items():
        if full_name.startswith(prefix) and (option := scoped_option(full_name, BROKER_OPTIONS)) is not None:
            found.append((option.row, option.mechanism, text))
    return found
