"""Where the metadata lives, as `metadata.store` says it. Pure.

    memory:                                 in memory, for one process and as long as it runs
    embedded:                               a file in the data directory, for one process
    unix:PATH                               another process of this machine, which serves it on a Unix socket
    etcd://HOST:PORT,HOST:PORT/prefix       an etcd cluster, for brokers on any number of machines

Each HOST is a name, an IPv4 address, or an IPv6 address in brackets; without a PORT it is etcd's own, 2379. Every key
of the cluster stands under the prefix, so that one etcd can serve several clusters, and other programs.
"""

import re
from typing import NamedTuple

from odradek.broker.config.host_names import host_problem

ETCD_PORT = 2379
PORT_MAX = 65_535
PREFIX_SIZE_MAX = 128
"""A commit names up to two hundred keys, and etcd takes 1.5 MB of them and their values."""

_MEMBER = re.compile(r"(\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:/,\s]+))(:(?P<port>[0-9]{1,5}))?")
_PREFIX = re.compile(r"(/[A-Za-z0-9._-]+)+")


class Endpoint(NamedTuple):
    """One member of etcd."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class StoreAddress(NamedTuple):
    """`kind` is memory, embedded, unix or etcd; `path` is for unix, endpoints and prefix are for etcd. The prefix
    begins with a slash and ends with none."""

    kind: str
    endpoints: tuple[Endpoint, ...] = ()
    prefix: str = ""
    path: str = ""


def parse_store_address(text: str) -> StoreAddress:
    """Raises ValueError with what is allowed instead, in words that follow the name of the option."""
    if text in ("memory:", "embedded:"):
        return StoreAddress(text.removesuffix(":"))
    if text.startswith("unix:"):
        if (path := text.removeprefix("unix:")) in ("", "/") or "\0" in path:
            raise ValueError("behind unix: there must be the path of a socket")
        return StoreAddress("unix", path=path)
    members, slash, prefix = text.removeprefix("etcd://").partition("/")
    if not text.startswith("etcd://") or not members:
        raise ValueError("it must be memory:, embedded:, unix:PATH or etcd://HOST:PORT,HOST:PORT/prefix")
    endpoints = tuple(dict.fromkeys(_parse_member(member) for member in members.split(",")))
    prefix = slash + prefix.rstrip("/")
    if not _PREFIX.fullmatch(prefix) or len(prefix) > PREFIX_SIZE_MAX:
        raise ValueError(
            "behind etcd's addresses there must be /prefix, under which the cluster's keys stand: letters, digits, "
            f"dots, dashes, underscores and slashes, at most {PREFIX_SIZE_MAX} of them"
        )
    return StoreAddress("etcd", endpoints, prefix)


def check_store_address(text: str) -> str | None:
    """None for an address, else what is allowed instead."""
    try:
        parse_store_address(text)
    except ValueError as error:
        return str(error)
    return None


def _parse_member(text: str) -> Endpoint:
    match = _MEMBER.fullmatch(text)
    if match is None or not 0 < int(match["port"] or ETCD_PORT) <= PORT_MAX:
        raise ValueError(f"each member of etcd must be HOST or HOST:PORT, and {text!r} is not")
    host = match["v6"] or match["host"]
    if (problem := host_problem(host)) is not None:
        raise ValueError(f"each member of etcd must be HOST or HOST:PORT, and {text!r} is not: {problem}")
    return Endpoint(host, int(match["port"] or ETCD_PORT))
