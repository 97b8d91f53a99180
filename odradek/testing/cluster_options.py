"""What a test asks of its cluster, and the brokers' settings that follow from it.

What differs from a broker of production, unless `config` says otherwise: a group does not wait for more members before
its first generation, members of KIP-848 say heartbeats each 100 ms (of two, the second one gets its partitions after a
heartbeat of each, which are 5 s apart by default), brokers never take one another for dead by the clock
(hosting/hosted_cluster.py), and records may come from the future, where tests like to set their programs' clocks.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.broker.config.settings import Settings

BROKERS_DEFAULT: Final = 3
BROKERS_MAX: Final = 100
HOST: Final = "127.0.0.1"
SESSION_MS: Final = 300.0
DEFAULTS: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "broker.session.timeout.ms": "86400000",
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
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
    host: str = HOST
    port: int = 0
    advertised_host: str | None = None
    """What clients are told in place of `host`, where they run on other machines, or in other containers."""
    subprocess: bool = False
    processes: bool = False
    etcd: str | None = None
    """HOST:PORT of its members, with commas between them; or with a /prefix behind them, which is kept."""

    def __post_init__(self) -> None:
        if not 1 <= self.brokers <= BROKERS_MAX:
            raise OptionsRefused(f"brokers is {self.brokers!r}, and has to be from 1 to {BROKERS_MAX}")
        for name, partitions in self.topics.items():
            if partitions < 1:
                raise OptionsRefused(f"topics[{name!r}] is {partitions!r}: a topic has at least 1 partition")
        if self.subprocess and self.has_processes:
            raise OptionsRefused(
                "subprocess is one process for all brokers, processes and etcd are one for each: choose"
            )
        if self.session_ms < 0:
            raise OptionsRefused(f"session_ms is {self.session_ms!r}, and has to be 0 or more")

    @property
    def directory(self) -> str | None:
        return None if self.data_dir is None else os.fspath(self.data_dir)

    @property
    def has_processes(self) -> bool:
        """Whether each broker has one of its own."""
        return self.processes or self.etcd is not None

    @property
    def is_elsewhere(self) -> bool:
        """Whether the brokers run in other processes than the test."""
        return self.subprocess or self.has_processes

    @property
    def static(self) -> dict[str, str]:
        """What all brokers are started with."""
        given = {**DEFAULTS, **self.config}
        return given if self.act_as is None else {**given, "act.as": self.act_as}

    def settings(self) -> "list[Settings]":
        """Of each broker. Raises ConfigError, ListenerError, OSError."""
        # A process whose brokers run in another one does without them.
        from odradek.broker.config.listeners import Listener
        from odradek.broker.launch.cluster_settings import cluster_settings
        from odradek.broker.launch.listen_options import check_listeners

        listener = Listener("PLAINTEXT", self.host, self.port)
        if listener.is_wildcard and self.advertised_host is None:
            raise OptionsRefused(
                f"host {self.host} accepts on every address, and clients must be told one that they can reach: give "
                "advertised_host (--advertise HOST)"
            )
        advertised = [] if self.advertised_host is None else [listener._replace(host=self.advertised_host)]
        check_listeners([listener], advertised)
        return cluster_settings(
            self.brokers, listener, self.directory, self.static, advertised_host=self.advertised_host
        )
