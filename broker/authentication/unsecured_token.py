"""Tokens without a signature (`alg` none), by which anybody is whoever he says: for trials, and only where
`sasl.oauthbearer.allow.unsecured.tokens` says so. Pure. (OAuthBearerUnsecuredJws.java.)

The login module of the listener may say what of a token is looked at, under Kafka's names:
`unsecuredValidatorPrincipalClaimName`, `unsecuredValidatorScopeClaimName`, `unsecuredValidatorRequiredScope` and
`unsecuredValidatorAllowableClockSkewMs`. And by which token a broker logs in: `unsecuredLoginStringClaim_sub` and
`unsecuredLoginLifetimeSeconds`.
"""

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

from odradek.broker.authentication.token_claims import MS_PER_S, TokenRefused, TokenRules, read_claims

LIFETIME_S: Final = 3_600
LOGIN_NAME: Final = "unsecuredLoginStringClaim_sub"


def unsecured_payload(token: str) -> bytes:
    """The claims of a token that is not signed, and does not look as if it were. Raises TokenRefused."""
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise TokenRefused("it has not the three parts of an unsecured token, the last of them empty")
    if read_claims(_decoded(parts[0])).get("alg") != "none":
        raise TokenRefused("its alg is not none")
    return _decoded(parts[1])


def unsecured_rules(options: Mapping[str, str]) -> TokenRules:
    """What a login module says. Raises ValueError for what is no number."""
    skew_ms = int(options.get("unsecuredValidatorAllowableClockSkewMs", "0"))
    if skew_ms < 0:
        raise ValueError("unsecuredValidatorAllowableClockSkewMs is below 0")
    return TokenRules(
        user_claim=options.get("unsecuredValidatorPrincipalClaimName", "sub"),
        scope_claim=options.get("unsecuredValidatorScopeClaimName", "scope"),
        required_scope=tuple(options.get("unsecuredValidatorRequiredScope", "").split()),
        clock_skew_ms=skew_ms,
        needs_issued_at=False,
    )


def unsecured_token(options: Mapping[str, str], now_ms: int) -> str:
    """The token that a login module describes. Raises ValueError."""
    if not (user := options.get(LOGIN_NAME)):
        raise ValueError(f"{LOGIN_NAME} is missing")
    lifetime_s = int(options.get("unsecuredLoginLifetimeSeconds", str(LIFETIME_S)))
    issued_at_s = now_ms // MS_PER_S
    claims = {"sub": user, "iat": issued_at_s, "exp": issued_at_s + lifetime_s}
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def _encoded(part: Mapping[str, Any]) -> str:
    return urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).decode().rstrip("=")


def _decoded(part: str) -> bytes:
    """Raises TokenRefused."""
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise TokenRefused("a part of it is no base64") from None
