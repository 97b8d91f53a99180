"""All listeners of a broker that speak TLS: made when it starts, and kept up to date (tls/upkeep.py).

Only a broker with such a listener imports this module and what it needs.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from ssl import SSLContext

from odradek.broker.access.principal import Principal
from odradek.broker.cluster.image import ClusterImage, Delta
from odradek.broker.config.listeners import Listener
from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.config.settings import Settings
from odradek.broker.config.tls_options import TlsOptions
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.disk.open_files import warn_of_open_file
from odradek.broker.handling.context import Context
from odradek.broker.network.connection import Connection
from odradek.broker.network.tls_layer import LANDING_BYTES, TlsLayer
from odradek.broker.observability.sample import Sample
from odradek.broker.observability.tls_samples import tls_samples
from odradek.broker.startup_errors import StartRefused
from odradek.broker.tls.listener_tls import ListenerTls, load
from odradek.broker.tls.tls_error import TlsError
from odradek.broker.tls.tls_settings import NO_CLIENT_AUTH, TlsSettings, settings_of
from odradek.broker.tls.upkeep import TlsUpkeep
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)


class TlsListeners:
    """See the module."""

    def __init__(self, listeners: Sequence[ListenerTls], settings: Settings, environment: Environment) -> None:
        self.listeners = {listener.name: listener for listener in listeners}
        """By name."""
        self._settings = settings
        self._environment = environment
        self._landing = memoryview(bytearray(LANDING_BYTES))
        self.upkeep = TlsUpkeep(listeners, partial(_settings_of, settings), environment)

    def accept(self, listener: Listener, connection: Callable[[], Connection]) -> Callable[[], asyncio.BaseProtocol]:
        """What a listener makes of each socket that it accepts, with TLS beneath the connection if it speaks that."""
        if not self._settings.protocol(listener).is_encrypted:
            return connection
        tls = self.listeners[listener.name]
        return lambda: TlsLayer(connection(), tls, self._environment, self._landing)

    @property
    def client_context(self) -> Callable[[], SSLContext] | None:
        """What gives the newest context for connections to other brokers; None: their listener has no TLS."""
        listener = self.listeners.get(self._settings.broker_listener)
        return None if listener is None else lambda: listener.client_context

    @property
    def broker_principal(self) -> Principal | None:
        """Whom other brokers take this one for, by its certificate; None: their listener has no TLS, or SASL says so,
        or no rule fits the name."""
        listener = self.listeners.get(self._settings.broker_listener)
        return None if listener is None else listener.own_principal

    def start(self, context: Context, tasks: Tasks) -> None:
        """From here on certificates are kept up to date, and other brokers are connected to over TLS, if their listener
        has it."""
        context.metadata.subscribe(self._follow)
        context.member.peers.tls = self.client_context
        tasks.start(self.upkeep.run(), "look for newer certificates")

    def _follow(self, image: ClusterImage, delta: Delta) -> None:
        """Options of brokers may have been altered."""
        if delta.broker_configs:
            self.upkeep.wake()

    def samples(self) -> list[Sample]:
        """What the metrics page tells of them."""
        return tls_samples(tuple(self.listeners.values()), self._environment.now_ms())


async def open_listeners(settings: Settings, environment: Environment) -> TlsListeners | None:
    """The TLS of the listeners that speak it; None: no listener does. Raises StartRefused."""
    # Certificates are files of the operator's, also of a broker that keeps its own in memory.
    read = FileDisk().read_whole
    listeners: list[ListenerTls] = []
    for listener in settings.listeners:
        if settings.protocol(listener).is_encrypted:
            _warn_of_no_effect(settings, listener)
            is_inter_broker = listener.name == settings.broker_listener
            try:
                asked = _settings_of(settings, listener.name)
                loaded = await environment.run_blocking(load, asked, read, is_inter_broker=is_inter_broker)
            except TlsError as error:
                raise StartRefused(f"the listener {listener} cannot speak TLS: {error}") from error
            if asked.keystore.location is not None:
                warn_of_open_file(asked.keystore.location)
            listeners.append(loaded)
    return TlsListeners(listeners, settings, environment) if listeners else None


def _settings_of(settings: Settings, name: str) -> TlsSettings:
    """What the options say now of the listener of this name."""
    protocol = next(settings.protocol(listener) for listener in settings.listeners if listener.name == name)
    options = settings.config.listener(name)
    return settings_of(name, protocol, options, has_own_client_auth=options.is_own(TlsOptions.ssl_client_auth))


def _warn_of_no_effect(settings: Settings, listener: Listener) -> None:
    options = settings.config.listener(listener.name)
    asks, is_own = options.ssl_client_auth != NO_CLIENT_AUTH, options.is_own(TlsOptions.ssl_client_auth)
    if asks and not is_own and settings.protocol(listener) is SecurityProtocol.SASL_SSL:
        logger.warning(
            "listener %s: ssl.client.auth=%s counts for SSL listeners alone; for this one, set it as "
            "listener.name.%s.ssl.client.auth",
            listener.name,
            options.ssl_client_auth,
            listener.name.lower(),
        )
