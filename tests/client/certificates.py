"""Certificates for tests, made by OpenSSL in a directory of the test; they are worth nothing elsewhere.

    certificates = make_certificates(tmp_path)
    ClientConfig(…, security_protocol="SSL", ssl_truststore_location=str(certificates.authority))

Files are PEM; those with a key hold the certificate behind it.
"""

import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

PASSWORD = "of the key"  # noqa: S105  (of a key that is made here)
CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
NAMES = "subjectAltName=DNS:localhost,DNS:kafka.test,IP:127.0.0.1,IP:::1"


class Certificates(NamedTuple):
    """`authority` has signed `server` (localhost, kafka.test and the loopback addresses) and `client`.

    `encrypted` is the client's with its key under PASSWORD. `stranger` is another authority.
    """

    authority: Path
    server: Path
    client: Path
    encrypted: Path
    stranger: Path

    def server_context(self, *, asks_for_client: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server)
        if asks_for_client:
            context.load_verify_locations(self.authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def make_certificates(directory: Path) -> Certificates:
    authority = make_authority(directory, "authority")
    server = sign(directory, "server", authority, NAMES)
    client = sign(directory, "client", authority, "extendedKeyUsage=clientAuth")
    encrypted = directory / "encrypted.pem"
    key = openssl("pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", str(client), "-passout", f"pass:{PASSWORD}")
    encrypted.write_text(key + openssl("x509", "-in", str(client)))
    stranger = make_authority(directory, "stranger")
    return Certificates(authority, server, client, encrypted, stranger)


def make_authority(directory: Path, name: str) -> Path:
    key, certificate = directory / f"{name}.key", directory / f"{name}.pem"
    target = ("-keyout", str(key), "-out", str(certificate))
    openssl("req", "-x509", *CURVE, "-nodes", "-days", "2", "-subj", f"/CN={name}", *target)
    return certificate


def sign(directory: Path, name: str, authority: Path, extension: str) -> Path:
    """A key with its certificate, the key as PKCS#8, which is what Java reads."""
    key, request, both = directory / f"{name}.key", directory / f"{name}.csr", directory / f"{name}-with-key.pem"
    openssl("req", *CURVE, "-nodes", "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(request))
    extensions = directory / f"{name}.ext"
    extensions.write_text(f"{extension}\n")
    signer = ("-CA", str(authority), "-CAkey", str(authority.with_suffix(".key")), "-CAcreateserial")
    certificate = openssl("x509", "-req", "-in", str(request), *signer, "-days", "2", "-extfile", str(extensions))
    both.write_text(openssl("pkcs8", "-topk8", "-nocrypt", "-in", str(key)) + certificate)
    return both


def openssl(*arguments: str) -> str:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
