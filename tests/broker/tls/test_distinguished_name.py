"""Names as Java writes them: expected texts here, and beside Java itself in tests/compat/test_names_like_java.py."""

import pytest

from odradek.broker.tls.der import OID, SEQUENCE, SET, DerError, Element, elements, encoded
from odradek.broker.tls.distinguished_name import java_name

UTF8, PRINTABLE, T61, IA5, BMP, UNIVERSAL, NUMERIC = 12, 19, 20, 22, 30, 28, 18
CN, ORGANIZATION, OU, SERIAL = "550403", "55040a", "55040b", "550405"
EMAIL, DC = "2a864886f70d010901", "0992268993f22c640119"


def attribute(kind: str, value: str | bytes, tag: int = UTF8) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return encoded(SEQUENCE, encoded(OID, bytes.fromhex(kind)) + encoded(tag, content))


def name(*parts: list[bytes]) -> Element:
    (element,) = elements(encoded(SEQUENCE, b"".join(encoded(SET, b"".join(part)) for part in parts)))
    return element


def common(value: str | bytes, tag: int = UTF8) -> str:
    return java_name(name([attribute(CN, value, tag)])).removeprefix("CN=")


def test_parts_come_in_reverse_order() -> None:
    assert java_name(name([attribute(ORGANIZATION, "Example")], [attribute(OU, "Sales")], [attribute(CN, "b1")])) == (
        "CN=b1,OU=Sales,O=Example"
    )


def test_attributes_of_one_part_stay_in_their_order() -> None:
    assert java_name(name([attribute(ORGANIZATION, "x")], [attribute(OU, "b"), attribute(CN, "a")])) == "OU=b+CN=a,O=x"


def test_an_empty_name_is_empty() -> None:
    assert java_name(name()) == ""


@pytest.mark.parametrize(
    ("kind", "value", "tag", "text"),
    [
        (EMAIL, "a@b", IA5, "1.2.840.113549.1.9.1=#1603614062"),
        (SERIAL, "7", PRINTABLE, "2.5.4.5=#130137"),
        ("2a0304", "x", UTF8, "1.2.3.4=#0c0178"),
        (DC, "example", IA5, "DC=example"),
        (CN, "7", NUMERIC, "CN=#120137"),
        (CN, "\0\0\0a", UNIVERSAL, "CN=#1c0400000061"),
    ],
)
def test_what_rfc_2253_does_not_name_is_hex(kind: str, value: str, tag: int, text: str) -> None:
    assert java_name(name([attribute(kind, value, tag)])) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a,b", r"a\,b"),
        ("a=b", r"a\=b"),
        ("a+b<c>d;e", r"a\+b\<c\>d\;e"),
        ('say "x"', r"say \"x\""),
        ("back\\slash", r"back\\slash"),
        ("a#b", r"a\#b"),
        ("#a", r"\#a"),
        (" a ", r"\ a\ "),
        ("  a\r", "\\ \\ a\\\r"),
        ("   ", r"\ \ \ "),
        ("a b", "a b"),
        ("\ta\n", "\ta\n"),
        ("\0a", r"\00a"),
        ("", ""),
        ("a\\ ", "a\\\\\\ "),
        ("Zoë – 東京 😀", "Zoë – 東京 😀"),
    ],
)
def test_escapes(value: str, text: str) -> None:
    assert common(value) == text


def test_text_of_any_kind_is_read_as_utf_8() -> None:
    """As Java does; it is wrong, and an ACL that was made from what Java says has it."""
    assert common("AB".encode("utf-16-be"), BMP) == r"\00A\00B"
    assert common("é".encode("latin-1"), T61) == "\N{REPLACEMENT CHARACTER}"
    assert common(b"a\xed\xa0\x80b") == "a\N{REPLACEMENT CHARACTER}b", "half a pair is one character"
    assert common(b"\xed\xb7") == "\N{REPLACEMENT CHARACTER}"
    assert common(b"\xc3") == "\N{REPLACEMENT CHARACTER}"


def test_names_that_look_alike_stay_different() -> None:
    """Nothing is normalised: whoever could choose one would have the other's rights."""
    assert common("é") != common("e\N{COMBINING ACUTE ACCENT}")
    assert common("admin") != common("ADMIN")
    assert common("admin") != common("admin ")
    one_part, two_parts = name([attribute(CN, "a,O=b")]), name([attribute(ORGANIZATION, "b")], [attribute(CN, "a")])
    assert java_name(one_part) != java_name(two_parts)


@pytest.mark.parametrize("data", ["3003020101", "300530030c0161", "3004310230 00".replace(" ", "")])
def test_what_is_no_name_is_an_error(data: str) -> None:
    (element,) = elements(bytes.fromhex(data))
    with pytest.raises(DerError):
        java_name(element)
