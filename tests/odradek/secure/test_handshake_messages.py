"""What is read of a handshake: real ones in memory, by version, whole and cut, and bytes that are none."""

import ssl
from pathlib import Path

import pytest

from odradek.secure.handshake_messages import Flight, read_flight
from odradek.secure.tls_contexts import modern_context
from tests.client.certificates import Certificates, make_certificates


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def flight_of(certificates: Certificates, version: ssl.TLSVersion, verify: ssl.VerifyMode) -> bytes:
    """What a server says to a client's hello."""
    server_context = certificates.server_context()
    server_context.load_verify_locations(certificates.authority)
    server_context.verify_mode = verify
    client_context = modern_context()
    client_context.minimum_version = client_context.maximum_version = version
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname="localhost")
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server):
        with pytest.raises(ssl.SSLWantReadError):
            side.do_handshake()
    return to_client.read()


def der_of(path: Path) -> bytes:
    text = path.read_text()
    return ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN CERT") :])


@pytest.mark.parametrize(
    ("verify", "asks"), [(ssl.CERT_NONE, False), (ssl.CERT_OPTIONAL, True), (ssl.CERT_REQUIRED, True)]
)
def test_in_tls_12_all_of_it_is_plain(certificates: Certificates, verify: ssl.VerifyMode, asks: bool) -> None:
    flight = read_flight(flight_of(certificates, ssl.TLSVersion.TLSv1_2, verify))
    assert flight.cipher is not None
    assert flight.certificate == der_of(certificates.server)
    assert flight.asks_for_certificate is asks


def test_in_tls_13_only_the_cipher_is_plain(certificates: Certificates) -> None:
    flight = read_flight(flight_of(certificates, ssl.TLSVersion.TLSv1_3, ssl.CERT_REQUIRED))
    assert flight == Flight(cipher=flight.cipher)
    assert flight.cipher in (0x1301, 0x1302, 0x1303)


def test_what_is_cut_or_none_says_less_and_does_not_fail(certificates: Certificates) -> None:
    whole = flight_of(certificates, ssl.TLSVersion.TLSv1_2, ssl.CERT_REQUIRED)
    for cut in range(len(whole)):
        found = read_flight(whole[:cut])
        assert found.certificate in (None, der_of(certificates.server))
    for noise in (b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(100), b"\x16\x03\x03\xff\xff" + b"\x02" * 10):
        assert read_flight(noise).certificate is None


def test_an_alert_alone_is_a_refusal() -> None:
    assert read_flight(b"\x15\x03\x03\x00\x02\x02\x28") == Flight(is_alert=True)
