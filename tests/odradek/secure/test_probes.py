"""What is found out about listeners of each kind, over real sockets; nothing is concluded from a failure alone."""

import asyncio
import ssl
import warnings

import pytest

from odradek.secure.listener_facts import ClientCertificate, KafkaFacts, ListenerFacts
from odradek.secure.probes import NothingThere, look_at
from odradek.secure.tls_contexts import EVERY_CIPHER, context_for, trusting
from tests.client.certificates import Certificates, make_certificates
from tests.odradek.secure.listeners import StrangersListener, babbling, listening, serving

TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def server_context(
    certificates: Certificates,
    *,
    verify: ssl.VerifyMode = ssl.CERT_NONE,
    lowest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
    highest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    ciphers: str | None = None,
) -> ssl.SSLContext:
    context = certificates.server_context()
    context.load_verify_locations(certificates.authority)
    context.verify_mode = verify
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = lowest, highest
    if ciphers is not None:
        context.set_ciphers(ciphers)
    return context


async def found(port: int, certificates: Certificates, host: str = "127.0.0.1") -> ListenerFacts:
    return await look_at(host, port, trusting(str(certificates.authority)), TIMEOUT_S)


@pytest.mark.parametrize("mechanisms", [(), ("PLAIN", "SCRAM-SHA-512")])
async def test_plaintext_is_told_with_and_without_sasl(certificates: Certificates, mechanisms: tuple[str, ...]) -> None:
    async with listening(StrangersListener(mechanisms)) as port:
        facts = await found(port, certificates)
    assert facts.tls is None
    assert facts.kafka == KafkaFacts(not mechanisms, mechanisms)


async def test_tls_with_sasl_is_told_in_full(certificates: Certificates) -> None:
    async with listening(StrangersListener(("SCRAM-SHA-512",)), server_context(certificates)) as port:
        facts = await found(port, certificates)
    assert facts.protocol == "SASL_SSL"
    assert facts.kafka == KafkaFacts(False, ("SCRAM-SHA-512",))
    assert facts.tls is not None
    assert facts.tls.versions["TLSv1.3"] is facts.tls.versions["TLSv1.2"] is True
    assert facts.tls.cipher is not None
    assert facts.tls.cipher.startswith("TLS_")
    assert facts.tls.certificate is not None
    assert "127.0.0.1" in facts.tls.certificate.names
    assert facts.tls.untrusted is None
    assert facts.tls.client_certificate is ClientCertificate.NONE


async def test_ciphers_are_those_that_the_listener_takes(certificates: Certificates) -> None:
    context = server_context(certificates, ciphers="ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-SHA256")
    async with listening(StrangersListener(), context) as port:
        facts = await found(port, certificates)
    assert facts.tls is not None
    assert set(facts.tls.ciphers) == {"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-SHA256"}
    assert facts.strengths["ECDHE-ECDSA-AES128-SHA256"] == 128


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("verify", "expected"),
    [(ssl.CERT_NONE, ClientCertificate.NONE), (ssl.CERT_REQUIRED, ClientCertificate.REQUIRED)],
)
async def test_whether_a_certificate_is_required_is_proved_in_each_version(
    certificates: Certificates, version: ssl.TLSVersion, verify: ssl.VerifyMode, expected: ClientCertificate
) -> None:
    context = server_context(certificates, verify=verify, lowest=version, highest=version)
    async with listening(StrangersListener(), context) as port:
        facts = await found(port, certificates)
    assert facts.tls is not None
    if version is ssl.TLSVersion.TLSv1_3 and verify is ssl.CERT_NONE:
        expected = ClientCertificate.NOT_REQUIRED
    assert facts.tls.client_certificate is expected
    assert (facts.kafka is None) == (verify is ssl.CERT_REQUIRED)
    assert facts.tls.untrusted is None
    assert facts.tls.certificate is not None


async def test_a_certificate_that_is_asked_for_is_not_required(certificates: Certificates) -> None:
    async with listening(StrangersListener(), server_context(certificates, verify=ssl.CERT_OPTIONAL)) as port:
        facts = await found(port, certificates)
    assert facts.tls is not None
    assert facts.tls.client_certificate is ClientCertificate.REQUESTED
    assert facts.kafka == KafkaFacts(True)


async def test_a_failed_handshake_is_no_proof_of_anything(certificates: Certificates) -> None:
    """It ends after the hello, for another reason than a certificate that is missed."""
    context = server_context(certificates)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(await reader.read(65536))
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            writer.write(outgoing.read()[:200])  # the hello, and the rest is cut
            await writer.drain()
        except ssl.SSLError:
            pass

    async with serving(serve) as port:
        facts = await found(port, certificates)
    assert facts.tls is not None
    assert facts.tls.client_certificate is not ClientCertificate.REQUIRED


async def test_old_versions_are_found_where_they_are_spoken(certificates: Certificates) -> None:
    if context_for(ssl.TLSVersion.TLSv1) is None:
        pytest.skip("OpenSSL here does not speak TLS 1.0")
    context = server_context(certificates, lowest=ssl.TLSVersion.TLSv1, ciphers=EVERY_CIPHER)
    async with listening(StrangersListener(), context) as port:
        facts = await found(port, certificates)
    assert facts.tls is not None
    assert facts.tls.versions["TLSv1"]
    assert facts.tls.versions["TLSv1.1"]


async def test_an_authority_that_nobody_trusts_and_another_host_are_told(certificates: Certificates) -> None:
    async with listening(StrangersListener(), server_context(certificates)) as port:
        stranger = await look_at("127.0.0.1", port, trusting(str(certificates.stranger)), TIMEOUT_S)
    async with listening(StrangersListener(), server_context(certificates), "127.0.0.2") as port:
        other = await look_at("127.0.0.2", port, trusting(str(certificates.authority)), TIMEOUT_S)
    assert stranger.tls is not None
    assert stranger.tls.untrusted
    assert other.tls is not None
    assert "127.0.0.2" in (other.tls.untrusted or "")


async def test_nobody_is_logged_in_and_nothing_is_changed(certificates: Certificates) -> None:
    listener = StrangersListener(("PLAIN",))
    async with listening(listener) as port:
        await found(port, certificates)
    assert set(listener.requests) == {18, 17, 3}


@pytest.mark.parametrize(
    "words", [(), (b"HTTP/1.1 400 Bad Request\r\n\r\n",), (b"\0\0\0\x05hello",), (b"\x15\x03\x03\x00\x02\x02\x28",)]
)
async def test_what_speaks_neither_is_told(certificates: Certificates, words: tuple[bytes, ...]) -> None:
    async with babbling(*words) as port:
        with pytest.raises(NothingThere, match="neither Kafka's protocol nor TLS"):
            await found(port, certificates)


async def test_a_port_at_which_nobody_listens_is_told(certificates: Certificates) -> None:
    async with babbling() as port:
        pass
    with pytest.raises(NothingThere, match="nothing listens"):
        await found(port, certificates)
