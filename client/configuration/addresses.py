"""Addresses of brokers: `host:port`, with an IPv6 address in brackets, as `bootstrap_servers` lists them."""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

__all__ = ["Address", "Servers", "parse_servers"]

Servers = str | Sequence["str | Address | tuple[str, int]"]
"""Either "h1:9092,h2:9092", or a list of such, or of pairs."""

EXPECTED: Final = "a text such as 'host:9092,[::1]:9092', or a list of such"
_ADDRESS: Final = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<name>[\w.-]+)):(?P<port>[0-9]{1,5})")
_PORT_MAX: Final = 65535
_LABEL_MAX: Final = 63
_NAME_MAX: Final = 253


class Address(NamedTuple):
    """Where a broker listens. `host` is without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_servers(value: object) -> tuple[Address, ...]:
    """The addresses, each once, in the order given. Raises ValueError with what it must be."""
    written: Any = value.split(",") if isinstance(value, str) else value
    if not isinstance(written, Sequence):
        raise ValueError(EXPECTED)
    found: dict[Address, None] = {}
    for each in cast("Sequence[object]", written):
        found[_address(each)] = None
    if not found:
        raise ValueError(f"{EXPECTED}, of one broker at least")
    return tuple(found)


def _address(written: object) -> Address:
    match written:
        case (str() as host, int() as port) if not isinstance(port, bool):
            text = str(Address(host, port))
        case str():
            text = written.strip()
        case _:
            raise ValueError(EXPECTED)
    if "://" in text:
        raise ValueError(f"{EXPECTED}, without {text.partition('://')[0]}://, which security_protocol says")
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise ValueError(EXPECTED)
    name = (match["name"] or "").removesuffix(".")
    if len(name) > _NAME_MAX or max(map(len, name.split("."))) > _LABEL_MAX:
        raise ValueError(f"{EXPECTED}, with a name that DNS can hold")
    port = int(match["port"])
    if not 0 < port <= _PORT_MAX:
        raise ValueError(f"{EXPECTED}, with a port from 1 to {_PORT_MAX}")
    return Address(match["ipv6"] or match["name"], port)
