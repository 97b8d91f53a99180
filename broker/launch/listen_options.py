"""`--listen` and `--advertise`, `[NAME=]HOST:PORT`: where to accept, and what clients are told to connect to. Pure.

A client bootstraps from any address but then connects to what Metadata answers, so a broker must advertise an address
that the client can reach. The wildcard address is none, which is why it is refused unless `--advertise` says more.
Several listeners have names, as in Kafka; each is answered with the advertised addresses of its own name.
"""

import re
from collections.abc import Iterable, Sequence

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import PORT_MAX, Listener, listener_problem
from odradek.broker.config.option import ConfigMistakes
from odradek.broker.config.security_protocol import SecurityProtocol, parse_protocol_map, protocol_of

DEFAULT_NAME = "PLAINTEXT"
PORT_DIGITS = 5
_NAME = re.compile(r"[A-Za-z0-9_]+")


class ListenerError(ValueError):
    """A listener that cannot be used; the text says which and what to write instead."""


def parse_address(text: str, option: str) -> Listener:
    """Reads `HOST:PORT`, `[IPV6]:PORT` or either with `NAME=` before it. Raises ListenerError."""
    name, equals, address = text.rpartition("=")
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if "," in text:
        raise ListenerError(f"{option} {text}: these are several addresses: give {option} once for each, with NAME=")
    if "://" in text:
        raise ListenerError(f"{option} {text}: write [NAME=]HOST:PORT, without a scheme")
    is_number = port.isascii() and port.isdecimal() and len(port) <= PORT_DIGITS
    if not colon or not is_number or int(port) > PORT_MAX or (":" in host and not bracketed):
        raise ListenerError(f"{option} {text}: write [NAME=]HOST:PORT with a port from 0 to 65535, an IPv6 host in []")
    if equals and not _NAME.fullmatch(name):
        raise ListenerError(f"{option} {text}: a listener's name consists of letters, digits and _")
    listener = Listener((name or DEFAULT_NAME).upper(), host[1:-1] if bracketed else host, int(port))
    if (problem := listener_problem(listener, is_bracketed=bracketed)) is not None:
        raise ListenerError(f"{option} {text}: {problem}")
    return listener


def parse_metrics_address(text: str) -> Listener:
    """Reads what `--metrics` says. Raises ListenerError."""
    address = parse_address(text, "--metrics")
    if protocol_of(address.name, {}) is not SecurityProtocol.PLAINTEXT:
        raise ListenerError(f"--metrics {text}: metrics are served without encryption; leave {address.name}= out")
    return address


def check_listeners(listeners: list[Listener], advertise: list[Listener]) -> tuple[list[Listener], dict[str, Listener]]:
    """The listeners, and the advertised address of each by name. A listener without one advertises itself.

    Raises ListenerError for names given twice or unknown, and for a wildcard that nothing is advertised for.
    """
    advertised: dict[str, Listener] = {}
    for address in advertise:
        if address.name in advertised:
            raise ListenerError(f"--advertise {address.name}=…: {address.name} is advertised twice")
        if address.is_wildcard:
            raise ListenerError(
                f"--advertise {address.name}=…: clients cannot connect to a wildcard; give a host they can reach"
            )
        if address.has_zone:
            raise ListenerError(
                f"--advertise {address.name}=…: {address.host} has a zone, which means nothing on another machine; "
                "give an address without"
            )
        advertised[address.name] = address
    names = [listener.name for listener in listeners]
    for name in names:
        if names.count(name) > 1:
            raise ListenerError(f"--listen: two listeners are named {name}; write NAME=HOST:PORT with different names")
    for name in advertised:
        if name not in names:
            raise ListenerError(
                f"--advertise {name}=…: there is no listener named {name}; there are {', '.join(names)}"
            )
    for listener in listeners:
        if listener.name not in advertised:
            if listener.is_wildcard or listener.has_zone:
                why = "accepts on every address" if listener.is_wildcard else "has a zone, of this machine alone"
                raise ListenerError(
                    f"--listen {listener.host or '*'}:{listener.port} {why}, and clients must be "
                    f"told one that they can reach: add --advertise {listener.name}=HOST:{listener.port}"
                )
            advertised[listener.name] = listener
    return listeners, advertised


def check_sasl(listeners: Iterable[Listener], config: BrokerConfig, broker_listener: str | None) -> None:
    """That listeners with SASL can authenticate somebody, and that this broker can log in at others on the one of
    brokers; None: there are no others. Raises ConfigError."""
    protocols = parse_protocol_map(config.listener_security_protocol_map)
    spoken = {listener.name: protocol_of(listener.name, protocols) for listener in listeners}
    if not (names := [name for name, protocol in spoken.items() if protocol.needs_authentication]):
        return
    from odradek.broker.authentication.inter_broker import check_login
    from odradek.broker.authentication.start_checks import problems

    if found := problems(names, config):
        raise ConfigMistakes(found)
    if broker_listener is not None:
        check_login(config, broker_listener, spoken[broker_listener])


def check_inter_broker(
    name: str | None, listeners: Sequence[Listener], option: str = "inter.broker.listener.name"
) -> None:
    """That brokers can reach one another by the listener of this name, which `option` says. Raises ListenerError."""
    names = [listener.name for listener in listeners]
    if name is not None and name.upper() not in names:
        raise ListenerError(f"{option}={name}: there is no listener named {name}; there are {', '.join(names)}")
