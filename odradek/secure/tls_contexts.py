"""Contexts of TLS that trust everybody, to look at what a listener speaks: nothing is sent over them but questions."""

import ssl
import warnings
from typing import Final

__all__ = ["EVERY_CIPHER", "VERSIONS", "context_for", "modern_context", "trusting"]

VERSIONS: Final = {
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1": ssl.TLSVersion.TLSv1,
}
"""The newest first."""
MODERN: Final = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
EVERY_CIPHER: Final = "ALL:COMPLEMENTOFALL:@SECLEVEL=0"


def modern_context() -> ssl.SSLContext:
    """For TLS 1.2 and 1.3."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def context_for(version: ssl.TLSVersion) -> ssl.SSLContext | None:
    """For one version; None where this machine's OpenSSL does not speak it."""
    context = modern_context()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that some are old is the point
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            context.maximum_version = version
            context.minimum_version = version
        if version not in MODERN:
            context.set_ciphers(EVERY_CIPHER)
        return context if _says_hello(context) else None
    except (ValueError, ssl.SSLError):
        return None


def trusting(authority_file: str | None) -> ssl.SSLContext:
    """Verifies certificates and host names, by the authorities in a file (PEM) or (None) by those of the system.

    Raises OSError, of which ssl.SSLError is one.
    """
    return ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=authority_file)


def _says_hello(context: ssl.SSLContext) -> bool:
    outgoing = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.pending > 0
    except ssl.SSLError:
        return False
    return False
