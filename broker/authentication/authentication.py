"""SASL of one broker, put together: its listeners, what they share, and what is kept up to date while it runs.

    authentication = Authentication(names, config, environment, tasks, credentials=…)
    await authentication.load()                              # what cannot be used is refused, with a sentence
    authentication.start()
    connection = authentication.connection("OUTSIDE")        # for each that is accepted

Made where a listener speaks SASL, and only there.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from odradek.broker.authentication.failures import AuthenticationCounts
from odradek.broker.authentication.jwks import Jwks, JwksTimes, reader_of
from odradek.broker.authentication.password_checks import PasswordChecks
from odradek.broker.authentication.password_file import MalformedPasswordFile, PasswordFile
from odradek.broker.authentication.sasl_connection import SaslConnection
from odradek.broker.authentication.sasl_listener import SaslListener, SaslParts
from odradek.broker.authentication.token_signatures import MalformedJwks
from odradek.broker.cluster.scram_credentials import ScramCredentials
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.option import ConfigError
from odradek.broker.config.sasl_options import OAUTHBEARER, PLAIN, SCRAM
from odradek.broker.disk.disk import Disk
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import Tasks

NONE: Final = ScramCredentials()


class Authentication:
    """See the module."""

    def __init__(
        self,
        names: Sequence[str],
        config: BrokerConfig,
        environment: Environment,
        tasks: Tasks,
        disk: Disk,
        credentials: Callable[[], ScramCredentials | None],
    ) -> None:
        """`names`: of the listeners that speak SASL. `disk`: where the operator's files are. Raises ConfigError."""
        self._tasks = tasks
        self.counts = AuthenticationCounts(environment.monotonic_ms())
        self._files = _password_files(names, config, environment, disk)
        self._keys = _keys(names, config, environment, disk)
        parts = SaslParts(
            environment=environment,
            credentials=lambda: credentials() or NONE,
            checks=PasswordChecks(environment, tasks),
            counts=self.counts,
            files=self._files,
            keys=self._keys,
        )
        self._listeners = {name: SaslListener(name, config, parts) for name in names}

    @property
    def needs_scram(self) -> bool:
        """Whether a listener offers SCRAM, and so the cluster needs its secret."""
        offered = {mechanism for listener in self._listeners.values() for mechanism in listener.mechanisms}
        return not offered.isdisjoint(SCRAM)

    @property
    def password_files(self) -> Collection[str]:
        """The paths of the files with users that listeners have."""
        return self._files.keys()

    async def load(self) -> None:
        """Reads files and keys. Raises ConfigError."""
        for path, file in self._files.items():
            try:
                await file.load()
            except (OSError, MalformedPasswordFile) as error:
                raise ConfigError(f"sasl.plain.password.file={path} cannot be used: {error}") from error
        for url, keys in self._keys.items():
            try:
                await keys.load()
            except (OSError, MalformedJwks) as error:
                raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url={url} cannot be used: {error}") from error

    def start(self) -> None:
        """From here on files and keys are kept up to date."""
        for path, file in self._files.items():
            self._tasks.start(file.keep(), f"read {path} again")
        for url, keys in self._keys.items():
            self._tasks.start(keys.keep(), f"keep the keys of {url}")

    def connection(self, listener: str) -> SaslConnection | None:
        """The state of a connection that was accepted there; None for a listener that speaks no SASL."""
        found = self._listeners.get(listener)
        return None if found is None else SaslConnection(found)

    def receive_bytes_max(self, listener: str) -> int:
        """The longest request before authentication."""
        return self._listeners[listener].receive_bytes_max


def _password_files(
    names: Sequence[str], config: BrokerConfig, environment: Environment, disk: Disk
) -> dict[str, PasswordFile]:
    paths = {config.listener(name).mechanism(PLAIN).sasl_plain_password_file for name in names}
    return {path: PasswordFile(path, disk, environment) for path in sorted(path for path in paths if path)}


def _keys(names: Sequence[str], config: BrokerConfig, environment: Environment, disk: Disk) -> dict[str, Jwks]:
    """Raises ConfigError."""
    found: dict[str, Jwks] = {}
    for name in names:
        options = config.listener(name).mechanism(OAUTHBEARER)
        url = options.sasl_oauthbearer_jwks_endpoint_url
        if not url or url in found:
            continue
        times = JwksTimes(
            options.sasl_oauthbearer_jwks_endpoint_refresh_ms,
            options.sasl_oauthbearer_jwks_endpoint_retry_backoff_ms,
            options.sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms,
        )
        try:
            read = reader_of(url, disk, environment)
        except ValueError as error:
            raise ConfigError(f"sasl.oauthbearer.jwks.endpoint.url: {error}") from error
        found[url] = Jwks(url, read, times, environment)
    return found
