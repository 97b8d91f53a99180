"""`ClientConfig`: the settings that every client has, and how a configuration is checked, read and shown.

A subclass adds rows and, in `_resolve`, rules. What a configuration promises is said in `__init__.py`.
"""
# ruff: noqa: RUF009  (the calls make fields of the dataclass, as `dataclasses.field` does)

import logging
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from difflib import get_close_matches
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, cast

from odradek.client.arguments import is_plain_callable
from odradek.client.configuration.addresses import Address, Servers, parse_servers
from odradek.client.configuration.kafka_settings import NOT_HERE
from odradek.client.configuration.security_settings import SecuritySettings
from odradek.client.configuration.settings import (
    INT_MAX,
    DefaultInt,
    choice,
    flag,
    is_default,
    metadata_of,
    rows,
    text,
    thing,
    whole,
)
from odradek.client.errors.client_errors import ConfigError
from odradek.client.metrics.metrics import Metrics
from odradek.runtime.environment import Environment

__all__ = ["ClientConfig"]

logger = logging.getLogger(__name__)

DnsLookup = Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"]
MetadataRecovery = Literal["rebootstrap", "none"]


_BOOTSTRAP: Final = metadata_of(
    parse_servers, "Brokers to ask first, `host:port`; they name the others.", expected="host:port, host:port, …"
)
CLIENT_ID_BYTES_MAX: Final = 32_767
_NUMBERS: Final[dict[str, "count[int]"]] = {}
"""Of clients without a name, by kind."""


@dataclass(frozen=True, slots=True, repr=False)
class ClientConfig(SecuritySettings):
    """The settings of every client. `bootstrap_servers` is the only one without a default."""

    NAME: ClassVar[str] = "client"

    bootstrap_servers: Servers = field(metadata=_BOOTSTRAP)
    _: KW_ONLY
    client_id: str = text("", "Name in the broker's logs and quotas. Empty: a name with a number, as `producer-1`.")
    client_dns_lookup: DnsLookup = choice(
        "use_all_dns_ips",
        DnsLookup,
        "Try every address of a name; or make each bootstrap name into the canonical names of its addresses first.",
    )
    connections_max_idle_ms: int = whole(
        540_000, "A connection unused for so long is closed; -1: never.", minimum=-1, unit="ms"
    )
    socket_connection_setup_timeout_ms: int = whole(
        10_000, "How long opening a connection may take; doubled with each failure in a row.", unit="ms"
    )
    socket_connection_setup_timeout_max_ms: int = whole(30_000, "But not beyond this.", unit="ms")
    send_buffer_bytes: int = whole(
        131_072, "SO_SNDBUF of the sockets; -1: as the system has it.", minimum=-1, maximum=INT_MAX, unit="bytes"
    )
    receive_buffer_bytes: int = whole(
        32_768, "SO_RCVBUF of the sockets; -1: as the system has it.", minimum=-1, maximum=INT_MAX, unit="bytes"
    )
    request_timeout_ms: int = whole(
        30_000,
        "A request without an answer for so long fails, and its connection is closed.",
        maximum=INT_MAX,
        unit="ms",
    )
    retries: int = whole(
        INT_MAX, "How often a request or batch is repeated, within the time that it has.", maximum=INT_MAX
    )
    retry_backoff_ms: int = whole(100, "Pause before the first repetition; doubled with each, ±20 %.", unit="ms")
    retry_backoff_max_ms: int = whole(1_000, "But not beyond this.", unit="ms")
    reconnect_backoff_ms: int = whole(
        50, "Pause before connecting again to a broker; doubled with each failure in a row, ±20 %.", unit="ms"
    )
    reconnect_backoff_max_ms: int = whole(
        1_000, "But not beyond this. If only `reconnect_backoff_ms` is set: not doubled.", unit="ms"
    )
    metadata_max_age_ms: int = whole(300_000, "Metadata is refreshed at least so often.", unit="ms")
    metadata_max_idle_ms: int = whole(
        300_000, "A topic that was not used for so long is forgotten.", minimum=5_000, unit="ms"
    )
    metadata_recovery_strategy: MetadataRecovery = choice(
        "rebootstrap", MetadataRecovery, "With no known broker left: begin again with `bootstrap_servers`, or not."
    )
    metadata_recovery_rebootstrap_trigger_ms: int = whole(
        300_000, "Begin again also when metadata could not be had for so long.", unit="ms"
    )
    allow_auto_create_topics: bool = flag(
        True, "Whether asking for an unknown topic may create it, where the broker allows that."
    )
    metrics: Metrics | None = thing(
        None,
        "Hook for counters, histograms and gauges.",
        expected="an object with the methods of odradek.Metrics",
        check=lambda value: all(
            is_plain_callable(getattr(value, name, None)) for name in ("count", "observe", "watch")
        ),
        kafka_name="metric.reporters",
    )
    environment: Callable[[], Environment] = thing(
        Environment,
        "Makes clock, chance and network of the client; for tests and simulations.",
        expected="a function that returns an Environment",
        is_ours=True,
    )

    @property
    def bootstrap_addresses(self) -> tuple[Address, ...]:
        """What `bootstrap_servers` has become."""
        return cast("tuple[Address, ...]", self.bootstrap_servers)

    if not TYPE_CHECKING:  # type checkers know the names from the fields

        def __new__(cls, *_values: object, **settings: object) -> Self:
            _refuse_unknown(cls, settings, dotted=False)
            return object.__new__(cls)

    def __post_init__(self) -> None:
        for name, row in rows(type(self)).items():
            value: object = getattr(self, name)
            if (checked := row.checked(name, value)) is not value:
                self._set(name, checked)
        if not self.client_id:
            numbers = _NUMBERS.setdefault(self.NAME, count(1))
            self._set("client_id", f"{self.NAME}-{next(numbers)}")
        self._check_client_id()
        self.check_security()
        self._check_backoffs()
        self._resolve()

    def _resolve(self) -> None:
        """The rules of a subclass."""

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_client_id(self) -> None:
        """Every request carries it."""
        try:
            size_bytes = len(self.client_id.encode())
        except UnicodeEncodeError:
            raise ConfigError("client_id holds surrogates, which are no text", settings=("client_id",)) from None
        if size_bytes > CLIENT_ID_BYTES_MAX:
            why = f"client_id has {size_bytes} bytes of UTF-8, where a request has room for {CLIENT_ID_BYTES_MAX}"
            raise ConfigError(why, settings=("client_id",), hint="Choose a shorter name.")

    def _check_backoffs(self) -> None:
        """As `postProcessReconnectBackoffConfigs` and `warnDisablingExponentialBackoff` (CommonClientConfigs.java)."""
        if is_default(self.reconnect_backoff_max_ms) and not is_default(self.reconnect_backoff_ms):
            logger.warning(
                "%s: reconnect_backoff_max_ms is set to reconnect_backoff_ms=%d, which alone was given",
                self.client_id,
                self.reconnect_backoff_ms,
            )
            self._set("reconnect_backoff_max_ms", DefaultInt(self.reconnect_backoff_ms))
        for first, most in (
            ("retry_backoff_ms", "retry_backoff_max_ms"),
            ("socket_connection_setup_timeout_ms", "socket_connection_setup_timeout_max_ms"),
        ):
            if getattr(self, first) > getattr(self, most):
                logger.warning("%s: %s is above %s, which counts from the start", self.client_id, first, most)

    def __repr__(self) -> str:
        """The settings that are not as they come; no secrets."""
        shown: list[str] = []
        for name, row in rows(type(self)).items():
            value: object = getattr(self, name)
            if value != row.default:
                shown.append(f"{name}={row.shown(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def from_dict(cls, settings: Mapping[str, object]) -> Self:
        """From Kafka's dotted names (or ours), with values as texts, as in a property file, or as they are.

        Raises ConfigError; a name that is not known is refused, with the nearest one that is.
        """
        _refuse_unknown(cls, settings, dotted=True)
        known = rows(cls)
        names = {row.kafka_name: name for name, row in known.items()}
        values: dict[str, Any] = {}
        for written, value in settings.items():
            name = names.get(written, written)
            if name in values:
                raise ConfigError(
                    f"{name} is given twice, with dots and without", settings=(name,), hint="Leave one out."
                )
            values[name] = known[name].parsed(name, value) if isinstance(value, str) else value
        if "bootstrap_servers" not in values:
            raise ConfigError(
                "bootstrap.servers is missing", settings=("bootstrap_servers",), hint="Name one broker or more."
            )
        return cls(**values)


def _refuse_unknown(cls: type[ClientConfig], settings: Mapping[str, object], *, dotted: bool) -> None:
    known = rows(cls)
    names = {row.kafka_name for row in known.values()} | known.keys() if dotted else known.keys()
    for name in settings:
        if name in names:
            continue
        why = NOT_HERE.get(name.replace("_", "."), "")
        nearest = get_close_matches(name, sorted(names), n=1)
        hint = why or (
            f"Did you mean {nearest[0]}?" if nearest else "The settings are listed in docs/client-configuration.md."
        )
        raise ConfigError(f"{cls.NAME} has no setting {name}", settings=(name,), hint=hint)
