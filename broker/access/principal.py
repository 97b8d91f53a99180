"""Who asks: the principal that a connection has authenticated (KafkaPrincipal.java)."""

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """Written `User:alice`; compared by both parts, character by character."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""Of a connection that need not authenticate."""
BROKER_ITSELF: Final = Principal("Broker", "itself")
"""Of what a broker asks another one for itself, in nobody's name; it may do everything. No client is called so: that is
always a `User`, and what is in an Envelope comes from a broker."""
EVERYBODY: Final = Principal("User", "*")
"""In an ACL: whoever asks."""


def parse_principal(text: str) -> Principal:
    """From `User:alice`; the name may hold colons. Raises ValueError."""
    kind, colon, name = text.partition(":")
    if not colon:
        raise ValueError(f"{text!r} is not of the form principalType:principalName, as User:alice is")
    return Principal(kind, name)


def parse_super_users(text: str) -> frozenset[Principal]:
    """The value of `super.users`: principals separated by `;`, for a name may hold commas, as that of a certificate
    does. Blanks around each are not part of it (StandardAuthorizer.getConfiguredSuperUsers). Raises ValueError."""
    return frozenset(parse_principal(part.strip()) for part in text.split(";") if part.strip())


def user(name: str) -> Principal:
    """The principal of a client that is known by this name."""
    return Principal("User", name)
