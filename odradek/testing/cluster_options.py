"""What a test asks of its cluster, and the brokers' settings that follow from it.

What differs from a broker of production, unless `config` says otherwise: a group does not wait for more members before
its first generation, and brokers never take one another for dead by the clock (hosting/hosted_cluster.py).
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from odradek.broker.config.listeners import Listener
from odradek.broker.config.settings import Settings
from odradek.broker.launch.run_cluster import cluster_settings

BROKERS_DEFAULT: Final = 3
BROKERS_MAX: Final = 100
SESSION_MS: Final = 300.0
DEFAULTS: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": "86400000",
}


class OptionsRefused(ValueError):
    """A cluster cannot be as it was asked for; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """See `odradek.testing.cluster`."""

    brokers: int = BROKERS_DEFAULT
    topics: Mapping[str, int] = field(default_factory=dict[str, int])
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    act_as: str | None = None
    data_dir: str | os.PathLike[str] | None = None
    session_ms: float = SESSION_MS
    port: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.brokers <= BROKERS_MAX:
            raise OptionsRefused(f"brokers is {self.brokers!r}, and has to be from 1 to {BROKERS_MAX}")
        for name, partitions in self.topics.items():
            if partitions < 1:
                raise OptionsRefused(f"topics[{name!r}] is {partitions!r}: a topic has at least 1 partition")
        if self.session_ms < 0:
            raise OptionsRefused(f"session_ms is {self.session_ms!r}, and has to be 0 or more")

    @property
    def directory(self) -> str | None:
        return None if self.data_dir is None else os.fspath(self.data_dir)

    def settings(self) -> list[Settings]:
        """Of each broker. Raises ConfigError, ListenerError, OSError."""
        static = {**DEFAULTS, **self.config}
        if self.act_as is not None:
            static["act.as"] = self.act_as
        listener = Listener("PLAINTEXT", "127.0.0.1", self.port)
        return cluster_settings(self.brokers, listener, self.directory, static)
