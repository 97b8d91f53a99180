"""Claims of tokens: who bears one and until when, and every reason why one does not count."""

from typing import Any

import pytest

from odradek.broker.authentication.token_claims import (
    INSUFFICIENT_SCOPE,
    INVALID_TOKEN,
    TokenRefused,
    TokenRules,
    check_claims,
    read_claims,
)

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
GOOD: dict[str, Any] = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 60}
RULES = TokenRules(clock_skew_ms=30_000)


def test_a_good_token_says_who_and_until_when() -> None:
    assert check_claims(GOOD, RULES, NOW_MS) == ("alice", NOW_MS + 60_000)
    assert check_claims(GOOD | {"exp": NOW_S + 0.5}, RULES, NOW_MS).expires_at_ms == NOW_MS + 500


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"exp": None}, "no exp"),
        ({"exp": NOW_S}, "its exp has passed"),
        ({"exp": NOW_S - 1}, "its exp has passed"),  # within the skew, which is no excuse
        ({"exp": "1800000000"}, "its exp is no number"),
        ({"exp": True}, "its exp is no number"),
        ({"exp": float("inf")}, "its exp is no time"),
        ({"exp": float("nan")}, "its exp is no time"),
        ({"exp": 1e300}, "its exp is no time"),
        ({"exp": 10**400}, "its exp is no time"),
        ({"exp": -1}, "its exp is no time"),
        ({"exp": [NOW_S + 60]}, "its exp is no number"),
        ({"iat": None}, "it has no iat"),
        ({"iat": NOW_S + 31}, "its iat is still to come"),
        ({"iat": NOW_S + 60, "exp": NOW_S + 20}, "its iat is still to come"),
        ({"iat": NOW_S + 25, "exp": NOW_S + 20}, "its iat is not before its exp"),
        ({"nbf": NOW_S + 31}, "its nbf is still to come"),
        ({"nbf": "soon"}, "its nbf is no number"),
        ({"sub": None}, "its claim 'sub' is no text"),
        ({"sub": 7}, "its claim 'sub' is no text"),
        ({"sub": ""}, "is empty"),
        ({"sub": "  "}, "blanks around it"),
        ({"sub": "alice "}, "blanks around it"),
        ({"sub": "\talice"}, "blanks around it"),
        ({"sub": ["alice"]}, "is no text"),
        ({"sub": "\ud800"}, "holds what is no character"),
        ({"aud": "kafka"}, "expected.audience names none"),
        ({"scope": 7}, "neither a text nor a list"),
        ({"scope": ["a", 7]}, "neither a text nor a list"),
        ({"scope": ["a", "a"]}, "something twice"),
        ({"scope": ["a", " "]}, "empty somewhere"),
    ],
)
def test_what_does_not_count(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(TokenRefused, match=said) as caught:
        check_claims(GOOD | changed, RULES, NOW_MS)
    assert caught.value.status == INVALID_TOKEN


@pytest.mark.parametrize("changed", [{"iat": NOW_S + 30}, {"nbf": NOW_S + 30}, {"nbf": NOW_S}, {"scope": None}])
def test_a_clock_that_is_a_little_ahead_is_excused(changed: dict[str, Any]) -> None:
    assert check_claims(GOOD | changed, RULES, NOW_MS).user == "alice"


@pytest.mark.parametrize(
    ("rules", "claims", "counts"),
    [
        ({"issuer": "https://idp"}, {"iss": "https://idp"}, True),
        ({"issuer": "https://idp"}, {"iss": "https://idp/"}, False),
        ({"issuer": "https://idp"}, {"iss": "https://IDP"}, False),
        ({"issuer": "https://idp"}, {"iss": ["https://idp"]}, False),
        ({"issuer": "https://idp"}, {}, False),
        ({}, {"iss": "anybody"}, True),
        ({"audiences": ("a", "b")}, {"aud": "b"}, True),
        ({"audiences": ("a", "b")}, {"aud": ["c", "a"]}, True),
        ({"audiences": ("a", "b")}, {"aud": "ab"}, False),
        ({"audiences": ("a", "b")}, {"aud": ["c"]}, False),
        ({"audiences": ("a", "b")}, {"aud": []}, False),
        ({"audiences": ("a", "b")}, {"aud": {"a": 1}}, False),
        ({"audiences": ("a", "b")}, {}, False),
        ({"user_claim": "email"}, {"email": "alice"}, True),
        ({"user_claim": "email"}, {}, False),
        ({"scope_claim": "scp", "required_scope": ("write",)}, {"scp": "read write"}, True),
        ({"scope_claim": "scp", "required_scope": ("write",)}, {"scp": ["write"]}, True),
        ({"scope_claim": "scp", "required_scope": ("write",)}, {"scope": "write"}, False),
        ({"required_scope": ("read", "write")}, {"scope": "write"}, False),
        ({"required_scope": ("write",)}, {"scope": "rewrite"}, False),
        ({"needs_issued_at": False}, {"iat": None}, True),
    ],
)
def test_what_is_asked_for_counts_exactly(rules: dict[str, Any], claims: dict[str, Any], counts: bool) -> None:
    try:
        found = check_claims(GOOD | claims, RULES._replace(**rules), NOW_MS)
    except TokenRefused as refused:
        assert not counts
        assert (refused.status == INSUFFICIENT_SCOPE) == ("required_scope" in rules)
        assert refused.user == ("" if "user_claim" in rules else "alice")
    else:
        assert counts
        assert found.user == "alice"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b'"x"',
        b"null",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"sub":"alice","sub":"root"}',
        b'{"a":{"b":1,"b":2}}',
    ],
)
def test_what_is_no_object_of_claims(payload: bytes) -> None:
    """One that names a claim twice is read in two ways by two readers."""
    with pytest.raises(TokenRefused):
        read_claims(payload)


def test_claims_are_read() -> None:
    assert read_claims(b'{"sub":"alice","exp":1}') == {"sub": "alice", "exp": 1}
