"""TLS: the context that the settings ask for, and sentences about what can go wrong.

Files are read anew for each connection, so certificates that are renewed in place are used by the next one. Whose
certificate it has to be is checked, the host name too, unless `ssl_endpoint_identification_algorithm` is empty. An
`ssl_context` that was handed in is used as it is.

What cannot become right by itself is an AuthenticationFailed: files that never could be used, and a handshake that one
side refused. Everything else may pass and is a ConnectionFailed: no room for another file, files that could be used
before and may be half written now, a record that was damaged on its way. (Source: SslTransportLayer.java,
maybeProcessHandshakeFailure.)
"""

import errno
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from odradek.client.configuration.security_settings import SecuritySettings
from odradek.client.errors.client_errors import AuthenticationFailed, ClientError, ConnectionFailed
from odradek.client.network.key_file import key_file

__all__ = ["METHOD", "TlsContexts", "refusal", "server_name"]

METHOD: Final = "TLS"
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_SHORTAGES: Final = frozenset(
    (
        errno.EAGAIN,
        errno.EDQUOT,
        errno.EINTR,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.ESTALE,
        errno.ETIMEDOUT,
    )
)
"""What the machine is short of, and no setting is to blame for."""
_ALERTS: Final = ("SSLV3_ALERT_", "TLSV1_", "TLSV13_")
"""So begin OpenSSL's names of what the other side says when it gives up."""
_PASSING_ALERTS: Final = ("BAD_RECORD_MAC", "INTERNAL_ERROR", "USER_CANCEL")

_TRUST_HINT: Final = "Set ssl_truststore_location to the certificates (PEM) of the authority that signed the broker's."
_NAME_HINT: Final = (
    "Connect by a name that stands in the broker's certificate, or have it issued for this one. "
    "An empty ssl_endpoint_identification_algorithm turns the comparison off."
)
_CLIENT_HINT: Final = (
    "The broker asks for a certificate that it trusts: set ssl_keystore_location to the client's key and certificate, "
    "or have its authority put into the broker's truststore."
)
_CIPHERS_HINT: Final = "Name ciphers of TLS 1.2 as `openssl ciphers` lists them, separated by colons."
_TRUST_FILE_HINT: Final = "Check that the file is there, may be read, and holds certificates as PEM."
_TRUST_TEXT_HINT: Final = "Hand in the certificates themselves as PEM; for a file there is ssl_truststore_location."
_KEY_FILE_HINT: Final = (
    "Check that the file is there, may be read, and holds the private key and its certificate chain as PEM; and "
    "ssl_key_password, if the key is encrypted."
)
_KEY_TEXT_HINT: Final = (
    "Hand in the private key (PKCS#8) and the certificates that belong to it as PEM; and check ssl_key_password, if "
    "the key is encrypted."
)


class TlsContexts:
    """The contexts of one client: each connection has its own."""

    def __init__(self, settings: SecuritySettings) -> None:
        self._settings = settings
        self._has_made = False

    def make(self, broker: str) -> ssl.SSLContext:
        """The context of one connection. It reads files.

        Raises AuthenticationFailed, which names the setting; ConnectionFailed where there has been a context before, or
        the machine is short of something.
        """
        settings = self._settings
        if settings.ssl_context is not None:
            return settings.ssl_context
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which requires a certificate, and compares the name
        context.check_hostname = settings.ssl_endpoint_identification_algorithm == "https"
        versions = [_VERSIONS[name] for name in settings.ssl_enabled_protocols]
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        if settings.ssl_cipher_suites is not None:
            with self._naming("ssl_cipher_suites", _CIPHERS_HINT, broker):
                context.set_ciphers(settings.ssl_cipher_suites)
        self._load_authorities(context, broker)
        self._load_key(context, broker)
        self._has_made = True
        return context

    def _load_authorities(self, context: ssl.SSLContext, broker: str) -> None:
        location, certificates = self._settings.ssl_truststore_location, self._settings.ssl_truststore_certificates
        if location is not None:
            with self._naming(f"ssl_truststore_location {location!r}", _TRUST_FILE_HINT, broker):
                context.load_verify_locations(cafile=location)
        elif certificates is not None:
            with self._naming("ssl_truststore_certificates", _TRUST_TEXT_HINT, broker):
                context.load_verify_locations(cadata=certificates)
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)

    def _load_key(self, context: ssl.SSLContext, broker: str) -> None:
        settings = self._settings

        def password() -> str:
            return settings.ssl_key_password or ""  # without this function, OpenSSL would ask on the terminal

        location = settings.ssl_keystore_location
        key, chain = settings.ssl_keystore_key, settings.ssl_keystore_certificate_chain
        if location is not None:
            with self._naming(f"ssl_keystore_location {location!r}", _KEY_FILE_HINT, broker):
                context.load_cert_chain(location, password=password)
        elif key is not None and chain is not None:
            named = "ssl_keystore_key with ssl_keystore_certificate_chain"
            with self._naming(named, _KEY_TEXT_HINT, broker), key_file(key, chain) as path:
                context.load_cert_chain(path, password=password)

    @contextmanager
    def _naming(self, setting: str, hint: str, broker: str) -> Generator[None]:
        """Says of what goes wrong which setting it is about. OpenSSL's own words are short, and hold no secrets."""
        try:
            yield
        except (OSError, ValueError) as error:
            why = f"{setting} cannot be used: {_reason(error)}"
            failure: ClientError
            if self._has_made or _is_shortage(error):
                failure = ConnectionFailed(broker, why)
            else:
                failure = AuthenticationFailed(broker, METHOD, why)
            failure.hint = hint
            raise failure from error


def _is_shortage(error: Exception) -> bool:
    return isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and error.errno in _SHORTAGES


def server_name(host: str) -> str:
    """For whom the broker's certificate has to be issued: the name or address without a zone (`fe80::1%eth0`)."""
    return host.partition("%")[0]


def refusal(error: ssl.SSLError, broker: str) -> ClientError:
    """Why TLS did not come about: AuthenticationFailed where one side refused, ConnectionFailed where it may pass."""
    reason = _reason(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        # 62 and 64 are X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH.
        hint = _NAME_HINT if error.verify_code in (62, 64) else _TRUST_HINT
    elif "ALERT" in reason and ("CERTIFICATE" in reason or "HANDSHAKE_FAILURE" in reason or "UNKNOWN_CA" in reason):
        hint = _CLIENT_HINT
    elif "WRONG_VERSION_NUMBER" in reason or "UNKNOWN_PROTOCOL" in reason:
        hint = "What listens there does not speak TLS: check the port, and security_protocol."
    elif "VERSION" in reason or "UNSUPPORTED_PROTOCOL" in reason or "NO_PROTOCOLS" in reason:
        hint = "Check ssl_enabled_protocols against what the broker's listener allows."
    elif reason.startswith(_ALERTS) and not any(each in reason for each in _PASSING_ALERTS):
        hint = AuthenticationFailed.hint
    else:
        return ConnectionFailed(broker, f"TLS ended with {reason}")
    failure = AuthenticationFailed(broker, METHOD, reason)
    failure.hint = hint
    return failure


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message or "the certificate was not verified"
    if isinstance(error, ssl.SSLError):
        return getattr(error, "reason", None) or str(error)  # Python itself raises some without a reason
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
