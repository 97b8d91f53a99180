"""What is read of a certificate that OpenSSL made, and that nothing else is taken for one."""

import ssl
from pathlib import Path

import pytest

from odradek.secure.certificate_facts import MS_PER_DAY, CertificateFacts, certificate_facts
from tests.client.certificates import make_certificates


@pytest.fixture(scope="module")
def der(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    return ssl.PEM_cert_to_DER_cert(pem_of(certificates.server))


def pem_of(path: Path) -> str:
    return path.read_text()[path.read_text().index("-----BEGIN CERT") :]


def test_the_facts_of_a_certificate_are_read(der: bytes) -> None:
    facts = certificate_facts(der)
    assert facts is not None
    assert facts.common_name == "server"
    assert facts.names == ("localhost", "kafka.test", "127.0.0.1", "::1")


def test_days_are_whole_ones_and_end_below_zero() -> None:
    facts = CertificateFacts("", (), 10 * MS_PER_DAY)
    assert [facts.days_left(at) for at in (0, 1, 10 * MS_PER_DAY, 10 * MS_PER_DAY + 1)] == [10, 9, 0, -1]


def test_what_is_no_certificate_says_nothing(der: bytes) -> None:
    for cut in range(0, len(der) - 1, 7):
        assert certificate_facts(der[:cut]) is None
    for noise in (b"", b"\x30\x00", b"\x30\x80", bytes(64), b"\xff" * 64):
        assert certificate_facts(noise) is None
    for at in range(0, len(der), 11):
        certificate_facts(der[:at] + bytes([der[at] ^ 0x55]) + der[at + 1 :])  # whatever it says, it does not fail
