"""`ssl.cipher.suites`: from the names of IANA, which Kafka uses, to OpenSSL's. Pure.

What Python lets an operator choose are the suites up to TLS 1.2. Those of TLS 1.3 are OpenSSL's own three, always, so a
list that leaves one of them out is refused rather than half obeyed. Suites that offer no more than a name are not in
the table: without encryption or authentication, of export, with RC4 or 3DES, and those of Diffie-Hellman over numbers,
for which OpenSSL would want parameters.
"""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from odradek.broker.tls.tls_error import TlsError

TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"
SUITES_OF_TLS_1_3: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
OPENSSL_NAMES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": "ECDHE-ECDSA-AES256-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA256": "AES256-SHA256",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
}
DEFAULT_NAMES: Final = [
    name
    for iana, name in OPENSSL_NAMES.items()
    if iana.startswith("TLS_ECDHE_") and iana.endswith(("_SHA256", "_SHA384"))
]
"""What is offered where the options name nothing: with forward secrecy and no SHA-1, whatever Python was built with."""
_IANA_NAMES: Final = {name: iana for iana, name in OPENSSL_NAMES.items()}


def openssl_names(suites: Sequence[str], protocols: Sequence[str]) -> list[str]:
    """OpenSSL's names of the suites up to TLS 1.2, in the order of the list; none of a list that has none of those.

    `protocols`: the versions of TLS that are enabled. Raises TlsError.
    """
    for suite in suites:
        if suite not in OPENSSL_NAMES and suite not in SUITES_OF_TLS_1_3:
            raise TlsError(f"ssl.cipher.suites: {suite!r} is not served{_hint(suite)}")
    missing = [suite for suite in SUITES_OF_TLS_1_3 if suite not in suites]
    if TLS_1_3 in protocols and missing:
        raise TlsError(
            f"ssl.cipher.suites leaves out {', '.join(missing)}, and Python cannot switch off suites of TLS 1.3: add "
            "them to the list, or take TLSv1.3 out of ssl.enabled.protocols"
        )
    names = [OPENSSL_NAMES[suite] for suite in suites if suite in OPENSSL_NAMES]
    if not names and TLS_1_3 not in protocols:
        raise TlsError("ssl.cipher.suites names no suite of TLS 1.2, and ssl.enabled.protocols nothing but TLSv1.2")
    return names


def _hint(suite: str) -> str:
    if (iana := _IANA_NAMES.get(suite)) is not None:
        return f"; IANA's name of it is {iana}"
    near = get_close_matches(suite, (*OPENSSL_NAMES, *SUITES_OF_TLS_1_3), n=1, cutoff=0.9)
    return f"; did you mean {near[0]}?" if near else ""
