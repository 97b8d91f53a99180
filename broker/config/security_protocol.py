"""Security protocols, and which one each listener speaks: `listener.security.protocol.map`, as Kafka writes it. Pure.

    listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:SASL_SSL

What is given takes the place of the whole default, which maps the name of each protocol onto the protocol. A listener
that the map does not name speaks the protocol of its name where there is one, and PLAINTEXT otherwise: a listener named
SSL never speaks plaintext without being told to.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class SecurityProtocol(Enum):
    """What is spoken beneath Kafka's own protocol (SecurityProtocol.java)."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_encrypted(self) -> bool:
        """Whether a connection begins with a handshake of TLS."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def needs_authentication(self) -> bool:
        """Whether a client has to say by SASL who it is before anything else is served."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


BY_NAME: Final[Mapping[str, SecurityProtocol]] = {protocol.name: protocol for protocol in SecurityProtocol}
# In the order in which Kafka's hash map has them.
PROTOCOL_MAP_DEFAULT: Final = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"


def parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    """The protocols by the names of listeners, which are upper case, as Kafka makes them. Raises ValueError."""
    protocols: dict[str, SecurityProtocol] = {}
    for entry in text.split(",") if text else ():
        name, _, protocol_name = (part.strip().upper() for part in entry.rpartition(":"))
        if not name:
            raise ValueError("it must be NAME:PROTOCOL, separated by commas")
        if (protocol := BY_NAME.get(protocol_name)) is None:
            raise ValueError(f"{protocol_name!r} is none of {', '.join(BY_NAME)}")
        if name in protocols:
            raise ValueError(f"the listener name {name} stands twice")
        protocols[name] = protocol
    return protocols


def check_protocol_map(text: str) -> str | None:
    """None if `text` can be parsed; else what is wrong."""
    try:
        parse_protocol_map(text)
    except ValueError as error:
        return str(error)
    return None


def protocol_of(listener_name: str, protocols: Mapping[str, SecurityProtocol]) -> SecurityProtocol:
    """What the listener of this name, in upper case, speaks under this map."""
    return protocols.get(listener_name) or BY_NAME.get(listener_name, SecurityProtocol.PLAINTEXT)
