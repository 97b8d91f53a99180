"""Connections from this broker to others, on the listener that brokers use among themselves, protected as that one is.

What fails is an OSError here, as everywhere in the broker; that nobody listens at all is ConnectionRefusedError, by
which failure detection knows a process that is gone from one that does not answer.
"""

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Any, Final, NamedTuple

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import ClientError
from odradek.client.network.connection import Connection, open_connection
from odradek.protocol.errors import KafkaError
from odradek.runtime.environment import Environment

CLIENT_ID_PREFIX = "broker-"


class Peer(NamedTuple):
    """Another broker, and where it listens."""

    node_id: int
    endpoint: tuple[str, int]


class PeerLost(OSError):
    """The connection to another broker failed, or it did not answer in time."""


Security = Callable[[], Mapping[str, Any]]
"""The settings of a client that say how its connections are protected, as they are now. Raises KafkaError."""
NONE: Final[Mapping[str, Any]] = {}


def plaintext() -> Mapping[str, Any]:
    """Of connections that nothing protects."""
    return NONE


class Peers:
    """How this broker reaches others."""

    def __init__(self, environment: Environment, node_id: int, listener: str, security: Security = plaintext) -> None:
        self._environment = environment
        self._node_id = node_id
        self.listener = listener
        self._security = security
        self.tls: Callable[[], SSLContext] | None = None
        """What gives the newest context for a connection; None: the listener of brokers has no TLS."""
        self._settings = NONE
        self._config = self._made()

    def _made(self) -> ClientConfig:
        client_id = f"{CLIENT_ID_PREFIX}{self._node_id}"
        return ClientConfig(bootstrap_servers="unused:1", client_id=client_id, **self._settings)

    def _newest(self) -> ClientConfig:
        """Raises KafkaError, ClientError."""
        settings = self._security()
        if self.tls is not None:
            settings = {"security_protocol": "SSL", **settings, "ssl_context": self.tls()}
        if settings != self._settings:
            self._settings = settings
            self._config = self._made()
        return self._config

    async def connect(self, peer: Peer, setup_timeout_ms: float) -> Connection:
        """Raises ConnectionRefusedError, PeerLost."""
        host, port = peer.endpoint
        try:
            config = self._newest()
            return await open_connection(
                self._environment, config, peer.node_id, host, port, setup_timeout_ms=setup_timeout_ms
            )
        except ClientError as error:
            raise _as_os_error(error) from error
        except KafkaError as error:
            raise PeerLost(error.message) from error

    @asynccontextmanager
    async def connection(self, peer: Peer, setup_timeout_ms: float) -> AsyncGenerator[Connection, None]:
        """A connection for the length of the block. Errors of the client, within it too, leave it as OSError."""
        connection = await self.connect(peer, setup_timeout_ms)
        try:
            yield connection
        except ClientError as error:
            raise PeerLost(str(error)) from error
        finally:
            connection.close()


def _as_os_error(error: ClientError) -> OSError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return ConnectionRefusedError(*cause.args)
        cause = cause.__cause__
    return PeerLost(str(error))


def is_peer(client_id: str | None) -> bool:
    """Whether a request with this client id calls itself another broker's. (Faults of tests ask that of each request.
    Most are told apart by how they begin.)"""
    if client_id is None or not client_id.startswith(CLIENT_ID_PREFIX):
        return False
    return re.fullmatch(rf"{CLIENT_ID_PREFIX}\d+", client_id) is not None
