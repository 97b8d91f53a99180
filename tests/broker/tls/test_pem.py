"""Certificates and keys as PEM has them: several, between other text, on one line, damaged, encrypted."""

import ssl

import pytest

from odradek.broker.tls.pem import pem, read_certificates, read_private_key
from odradek.broker.tls.tls_error import TlsError
from tests.broker.tls.authority import Authority, Issued

SECRET = "MIIBSECRET"  # noqa: S105  (it is none)


@pytest.fixture(scope="module")
def issued() -> Issued:
    return Authority("inner", Authority("root")).issue("broker")


def test_what_a_file_holds(issued: Issued) -> None:
    text = f"Bag Attributes\n  friendlyName: x\n{issued.key_pem()}\nsubject=CN=broker\n{issued.chain_pem}"
    root = issued.chain_pem[issued.chain_pem.rindex("-----BEGIN") :]
    assert read_certificates(text, "f") == [issued.der, ssl.PEM_cert_to_DER_cert(root)]
    key = read_private_key(text, "f")
    assert key.pem().decode() == issued.key_pem()
    assert not key.is_encrypted


def test_what_a_value_on_one_line_holds(issued: Issued) -> None:
    """In a properties file it is written so (KIP-651)."""
    assert read_certificates(" ".join(issued.chain_pem.split("\n")), "v")[0] == issued.der
    assert read_private_key(" ".join(issued.key_pem().split("\n")).strip(), "v").pem().decode() == issued.key_pem()
    assert read_certificates(issued.chain_pem.replace("\n", "\r\n"), "v")[0] == issued.der


def test_an_encrypted_key_stays_so(issued: Issued) -> None:
    key = read_private_key(issued.key_pem("secret"), "f")
    assert key.is_encrypted
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in key.pem()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no private key in PEM"),
        (pem("CERTIFICATE", b"x").decode(), "no private key in PEM"),
        (pem("PRIVATE KEY", b"x").decode() * 2, "2 private keys in PEM"),
        (f"-----BEGIN PRIVATE KEY-----\n{SECRET}!\n-----END PRIVATE KEY-----\n", "is damaged"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n"
            f"{SECRET}\n-----END RSA PRIVATE KEY-----\n",
            "openssl pkcs8 -topk8",
        ),
    ],
)
def test_what_is_no_key_is_said_without_the_key(text: str, why: str) -> None:
    with pytest.raises(TlsError, match=why) as caught:
        read_private_key(text, "the.file")
    assert "the.file" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("text", ["", "x", pem("PRIVATE KEY", b"x").decode()])
def test_what_holds_no_certificate(text: str) -> None:
    with pytest.raises(TlsError, match=r"^the.file holds no certificate in PEM"):
        read_certificates(text, "the.file")


def test_a_key_is_not_in_its_repr(issued: Issued) -> None:
    assert repr(read_private_key(issued.key_pem(), "f")) == "<PrivateKey PRIVATE KEY>"
