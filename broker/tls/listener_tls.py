"""The TLS of one listener while the broker runs: its newest contexts, and when newer certificates take their place.

Each connection that is accepted gets the newest context, whole; connections that stand go on with theirs. What is newer
is refused, and the old one stays, where it cannot be used, where its name changes or one of its alternative names is
gone, unless that is allowed (`ssl.allow.dn.changes`, `ssl.allow.san.changes`), where a truststore comes to a listener
that had none (SslFactory.createNewSslEngineFactory), and on the listener of brokers where a broker that has loaded it
and one that has not would not come to terms.
"""

import ssl
from collections.abc import Callable
from typing import Final, NamedTuple

from odradek.broker.access.principal import ANONYMOUS, Principal, user
from odradek.broker.tls.certificate import read_certificate
from odradek.broker.tls.contexts import client_context, server_context
from odradek.broker.tls.der import DerError
from odradek.broker.tls.material import Files, Material, material_of, read_files
from odradek.broker.tls.principal_mapping import PrincipalMapping
from odradek.broker.tls.tls_error import TlsError
from odradek.broker.tls.tls_settings import TlsSettings
from odradek.broker.tls.trial import handshake_problem

_MS_PER_DAY: Final = 24 * 60 * 60 * 1000
_NAME_CHARACTERS_MAX: Final = 200


class Loaded(NamedTuple):
    """Certificates, keys and contexts of one moment."""

    settings: TlsSettings
    files: Files
    material: Material
    server: ssl.SSLContext
    client: ssl.SSLContext | None
    """By which this broker connects to others; None for another listener than theirs."""

    def __repr__(self) -> str:
        return f"<Loaded of {self.settings.listener}: {self.material.own!r}>"


class ListenerTls:
    """See the module. `load` and `renewed` read files and compute, and belong into a helper thread."""

    def __init__(self, loaded: Loaded, read: Callable[[str], bytes]) -> None:
        """`read`: the content of a file. Raises TlsError."""
        self._loaded = loaded
        self._read = read
        self._mapping = PrincipalMapping(loaded.settings.mapping_rules)
        self.refused: str | None = None
        """Why what is newer does not count; None: there is nothing newer."""

    @property
    def name(self) -> str:
        """Of the listener."""
        return self._loaded.settings.listener

    @property
    def context(self) -> ssl.SSLContext:
        """The newest one, for a connection that has just been accepted."""
        return self._loaded.server

    @property
    def client_context(self) -> ssl.SSLContext:
        """The newest one, for a connection to another broker."""
        assert self._loaded.client is not None, f"{self.name} is not the listener of brokers"
        return self._loaded.client

    @property
    def is_inter_broker(self) -> bool:
        """Whether brokers talk to one another on this listener."""
        return self._loaded.client is not None

    @property
    def own_principal(self) -> Principal | None:
        """Whom another broker takes this one for, that connects to it on this listener; None: SASL says so, or no rule
        fits."""
        settings = self._loaded.settings
        if not settings.names_clients:
            return None
        if not settings.asks_for_certificates:
            return ANONYMOUS
        name = self._mapping.principal_name(self._loaded.material.own.chain[0].name)
        return None if name is None else user(name)

    @property
    def expires_ms(self) -> int:
        """When the first certificate of its chain that ends is at its end."""
        return min(certificate.not_after_ms for certificate in self._loaded.material.own.chain)

    def days_left(self, now_ms: int) -> float:
        """Until then; negative afterwards."""
        return (self.expires_ms - now_ms) / _MS_PER_DAY

    def principal_of(self, der: bytes, now_ms: int) -> Principal:
        """Whom a client is by its certificate, which OpenSSL has verified: ANONYMOUS where SASL is still to say it.
        Raises TlsError for a client that is not let in.

        That the certificate has ended may have happened since: a session that goes on by its ticket is not verified
        again.
        """
        try:
            certificate = read_certificate(der)
        except DerError as error:
            raise TlsError(f"the certificate of the client cannot be read: {error}") from None
        if certificate.not_after_ms < now_ms:
            raise TlsError(f"the certificate of the client, {_cut(certificate.name)}, has ended")
        if not self._loaded.settings.names_clients:
            return ANONYMOUS
        name = self._mapping.principal_name(certificate.name)
        if name is None:
            raise TlsError(f"no rule of ssl.principal.mapping.rules fits the client's {_cut(certificate.name)}")
        return user(name)

    def renewed(self, settings: TlsSettings) -> Loaded | None:
        """What the options and files say now, if that is something else than what counts. Raises TlsError where it may
        not take its place."""
        old = self._loaded
        wanted = old.settings.renewed(settings)
        wanted.check()
        files = read_files(wanted, self._read)
        if wanted == old.settings and files == old.files:
            return None
        new = _loaded(wanted, files, is_inter_broker=self.is_inter_broker)
        _check_compatible(old.material, new.material, wanted)
        if self.is_inter_broker:
            _check_trust(old, new)
            _check_trust(new, old)
        return new

    def take(self, loaded: Loaded) -> None:
        """From now on these count. Called by the thread that accepts connections."""
        self._loaded, self.refused = loaded, None


def load(settings: TlsSettings, read: Callable[[str], bytes], *, is_inter_broker: bool) -> ListenerTls:
    """The TLS of a listener that is about to start. Raises TlsError."""
    settings.check()
    return ListenerTls(_loaded(settings, read_files(settings, read), is_inter_broker=is_inter_broker), read)


def _loaded(settings: TlsSettings, files: Files, *, is_inter_broker: bool) -> Loaded:
    material = material_of(settings, files)
    client = client_context(settings, material) if is_inter_broker else None
    loaded = Loaded(settings, files, material, server_context(settings, material), client)
    if is_inter_broker:
        _check_trust(loaded, loaded)
    return loaded


def _check_trust(server: Loaded, client: Loaded) -> None:
    """Whether a broker with the one would serve a broker with the other. Raises TlsError."""
    trial = client_context(client.settings, client.material, compares_names=False)
    if (problem := handshake_problem(server.server, trial)) is not None:
        raise TlsError(
            f"brokers would not trust one another on this listener: {problem}; the truststore must hold who issued the "
            "brokers' certificates, the old ones and the new ones, and these must be for servers and clients"
        )


def _check_compatible(old: Material, new: Material, settings: TlsSettings) -> None:
    """Raises TlsError."""
    if old.trusted is None and new.trusted is not None:
        raise TlsError("a truststore cannot come to a listener that was started without one")
    before, after = old.own.chain[0], new.own.chain[0]
    if not settings.allows_dn_changes and _folded(before.name) != _folded(after.name):
        raise TlsError(
            f"the certificate's name would change from {before.name!r} to {after.name!r}; ssl.allow.dn.changes=true "
            "allows it"
        )
    if not settings.allows_san_changes and not after.alternative_names >= before.alternative_names:
        raise TlsError(
            "the certificate lacks alternative names that the old one has; ssl.allow.san.changes=true allows it"
        )


def _folded(name: str) -> str:
    """As X500Principal compares names: without regard to case, and to how many blanks there are."""
    return " ".join(name.casefold().split())


def _cut(name: str) -> str:
    """As a log shows what a client has chosen."""
    return repr(name if len(name) <= _NAME_CHARACTERS_MAX else f"{name[:_NAME_CHARACTERS_MAX]}...")
