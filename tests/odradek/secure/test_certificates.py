"""What is made is what clients want: handshakes with Python's strictest rules, names, purposes, dates."""

import ssl

import pytest

from odradek.client.network.key_file import key_file
from odradek.secure.certificate_facts import certificate_facts
from odradek.secure.certificates import Authority, issue, make_authority

DAY_MS = 86_400_000
HOSTS = ["b1.example", "10.0.0.7", "::1"]


def now_ms() -> int:
    import time

    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority("of the tests", now_ms(), 2)


def shaken(authority: Authority, host: str, *, signer: Authority | None = None) -> None:
    """A handshake in memory. Raises ssl.SSLError."""
    issued = issue(authority if signer is None else signer, HOSTS, now_ms(), 1)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with key_file(issued.key_pem, issued.certificate_pem) as path:
        server_context.load_cert_chain(path)
    client_context = ssl.create_default_context(cadata=authority.certificate_pem)
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.getpeercert()


@pytest.mark.parametrize("host", HOSTS)
def test_each_host_is_one_that_the_certificate_is_for(authority: Authority, host: str) -> None:
    shaken(authority, host)


@pytest.mark.parametrize("host", ["b2.example", "10.0.0.8", "example"])
def test_another_host_is_refused(authority: Authority, host: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(authority, host)


def test_another_authority_of_the_same_name_is_refused(authority: Authority) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(authority, HOSTS[0], signer=make_authority("of the tests", now_ms(), 2))


def test_names_and_dates_stand_in_it(authority: Authority) -> None:
    now = now_ms()
    issued = issue(authority, HOSTS, now, 30)
    facts = certificate_facts(ssl.PEM_cert_to_DER_cert(issued.certificate_pem))
    assert facts is not None
    assert facts.common_name == "b1.example"
    assert facts.names == ("b1.example", "10.0.0.7", "::1")
    assert facts.days_left(now) in (29, 30)
    assert facts.days_left(now + 31 * DAY_MS) < 0


def test_keys_are_what_java_reads(authority: Authority) -> None:
    assert authority.key_pem.startswith("-----BEGIN PRIVATE KEY-----")
    assert issue(authority, HOSTS, now_ms(), 1).key_pem != issue(authority, HOSTS, now_ms(), 1).key_pem
    long = ["x" * 60 + ".example"]
    assert issue(authority, long, now_ms(), 1).certificate_pem
