"""What the options say about the TLS of one listener, checked as Kafka does (DefaultSslEngineFactory.java). Pure.

Of a running listener only certificates and keys may change (`renewed`), as in Kafka: who asks for certificates, which
versions and suites there are, and the rules for names are what they were when the broker started.
"""

from dataclasses import dataclass, replace
from typing import Final

from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.config.tls_options import TlsOptions
from odradek.broker.tls.tls_error import TlsError

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
JKS: Final = "JKS"
NO_CLIENT_AUTH: Final = "none"
_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")


@dataclass(frozen=True, slots=True, repr=False)
class Store:
    """A keystore or a truststore, as the options `ssl.keystore.*` or `ssl.truststore.*` describe it. One that holds
    passwords and keys has no `repr`."""

    prefix: str
    """`ssl.keystore` or `ssl.truststore`."""
    kind: str
    location: str | None
    password: str | None
    certificates: str | None
    """In the value of the option itself."""
    key: str | None = None
    key_password: str | None = None

    @property
    def is_given(self) -> bool:
        return self.location is not None or self.certificates is not None or self.key is not None

    @property
    def certificates_option(self) -> str:
        """Which option holds certificates as a value."""
        return f"{self.prefix}.{'certificate.chain' if self.prefix == KEYSTORE else 'certificates'}"

    def check(self) -> None:
        """Raises TlsError for options that contradict one another."""
        if not self.is_given:
            if self.password is not None:
                raise TlsError(f"{self.prefix}.password is set, and {self.prefix}.location is not")
            return
        self._check_kind()
        if self.certificates is not None or self.key is not None:
            self._check_values()
        elif self.kind == PEM and self.password is not None:
            raise TlsError(
                f"{self.prefix}.password has no meaning for PEM: leave it out; ssl.key.password is for the private key"
            )
        elif self.kind == PKCS12 and self.prefix == KEYSTORE and self.password is None:
            raise TlsError(f"{self.prefix}.password is missing, under which {self.location} is encrypted")

    def _check_kind(self) -> None:
        if self.kind in (PEM, PKCS12):
            return
        option = f"{self.prefix}.type"
        if self.kind != JKS:
            raise TlsError(f"{option}={self.kind} is not served: PEM and PKCS12 are")
        source = self.location or "STORE.jks"
        raise TlsError(
            f"{option} is JKS, Kafka's default, which is not served: set it to PEM or PKCS12; a JKS file becomes "
            f"PKCS12 by keytool -importkeystore -srckeystore {source} -destkeystore {source}.p12 -deststoretype PKCS12"
        )

    def _check_values(self) -> None:
        """Keys and certificates that stand in the options themselves (KIP-651)."""
        key, certificates = f"{self.prefix}.key", self.certificates_option
        if self.kind != PEM:
            raise TlsError(f"keys and certificates as values are PEM: {self.prefix}.type is {self.kind}")
        if self.location is not None:
            raise TlsError(f"{self.prefix}.location and {certificates} are both set: leave one of them out")
        if self.password is not None:
            raise TlsError(f"{self.prefix}.password has no meaning for PEM: leave it out")
        if self.prefix == KEYSTORE and (self.key is None or self.certificates is None):
            missing, given = (key, certificates) if self.key is None else (certificates, key)
            raise TlsError(f"{given} is set, and {missing} is not: a key and its certificate belong together")


KEYSTORE: Final = "ssl.keystore"
TRUSTSTORE: Final = "ssl.truststore"


@dataclass(frozen=True, slots=True, repr=False)
class TlsSettings:
    """The TLS of one listener."""

    listener: str
    keystore: Store
    truststore: Store
    client_auth: str
    protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    mapping_rules: str
    names_clients: bool
    """Whether the certificate of a client says who it is; else SASL does."""
    compares_names: bool
    """Whether a broker as a client asks for the host's name in the certificate."""
    allows_dn_changes: bool
    allows_san_changes: bool

    @property
    def asks_for_certificates(self) -> bool:
        return self.client_auth != NO_CLIENT_AUTH

    def check(self) -> None:
        """Raises TlsError where this is not enough for a listener, or contradicts itself."""
        self.keystore.check()
        self.truststore.check()
        if not self.keystore.is_given:
            raise TlsError(
                "it has no certificate: set ssl.keystore.location and ssl.keystore.type (PEM or PKCS12), or "
                "ssl.keystore.key and ssl.keystore.certificate.chain with ssl.keystore.type=PEM"
            )
        if self.asks_for_certificates and not self.truststore.is_given:
            raise TlsError(
                f"ssl.client.auth={self.client_auth}, and nothing says whose certificates are trusted: set "
                "ssl.truststore.location and ssl.truststore.type (PEM or PKCS12)"
            )

    def renewed(self, other: "TlsSettings") -> "TlsSettings":
        """These settings, with the certificates and keys of others."""
        return replace(self, keystore=other.keystore, truststore=other.truststore)


def settings_of(
    listener: str, protocol: SecurityProtocol, options: TlsOptions, *, has_own_client_auth: bool
) -> TlsSettings:
    """What the options of a listener say.

    `has_own_client_auth`: `ssl.client.auth` is set for this very listener. On a SASL_SSL listener it counts only then
    (KIP-684): there the principal comes from SASL.
    """
    counts = protocol is SecurityProtocol.SSL or has_own_client_auth
    return TlsSettings(
        listener,
        Store(
            KEYSTORE,
            options.ssl_keystore_type,
            options.ssl_keystore_location,
            options.ssl_keystore_password,
            options.ssl_keystore_certificate_chain,
            options.ssl_keystore_key,
            options.ssl_key_password,
        ),
        Store(
            TRUSTSTORE,
            options.ssl_truststore_type,
            options.ssl_truststore_location,
            options.ssl_truststore_password,
            options.ssl_truststore_certificates,
        ),
        options.ssl_client_auth if counts else NO_CLIENT_AUTH,
        options.ssl_enabled_protocols or _VERSIONS,
        options.ssl_cipher_suites,
        options.ssl_principal_mapping_rules,
        protocol is SecurityProtocol.SSL,
        bool(options.ssl_endpoint_identification_algorithm),
        options.ssl_allow_dn_changes,
        options.ssl_allow_san_changes,
    )
