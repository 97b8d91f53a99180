"""Contexts from certificates and keys: who comes to terms with whom, and who is refused. The other side is Python's own
TLS, told to do what it should not."""

import ssl
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from odradek.broker.tls.contexts import client_context, server_context
from odradek.broker.tls.material import Material, material_of
from odradek.broker.tls.tls_error import TlsError
from odradek.broker.tls.tls_settings import TlsSettings
from odradek.broker.tls.trial import handshake_problem
from tests.broker.tls.authority import CLIENT, SERVER, Authority, Issued, tls_settings

SUITES = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
STRONG = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("authority")


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Issued:
    return authority.issue("broker")


@pytest.fixture(scope="module")
def client(authority: Authority) -> Issued:
    return authority.issue("client", hosts=(), usages=(CLIENT,))


def made(issued: Issued, **values: Any) -> tuple[TlsSettings, Material]:
    settings = tls_settings(**(issued.as_values() | values))
    settings.check()
    return settings, material_of(settings, {})


def server(issued: Issued, **values: Any) -> ssl.SSLContext:
    return server_context(*made(issued, **values))


def mutual(issued: Issued, authority: Authority, asked: str = "required") -> ssl.SSLContext:
    return server(issued, **authority.as_trusted(), ssl_client_auth=asked)


def anonymous(authority: Authority) -> ssl.SSLContext:
    context = authority.client_context()
    context.check_hostname = False
    return context


def known(issued: Issued, authority: Authority) -> ssl.SSLContext:
    context = issued.client_context(authority)
    context.check_hostname = False
    return context


def test_a_client_that_trusts_the_issuer_is_served(broker: Issued, authority: Authority) -> None:
    assert handshake_problem(server(broker), anonymous(authority)) is None


def test_a_chain_is_sent_with_the_certificate() -> None:
    root = Authority("root")
    issued = Authority("inner", root).issue("broker")
    assert handshake_problem(server(issued), anonymous(root)) is None


@pytest.mark.parametrize(
    ("version", "asked", "problem"),
    [
        (ssl.TLSVersion.TLSv1_1, None, "UNSUPPORTED_PROTOCOL|NO_PROTOCOLS"),
        (ssl.TLSVersion.TLSv1_2, None, None),
        (ssl.TLSVersion.TLSv1_3, None, None),
        (ssl.TLSVersion.TLSv1_2, ("TLSv1.3",), "UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION"),
        (ssl.TLSVersion.TLSv1_3, ("TLSv1.2",), "UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION"),
    ],
)
def test_versions(
    version: ssl.TLSVersion, asked: Sequence[str] | None, problem: str | None, broker: Issued, authority: Authority
) -> None:
    context = anonymous(authority)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # which TLS 1.1 is for Python, too
        context.minimum_version = context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    found = handshake_problem(server(broker, **({} if asked is None else {"ssl_enabled_protocols": asked})), context)
    assert (found is None) if problem is None else any(each in (found or "") for each in problem.split("|")), found


@pytest.mark.parametrize(
    ("ciphers", "is_served"),
    [
        ("ECDHE-ECDSA-AES256-GCM-SHA384", True),
        ("AECDH-AES256-SHA:@SECLEVEL=0", False),
        ("ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0", False),
        ("ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0", False),
        ("ECDHE-ECDSA-AES128-CCM8:@SECLEVEL=0", False),
    ],
)
def test_weak_ciphers_are_refused(ciphers: str, is_served: bool, broker: Issued, authority: Authority) -> None:
    """Without encryption or authentication, with SHA-1, with a tag of eight bytes."""
    context = anonymous(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(ciphers)
    assert (handshake_problem(server(broker), context) is None) is is_served


def test_a_list_of_suites_counts(broker: Issued, authority: Authority) -> None:
    listed = server(broker, ssl_cipher_suites=(*SUITES, STRONG))
    assert {each["name"] for each in listed.get_ciphers()} == {*SUITES, "ECDHE-ECDSA-AES256-GCM-SHA384"}
    client = anonymous(authority)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert handshake_problem(listed, client) is None
    client.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    assert handshake_problem(listed, client) is not None
    only_newest = server(broker, ssl_cipher_suites=SUITES)
    assert only_newest.minimum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize("asked", ["requested", "required"])
def test_certificates_of_clients(asked: str, broker: Issued, client: Issued, authority: Authority) -> None:
    context = mutual(broker, authority, asked)
    stranger = Authority("authority")  # with the same name
    assert handshake_problem(context, known(client, authority)) is None
    assert (handshake_problem(context, anonymous(authority)) is None) is (asked == "requested")
    refused = {
        "another authority": stranger.issue("client", hosts=(), usages=(CLIENT,)),
        "expired": authority.issue("client", hosts=(), days=(-2, -1), usages=(CLIENT,)),
        "not yet": authority.issue("client", hosts=(), days=(1, 2), usages=(CLIENT,)),
        "a server's": authority.issue("client", hosts=(), usages=(SERVER,)),
        "issued by one who may not": forged(client),
    }
    for what, issued in refused.items():
        assert handshake_problem(context, known(issued, authority)) is not None, what


def forged(client: Issued) -> Issued:
    """A certificate that a client has issued to itself under another name, with its own as the issuer's."""
    authority = Authority("client")
    authority.key, authority.name = client.key, client.certificate.subject
    issued = authority.issue("admin", hosts=(), usages=(CLIENT,))
    return Issued(issued.key, issued.certificate, (client.certificate,))


def test_nobody_is_asked_unless_the_options_say_so(broker: Issued, authority: Authority) -> None:
    assert server(broker, **authority.as_trusted()).verify_mode is ssl.CERT_NONE


def test_a_certificate_that_is_trusted_itself_is_enough(broker: Issued, authority: Authority) -> None:
    """As in Java: without who issued it."""
    inner = Authority("inner", Authority("root"))
    client = inner.issue("client", hosts=(), usages=(CLIENT,))
    context = mutual(broker, inner)
    assert handshake_problem(context, known(client, authority)) is None


def test_as_a_client_a_broker_compares_names(broker: Issued, authority: Authority) -> None:
    settings, material = made(broker, **authority.as_trusted())
    assert client_context(settings, material).check_hostname
    assert client_context(settings, material).verify_mode is ssl.CERT_REQUIRED
    settings, material = made(broker, **authority.as_trusted(), ssl_endpoint_identification_algorithm="")
    assert not client_context(settings, material).check_hostname
    assert client_context(settings, material).verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(("password", "given"), [("right", "right"), ("right", "wrong"), (None, "unused")])
def test_keys_under_a_password(password: str | None, given: str, broker: Issued) -> None:
    values = {"ssl_keystore_key": broker.key_pem(password), "ssl_key_password": given}
    if given == "wrong":
        with pytest.raises(TlsError, match=r"check ssl\.key\.password") as caught:
            server(broker, **values)
        assert given not in str(caught.value)
    else:
        server(broker, **values)


def test_keys_in_openssls_own_notation_are_read(broker: Issued, authority: Authority) -> None:
    """Kafka takes PKCS#8 alone."""
    text = broker.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    assert "BEGIN EC PRIVATE KEY" in text
    assert handshake_problem(server(broker, ssl_keystore_key=text), anonymous(authority)) is None


def test_a_key_of_another_certificate_is_refused(broker: Issued, client: Issued) -> None:
    with pytest.raises(TlsError, match="not the one of the certificate 'CN=broker'"):
        server(broker, ssl_keystore_key=client.key_pem())


def test_a_key_that_is_none_is_refused(broker: Issued) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMAMCAQA=\n-----END PRIVATE KEY-----\n"
    with pytest.raises(TlsError, match="cannot be used") as caught:
        server(broker, ssl_keystore_key=key)
    assert "MAMCAQA" not in str(caught.value)


def test_tickets_of_an_older_context_are_refused(broker: Issued, authority: Authority) -> None:
    """A context that takes the place of another one, with the same certificate, knows none of its sessions."""
    older, newer = server(broker), server(broker)
    client = anonymous(authority)
    session = session_of(older, client)
    assert reused(older, client, session)
    assert not reused(newer, client, session)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_ticket_brings_the_certificate_along(
    version: ssl.TLSVersion, broker: Issued, client: Issued, authority: Authority
) -> None:
    """Or else a client would be somebody with a full handshake, and nobody with a short one."""
    context = mutual(broker, authority)
    context.maximum_version = version
    ours = known(client, authority)
    session = session_of(context, ours)
    ends = joined(context, ours, session)
    assert ends[1].session_reused
    assert ends[1].getpeercert(binary_form=True) == client.der


def joined(
    served: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends of a connection on which the client has read what came with the end of the handshake."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, session=session)
    theirs = served.wrap_bio(to_server, to_client, server_side=True)
    ends = [ours, theirs]
    for _ in range(5):
        for end in tuple(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)
    assert ends == []
    theirs.write(b"hello")
    assert ours.read(5) == b"hello"
    return ours, theirs


def session_of(served: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLSession:
    session = joined(served, client)[0].session
    assert session is not None
    assert session.has_ticket
    return session


def reused(served: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession) -> bool:
    return bool(joined(served, client, session)[0].session_reused)
