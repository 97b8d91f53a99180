"""Contexts from settings, shown by handshakes in memory with a server's context; and what is said where one fails."""

import errno
import ssl
from pathlib import Path
from typing import Any

import pytest

from odradek.client.configuration.client_config import ClientConfig
from odradek.client.errors.client_errors import AuthenticationFailed, ClientError, ConnectionFailed
from odradek.client.network.tls import TlsContexts, refusal, server_name
from tests.client.certificates import PASSWORD, Certificates, make_certificates

BROKER = "broker 1 (kafka.test:9093)"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def contexts_of(**settings: Any) -> TlsContexts:
    return TlsContexts(ClientConfig("kafka.test:9093", security_protocol="SSL", **settings))


def context_of(**settings: Any) -> ssl.SSLContext:
    return contexts_of(**settings).make(BROKER)


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "kafka.test") -> ssl.SSLObject:
    """Both sides of a handshake, and a byte there and back, so that what TLS 1.3 says late is heard."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    failure: ssl.SSLError | None = None
    for step in (ours.do_handshake, theirs.do_handshake, ours.do_handshake, theirs.do_handshake):
        try:
            step()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLError as error:
            if step == ours.do_handshake:
                raise
            failure = error
            break
    if failure is None:
        theirs.write(b"x")
    assert ours.read(1) == b"x"  # raises what the server has to say
    return ours


def refused(client: ssl.SSLContext, server: ssl.SSLContext, name: str = "kafka.test") -> ClientError:
    with pytest.raises(ssl.SSLError) as caught:
        shake_hands(client, server, name)
    failure = refusal(caught.value, BROKER)
    assert isinstance(failure, AuthenticationFailed)
    return failure


def test_a_broker_whose_authority_is_trusted_is_accepted_under_its_names(certificates: Certificates) -> None:
    by_file = context_of(ssl_truststore_location=str(certificates.authority))
    by_text = context_of(ssl_truststore_certificates=certificates.authority.read_text())
    for context in (by_file, by_text):
        for name in ("kafka.test", "localhost", "127.0.0.1", "::1"):
            assert shake_hands(context, certificates.server_context(), name).version() == "TLSv1.3"


def test_another_authority_is_not_trusted_and_the_setting_is_named(certificates: Certificates) -> None:
    failure = refused(context_of(ssl_truststore_location=str(certificates.stranger)), certificates.server_context())
    assert failure.fatal
    assert BROKER in str(failure)
    assert "ssl_truststore_location" in failure.hint


def test_without_a_truststore_the_system_s_authorities_are_trusted(certificates: Certificates) -> None:
    context = context_of()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert "ssl_truststore_location" in refused(context, certificates.server_context()).hint


def test_the_name_is_compared_unless_the_setting_is_empty(certificates: Certificates) -> None:
    trust = {"ssl_truststore_location": str(certificates.authority)}
    server = certificates.server_context()
    for name in ("elsewhere.test", "10.0.0.1"):
        failure = refused(context_of(**trust), server, name)
        assert "ssl_endpoint_identification_algorithm" in failure.hint
        assert name in str(failure)
        assert shake_hands(context_of(**trust, ssl_endpoint_identification_algorithm=""), server, name)


def test_a_client_shows_its_certificate_from_a_file_a_text_or_an_encrypted_key(certificates: Certificates) -> None:
    trust = {"ssl_truststore_location": str(certificates.authority)}
    key, _, chain = certificates.client.read_text().partition("-----END PRIVATE KEY-----\n")
    locked_key, _, _ = certificates.encrypted.read_text().partition("-----BEGIN CERTIFICATE-----")
    texts = {"ssl_keystore_key": key + "-----END PRIVATE KEY-----\n", "ssl_keystore_certificate_chain": chain}
    ways: list[dict[str, str]] = [
        {"ssl_keystore_location": str(certificates.client)},
        {"ssl_keystore_location": str(certificates.encrypted), "ssl_key_password": PASSWORD},
        texts,
        texts | {"ssl_keystore_key": locked_key, "ssl_key_password": PASSWORD},
    ]
    for way in ways:
        assert shake_hands(context_of(**trust, **way), certificates.server_context(asks_for_client=True))


def test_a_broker_that_asks_for_a_certificate_in_vain_is_explained(certificates: Certificates) -> None:
    context = context_of(ssl_truststore_location=str(certificates.authority))
    failure = refused(context, certificates.server_context(asks_for_client=True))
    assert "ssl_keystore_location" in failure.hint


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_only_the_versions_that_are_set_are_used(version: str, certificates: Certificates) -> None:
    trust = {"ssl_truststore_location": str(certificates.authority)}
    context = context_of(**trust, ssl_enabled_protocols=[version])
    assert shake_hands(context, certificates.server_context()).version() == version
    server = certificates.server_context()
    if version == "TLSv1.2":
        server.minimum_version = ssl.TLSVersion.TLSv1_3
    else:
        server.maximum_version = ssl.TLSVersion.TLSv1_2
    assert "ssl_enabled_protocols" in refused(context, server).hint


def test_ciphers_can_be_chosen(certificates: Certificates) -> None:
    context = context_of(
        ssl_truststore_location=str(certificates.authority),
        ssl_enabled_protocols="TLSv1.2",
        ssl_cipher_suites="ECDHE-ECDSA-AES256-GCM-SHA384",
    )
    cipher = shake_hands(context, certificates.server_context()).cipher()
    assert cipher is not None
    assert cipher[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"


def test_a_context_that_is_handed_in_is_used_as_it_is() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    assert context_of(ssl_context=context) is context


def test_what_cannot_be_used_names_its_setting_and_no_secret(certificates: Certificates, tmp_path: Path) -> None:
    no_pem = tmp_path / "no.pem"
    no_pem.write_text("this is no PEM")
    encrypted, chain = str(certificates.encrypted), certificates.authority.read_text()
    cases: list[tuple[str, dict[str, str]]] = [
        (
            "ssl_truststore_location '/no/where.pem' cannot be used: No such file",
            {"ssl_truststore_location": "/no/where.pem"},
        ),
        ("ssl_truststore_location", {"ssl_truststore_location": str(no_pem)}),
        ("ssl_truststore_certificates", {"ssl_truststore_certificates": "this is no PEM"}),
        ("ssl_keystore_location '/no/where.pem'", {"ssl_keystore_location": "/no/where.pem"}),
        ("ssl_keystore_location", {"ssl_keystore_location": str(certificates.authority)}),
        ("ssl_keystore_location", {"ssl_keystore_location": encrypted, "ssl_key_password": "hunter2-is-wrong"}),
        ("ssl_keystore_location", {"ssl_keystore_location": encrypted}),  # and nobody is asked on the terminal
        ("ssl_keystore_key", {"ssl_keystore_key": "-----hunter2-----", "ssl_keystore_certificate_chain": chain}),
        ("ssl_cipher_suites", {"ssl_cipher_suites": "NONE-OF-THESE"}),
    ]
    for says, settings in cases:
        with pytest.raises(AuthenticationFailed) as caught:
            context_of(**settings)
        assert says in str(caught.value)
        assert "hunter2" not in f"{caught.value!r} {caught.value}"
        hint = caught.value.hint
        assert ("file" in hint) == ("location" in says or "ssl_truststore_certificates" in says)
        assert ("ssl_key_password" in hint) == ("ssl_keystore" in says)
        assert ("colons" in hint) == ("ssl_cipher_suites" in says)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.ENOMEM])
def test_what_the_machine_is_short_of_may_pass(
    number: int, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, "too little")

    for name, settings in (
        ("load_verify_locations", {"ssl_truststore_location": str(certificates.authority)}),
        ("load_cert_chain", {"ssl_keystore_location": str(certificates.client)}),
    ):
        monkeypatch.setattr(ssl.SSLContext, name, fail)
        with pytest.raises(ConnectionFailed, match="too little") as caught:
            context_of(**settings)
        assert caught.value.retriable
        assert f"{next(iter(settings))} '" in str(caught.value)


def test_files_that_could_be_used_before_may_be_half_written_now(certificates: Certificates, tmp_path: Path) -> None:
    trust, key = tmp_path / "trust.pem", tmp_path / "key.pem"
    trust.write_text(whole_trust := certificates.authority.read_text())
    key.write_text(whole_key := certificates.client.read_text())
    contexts = contexts_of(ssl_truststore_location=str(trust), ssl_keystore_location=str(key))
    contexts.make(BROKER)
    for file, whole in ((trust, whole_trust), (key, whole_key)):
        for written in (whole[: len(whole) // 2], "", None):
            if written is None:
                file.unlink()
            else:
                file.write_text(written)
            with pytest.raises(ConnectionFailed, match=file.name) as caught:
                contexts.make(BROKER)
            assert "Check that the file is there" in caught.value.hint
            file.write_text(whole)
        contexts.make(BROKER)


def test_a_zone_is_no_part_of_the_name() -> None:
    assert [server_name(host) for host in ("kafka.test", "::1", "fe80::1%eth0")] == ["kafka.test", "::1", "fe80::1"]


def test_what_is_no_tls_at_all_is_recognized(certificates: Certificates) -> None:
    to_client = ssl.MemoryBIO()
    ours = context_of(ssl_truststore_location=str(certificates.authority)).wrap_bio(
        to_client, ssl.MemoryBIO(), server_hostname="kafka.test"
    )
    with pytest.raises(ssl.SSLWantReadError):
        ours.do_handshake()
    to_client.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(ssl.SSLError) as caught:
        ours.do_handshake()
    failure = refusal(caught.value, BROKER)
    assert isinstance(failure, AuthenticationFailed)
    assert "does not speak TLS" in failure.hint


def test_a_record_that_was_damaged_on_its_way_may_pass(certificates: Certificates) -> None:
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context_of(ssl_truststore_location=str(certificates.authority))
    ours = client.wrap_bio(to_client, to_server, server_hostname="kafka.test")
    theirs = certificates.server_context().wrap_bio(to_server, to_client, server_side=True)
    for end in (ours, theirs):
        with pytest.raises(ssl.SSLWantReadError):
            end.do_handshake()
    answer = to_client.read()
    to_client.write(answer[:-1] + bytes([answer[-1] ^ 1]))
    with pytest.raises(ssl.SSLError) as caught:
        ours.do_handshake()
    failure = refusal(caught.value, BROKER)
    assert isinstance(failure, ConnectionFailed), caught.value
    assert "BAD_RECORD_MAC" in str(failure)


@pytest.mark.parametrize(
    ("reason", "is_fatal"),
    [
        ("TLSV1_ALERT_INTERNAL_ERROR", False),
        ("SSLV3_ALERT_BAD_RECORD_MAC", False),
        ("TLSV1_ALERT_USER_CANCELLED", False),
        ("TLSV1_ALERT_ACCESS_DENIED", True),
        ("TLSV1_ALERT_PROTOCOL_VERSION", True),
        ("TLSV1_UNRECOGNIZED_NAME", True),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", True),
        ("UNSUPPORTED_PROTOCOL", True),
        ("UNEXPECTED_EOF_WHILE_READING", False),
    ],
)
def test_only_a_refusal_is_final(reason: str, is_fatal: bool) -> None:
    error = ssl.SSLError(1, f"[SSL: {reason}] some words")
    error.reason = reason
    failure = refusal(error, BROKER)
    assert type(failure) is (AuthenticationFailed if is_fatal else ConnectionFailed)
    assert reason in str(failure)
    assert failure.hint
