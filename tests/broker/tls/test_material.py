"""Keys and certificates from PEM and PKCS12, files and values; what is wrong with them is said, and holds no secret."""

import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, NoEncryption, pkcs12

from odradek.broker.tls.material import Material, material_of, read_files
from odradek.broker.tls.tls_error import TlsError
from tests.broker.tls.authority import Authority, Issued, tls_settings

PASSWORD = "hunter2"  # noqa: S105  (of stores that are made here)


@pytest.fixture(scope="module")
def root() -> Authority:
    return Authority("root")


@pytest.fixture(scope="module")
def issued(root: Authority) -> Issued:
    return Authority("inner", root).issue("broker")


def read(path: str) -> bytes:
    return Path(path).read_bytes()


def loaded(**values: Any) -> Material:
    settings = tls_settings(**values)
    settings.check()
    return material_of(settings, read_files(settings, read))


def names(material: Material) -> tuple[list[str], list[str]]:
    return [each.name for each in material.own.chain], [each.name for each in material.trusted or ()]


def test_values(issued: Issued, root: Authority) -> None:
    material = loaded(**issued.as_values(), **root.as_trusted())
    assert names(material) == (["CN=broker", "CN=inner"], ["CN=root"])
    assert material.own.key.pem().decode() == issued.key_pem()


def test_one_file_of_pem(issued: Issued, root: Authority, tmp_path: Path) -> None:
    own, trusted = tmp_path / "own.pem", tmp_path / "trusted.pem"
    own.write_text(issued.pem)
    trusted.write_text(root.pem)
    material = loaded(
        ssl_keystore_type="PEM", ssl_keystore_location=str(own),
        ssl_truststore_type="PEM", ssl_truststore_location=str(trusted),
    )  # fmt: skip
    assert names(material) == (["CN=broker", "CN=inner"], ["CN=root"])


def test_pkcs12(issued: Issued, root: Authority, tmp_path: Path) -> None:
    own, trusted = tmp_path / "own.p12", tmp_path / "trusted.p12"
    own.write_bytes(issued.pkcs12(PASSWORD))
    trusted.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, [root.certificate], NoEncryption()))
    material = loaded(
        ssl_keystore_type="PKCS12", ssl_keystore_location=str(own), ssl_keystore_password=PASSWORD,
        ssl_truststore_type="PKCS12", ssl_truststore_location=str(trusted),
    )  # fmt: skip
    assert names(material) == (["CN=broker", "CN=inner"], ["CN=root"])
    assert material.own.key.pem().decode() == issued.key_pem()


def test_without_a_truststore_nobody_is_named(issued: Issued) -> None:
    assert loaded(**issued.as_values()).trusted is None


@pytest.mark.parametrize(
    ("content", "values", "why"),
    [
        (None, {}, "own cannot be read: No such file or directory"),
        (b"\x30\x82", {}, "is no PEM file"),
        (b"nothing", {}, "holds no private key in PEM"),
        (b"\x30\x82", {"ssl_keystore_type": "PKCS12", "ssl_keystore_password": PASSWORD}, "cannot be read as PKCS12"),
        ("p12", {"ssl_keystore_type": "PKCS12", "ssl_keystore_password": "wrong"}, "and ssl.keystore.password"),
        ("certificates", {"ssl_keystore_type": "PKCS12", "ssl_keystore_password": PASSWORD}, "no private key with a"),
        ("encrypted", {}, "is encrypted: set ssl.key.password"),
        ("cut", {}, "a certificate in .*own cannot be read"),
    ],
)
def test_what_is_wrong_with_a_file(
    content: bytes | str | None, values: dict[str, str], why: str, issued: Issued, tmp_path: Path
) -> None:
    path, encryption = tmp_path / "own", BestAvailableEncryption(PASSWORD.encode())
    match content:
        case "p12":
            path.write_bytes(issued.pkcs12(PASSWORD))
        case "certificates":
            path.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, issued.issuers, encryption))
        case "encrypted":
            path.write_text(issued.key_pem(PASSWORD) + issued.chain_pem)
        case "cut":
            path.write_text(issued.key_pem() + "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n")
        case bytes():
            path.write_bytes(content)
        case _:
            pass
    with pytest.raises(TlsError, match=why) as caught:
        loaded(**{"ssl_keystore_type": "PEM", "ssl_keystore_location": str(path), **values})
    assert PASSWORD not in str(caught.value)


def test_without_the_extra_pkcs12_says_what_to_install(
    issued: Issued, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "own.p12"
    path.write_bytes(issued.pkcs12(PASSWORD))
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(TlsError, match=r"pip install 'odradek\[security\]'"):
        loaded(ssl_keystore_type="PKCS12", ssl_keystore_location=str(path), ssl_keystore_password=PASSWORD)


def test_keys_are_in_no_repr(issued: Issued) -> None:
    body = issued.key_pem().splitlines()[1]
    assert body not in repr(loaded(**issued.as_values(), ssl_key_password=PASSWORD))
