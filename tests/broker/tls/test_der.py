"""DER is read element by element; what is cut short or no DER is an error."""

import pytest

from odradek.broker.tls.der import OID, SEQUENCE, DerError, Element, children, elements, encoded, first, oid_text


def test_elements_follow_one_another() -> None:
    data = bytes.fromhex("020105 3003020107 0c0161")
    assert [(each.tag, each.content) for each in elements(data)] == [(2, b"\5"), (0x30, b"\2\1\7"), (12, b"a")]
    assert b"".join(each.whole for each in elements(data)) == data


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 65535, 65536])
def test_any_length_comes_back(size: int) -> None:
    content = bytes(size)
    (element,) = elements(encoded(4, content))
    assert element.content == content
    assert len(element.whole) == len(encoded(4, content))


@pytest.mark.parametrize("text", ["30", "3003", "300302", "04820001", "048500000000010a", "0480", "3f0101", "1f0101"])
def test_what_is_no_der_is_an_error(text: str) -> None:
    with pytest.raises(DerError):
        elements(bytes.fromhex(text))


def test_every_beginning_of_an_element_is_an_error() -> None:
    whole = encoded(SEQUENCE, encoded(4, bytes(300)))
    for size in range(1, len(whole)):
        with pytest.raises(DerError):
            elements(whole[:size])


def test_another_tag_than_expected_is_an_error() -> None:
    (element,) = elements(bytes.fromhex("020105"))
    for read in (lambda: children(element, SEQUENCE), lambda: first(element.whole, SEQUENCE)):
        with pytest.raises(DerError, match="0x02 where 0x30"):
            read()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("550403", "2.5.4.3"),
        ("2a864886f70d010901", "1.2.840.113549.1.9.1"),
        ("0992268993f22c640101", "0.9.2342.19200300.100.1.1"),
        ("883703", "2.999.3"),
        ("27", "0.39"),
        ("4f", "1.39"),
        ("50", "2.0"),
    ],
)
def test_object_identifiers(content: str, text: str) -> None:
    data = bytes.fromhex(content)
    assert oid_text(Element(OID, data, encoded(OID, data))) == text


@pytest.mark.parametrize(("tag", "content"), [(OID, ""), (OID, "5584"), (4, "55")])
def test_what_is_no_object_identifier(tag: int, content: str) -> None:
    with pytest.raises(DerError, match="no object identifier"):
        oid_text(Element(tag, bytes.fromhex(content), b""))
