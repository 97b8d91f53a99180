"""Listener addresses as Kafka writes them: `NAME://HOST:PORT`, separated by commas. Pure.

The host may be empty (all addresses) or an IPv6 literal in brackets. A name is free; which security protocol it stands
for is looked up in `listener.security.protocol.map` (security_protocol.py).
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from odradek.broker.config.host_names import host_problem, is_loopback, is_wildcard

_LISTENER = re.compile(
    r"(?P<name>[A-Za-z0-9_-]+)://(\[(?P<v6>[^\[\]/,]+)\]|(?P<host>[^\[\]:/,]*)):(?P<port>[0-9]{1,5})"
)
PORT_MAX = 65_535


class Listener(NamedTuple):
    """One address, and the name by which options and clients' metadata speak of it."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether nobody can reach it but who is on this machine. Of names only `localhost` says so: one that begins
        like an address leads wherever its owner says."""
        return is_loopback(self.host)

    @property
    def has_zone(self) -> bool:
        """Whether it says through which interface of this machine: `fe80::1%eth0`."""
        return "%" in self.host

    @property
    def is_wildcard(self) -> bool:
        """Whether it accepts on every address, which is none that a client could connect to."""
        return is_wildcard(self.host)


def parse_listener(text: str) -> Listener:
    """Names are upper case, as Kafka makes them. Raises ValueError."""
    match = _LISTENER.fullmatch(text)
    if match is None or int(match["port"]) > PORT_MAX:
        raise ValueError(f"{text!r} is not NAME://HOST:PORT with a port from 0 to {PORT_MAX}, an IPv6 host in []")
    listener = Listener(match["name"].upper(), match["v6"] or match["host"] or "", int(match["port"]))
    if (problem := listener_problem(listener, is_bracketed=match["v6"] is not None)) is not None:
        raise ValueError(f"{text!r}: {problem}")
    return listener


def listener_problem(listener: Listener, *, is_bracketed: bool) -> str | None:
    """Why nobody can listen there, or be told of it, and what to write instead; None for nothing."""
    if is_bracketed and ":" not in listener.host:
        return "[] are for IPv6 addresses alone"
    return host_problem(listener.host)


def check_listeners(values: Sequence[str]) -> str | None:
    """None if each is a listener and no name stands twice; else what is wrong."""
    names: set[str] = set()
    for value in values:
        try:
            listener = parse_listener(value)
        except ValueError as error:
            return str(error)
        if listener.name in names:
            return f"the listener name {listener.name} stands twice"
        names.add(listener.name)
    return None
