"""Who asks: the principal that a connection has authenticated (KafkaPrincipal.java)."""

from typing import Final, NamedTuple


class Principal(NamedTuple):
    """Written `User:alice`; compared by both parts."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""Of a connection that need not authenticate."""
