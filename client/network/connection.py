"""A connection to one broker, ready to be used: TCP, TLS, the versions that both know, and authentication.

    connection = await open_connection(environment, config, node_id, host, port)
    connection.send(request, connection.version_of(ProduceRequest), done)
    response = await connection.ask(request)
    connection.close()
    await connection.closed()

How requests and answers travel is written in `pipeline`. Opening tries the addresses of the name one after the other,
and on each of them TCP and TLS (`dialing`), ApiVersions (`negotiation`) and SASL (`authentication`). Later it
authenticates again by itself (`reauthentication`). A failure that may be tried again is a retriable ClientError; an
AuthenticationFailed will not become right by itself. Who loses a connection opens another: versions are asked anew.
"""

import logging
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import AuthenticationFailed, ClientError, ConnectionFailed
from odradek.client.metrics.metrics import (
    CONNECTION_CLOSE_TOTAL,
    CONNECTION_CREATION_TOTAL,
    CONNECTION_FAILURE_TOTAL,
    FAILED_AUTHENTICATION_TOTAL,
    FAILED_REAUTHENTICATION_TOTAL,
    NO_METRICS,
    SUCCESSFUL_AUTHENTICATION_TOTAL,
    SUCCESSFUL_REAUTHENTICATION_TOTAL,
    Metrics,
)
from odradek.client.network.authentication import Authenticator
from odradek.client.network.backoff import Backoff
from odradek.client.network.dialing import Target, broker_name, dial, find_targets
from odradek.client.network.negotiation import Versions, negotiate
from odradek.client.network.pipeline import Pipeline
from odradek.client.network.reauthentication import Reauthentication
from odradek.client.network.tls import TlsContexts, refusal
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from odradek.runtime.environment import Environment
from odradek.runtime.metric import Metric

__all__ = ["Connection", "open_connection"]

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Response)


class Connection:
    """See the module. `node_id`: -1 for a bootstrap server, whose number is not known yet."""

    def __init__(
        self,
        environment: Environment,
        config: ClientConfig,
        node_id: int,
        host: str,
        port: int,
        *,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self.broker = broker_name(node_id, host, port)
        self.pipeline = Pipeline(
            environment,
            self,
            self.broker,
            str(node_id),
            client_id=config.client_id,
            request_timeout_ms=config.request_timeout_ms,
            metrics=metrics,
        )
        """What the transport is given."""
        self.node_id = node_id
        self.host = host
        self.port = port
        self.on_close: Callable[[Connection, ClientError], None] = _ignore
        """Called once, when the connection is closed and all its requests have ended."""
        self._environment = environment
        self._config = config
        self._metrics = metrics
        self._versions = Versions(self.broker, ApiVersionsResponse(api_keys=[]))
        self._reauthentication: Reauthentication | None = None
        self._greeting_count = 0  # of responses before it was ready

    def __repr__(self) -> str:
        return f"<Connection to {self.broker}: {self.pipeline.state}>"

    @property
    def is_open(self) -> bool:
        """Whether it is ready and can be used. Once it is closed, it never is again."""
        return self.pipeline.is_open

    @property
    def in_flight(self) -> int:
        """How many requests have been given to `send` and have not ended."""
        return self.pipeline.in_flight

    @property
    def last_used_ms(self) -> float:
        """When something was last sent or received, in ms of the environment's monotonic clock."""
        return self.pipeline.last_used_ms

    @property
    def throttled_until_ms(self) -> float:
        """Until then the broker's quota silences this connection."""
        return self.pipeline.throttled_until_ms

    def version_of(self, request: type[Request[Any]], at_most: int | None = None) -> int:
        """The highest version that both know, `at_most` this one. Raises UnsupportedVersion."""
        return self._versions.version_of(request, at_most)

    def level_of(self, feature: str) -> int:
        """The level of a feature that the cluster relied on when this was opened; 0: none."""
        return self._versions.level_of(feature)

    def send(
        self,
        request: Request[R],
        version: int,
        done: Callable[[R | ClientError], None],
        *,
        timeout_ms: float | None = None,
        expects_response: bool = True,
    ) -> None:
        """Queues a request (`Pipeline.send`). Raises ValueError for one that this version cannot carry."""
        self.pipeline.send(request, version, done, timeout_ms=timeout_ms, expects_response=expects_response)

    async def ask(self, request: Request[R], *, version: int | None = None, timeout_ms: float | None = None) -> R:
        """Sends a request, by default at the highest version, and returns its response.

        Raises what `done` would get, UnsupportedVersion, and ValueError. A response that comes after this was cancelled
        is dropped.
        """
        if version is None:
            version = self.version_of(type(request))
        return await self.pipeline.ask(request, version=version, timeout_ms=timeout_ms)

    def close(self, why: ClientError | None = None) -> None:
        """Ends it at once; what is in flight fails. `why` None: it is not needed any more."""
        self.pipeline.close(why)

    async def closed(self) -> None:
        """Returns when the socket is closed, every request has ended, and nothing of it runs any more."""
        await self.pipeline.closed()
        if self._reauthentication is not None:
            await self._reauthentication.ended()

    async def greet(self) -> None:
        """Everything between TLS and the first request of a user. Raises ClientError."""
        self._versions = await negotiate(self.pipeline.ask_now, self.broker)
        if self._config.uses_sasl:
            await self.pipeline.unthrottled()
            self._check_not_lost()
            await self._authenticate()
        self._check_not_lost()  # together with its last answer
        self.pipeline.made_ready()
        self._greeting_count = self.pipeline.response_count

    def _check_not_lost(self) -> None:
        if self.pipeline.failure is not None:
            raise self.pipeline.failure.fresh()

    async def _authenticate(self) -> None:
        config, environment = self._config, self._environment
        authenticator = Authenticator(config, environment, self.broker, config.request_timeout_ms)
        try:
            mechanism = await authenticator.prepare()
            lifetime_ms = await authenticator.authenticate(self.pipeline.ask_now, self._versions, mechanism)
        except AuthenticationFailed:
            self._count(FAILED_AUTHENTICATION_TOTAL)
            raise
        self._count(SUCCESSFUL_AUTHENTICATION_TOTAL)
        backoff = Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms, environment.random)
        self._reauthentication = Reauthentication(self.pipeline, authenticator, self._versions, environment, backoff)
        self._reauthentication.on_success = lambda: self._count(SUCCESSFUL_REAUTHENTICATION_TOTAL)
        self._reauthentication.on_failure = lambda: self._count(FAILED_REAUTHENTICATION_TOTAL)
        self._reauthentication.schedule(lifetime_ms)

    # -- its pipeline calls these (`PipelineOwner`) -------------------------------------------------------------------

    def explain_bytes(self, beginning: bytes) -> ClientError | None:
        """Who speaks another protocol is known by the first bytes."""
        if beginning[:2] in (_TLS_ALERT, _TLS_HANDSHAKE) and not self._config.uses_tls:
            failure = AuthenticationFailed(self.broker, "PLAINTEXT", "it answered with TLS")
            protocol = "SASL_SSL" if self._config.uses_sasl else "SSL"
            failure.hint = f"Set security_protocol to {protocol}, or use the port of a listener without TLS."
            return failure
        if beginning.startswith(b"HTTP/"):
            return ConnectionFailed(self.broker, "an HTTP server listens there, no Kafka broker")
        return None

    def explain_loss(self, exc: Exception | None) -> ClientError | None:
        """A connection that ends before it was of any use may be one to the wrong port: the settings are named."""
        if isinstance(exc, ssl.SSLError) and not isinstance(exc, ssl.SSLEOFError) and not self.pipeline.is_ready:
            return refusal(exc, self.broker)  # in TLS 1.3 a client's certificate is refused after the handshake
        if not isinstance(exc, ConnectionError | None):
            return None
        if not self.pipeline.response_count:
            return ConnectionFailed(self.broker, _NO_ANSWER_BY_TLS if self._config.uses_tls else _NO_ANSWER)
        has_only_greeted = self.pipeline.response_count == self._greeting_count
        if self.pipeline.is_ready and has_only_greeted and not self._config.uses_sasl:
            return ConnectionFailed(self.broker, _NO_USE)
        return None

    def was_lost(self) -> None:
        if self._reauthentication is not None:
            self._reauthentication.cancel()

    def has_ended(self, failure: ClientError) -> None:
        if not self.pipeline.is_ready:
            return
        self._count(CONNECTION_CLOSE_TOTAL)
        try:
            self.on_close(self, failure)
        except Exception:
            logger.exception("what was to be done after the end of the connection to %s failed", self.broker)

    def _count(self, metric: Metric) -> None:
        self._metrics.count(metric, 1, str(self.node_id))


async def open_connection(
    environment: Environment,
    config: ClientConfig,
    node_id: int,
    host: str,
    port: int,
    *,
    setup_timeout_ms: float | None = None,
    contexts: TlsContexts | None = None,
    metrics: Metrics = NO_METRICS,
) -> Connection:
    """Connects to a broker. `setup_timeout_ms`, by default the setting, bounds TCP and TLS for each of its addresses.

    `contexts`: of the client to which the connection belongs, None for one that stands alone.
    Raises ConnectionFailed, RequestTimedOut, MalformedResponse, which may be tried again; AuthenticationFailed, which
    may not.
    """
    broker = broker_name(node_id, host, port)
    timeout_ms = config.socket_connection_setup_timeout_ms if setup_timeout_ms is None else setup_timeout_ms
    contexts = TlsContexts(config) if contexts is None else contexts
    errors: list[ClientError] = []
    try:
        for target in await find_targets(environment, config, node_id, host, port, timeout_ms):
            connection = Connection(environment, config, node_id, host, port, metrics=metrics)
            try:
                await _connect(connection, environment, config, contexts, target, timeout_ms)
            except ClientError as error:
                if not error.retriable:
                    raise
                logger.debug("%s", error)
                errors.append(error)
            else:
                metrics.count(CONNECTION_CREATION_TOTAL, 1, str(node_id))
                return connection
        raise errors[0] if len(errors) == 1 else _failure_of_all(broker, errors)
    except ClientError:
        metrics.count(CONNECTION_FAILURE_TOTAL, 1, str(node_id))
        raise


async def _connect(
    connection: Connection,
    environment: Environment,
    config: ClientConfig,
    contexts: TlsContexts,
    target: Target,
    timeout_ms: float,
) -> None:
    port, broker = connection.port, connection.broker
    try:
        await dial(environment, config, contexts, lambda: connection.pipeline, target, port, broker, timeout_ms)
        await connection.greet()
    except BaseException:
        connection.close()
        raise


def _failure_of_all(broker: str, errors: list[ClientError]) -> ClientError:
    whys = "; ".join(error.message.partition(" failed: ")[2] or error.message for error in errors)
    failure = ConnectionFailed(broker, f"none of its {len(errors)} addresses works: {whys}")
    failure.__cause__ = errors[-1]
    return failure


def _ignore(connection: Connection, error: ClientError) -> None: ...


_TLS_ALERT = b"\x15\x03"
_TLS_HANDSHAKE = b"\x16\x03"
_NO_ANSWER = (
    "it was closed by the other side before it answered anything; a listener with TLS does that: check the port, and "
    "security_protocol"
)
_NO_ANSWER_BY_TLS = (
    "it was closed by the other side before it answered anything; a listener that asks for the client's certificate "
    "does that: check ssl_keystore_location"
)
_NO_USE = (
    "it was closed by the other side before it answered a single request; a listener with SASL does that: check the "
    "port, and security_protocol"
)
