"""OpenSSL's reasons in words. That they are the reasons that it gives is shown in test_tls_layer_attacks.py."""

import re
import ssl

import pytest

from odradek.broker.tls.handshake_words import handshake_words


def error(reason: str | None) -> ssl.SSLError:
    made = ssl.SSLError(1, f"[SSL: {reason}] whatever (_ssl.c:1)")
    made.reason = reason  # type: ignore[assignment]
    return made


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("UNSUPPORTED_PROTOCOL", r"no version of TLS that is enabled here \(ssl\.enabled\.protocols\)"),
        ("NO_SHARED_CIPHER", r"no cipher suite in common"),
        ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "ssl.client.auth=required"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not trust who issued"),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", "as expired"),
        ("TLSV1_ALERT_INTERNAL_ERROR", "gave up with the alert internal error"),
        ("LENGTH_MISMATCH", "OpenSSL says LENGTH_MISMATCH"),
        (None, "OpenSSL says SSLError"),
    ],
)
def test_reasons(reason: str | None, words: str) -> None:
    assert re.search(words, handshake_words(error(reason)))


def test_a_certificate_that_is_refused() -> None:
    made = ssl.SSLCertVerificationError(1, "x")
    made.verify_message = "certificate has expired"
    assert handshake_words(made) == "the client's certificate is refused: certificate has expired"
