"""TLS: the context that the settings ask for, and sentences about what can go wrong.

Files are read anew for each connection, so certificates that are renewed in place are used by the next one. Whose
certificate it has to be is checked, the host name too, unless `ssl_endpoint_identification_algorithm` is empty. An
`ssl_context` that was handed in is used as it is.
"""

import ssl
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from client.configuration.security_settings import SecuritySettings
from client.errors import AuthenticationFailed
from client.network.key_file import key_file

__all__ = ["METHOD", "refusal", "server_name", "tls_context"]

METHOD: Final = "TLS"
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

_TRUST_HINT: Final = "Set ssl_truststore_location to the certificates (PEM) of the authority that signed the broker's."
_NAME_HINT: Final = (
    "Connect by a name that stands in the broker's certificate, or have it issued for this one. "
    "An empty ssl_endpoint_identification_algorithm turns the comparison off."
)
_CLIENT_HINT: Final = (
    "The broker asks for a certificate that it trusts: set ssl_keystore_location to the client's key and certificate, "
    "or have its authority put into the broker's truststore."
)


def tls_context(settings: SecuritySettings, broker: str) -> ssl.SSLContext:
    """The context of one connection. It reads files. Raises AuthenticationFailed, which names the setting."""
    if settings.ssl_context is not None:
        return settings.ssl_context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which requires a certificate, and compares the name
    context.check_hostname = settings.ssl_endpoint_identification_algorithm == "https"
    versions = [_VERSIONS[name] for name in settings.ssl_enabled_protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    if settings.ssl_cipher_suites is not None:
        with _naming("ssl_cipher_suites", broker):
            context.set_ciphers(settings.ssl_cipher_suites)
    _load_authorities(context, settings, broker)
    _load_key(context, settings, broker)
    return context


def _load_authorities(context: ssl.SSLContext, settings: SecuritySettings, broker: str) -> None:
    if settings.ssl_truststore_location is not None:
        with _naming(f"ssl_truststore_location {settings.ssl_truststore_location!r}", broker):
            context.load_verify_locations(cafile=settings.ssl_truststore_location)
    elif settings.ssl_truststore_certificates is not None:
        with _naming("ssl_truststore_certificates", broker):
            context.load_verify_locations(cadata=settings.ssl_truststore_certificates)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)


def _load_key(context: ssl.SSLContext, settings: SecuritySettings, broker: str) -> None:
    def password() -> str:
        return settings.ssl_key_password or ""  # without this function, OpenSSL would ask on the terminal

    if settings.ssl_keystore_location is not None:
        with _naming(f"ssl_keystore_location {settings.ssl_keystore_location!r}", broker):
            context.load_cert_chain(settings.ssl_keystore_location, password=password)
    elif settings.ssl_keystore_key is not None and settings.ssl_keystore_certificate_chain is not None:
        with (
            _naming("ssl_keystore_key with ssl_keystore_certificate_chain", broker),
            key_file(settings.ssl_keystore_key, settings.ssl_keystore_certificate_chain) as path,
        ):
            context.load_cert_chain(path, password=password)


@contextmanager
def _naming(setting: str, broker: str) -> Generator[None]:
    """Says of what goes wrong which setting it is about. OpenSSL's own words are short, and hold no secrets."""
    try:
        yield
    except (OSError, ValueError) as error:
        why = f"{setting} cannot be used: {_reason(error)}"
        failure = AuthenticationFailed(broker, METHOD, why)
        failure.hint = "Check that the file is there and holds PEM; and ssl_key_password, if the key is encrypted."
        raise failure from error


def server_name(host: str) -> str:
    """For whom the broker's certificate has to be issued: the name or address without a zone (`fe80::1%eth0`)."""
    return host.partition("%")[0]


def refusal(error: ssl.SSLError, broker: str) -> AuthenticationFailed:
    """Why TLS did not come about, by one side or the other. It is not tried again."""
    reason = _reason(error)
    failure = AuthenticationFailed(broker, METHOD, reason)
    if isinstance(error, ssl.SSLCertVerificationError):
        # 62 and 64 are X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
        failure.hint = _NAME_HINT if error.verify_code in (62, 64) else _TRUST_HINT
    elif "ALERT" in reason and ("CERTIFICATE" in reason or "HANDSHAKE_FAILURE" in reason or "UNKNOWN_CA" in reason):
        failure.hint = _CLIENT_HINT
    elif "WRONG_VERSION_NUMBER" in reason or "UNKNOWN_PROTOCOL" in reason:
        failure.hint = "What listens there does not speak TLS: check the port, and security_protocol."
    elif "VERSION" in reason:
        failure.hint = "Check ssl_enabled_protocols against what the broker's listener allows."
    return failure


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message or "the certificate was not verified"
    if isinstance(error, ssl.SSLError):
        return getattr(error, "reason", None) or str(error)  # Python itself raises some without a reason
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
