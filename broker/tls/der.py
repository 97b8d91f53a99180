"""DER, as far as certificates need it (X.690). Pure.

    tag, length, content          a length below 128 is one byte; else the first byte counts the bytes that hold it

OpenSSL has verified the certificates of clients before they are read here, and those of the operator are trusted. What
is no DER is an error nevertheless, and never a guess.
"""

from typing import Final, NamedTuple

SEQUENCE: Final = 0x30
SET: Final = 0x31
OID: Final = 0x06
_LENGTH_BYTES_MAX: Final = 4
_SHORT_LENGTH_MAX: Final = 0x7F
_LONG_TAG: Final = 0x1F


class DerError(ValueError):
    """Bytes that are no DER, or not what was expected."""


class Element(NamedTuple):
    """One element. `whole` is tag, length and content, as they came."""

    tag: int
    content: bytes
    whole: bytes


def elements(data: bytes) -> list[Element]:
    """The elements that `data` consists of, in their order. Raises DerError."""
    found: list[Element] = []
    position = 0
    while position < len(data):
        element = _element_at(data, position)
        found.append(element)
        position += len(element.whole)
    return found


def children(element: Element, tag: int) -> list[Element]:
    """What an element of this tag consists of. Raises DerError for another one."""
    if element.tag != tag:
        raise DerError(f"an element with the tag {element.tag:#04x} where {tag:#04x} is expected")
    return elements(element.content)


def first(data: bytes, tag: int) -> Element:
    """The element of this tag that `data` begins with; what follows it is nobody's concern. Raises DerError."""
    element = _element_at(data, 0)
    if element.tag != tag:
        raise DerError(f"an element with the tag {element.tag:#04x} where {tag:#04x} is expected")
    return element


def encoded(tag: int, content: bytes) -> bytes:
    """An element, its length in as few bytes as there can be."""
    size = len(content)
    if size <= _SHORT_LENGTH_MAX:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def oid_text(element: Element) -> str:
    """An object identifier with dots, as `2.5.4.3`. Raises DerError."""
    if element.tag != OID or not element.content or element.content[-1] & 0x80:
        raise DerError("this is no object identifier")
    numbers: list[int] = []
    number = 0
    for byte in element.content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first_two = min(numbers[0] // 40, 2)  # the first number is 40 times the first one written, and the second one
    return ".".join(map(str, (first_two, numbers[0] - 40 * first_two, *numbers[1:])))


def _element_at(data: bytes, position: int) -> Element:
    start = position
    if position + 2 > len(data):
        raise DerError("it ends within an element")
    tag, size = data[position], data[position + 1]
    position += 2
    if tag & _LONG_TAG == _LONG_TAG:
        raise DerError("a tag of several bytes")
    if size > _SHORT_LENGTH_MAX:
        count = size & _SHORT_LENGTH_MAX
        if not 1 <= count <= _LENGTH_BYTES_MAX:
            raise DerError(f"a length of {count} bytes")
        size = int.from_bytes(data[position : position + count], "big")
        position += count
    end = position + size
    if end > len(data):
        raise DerError("it ends within an element")
    return Element(tag, data[position:end], data[start:end])
