"""Java's properties syntax: hand-written cases of each rule, and every mapping written as Java does read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.runtime.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("  a = b c  ", {"a": "b c  "}),
        ("a:b\nc d", {"a": "b", "c": "d"}),
        ("a", {"a": ""}),
        ("# x=1\n! y=2\n\n \t\nz=3", {"z": "3"}),
        ("a=1\\\n   2\\\n3", {"a": "123"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\ b\\==\\u0041\\t\\q", {"a b=": "A\tq"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=#no comment", {"a": "#no comment"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=1\\", {"a": "1"}),
        ("=x", {"": "x"}),
        ("\n \t\n# a=1\n  ! b=2\n", {}),
        ("d 4\ne\t=\t5", {"d": "4", "e": "5"}),
        ("a=", {"a": ""}),
        ("a : = 1", {"a": "= 1"}),
        ("list=x,\\\n   y,\\\n   z\nb=1", {"list": "x,y,z", "b": "1"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a\\=b=1", {"a=b": "1"}),
        ("a\\ b\\:=1", {"a b:": "1"}),
        ("a\\\\=1", {"a\\": "1"}),
        ("a=\\t\\n\\r\\f\\u00e4\\q", {"a": "\t\n\r\fäq"}),
        ("path=C:\\\\x", {"path": "C:\\x"}),
        ("", {}),
    ],
)
def test_a_text_means_what_java_takes_it_for(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["x=1\ny=\\u12", "#\nb=\\\n\\\n\\u12", "x=1\ny=\\uzzzz", "x=1\n\\u=2"])
def test_a_broken_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 2: .*four hexadecimal digits"):
        parse_properties(text)


def test_two_escapes_may_be_one_character() -> None:
    assert parse_properties("a=\\uD83D\\uDE00") == {"a": "\N{GRINNING FACE}"}


@pytest.mark.parametrize("text", ["x=1\ny=\\uD83D", "x=1\n\\uDE00=y", "x=1\ny=\\uDE00\\uD83D"])
def test_half_of_a_character_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 2: .*half of a character"):
        parse_properties(text)


def written(text: str, *, is_name: bool) -> str:
    """As Properties.store does it."""
    special = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}
    special |= {character: f"\\{character}" for character in "=:#!"}
    pieces = [special.get(character, character) for character in text]
    if is_name:
        pieces = ["\\ " if piece == " " else piece for piece in pieces]
    elif pieces and pieces[0] == " ":
        pieces[0] = "\\ "
    return "".join(pieces)


TEXTS = st.text(alphabet=st.sampled_from("ab =:#!\\\t\n\r\fä0u"), max_size=8)


@given(st.dictionaries(TEXTS, TEXTS, max_size=4))
def test_what_java_writes_is_read_back(properties: dict[str, str]) -> None:
    lines = [f"{written(name, is_name=True)}={written(value, is_name=False)}" for name, value in properties.items()]
    assert parse_properties("\n".join(lines)) == properties


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_line(text: str) -> None:
    try:
        parse_properties(text)
    except ValueError as error:
        assert str(error).startswith("line ")
