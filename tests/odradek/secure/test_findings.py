"""What is weak about a listener, and what is only worth knowing."""

import pytest

from odradek.secure.certificate_facts import MS_PER_DAY, CertificateFacts
from odradek.secure.findings import Level, is_broken, is_loopback, judged, offered, offered_json
from odradek.secure.listener_facts import ClientCertificate, KafkaFacts, ListenerFacts, TlsFacts

GOOD_CIPHERS = ("ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305")


def tls(
    versions: dict[str, bool | None] | None = None,
    ciphers: tuple[str, ...] = GOOD_CIPHERS,
    days: int = 100,
    untrusted: str | None = None,
    client: ClientCertificate = ClientCertificate.NONE,
) -> TlsFacts:
    spoken: dict[str, bool | None] = {"TLSv1.3": True, "TLSv1.2": True, "TLSv1.1": False, "TLSv1": None}
    return TlsFacts(
        spoken | (versions or {}),
        "TLS_AES_256_GCM_SHA384",
        ciphers,
        CertificateFacts("b1.example", ("b1.example",), days * MS_PER_DAY),
        untrusted,
        client,
    )


SCRAM = KafkaFacts(False, ("SCRAM-SHA-512",))
OPEN = KafkaFacts(True)


def said(facts: ListenerFacts) -> dict[Level, str]:
    found = judged(facts, 0)
    return {level: "; ".join(each.what for each in found if each.level is level) for level in Level}


def test_a_listener_that_protects_itself_has_no_weak_point() -> None:
    assert judged(ListenerFacts("b1.example", 9093, tls(), SCRAM), 0) == []
    required = tls(client=ClientCertificate.REQUIRED)
    assert judged(ListenerFacts("b1.example", 9093, required, None), 0) == []


@pytest.mark.parametrize(
    ("facts", "weak"),
    [
        (ListenerFacts("b", 1, None, OPEN), "nothing is encrypted"),
        (ListenerFacts("b", 1, None, OPEN), "without saying who they are"),
        (ListenerFacts("b", 1, None, SCRAM), "nothing is encrypted"),
        (ListenerFacts("b", 1, None, KafkaFacts(False, ("PLAIN",))), "PLAIN sends the password"),
        (ListenerFacts("b", 1, tls(), OPEN), "without saying who they are"),
        (ListenerFacts("b", 1, tls(client=ClientCertificate.REQUESTED), OPEN), "without saying who they are"),
        (ListenerFacts("b", 1, tls({"TLSv1": True}), SCRAM), "TLSv1 is broken"),
        (ListenerFacts("b", 1, tls({"TLSv1.1": True}), SCRAM), "TLSv1.1 is broken"),
        (ListenerFacts("b", 1, tls(ciphers=("DES-CBC3-SHA",)), SCRAM), "broken ciphers: DES-CBC3-SHA"),
        (ListenerFacts("b", 1, tls(ciphers=("X",)), SCRAM, {"X": 56}), "broken ciphers: X"),
        (ListenerFacts("b", 1, tls(untrusted="self-signed certificate"), SCRAM), "not trusted for b: self-signed"),
        (ListenerFacts("b", 1, tls(days=29), SCRAM), "ends in 29 day(s)"),
        (ListenerFacts("b", 1, tls(days=-1), SCRAM), "has ended"),
    ],
)
def test_what_lets_somebody_in_or_read_along_is_weak(facts: ListenerFacts, weak: str) -> None:
    assert weak in said(facts)[Level.WEAK]


@pytest.mark.parametrize(
    ("facts", "note"),
    [
        (ListenerFacts("localhost", 1, None, OPEN), "nothing is encrypted"),
        (ListenerFacts("127.0.0.1", 1, None, OPEN), "without saying who they are"),
        (ListenerFacts("b", 1, tls({"TLSv1.3": False}), SCRAM), "TLSv1.3 is not spoken"),
        (ListenerFacts("b", 1, tls(ciphers=("AES128-GCM-SHA256",)), SCRAM), "without forward secrecy"),
        (ListenerFacts("b", 1, tls(), KafkaFacts(False, ("PLAIN",))), "PLAIN sends the password"),
        (ListenerFacts("b", 1, tls(client=ClientCertificate.REQUESTED), SCRAM), "is let in"),
    ],
)
def test_other_things_are_noted(facts: ListenerFacts, note: str) -> None:
    found = said(facts)
    assert note in found[Level.NOTE]
    assert found[Level.WEAK] == ""


@pytest.mark.parametrize("name", ["NULL-SHA256", "EXP-RC4-MD5", "ECDHE-RSA-RC4-SHA", "DES-CBC3-SHA", "ADH-AES256-SHA"])
def test_broken_ciphers_are_known_by_their_names(name: str) -> None:
    assert is_broken(name, 128)
    assert not is_broken("ECDHE-RSA-AES128-SHA256", 128)


def test_weak_points_come_first() -> None:
    facts = ListenerFacts("b", 1, tls({"TLSv1.3": False, "TLSv1": True}), KafkaFacts(False, ("PLAIN",)))
    levels = [finding.level for finding in judged(facts, 0)]
    assert levels == sorted(levels, key=lambda level: level is not Level.WEAK)
    assert set(levels) == set(Level)


def test_what_is_offered_is_told_to_people_and_programs() -> None:
    facts = ListenerFacts("b1.example", 9093, tls(), SCRAM)
    rows = dict(offered(facts, 0))
    assert rows["protocol"] == "SASL_SSL"
    assert rows["TLS"] == "TLSv1.3, TLSv1.2"
    assert rows["not tried"].startswith("TLSv1,")
    assert rows["certificate"] == "b1.example, for b1.example, 100 day(s) left"
    assert rows["before login"] == "ApiVersions is answered, and Metadata is not"
    told = offered_json(facts, [], 0)
    assert told["mechanisms"] == ["SCRAM-SHA-512"]
    assert told["protocol"] == "SASL_SSL"


@pytest.mark.parametrize(
    ("tls_facts", "kafka", "protocol"),
    [
        (None, OPEN, "PLAINTEXT"),
        (None, SCRAM, "SASL_PLAINTEXT"),
        (tls(), OPEN, "SSL"),
        (tls(client=ClientCertificate.REQUIRED), None, "SSL"),
        (tls(), SCRAM, "SASL_SSL"),
    ],
)
def test_protocols_have_kafkas_names(tls_facts: TlsFacts | None, kafka: KafkaFacts | None, protocol: str) -> None:
    assert ListenerFacts("b", 1, tls_facts, kafka).protocol == protocol


def test_loopback_is_this_machine() -> None:
    assert [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "b1.example", "10.0.0.1")] == [
        True, True, True, False, False,
    ]  # fmt: skip
