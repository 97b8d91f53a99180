"""Names of certificates beside Java's own X500Principal, and rules for them beside Apache Kafka's SslPrincipalMapper.

ACLs name principals letter by letter: one that differs by a backslash is somebody else. The names are random, of all
that DER can say and much that nobody should; ODRADEK_FUZZ_SEED repeats a run.
"""

import os
import random
import subprocess

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from odradek.broker.tls.certificate import read_certificate
from odradek.broker.tls.der import OID, SEQUENCE, SET, elements, encoded
from odradek.broker.tls.distinguished_name import java_name
from odradek.broker.tls.principal_mapping import PrincipalMapping
from odradek.broker.tls.tls_error import TlsError
from processes.apache_kafka import quick_jvm
from processes.java_source import java_source_command
from tests.broker.tls.authority import Authority

pytestmark = [pytest.mark.compat, pytest.mark.java]

NAMES = 3000
KINDS = (
    "550403", "550406", "550407", "550408", "55040a", "55040b", "550409", "0992268993f22c640119",
    "0992268993f22c640101", "2a864886f70d010901", "550405", "550404", "55042a", "2a0304", "883703",
)  # fmt: skip
"""The nine that RFC 2253 names, an email address, a serial number, surname, given name, and unknown ones."""
TEXTS = (12, 19, 20, 22, 27, 28, 30, 18, 26, 4, 2)
"""Six kinds of text that Java reads as such, others of text, bytes, a number."""
CHARACTERS = (
    *',=+<>#;"\\', " ", " ", "\0", "\r", "\n", "\t", "a", "B", "7", "*", "/",
    "\u00e9", "e\u0301", "\u00df", "\u0130", "\u03a9",
    "\u6771", "\U0001f600",
)  # fmt: skip
RULES = (
    "DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U,DEFAULT",
    "RULE:CN=(.*)/$1/",
    "RULE:.*/x/",
    "RULE:(.)(.)?.*/$2$1$3/L,DEFAULT",
    "RULE:CN=([^,\\\\]+)(,.*)?/$1-$12-$0/",
    "RULE:CN=(.*)/\\$1$4$5/",
    "RULE:CN=(?<who>.*)/${who}/",
    "RULE:CN=(\\w+)[\\s.-]?(\\d*)\\p{Punct}?.*/$1_$2/",
    "RULE:^(?:CN|O)=(?!x)(.+)$/$1/U",
    "RULE:a*?/-/,DEFAULT",
    "RULE:CN=[\\p{Alpha}&]+(.*)/$1/",
    "RULE:CN=.*/$1/",
    "RULE:CN=(.*)/$/",
    "RULE:CN=(.*)/$1/x",
    "RULE:CN=a\\/b(.*)/a\\/b$1/",
    " DEFAULT , RULE:a/b/ ",
    "nothing",
    "",
)


def ask(questions: list[str]) -> list[str]:
    command = java_source_command("tests/compat/JavaNames.java", jvm_options=quick_jvm(), log_level="error")
    done = subprocess.run(command, input="\n".join(questions), capture_output=True, text=True, check=True, timeout=110)
    answers = done.stdout.splitlines()
    assert len(answers) == len(questions), done.stderr
    return answers


def digits(data: bytes | str) -> str:
    return (data.encode() if isinstance(data, str) else data).hex() or "-"


def chance() -> random.Random:
    seed = int(os.environ.get("ODRADEK_FUZZ_SEED") or random.randrange(1 << 32))
    print(f"ODRADEK_FUZZ_SEED={seed}")  # noqa: T201
    return random.Random(seed)


def random_value(rng: random.Random) -> bytes:
    if rng.random() < 0.15:
        return rng.randbytes(rng.randrange(8))
    text = "".join(rng.choices(CHARACTERS, k=rng.randrange(9)))
    return text.encode(rng.choice(("utf-8", "utf-8", "utf-8", "utf-16-be", "utf-32-be")))


def random_name(rng: random.Random) -> bytes:
    def attribute() -> bytes:
        kind = encoded(OID, bytes.fromhex(rng.choice(KINDS)))
        return encoded(SEQUENCE, kind + encoded(rng.choice(TEXTS), random_value(rng)))

    parts = [
        encoded(SET, b"".join(attribute() for _ in range(rng.choice((1, 1, 1, 2, 3))))) for _ in range(rng.randrange(5))
    ]
    return encoded(SEQUENCE, b"".join(parts))


def test_names_are_javas() -> None:
    rng = chance()
    names = [random_name(rng) for _ in range(NAMES)]
    answers = ask([f"name {digits(name)}" for name in names])
    different = {
        name.hex(): (ours, answer)
        for name, answer in zip(names, answers, strict=True)
        if answer not in (ours := digits(java_name(elements(name)[0])), "refused")
    }
    assert different == {}
    assert answers.count("refused") < NAMES / 20, "Java, too, reads nearly all of them"


def test_subjects_of_certificates_are_javas() -> None:
    authority = Authority("authority")
    subjects = [
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, 'a, b="c"+#d;<e>\\ ')]),
        x509.Name(
            [
                x509.NameAttribute(NameOID.COUNTRY_NAME, "AT"),
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Größe & Söhne"),
                x509.NameAttribute(NameOID.EMAIL_ADDRESS, "a@example.invalid"),
                x509.NameAttribute(NameOID.USER_ID, " u "),
                x509.NameAttribute(NameOID.DOMAIN_COMPONENT, "example"),
            ]
        ),
        x509.Name(
            [
                x509.RelativeDistinguishedName(
                    [
                        x509.NameAttribute(NameOID.COMMON_NAME, "b"),
                        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "a"),
                        x509.NameAttribute(NameOID.SERIAL_NUMBER, "7"),
                    ]
                ),
                x509.RelativeDistinguishedName([x509.NameAttribute(NameOID.STATE_OR_PROVINCE_NAME, "東京")]),
            ]
        ),
    ]
    ders = [authority.issue(subject, hosts=("localhost",)).der for subject in subjects]
    assert ask([f"certificate {digits(der)}" for der in ders]) == [digits(read_certificate(der).name) for der in ders]


def test_rules_are_kafkas() -> None:
    """What Kafka refuses when a client comes, is refused at the start here; and nothing else is."""
    rng = chance()
    names = [
        "CN=Duke,OU=ServiceUsers,O=Org,C=US",
        "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US",
        "CN=kafka-01.example,O=x",
        "CN=a_1 2!,O=y",
        "CN=a/bcd",
        "O=y",
        "aaa",
        "",
        "CN=x\ny",
        "CN=x\r",
        "CN=x\N{LINE SEPARATOR}",
        *(java_name(elements(random_name(rng))[0]) for _ in range(50)),
    ]
    pairs = [(rules, name) for rules in RULES for name in names]
    answers = ask([f"mapped {digits(rules)} {digits(name)}" for rules, name in pairs])
    different: dict[tuple[str, str], tuple[str, str]] = {}
    refused: set[str] = set()
    for (rules, name), answer in zip(pairs, answers, strict=True):
        try:
            mapped = PrincipalMapping(rules).principal_name(name)
            ours = "none" if mapped is None else digits(mapped)
        except TlsError:
            refused.add(rules)
            continue
        if answer != ours:
            different[rules, name] = answer, ours
    assert different == {}
    theirs = {rules for (rules, _), answer in zip(pairs, answers, strict=True) if answer == "refused"}
    assert refused == theirs
