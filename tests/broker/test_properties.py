"""Java's properties syntax, as java.util.Properties reads it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.option import ConfigError
from broker.properties import parse_assignment, parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("\n \t\n# a=1\n  ! b=2\n", {}),
        ("a=1\nb = 2 \r\nc:3\rd 4\ne\t=\t5", {"a": "1", "b": "2 ", "c": "3", "d": "4", "e": "5"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=1", {"": "1"}),
        ("a==1", {"a": "=1"}),
        ("a : = 1", {"a": "= 1"}),
        ("a=1#2", {"a": "1#2"}),
        ("a=1\na=2", {"a": "2"}),
        ("list=x,\\\n   y,\\\n   z\nb=1", {"list": "x,y,z", "b": "1"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a=x\\\\\nb=1", {"a": "x\\", "b": "1"}),
        ("a=last\\", {"a": "last"}),
        ("a\\=b=1", {"a=b": "1"}),
        ("a\\ b\\:=1", {"a b:": "1"}),
        ("a\\\\=1", {"a\\": "1"}),
        ("a=\\t\\n\\r\\f\\u00e4\\q", {"a": "\t\n\r\fäq"}),
        ("path=C:\\\\x", {"path": "C:\\x"}),
    ],
)
def test_each_form(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_an_escape_that_is_none_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"^server.properties, line 3: \\u00x1 is not \\u and four hexadecimal"):
        parse_properties("# one\na=1\nb=\\u00x1", "server.properties")
    with pytest.raises(ConfigError, match="line 1"):
        parse_properties("b=\\\n\\\n\\u12")


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=5))
def test_what_is_escaped_is_read_back(properties: dict[str, str]) -> None:
    def escape(text: str) -> str:
        return "".join(f"\\u{unit:04x}" for unit in utf16(text))

    text = "\n".join(f"{escape(name)}={escape(value)}" for name, value in properties.items())
    expected = {joined(name): joined(value) for name, value in properties.items() if name}
    found = parse_properties(text)
    found.pop("", None)
    assert found == expected


def utf16(text: str) -> list[int]:
    data = text.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


def joined(text: str) -> str:
    return "".join(chr(unit) for unit in utf16(text))


@given(st.text(alphabet="ab=: \t\\\n#!u0", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_properties(text)
    except ConfigError as error:
        assert "four hexadecimal digits" in str(error)


def test_an_assignment() -> None:
    assert parse_assignment("a.b=c=d") == ("a.b", "c=d")
    assert parse_assignment(" a = ") == ("a", "")
    for text in ("a", "", "=1"):
        with pytest.raises(ConfigError, match=r"is not of the form name=value"):
            parse_assignment(text)
