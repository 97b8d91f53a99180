"""Hosts as addresses name them: what can be one, and which mean every address of a machine. Pure.

What is written here is told to clients, other brokers and etcd's client, which fail long after the start that could
have said so. Kafka takes letters, digits and `-%._:` (SocketServerConfigs.java) and refuses the wildcard as an
advertised address; here a name must be one that DNS can hold (RFC 1035: labels of 63 characters, 253 in all), but for
underscores, which Docker Compose has in its services' names. Single labels and a dot at the end are names, too.
"""

import ipaddress
import re

NAME_MAX = 253
LABEL_MAX = 63
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?")
_NUMBERS = re.compile(r"(0[xX][0-9A-Fa-f]+|[0-9]+)(\.(0[xX][0-9A-Fa-f]+|[0-9]+))*\.?")
_ZEROS = re.compile(r"(0[xX])?0+(\.(0[xX])?0+)*\.?")


def is_wildcard(host: str) -> bool:
    """Whether the host means every address of its machine, in whatever way the resolver takes for one (inet_aton)."""
    if host in ("", "*") or _ZEROS.fullmatch(host):
        return True
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped
    return address.is_unspecified or (mapped is not None and mapped.is_unspecified)


def is_loopback(host: str) -> bool:
    """Whether the host is this machine as seen by itself alone."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def host_problem(host: str) -> str | None:
    """Why this can be no host, and what to write instead; None if it can be. A wildcard can, and a zone.

    An IPv6 address comes without its brackets.
    """
    if is_wildcard(host):
        return None
    if ":" in host:
        return _ipv6_problem(host)
    for sign, why in (
        ("$", "a variable was not replaced by its value: give the host itself"),
        ("{", "a variable was not replaced by its value: give the host itself"),
        (",", "these are several addresses: give the option once for each, under different names"),
        ("/", "it is a host and nothing else that stands before the port, without a scheme or a path"),
        ("%", "only an IPv6 address in [] has a zone"),
    ):
        if sign in host:
            return why
    if any(sign.isspace() for sign in host):
        return "there is a space in it: leave that out"
    if not host.isascii():
        return "DNS has names of ASCII alone: write the form that begins with xn--"
    if _NUMBERS.fullmatch(host):
        return _ipv4_problem(host)
    return _name_problem(host)


def _ipv6_problem(host: str) -> str | None:
    try:
        ipaddress.IPv6Address(host)
    except ValueError as error:
        return f"it is no IPv6 address: {error}"
    return None


def _ipv4_problem(host: str) -> str | None:
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return "it is no IPv4 address, which is four numbers from 0 to 255 with dots between them"
    return None


def _name_problem(host: str) -> str | None:
    name = host.removesuffix(".")
    if len(name) > NAME_MAX:
        return f"the name has {len(name)} characters, and DNS allows {NAME_MAX}"
    for label in name.split("."):
        if len(label) > LABEL_MAX:
            return f"{label[:10]}… has {len(label)} characters, and DNS allows {LABEL_MAX} between two dots"
        if not _LABEL.fullmatch(label):
            return "a name has letters, digits, _ and - between its dots, and - at no end"
    return None
