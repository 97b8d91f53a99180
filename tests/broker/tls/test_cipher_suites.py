"""Suites by IANA's names: mapped, refused where Python cannot do what the list says, and all known to this OpenSSL."""

import ssl

import pytest

from odradek.broker.tls.cipher_suites import OPENSSL_NAMES, SUITES_OF_TLS_1_3, openssl_names
from odradek.broker.tls.tls_error import TlsError

BOTH = ("TLSv1.2", "TLSv1.3")
STRONG = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"


def test_every_name_is_one_of_openssls() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(":".join(OPENSSL_NAMES.values()))
    known = {cipher["name"] for cipher in context.get_ciphers()}
    assert set(OPENSSL_NAMES.values()) <= known
    assert set(SUITES_OF_TLS_1_3) == {name for name in known if name.startswith("TLS_")}


def test_a_list_is_mapped_in_its_order() -> None:
    suites = (*SUITES_OF_TLS_1_3, STRONG, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    assert openssl_names(suites, BOTH) == ["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256"]
    assert openssl_names((STRONG,), ("TLSv1.2",)) == ["ECDHE-RSA-AES256-GCM-SHA384"]
    assert openssl_names(SUITES_OF_TLS_1_3, BOTH) == []


@pytest.mark.parametrize(
    ("suites", "protocols", "why"),
    [
        ((STRONG,), BOTH, "leaves out TLS_AES_256_GCM_SHA384, TLS_CHACHA20_.*Python cannot switch off"),
        (SUITES_OF_TLS_1_3[1:], ("TLSv1.3",), "leaves out TLS_AES_256_GCM_SHA384, and Python cannot"),
        (SUITES_OF_TLS_1_3, ("TLSv1.2",), "names no suite of TLS 1.2"),
        (("TLS_RSA_WITH_RC4_128_MD5",), BOTH, "'TLS_RSA_WITH_RC4_128_MD5' is not served"),
        (("ECDHE-RSA-AES256-GCM-SHA384",), BOTH, f"IANA's name of it is {STRONG}"),
        (("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA385",), BOTH, f"did you mean {STRONG}"),
    ],
)
def test_what_is_refused(suites: tuple[str, ...], protocols: tuple[str, ...], why: str) -> None:
    with pytest.raises(TlsError, match=rf"^ssl\.cipher\.suites.*{why}"):
        openssl_names(suites, protocols)
