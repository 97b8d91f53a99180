"""What is read of certificates that `cryptography` has made, and in which order a chain is sent."""

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from odradek.broker.tls.certificate import in_order, read_certificate
from odradek.broker.tls.der import DerError
from tests.broker.tls.authority import Authority


def test_names_and_times() -> None:
    authority = Authority("authority")
    issued = authority.issue("broker", hosts=("localhost", "127.0.0.1"))
    certificate = read_certificate(issued.der)
    assert certificate.name == "CN=broker"
    assert certificate.issuer == authority.name.public_bytes()
    assert certificate.not_before_ms == issued.certificate.not_valid_before_utc.timestamp() * 1000
    assert certificate.not_after_ms == issued.certificate.not_valid_after_utc.timestamp() * 1000
    assert certificate.alternative_names == {b"\x82\x09localhost", b"\x87\x04\x7f\0\0\1"}
    assert "broker" in repr(certificate)


def test_a_time_beyond_2049_is_of_the_other_kind() -> None:
    issued = Authority("authority").issue("broker", hosts=(), days=(-1, 365 * 40))
    certificate = read_certificate(issued.der)
    assert certificate.not_after_ms == issued.certificate.not_valid_after_utc.timestamp() * 1000
    assert certificate.alternative_names == frozenset()


def test_a_certificate_that_is_cut_or_something_else_is_an_error() -> None:
    der = Authority("authority").issue("broker").der
    for size in (0, 1, 2, 10, 100, len(der) - 1):
        with pytest.raises(DerError):
            read_certificate(der[:size])
    with pytest.raises(DerError):
        read_certificate(bytes.fromhex("3003020101"))


def test_a_chain_is_sent_in_order_and_without_its_root() -> None:
    root = Authority("root")
    middle = Authority("middle", root)
    inner = Authority("inner", middle)
    leaf = inner.issue("broker")
    ders = [leaf.certificate, root.certificate, middle.certificate, inner.certificate]
    certificates = [read_certificate(each.public_bytes(Encoding.DER)) for each in ders]
    assert [each.name for each in in_order(certificates)] == ["CN=broker", "CN=inner", "CN=middle"]
    assert in_order([]) == []
