"""Tokens without a signature, for trials: only those that say so, with what a login module asks of them."""

import json

import pytest

from odradek.broker.authentication.token_claims import TokenRefused, TokenRules, check_claims, read_claims
from odradek.broker.authentication.unsecured_token import unsecured_payload, unsecured_rules, unsecured_token

NOW_MS = 1_700_000_000_000
HEADER = "eyJhbGciOiJub25lIn0"  # {"alg":"none"}
CLAIMS = "eyJzdWIiOiJhbGljZSJ9"  # {"sub":"alice"}


def test_one_without_a_signature_is_read() -> None:
    assert json.loads(unsecured_payload(f"{HEADER}.{CLAIMS}.")) == {"sub": "alice"}


@pytest.mark.parametrize(
    "token",
    [
        "",
        "..",
        f"{HEADER}.{CLAIMS}",
        f"{HEADER}.{CLAIMS}.x",
        f"{HEADER}.{CLAIMS}..",
        f"eyJhbGciOiJIUzI1NiJ9.{CLAIMS}.",
        f"{CLAIMS}.{CLAIMS}.",
        f"A.{CLAIMS}.",
    ],
)
def test_anything_else_is_refused(token: str) -> None:
    with pytest.raises(TokenRefused):
        unsecured_payload(token)


def test_a_login_module_says_what_is_asked() -> None:
    assert unsecured_rules({}) == TokenRules(needs_issued_at=False)
    options = {
        "unsecuredValidatorPrincipalClaimName": "name",
        "unsecuredValidatorScopeClaimName": "scp",
        "unsecuredValidatorRequiredScope": "a b",
        "unsecuredValidatorAllowableClockSkewMs": "3000",
    }
    assert unsecured_rules(options) == TokenRules(None, (), "scp", "name", ("a", "b"), 3000, False)
    for wrong in ("x", "-1"):
        with pytest.raises(ValueError):
            unsecured_rules({"unsecuredValidatorAllowableClockSkewMs": wrong})


def test_what_a_broker_logs_in_with_is_taken_by_another() -> None:
    token = unsecured_token({"unsecuredLoginStringClaim_sub": "broker", "unsecuredLoginLifetimeSeconds": "60"}, NOW_MS)
    found = check_claims(read_claims(unsecured_payload(token)), unsecured_rules({}), NOW_MS)
    assert found == ("broker", NOW_MS + 60_000)
    with pytest.raises(ValueError, match="unsecuredLoginStringClaim_sub is missing"):
        unsecured_token({}, NOW_MS)
