"""How far a connection is on its way to its first ordinary request, and which requests it is served meanwhile. Pure.

    PLAINTEXT       READY
    SSL             TLS_HANDSHAKE -> READY
    SASL_PLAINTEXT                   UNAUTHENTICATED -> AUTHENTICATING -> READY <-> REAUTHENTICATING
    SASL_SSL        TLS_HANDSHAKE -> UNAUTHENTICATED -> AUTHENTICATING -> READY <-> REAUTHENTICATING

Each state may become FAILED. Any other API than those of authentication closes a connection that is not authenticated,
as in Kafka (SaslServerAuthenticator.java); which of those may come in which order is for their handlers to say.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from odradek.broker.config.security_protocol import SecurityProtocol


class ConnectionState(Enum):
    TLS_HANDSHAKE = auto()
    """Nothing has been received that is Kafka's."""
    UNAUTHENTICATED = auto()
    """The client has not said by which mechanism of SASL it wants to say who it is."""
    AUTHENTICATING = auto()
    """The mechanism is known, and its messages go to and fro."""
    READY = auto()
    """It is known who the client is, or nobody asks."""
    REAUTHENTICATING = auto()
    """It says again who it is, before its session ends (KIP-368)."""
    FAILED = auto()
    """The connection closes."""


class Admission(Enum):
    """Which requests a state lets through."""

    ALL = auto()
    BEFORE_AUTHENTICATION = auto()
    """Those of which the row says `is_before_authentication`."""
    NONE = auto()


MOVES: Final[Mapping[ConnectionState, frozenset[ConnectionState]]] = {
    ConnectionState.TLS_HANDSHAKE: frozenset(
        {ConnectionState.UNAUTHENTICATED, ConnectionState.READY, ConnectionState.FAILED}
    ),
    ConnectionState.UNAUTHENTICATED: frozenset({ConnectionState.AUTHENTICATING, ConnectionState.FAILED}),
    ConnectionState.AUTHENTICATING: frozenset({ConnectionState.READY, ConnectionState.FAILED}),
    ConnectionState.READY: frozenset({ConnectionState.REAUTHENTICATING, ConnectionState.FAILED}),
    ConnectionState.REAUTHENTICATING: frozenset({ConnectionState.READY, ConnectionState.FAILED}),
    ConnectionState.FAILED: frozenset({ConnectionState.FAILED}),  # requests that had been received fail, too
}
"""Which state may follow which. Any other move is a mistake of whoever makes it."""

ADMISSIONS: Final[Mapping[ConnectionState, Admission]] = {
    ConnectionState.TLS_HANDSHAKE: Admission.NONE,
    ConnectionState.UNAUTHENTICATED: Admission.BEFORE_AUTHENTICATION,
    ConnectionState.AUTHENTICATING: Admission.BEFORE_AUTHENTICATION,
    ConnectionState.READY: Admission.ALL,
    ConnectionState.REAUTHENTICATING: Admission.BEFORE_AUTHENTICATION,
    ConnectionState.FAILED: Admission.NONE,
}


AUTHENTICATED: Final = frozenset({ConnectionState.READY, ConnectionState.REAUTHENTICATING})
"""The states in which it is known who the client is, or nobody asks."""


def initial(protocol: SecurityProtocol) -> ConnectionState:
    """The state of a connection that has just been accepted."""
    return ConnectionState.TLS_HANDSHAKE if protocol.is_encrypted else established(protocol)


def established(protocol: SecurityProtocol) -> ConnectionState:
    """The state in which the first request may come: TLS, if there is any, stands."""
    return ConnectionState.UNAUTHENTICATED if protocol.needs_authentication else ConnectionState.READY


class ConnectionCondition:
    """The state of one connection."""

    __slots__ = ("admits_all", "state")

    def __init__(self, state: ConnectionState) -> None:
        self.state = state
        self.admits_all = ADMISSIONS[state] is Admission.ALL
        """Looked at for each request, and so not looked up."""

    def move(self, state: ConnectionState, *, has_end: bool = False) -> None:
        """`has_end`: a session begins that ends some time, so that each request has to be looked at."""
        assert state in MOVES[self.state], (self.state, state)
        self.state = state
        self.admits_all = ADMISSIONS[state] is Admission.ALL and not has_end

    def admits(self, *, is_before_authentication: bool) -> bool:
        """Whether a request is served now whose row says this."""
        admission = ADMISSIONS[self.state]
        return admission is Admission.ALL or (admission is Admission.BEFORE_AUTHENTICATION and is_before_authentication)
