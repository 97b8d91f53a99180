"""The settings of security: TLS (`ssl_*`), SASL (`sasl_*`), and the rules by which they go together.

Names are Kafka's, with PEM files in place of Java's keystores. What differs: `ssl_context` takes a context that is
ready; `sasl_username` and `sasl_password` say what `sasl_jaas_config` says, which is read too; a token of OAUTHBEARER
comes from a coroutine function of the caller's.

A setting that would have no effect is refused, where Kafka ignores it: who names a password or a certificate believes
that it protects something. Secrets never appear in a `repr` or an error.
"""
# ruff: noqa: RUF009  (the calls make fields of the dataclass, as `dataclasses.field` does)

import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from odradek.client.configuration.kafka_settings import KEYSTORES, MECHANISMS
from odradek.client.configuration.settings import choice, converted, optional_text, rows, thing
from odradek.client.errors.client_errors import ConfigError
from odradek.runtime.jaas import MalformedJaas, parse_jaas

__all__ = ["SaslMechanism", "SecurityProtocol", "SecuritySettings", "TokenProvider"]

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
StoreType = Literal["PEM"]
EndpointIdentification = Literal["https", ""]
TokenProvider = Callable[[], Awaitable[str]]

TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")
_JAAS_MODULES: Final = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}


class Credentials(NamedTuple):
    """Whom SASL PLAIN or SCRAM authenticates."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials(username={self.username!r}, password=[hidden])"


def _tls_versions(value: object) -> tuple[str, ...]:
    words: Any = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, Sequence) or not words:
        raise ValueError(f"a list of {' and '.join(TLS_VERSIONS)}")
    versions = tuple(str(word).strip() for word in words)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    if any(version not in TLS_VERSIONS for version in versions):
        raise ValueError(f"a list of {' and '.join(TLS_VERSIONS)}")
    return versions


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SecuritySettings:
    """What `ClientConfig` has of it."""

    security_protocol: SecurityProtocol = choice(
        "PLAINTEXT", SecurityProtocol, "Whether connections are encrypted (SSL) and authenticated (SASL)."
    )

    ssl_context: ssl.SSLContext | None = thing(
        None,
        "A context that is ready, in place of all other ssl settings.",
        expected="an ssl.SSLContext",
        check=lambda value: isinstance(value, ssl.SSLContext),
        is_ours=True,
    )
    ssl_truststore_location: str | None = optional_text(
        "File of the CA certificates (PEM) that may have signed the broker's. Without one: those of the system."
    )
    ssl_truststore_certificates: str | None = optional_text("The same certificates as text.")
    ssl_truststore_type: StoreType = choice(
        "PEM", StoreType, "Format of the file. Kafka's default is JKS.", hint=KEYSTORES
    )
    ssl_keystore_location: str | None = optional_text(
        "File of the client's private key and certificate chain (PEM), where the broker asks for one."
    )
    ssl_keystore_key: str | None = optional_text("The client's private key (PEM, PKCS#8) as text.", is_secret=True)
    ssl_keystore_certificate_chain: str | None = optional_text("Its certificate chain (PEM) as text.")
    ssl_keystore_type: StoreType = choice(
        "PEM", StoreType, "Format of the file. Kafka's default is JKS.", hint=KEYSTORES
    )
    ssl_key_password: str | None = optional_text("Of the private key, where it is encrypted.", is_secret=True)
    ssl_endpoint_identification_algorithm: EndpointIdentification = choice(
        "https", EndpointIdentification, "`https` compares the certificate with the broker's host name; empty: never."
    )
    ssl_enabled_protocols: Sequence[str] = converted(
        _tls_versions, "Versions of TLS that may be used.", default=TLS_VERSIONS, expected="TLSv1.2 and TLSv1.3"
    )
    ssl_cipher_suites: str | None = optional_text("Ciphers of TLS 1.2, as OpenSSL names them, separated by colons.")

    sasl_mechanism: SaslMechanism | None = choice(
        None,
        SaslMechanism,
        "How the client authenticates; required for SASL. Kafka's default is GSSAPI.",
        hint=MECHANISMS,
    )
    sasl_username: str | None = optional_text("For PLAIN and SCRAM.", is_ours=True)
    sasl_password: str | None = optional_text("For PLAIN and SCRAM.", is_secret=True, is_ours=True)
    sasl_jaas_config: str | None = optional_text(
        "User name and password in Java's notation; of PlainLoginModule and ScramLoginModule.", is_secret=True
    )
    sasl_oauthbearer_token_provider: TokenProvider | None = thing(
        None,
        "Coroutine function that returns a token; asked for each connection and re-authentication.",
        expected="a coroutine function without arguments",
        check=callable,
        is_ours=True,
        is_secret=True,  # it is a likely mistake to write the token itself here
    )

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def sasl_credentials(self) -> Credentials | None:
        """User name and password, wherever they stand. None: this mechanism has none."""
        if self.sasl_jaas_config is not None:
            return _jaas_credentials(self.sasl_jaas_config)[1]
        if self.sasl_username is None or self.sasl_password is None:
            return None
        return Credentials(self.sasl_username, self.sasl_password)

    def check_security(self) -> None:
        """Raises ConfigError where settings contradict one another."""
        self._check_tls(self._given("ssl_"))
        self._check_sasl(self._given("sasl_"))

    def _given(self, prefix: str) -> list[str]:
        """The settings that differ from their defaults."""
        known = rows(SecuritySettings).items()
        return [name for name, row in known if name.startswith(prefix) and getattr(self, name) != row.default]

    def _check_tls(self, given: list[str]) -> None:
        if given and not self.uses_tls:
            raise ConfigError(
                f"{' and '.join(given)} set, while security_protocol={self.security_protocol!r} uses no TLS",
                settings=(*given, "security_protocol"),
                hint="Set security_protocol to 'SSL' or 'SASL_SSL', or leave them out.",
            )
        if self.ssl_context is not None and (others := [name for name in given if name != "ssl_context"]):
            raise ConfigError(
                f"ssl_context is set, and so are {' and '.join(others)}, which it replaces",
                settings=("ssl_context", *others),
                hint="Put all of it into the context, or leave the context out.",
            )
        _refuse_both(self, "ssl_truststore_location", "ssl_truststore_certificates")
        _refuse_both(self, "ssl_keystore_location", "ssl_keystore_key")
        _refuse_both(self, "ssl_keystore_location", "ssl_keystore_certificate_chain")
        if (self.ssl_keystore_key is None) != (self.ssl_keystore_certificate_chain is None):
            raise ConfigError(
                "of ssl_keystore_key and ssl_keystore_certificate_chain only one is set",
                settings=("ssl_keystore_key", "ssl_keystore_certificate_chain"),
                hint="Set both: a key is of no use without its certificate.",
            )
        if self.ssl_key_password is not None and self.ssl_keystore_location is None and self.ssl_keystore_key is None:
            raise ConfigError(
                "ssl_key_password is set, but neither ssl_keystore_location nor ssl_keystore_key",
                settings=("ssl_key_password", "ssl_keystore_location", "ssl_keystore_key"),
                hint="Set one of these to the private key.",
            )

    def _check_sasl(self, given: list[str]) -> None:
        if not self.uses_sasl:
            if given:
                raise ConfigError(
                    f"{' and '.join(given)} set, while security_protocol={self.security_protocol!r} uses no SASL",
                    settings=(*given, "security_protocol"),
                    hint="Set security_protocol to 'SASL_SSL' or 'SASL_PLAINTEXT', or leave them out.",
                )
            return
        mechanism = self.sasl_mechanism
        if mechanism is None:
            raise ConfigError(
                f"security_protocol={self.security_protocol!r} needs sasl_mechanism",
                settings=("security_protocol", "sasl_mechanism"),
                hint=f"Set it to {rows(SecuritySettings)['sasl_mechanism'].expected}: what the listener offers.",
            )
        if mechanism == "OAUTHBEARER":
            self._check_oauth(
                [name for name in ("sasl_username", "sasl_password", "sasl_jaas_config") if name in given]
            )
        else:
            self._check_password(mechanism)

    def _check_oauth(self, unused: list[str]) -> None:
        if self.sasl_oauthbearer_token_provider is None:
            raise ConfigError(
                "sasl_mechanism='OAUTHBEARER' needs sasl_oauthbearer_token_provider",
                settings=("sasl_mechanism", "sasl_oauthbearer_token_provider"),
                hint="Set it to a coroutine function that returns a token.",
            )
        if unused:
            raise ConfigError(
                f"sasl_mechanism='OAUTHBEARER' has no use for {' and '.join(unused)}",
                settings=("sasl_mechanism", *unused),
                hint="Leave them out, or set the mechanism that the broker offers for passwords.",
            )

    def _check_password(self, mechanism: str) -> None:
        if self.sasl_oauthbearer_token_provider is not None:
            raise ConfigError(
                f"sasl_mechanism={mechanism!r} has no use for sasl_oauthbearer_token_provider",
                settings=("sasl_mechanism", "sasl_oauthbearer_token_provider"),
                hint="Leave it out, or set sasl_mechanism to 'OAUTHBEARER'.",
            )
        _refuse_both(self, "sasl_jaas_config", "sasl_username")
        _refuse_both(self, "sasl_jaas_config", "sasl_password")
        if self.sasl_jaas_config is not None:
            mechanisms, _ = _jaas_credentials(self.sasl_jaas_config)
            if mechanism not in mechanisms:
                raise ConfigError(
                    f"the login module in sasl_jaas_config is not one for sasl_mechanism={mechanism!r}",
                    settings=("sasl_mechanism", "sasl_jaas_config"),
                    hint="Use sasl_username and sasl_password instead.",
                )
        elif missing := [name for name in ("sasl_username", "sasl_password") if getattr(self, name) is None]:
            raise ConfigError(
                f"sasl_mechanism={mechanism!r} needs {' and '.join(missing)}",
                settings=("sasl_mechanism", *missing),
                hint="Set them to what the broker knows of this client.",
            )


def _refuse_both(settings: SecuritySettings, first: str, second: str) -> None:
    if getattr(settings, first) is not None and getattr(settings, second) is not None:
        raise ConfigError(
            f"{first} and {second} are both set, and say the same thing twice",
            settings=(first, second),
            hint="Leave one of them out.",
        )


def _jaas_credentials(written: str) -> tuple[tuple[str, ...], Credentials]:
    """The mechanisms of the login module, and what it logs in with. Raises ConfigError, which never quotes the text."""
    why = ""
    try:
        module, options = parse_jaas(written)
    except MalformedJaas as error:
        module, options, why = "", {}, f": {error}"
    mechanisms = _JAAS_MODULES.get(module)
    if mechanisms is None or "username" not in options or "password" not in options:
        raise ConfigError(
            f"sasl_jaas_config is not understood{why}",
            settings=("sasl_jaas_config",),
            hint="It must name PlainLoginModule or ScramLoginModule with username and password in quotes and end with "
            "a semicolon; or use sasl_username and sasl_password.",
        )
    return mechanisms, Credentials(options["username"], options["password"])
