"""Makes an authority and the certificate of a broker, with `cryptography` (the extra `odradek[security]`).

Keys are of the curve P-256, which every client of Kafka takes, and are written as PKCS#8, which Java reads. The
broker's certificate names its hosts (DNS names and IP addresses), and serves for the server's side and the client's:
brokers connect to one another with it. All extensions are there that RFC 5280 asks for, since Python 3.13 checks them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority", "Issued", "issue", "make_authority"]

BACKDATED: Final = timedelta(hours=1)
"""A certificate counts from before it was made: clocks of clients differ."""
COMMON_NAME_LENGTH_MAX: Final = 64
"""RFC 5280, ub-common-name."""


class Authority(NamedTuple):
    """An authority that signs: its certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> str:
        return _pem(self.certificate)

    @property
    def key_pem(self) -> str:
        return _key_pem(self.key)


class Issued(NamedTuple):
    """A certificate with its key, as PEM."""

    certificate_pem: str
    key_pem: str


def make_authority(name: str, now_ms: int, days: int) -> Authority:
    """A new authority of this name, which signs certificates of brokers and of no other authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    certificate = (
        _begun(subject, subject, key.public_key(), now_ms, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def issue(authority: Authority, hosts: Sequence[str], now_ms: int, days: int) -> Issued:
    """The certificate of a broker that is reached by these names and addresses; the first is its common name."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    purposes = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    certificate = (
        _begun(_name(hosts[0]), authority.certificate.subject, key.public_key(), now_ms, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(purposes, critical=False)
        .add_extension(names, critical=False)
        .add_extension(signer, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return Issued(_pem(certificate), _key_pem(key))


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now_ms: int, days: int
) -> x509.CertificateBuilder:
    now = datetime.fromtimestamp(now_ms // 1000, UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:COMMON_NAME_LENGTH_MAX])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
