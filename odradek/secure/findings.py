"""What is to be said of a listener: what it offers, and what of that is weak. Pure.

Weak is what lets somebody in, or read along, who should not: no encryption, no authentication, broken versions and
ciphers, a certificate that clients do not trust. On loopback the lack of both is a note: who is on the machine.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from odradek.secure.listener_facts import ClientCertificate, KafkaFacts, ListenerFacts, TlsFacts

__all__ = ["Finding", "Level", "judged", "offered", "offered_json"]

BITS_MIN: Final = 128
DAYS_MIN: Final = 30
OLD: Final = ("TLSv1.1", "TLSv1")
BROKEN: Final = ("NULL", "EXP", "RC4", "RC2", "DES", "IDEA", "SEED", "MD5", "ADH", "AECDH")
"""Parts of ciphers' names: no encryption, broken encryption, or nobody knows with whom it is spoken."""
PLAIN: Final = "PLAIN"
LOOPBACK: Final = ("localhost", "::1")


class Level(Enum):
    WEAK = "weak"
    NOTE = "note"


class Finding(NamedTuple):
    """`what` is wrong, and what to do about it."""

    level: Level
    what: str


def judged(facts: ListenerFacts, now_ms: int) -> list[Finding]:
    """The weak points first."""
    found = [*_of_access(facts)]
    if facts.tls is not None:
        found += _of_tls(facts, facts.tls, now_ms)
    return sorted(found, key=lambda finding: finding.level is not Level.WEAK)


def _of_access(facts: ListenerFacts) -> Iterator[Finding]:
    """Who gets in, and who can read along."""
    lacks = Level.NOTE if is_loopback(facts.host) else Level.WEAK
    kafka = facts.kafka
    if facts.tls is None:
        yield Finding(lacks, "nothing is encrypted: who is on the way reads and changes it; use SASL_SSL or SSL")
    knows = facts.tls is not None and facts.tls.client_certificate is ClientCertificate.REQUIRED
    if kafka is not None and kafka.answers_metadata and not knows:
        yield Finding(
            lacks,
            "clients are answered without saying who they are: use SASL_SSL, or SSL with ssl.client.auth=required",
        )
    if kafka is not None and PLAIN in kafka.mechanisms:
        level = Level.NOTE if facts.tls is not None else Level.WEAK
        yield Finding(level, "PLAIN sends the password itself to the broker; SCRAM-SHA-512 does not")


def _of_tls(facts: ListenerFacts, tls: TlsFacts, now_ms: int) -> Iterator[Finding]:
    for name in OLD:
        if tls.versions.get(name):
            yield Finding(Level.WEAK, f"{name} is broken: set ssl.enabled.protocols to TLSv1.2,TLSv1.3")
    if not tls.versions.get("TLSv1.3"):
        yield Finding(Level.NOTE, "TLSv1.3 is not spoken, which is faster and hides more")
    if broken := [name for name in tls.ciphers if is_broken(name, facts.strengths.get(name, BITS_MIN))]:
        yield Finding(Level.WEAK, f"broken ciphers: {', '.join(broken)}; leave them out of ssl.cipher.suites")
    if static := [name for name in tls.ciphers if name not in broken and not name.startswith(("ECDHE-", "DHE-"))]:
        yield Finding(
            Level.NOTE,
            f"ciphers without forward secrecy: {', '.join(static)}; who learns the key later reads what was recorded",
        )
    if tls.untrusted is not None:
        yield Finding(
            Level.WEAK,
            f"the certificate is not trusted for {facts.host}: {tls.untrusted}; give the authority by --ca, or have "
            "the certificate issued for this host",
        )
    if tls.certificate is not None:
        yield from _of_days(tls.certificate.days_left(now_ms))
    if tls.client_certificate is ClientCertificate.REQUESTED:
        yield Finding(Level.NOTE, "a client without a certificate is let in, as ANONYMOUS where there is no SASL")


def _of_days(days: int) -> Iterator[Finding]:
    if days < 0:
        yield Finding(Level.WEAK, "the certificate has ended: issue another one")
    elif days < DAYS_MIN:
        yield Finding(Level.WEAK, f"the certificate ends in {days} day(s): issue another one")


def is_broken(cipher: str, bits: int) -> bool:
    return bits < BITS_MIN or any(part in BROKEN for part in cipher.split("-"))


def is_loopback(host: str) -> bool:
    return host.lower() in LOOPBACK or host.startswith("127.")


# ----------------------------------------------------------------------------------------------------- what it offers
def offered(facts: ListenerFacts, now_ms: int) -> list[tuple[str, str]]:
    """What it is, line by line."""
    rows = [("protocol", facts.protocol)]
    if facts.tls is not None:
        rows += _tls_rows(facts.tls, now_ms)
    if facts.kafka is None:
        rows.append(("before login", "nothing is answered to a client without a certificate"))
        return rows
    rows += [
        ("SASL", ", ".join(facts.kafka.mechanisms) or "none"),
        ("before login", _before_login(facts.kafka)),
    ]
    return rows


def _tls_rows(tls: TlsFacts, now_ms: int) -> Iterator[tuple[str, str]]:
    yield "TLS", ", ".join(name for name, is_spoken in tls.versions.items() if is_spoken)
    if untried := [name for name, is_spoken in tls.versions.items() if is_spoken is None]:
        yield "not tried", f"{', '.join(untried)}, which OpenSSL here does not speak"
    if tls.cipher is not None:
        yield "cipher", tls.cipher
    if tls.ciphers:
        yield "of TLSv1.2", ", ".join(tls.ciphers)
    if tls.certificate is not None:
        names = ", ".join(tls.certificate.names) or "no name"
        days = tls.certificate.days_left(now_ms)
        yield "certificate", f"{tls.certificate.common_name or 'without a name'}, for {names}, {days} day(s) left"
    yield "trusted", "yes" if tls.untrusted is None else f"no: {tls.untrusted}"
    yield "client certificate", tls.client_certificate.value


def _before_login(kafka: KafkaFacts) -> str:
    return "everything is answered" if kafka.answers_metadata else "ApiVersions is answered, and Metadata is not"


def offered_json(facts: ListenerFacts, findings: list[Finding], now_ms: int) -> dict[str, object]:
    tls, kafka = facts.tls, facts.kafka
    certificate = None if tls is None else tls.certificate
    return {
        "host": facts.host,
        "port": facts.port,
        "protocol": facts.protocol,
        "tls": None
        if tls is None
        else {
            "versions": dict(tls.versions),
            "cipher": tls.cipher,
            "ciphers": list(tls.ciphers),
            "certificate": None
            if certificate is None
            else {
                "common_name": certificate.common_name,
                "names": list(certificate.names),
                "days_left": certificate.days_left(now_ms),
            },
            "untrusted": tls.untrusted,
            "client_certificate": tls.client_certificate.name,
        },
        "mechanisms": None if kafka is None else list(kafka.mechanisms),
        "answers_metadata_before_login": None if kafka is None else kafka.answers_metadata,
        "findings": [{"level": finding.level.value, "what": finding.what} for finding in findings],
    }
