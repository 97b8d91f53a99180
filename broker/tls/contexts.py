"""The contexts of OpenSSL for one listener: the one by which it is served, and the one by which brokers connect to it.

A context is complete when it is returned, and nobody changes it afterwards: what is newer is another context, with keys
for its tickets of its own, so that no session of an older one goes on under it.
"""

import ssl
from collections.abc import Iterable
from typing import Final

from odradek.broker.disk.memory_file import memory_file
from odradek.broker.tls.certificate import Certificate
from odradek.broker.tls.cipher_suites import DEFAULT_NAMES, TLS_1_2, TLS_1_3, openssl_names
from odradek.broker.tls.material import KeyWithChain, Material
from odradek.broker.tls.pem import pem
from odradek.broker.tls.tls_error import TlsError
from odradek.broker.tls.tls_settings import TlsSettings

_VERSIONS: Final = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}
_VERIFY_MODES: Final = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_TICKETS: Final = 1


def server_context(settings: TlsSettings, material: Material) -> ssl.SSLContext:
    """Raises TlsError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _configure(context, settings)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE | ssl.OP_SINGLE_ECDH_USE
    context.num_tickets = _TICKETS
    context.verify_mode = _VERIFY_MODES[settings.client_auth]
    if settings.asks_for_certificates:
        assert material.trusted is not None, "checked before"
        _trust(context, material.trusted)
    _load(context, material.own)
    return context


def client_context(settings: TlsSettings, material: Material, *, compares_names: bool | None = None) -> ssl.SSLContext:
    """For connections of this broker to others on the listener of brokers. `compares_names`: None: as the settings say.

    Raises TlsError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which requires a certificate
    context.check_hostname = settings.compares_names if compares_names is None else compares_names
    _configure(context, settings)
    if material.trusted is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)  # as Java's own truststore, which Kafka takes then
    else:
        _trust(context, material.trusted)
    _load(context, material.own)
    return context


def _configure(context: ssl.SSLContext, settings: TlsSettings) -> None:
    versions = [_VERSIONS[name] for name in settings.protocols]
    lowest, highest = min(versions), max(versions)
    if not settings.cipher_suites:
        context.set_ciphers(":".join(DEFAULT_NAMES))
    elif names := openssl_names(settings.cipher_suites, settings.protocols):
        _choose(context, names)
    else:
        lowest = ssl.TLSVersion.TLSv1_3  # for the older version there is no suite
    context.minimum_version, context.maximum_version = lowest, highest


def _choose(context: ssl.SSLContext, names: list[str]) -> None:
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError:
        raise TlsError("ssl.cipher.suites: this machine's OpenSSL has none of them") from None
    known = {cipher["name"] for cipher in context.get_ciphers()}
    if missing := [name for name in names if name not in known]:
        raise TlsError(f"ssl.cipher.suites: this machine's OpenSSL does not have {', '.join(missing)}")


def _trust(context: ssl.SSLContext, certificates: Iterable[Certificate]) -> None:
    """As Java, each certificate of a truststore is trusted for itself, though another one may have issued it."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=b"".join(certificate.der for certificate in certificates))
    except ssl.SSLError as error:
        raise TlsError(f"the certificates of the truststore cannot be used: {_reason(error)}") from None


def _load(context: ssl.SSLContext, own: KeyWithChain) -> None:
    chain = b"".join(pem("CERTIFICATE", certificate.der) for certificate in own.chain)
    try:
        # Files that are on no disk: OpenSSL reads keys from files alone.
        with memory_file(chain) as chain_path, memory_file(own.key.pem()) as key_path:
            context.load_cert_chain(chain_path, key_path, password=own.password or "")
    except ssl.SSLError as error:
        raise TlsError(_key_problem(own, error)) from None
    except OSError as error:
        raise TlsError(f"the private key cannot be handed to OpenSSL: {error}") from None
    except ValueError:
        raise TlsError("the private key cannot be decrypted: ssl.key.password is longer than OpenSSL takes") from None


def _key_problem(own: KeyWithChain, error: ssl.SSLError) -> str:
    reason = _reason(error)
    if "MISMATCH" in reason:
        return f"the private key is not the one of the certificate {own.chain[0].name!r}, the first one of the chain"
    if own.key.is_encrypted:
        return f"the private key cannot be used: check ssl.key.password ({reason})"
    return f"the private key and its certificate cannot be used: {reason}"


def _reason(error: ssl.SSLError) -> str:
    """OpenSSL's own word, which holds no secret. (Python itself raises some without one.)"""
    return getattr(error, "reason", None) or "OpenSSL gives no reason"
