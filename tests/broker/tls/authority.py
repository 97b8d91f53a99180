"""Authorities and certificates for tests, made in memory; they are worth nothing elsewhere.

authority = Authority("authority")
broker = authority.issue("broker", hosts=("localhost",))
options(**broker.as_values(), ssl_truststore_certificates=authority.pem)
"""

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from odradek.broker.config.option import rows
from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.config.tls_options import TlsOptions
from odradek.broker.disk.memory_file import memory_file
from odradek.broker.tls.tls_settings import TlsSettings, settings_of

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
BOTH = (SERVER, CLIENT)
LOCAL = ("localhost", "127.0.0.1")


class Options(TlsOptions):
    """The options of one listener, with Kafka's defaults."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update({row.attribute: row.default for row in rows(TlsOptions).values()} | values)


def tls_settings(
    protocol: SecurityProtocol = SecurityProtocol.SSL, *, has_own_client_auth: bool = False, **values: Any
) -> TlsSettings:
    return settings_of("OUTSIDE", protocol, Options(**values), has_own_client_auth=has_own_client_auth)


class Issued(NamedTuple):
    """A key, its certificate, and those that issued it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuers: tuple[x509.Certificate, ...]

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)

    @property
    def chain_pem(self) -> str:
        return "".join(each.public_bytes(Encoding.PEM).decode() for each in (self.certificate, *self.issuers))

    def key_pem(self, password: str | None = None) -> str:
        encryption: KeySerializationEncryption = NoEncryption()
        if password is not None:
            encryption = BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    @property
    def pem(self) -> str:
        """Key and chain, as in one file."""
        return self.key_pem() + self.chain_pem

    def pkcs12(self, password: str) -> bytes:
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"kafka", self.key, self.certificate, self.issuers, encryption)

    def as_values(self) -> dict[str, Any]:
        """The options of a keystore whose contents are values."""
        return {
            "ssl_keystore_type": "PEM",
            "ssl_keystore_key": self.key_pem(),
            "ssl_keystore_certificate_chain": self.chain_pem,
        }

    def client_context(self, trusted: "Authority") -> ssl.SSLContext:
        """A client's, with this certificate."""
        context = trusted.client_context()
        load(context, self)
        return context


class Authority:
    """Who issues certificates: by itself, or in the name of another one."""

    def __init__(self, name: str, issuer: "Authority | None" = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = named(name)
        self.issuer = issuer
        signer, signer_name = (self.key, self.name) if issuer is None else (issuer.key, issuer.name)
        self.certificate = (
            _builder(self.name, signer_name, self.key, (-1, 30))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(signer, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def as_trusted(self) -> dict[str, Any]:
        """The options of a truststore whose contents are values."""
        return {"ssl_truststore_type": "PEM", "ssl_truststore_certificates": self.pem}

    def client_context(self) -> ssl.SSLContext:
        """That of a client that trusts this authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.pem)
        return context

    def issue(
        self,
        name: str | x509.Name,
        *,
        hosts: Sequence[str] = LOCAL,
        days: tuple[float, float] = (-1, 30),
        usages: Sequence[x509.ObjectIdentifier] = BOTH,
    ) -> Issued:
        """`days`: from when to when, from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = named(name) if isinstance(name, str) else name
        builder = _builder(subject, self.name, key, days)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        issuers = [] if self.issuer is None else [self.certificate]
        return Issued(key, builder.sign(self.key, hashes.SHA256()), tuple(issuers))


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def load(context: ssl.SSLContext, issued: Issued) -> None:
    """Has the context show this certificate."""
    with memory_file(issued.pem.encode()) as path:
        context.load_cert_chain(path)


def server_context(issued: Issued) -> ssl.SSLContext:
    """That of any server, none of ours."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(context, issued)
    return context


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: tuple[float, float]
) -> x509.CertificateBuilder:
    now = datetime.now(UTC).replace(microsecond=0)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
