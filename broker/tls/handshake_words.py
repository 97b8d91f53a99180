"""Why a handshake has failed, in words for who reads the broker's log. Pure.

OpenSSL's reasons are names of its source; those that operators meet are told apart here by whose mistake they are.
"""

import ssl
from typing import Final

_SENTENCES: Final = {
    "CERTIFICATE_EXPIRED": "the client refused this broker's certificate as expired",
    "CERTIFICATE_UNKNOWN": "the client refused this broker's certificate",
    "BAD_CERTIFICATE": "the client refused this broker's certificate",
    "UNKNOWN_CA": "the client does not trust who issued this broker's certificate",
    "HTTP_REQUEST": "this looks like HTTP, and this listener speaks Kafka's protocol over TLS",
    "NO_SHARED_CIPHER": "client and broker have no cipher suite in common (ssl.cipher.suites)",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has no certificate, and ssl.client.auth=required",
    "UNSUPPORTED_PROTOCOL": "the client speaks no version of TLS that is enabled here (ssl.enabled.protocols)",
    "VERSION_TOO_LOW": "the client speaks no version of TLS that is enabled here (ssl.enabled.protocols)",
    "UNEXPECTED_EOF_WHILE_READING": "the client ended it",
    "WRONG_VERSION_NUMBER": "something else than TLS came in the middle of it",
}
_ALERTS: Final = ("SSLV3_ALERT_", "TLSV1_ALERT_", "TLSV13_ALERT_")


def handshake_words(error: ssl.SSLError) -> str:
    """A clause for the log. What the client sent is not in it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message or 'it was not verified'}"
    reason = error.reason or ""
    for alert in _ALERTS:
        name = reason.removeprefix(alert)
        if name != reason:
            return _SENTENCES.get(name, f"the client gave up with the alert {name.lower().replace('_', ' ')}")
    return _SENTENCES.get(reason, f"OpenSSL says {reason or type(error).__name__}")
