"""Login modules in Java's notation: what Java reads of them, and words about mistakes that quote nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.runtime.jaas import JaasEntry, MalformedJaas, parse_jaas

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{MODULE} required;", {}),
        (f'{MODULE} required username="me" password="secret";', {"username": "me", "password": "secret"}),
        (f"{MODULE}\n  REQUIRED\n  user_a='x y;z'\tb=c ;\n", {"user_a": "x y;z", "b": "c"}),
        (f"{MODULE} optional a = \"\" b='';", {"a": "", "b": ""}),
        (f'{MODULE} sufficient a="say \\"no\\"" b="tab\\t" c="\\101\\060" d="back\\\\slash";',
         {"a": 'say "no"', "b": "tab\t", "c": "A0", "d": "back\\slash"}),
        (f"/* who */ {MODULE} // comes\n requisite a='it\"s';", {"a": 'it"s'}),
        (f'{MODULE} required user_b@x="1" user_ü-1.2$="2";', {"user_b@x": "1", "user_ü-1.2$": "2"}),
        (f'{MODULE} required a="1" a="2";', {"a": "2"}),
    ],
)  # fmt: skip
def test_what_is_read(text: str, options: dict[str, str]) -> None:
    assert parse_jaas(text) == JaasEntry(MODULE, options)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "begin with the name"),
        (MODULE, "begin with the name"),
        (f"{MODULE} sometimes;", "begin with the name"),
        (f"{MODULE} required", "end with a semicolon"),
        (f'{MODULE} required password="geheim"', "end with a semicolon"),
        (f'{MODULE} required password="geheim;', "quote is not closed"),
        (f"{MODULE} required password=geheim/1;", "quote is not closed, or"),
        (f"{MODULE} required password;", "its options have to be"),
        (f'{MODULE} required "geheim";', "its options have to be"),
        (f"{MODULE} required password=;", "its options have to be"),
        (f"{MODULE} required ==geheim;", "its options have to be"),
        (f'{MODULE} required a="1"; {MODULE} required b="geheim";', "follows the semicolon"),
        ('; required a="geheim";', "begin with the name"),
    ],
)
def test_what_is_refused_is_not_quoted(text: str, said: str) -> None:
    with pytest.raises(MalformedJaas, match=said) as caught:
        parse_jaas(text)
    assert "geheim" not in str(caught.value)


@given(
    st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(st.characters(exclude_categories=["Cs"])))
)
def test_any_value_comes_back_that_is_escaped(options: dict[str, str]) -> None:
    escaped = {
        name: value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        for name, value in options.items()
    }
    text = " ".join(f'{name}="{value}"' for name, value in escaped.items())
    assert parse_jaas(f"{MODULE} required {text};").options == options


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_jaas(text)
    except MalformedJaas as error:
        assert str(error)


def test_an_entry_shows_no_secrets() -> None:
    assert "secret" not in repr(parse_jaas(f'{MODULE} required password="secret";'))
