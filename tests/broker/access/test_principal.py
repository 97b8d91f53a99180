"""Principals as texts: `User:alice`, and the list of super users."""

import pytest

from odradek.broker.access.principal import Principal, parse_principal, parse_super_users


@pytest.mark.parametrize(
    ("text", "principal"),
    [
        ("User:alice", Principal("User", "alice")),
        ("User:CN=b1,OU=a;b", Principal("User", "CN=b1,OU=a;b")),
        ("User:a:b", Principal("User", "a:b")),
        ("User:", Principal("User", "")),
        (":x", Principal("", "x")),
    ],
)
def test_a_principal_is_cut_at_its_first_colon(text: str, principal: Principal) -> None:
    assert parse_principal(text) == principal
    assert str(principal) == text


@pytest.mark.parametrize("text", ["", "alice", "User"])
def test_what_has_no_colon_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="is not of the form principalType:principalName"):
        parse_principal(text)


def test_super_users_are_separated_by_semicolons() -> None:
    expected = {Principal("User", "admin"), Principal("User", "CN=b1,O=x y")}
    assert parse_super_users("User:admin; User:CN=b1,O=x y ;") == expected
    assert parse_super_users("") == parse_super_users(" ; ") == frozenset()
    with pytest.raises(ValueError, match="'admin' is not"):
        parse_super_users("User:a;admin")
