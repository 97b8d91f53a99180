"""What a token says of its bearer, and whether that counts here and now. Pure; the signature is another question
(token_signatures.py).

Checked are `exp`, which is required, `iat`, `nbf`, `iss`, `aud`, the scope and the claim that names the user, as
Kafka's validator checks them (ValidatorAccessTokenValidator.java, by way of jose4j). Two things are stricter. A token
is not taken after its `exp`, whatever the clock skew: its session would end at once. A user's name is taken as it is,
and refused with blanks around it, where Kafka cuts them off: names that are made alike are somebody else's.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, cast

from odradek.broker.authentication.mechanism import Authenticated

INVALID_TOKEN: Final = "invalid_token"  # noqa: S105  (a code of RFC 6750)
INSUFFICIENT_SCOPE: Final = "insufficient_scope"
MS_PER_S: Final = 1_000
TIME_S_MAX: Final = 253_402_300_799
"""The end of the year 9999, as far as times go here."""


class TokenRefused(Exception):
    """The token does not count. The text holds neither the token nor its claims, but for the user's name.

    `status`: a code of RFC 6750, which the client is told.
    """

    def __init__(self, why: str, status: str = INVALID_TOKEN, *, scope: str = "", user: str = "") -> None:
        super().__init__(why)
        self.status = status
        self.scope = scope
        self.user = user


class TokenRules(NamedTuple):
    """What is asked of tokens."""

    issuer: str | None = None
    audiences: tuple[str, ...] = ()
    scope_claim: str = "scope"
    user_claim: str = "sub"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0
    needs_issued_at: bool = True


def read_claims(payload: bytes) -> dict[str, object]:
    """The JSON object of a token. Raises TokenRefused."""
    try:
        found: object = json.loads(payload, object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        raise TokenRefused("its claims are no JSON, or name one twice") from None
    if not isinstance(found, dict):
        raise TokenRefused("its claims are no JSON object")
    return cast("dict[str, object]", found)


def check_claims(claims: Mapping[str, object], rules: TokenRules, now_ms: int) -> Authenticated:
    """Who bears the token, and until when. Raises TokenRefused."""
    user = claims.get(rules.user_claim)
    if not isinstance(user, str) or not user or user != user.strip():
        raise TokenRefused(f"its claim {rules.user_claim!a} is no text, is empty, or has blanks around it")
    try:
        user.encode()
    except UnicodeEncodeError:  # half of a character, which JSON can write
        raise TokenRefused(f"its claim {rules.user_claim!a} holds what is no character") from None
    try:
        expires_at_ms = _check_times(claims, rules, now_ms)
        _check_issuer(claims, rules)
        _check_scope(claims, rules)
    except TokenRefused as refused:
        refused.user = user
        raise
    return Authenticated(user, expires_at_ms)


def _check_times(claims: Mapping[str, object], rules: TokenRules, now_ms: int) -> int:
    expires_at_ms = _time_ms(claims, "exp")
    issued_at_ms, not_before_ms = _time_ms(claims, "iat"), _time_ms(claims, "nbf")
    if expires_at_ms is None:
        raise TokenRefused("it has no exp, and so no end")
    if expires_at_ms <= now_ms:
        raise TokenRefused("its exp has passed")
    if issued_at_ms is None and rules.needs_issued_at:
        raise TokenRefused("it has no iat")
    for name, time_ms in (("iat", issued_at_ms), ("nbf", not_before_ms)):
        if time_ms is None:
            continue
        if time_ms > now_ms + rules.clock_skew_ms:
            raise TokenRefused(f"its {name} is still to come: is the issuer's clock ahead?")
        if time_ms >= expires_at_ms:
            raise TokenRefused(f"its {name} is not before its exp")
    return expires_at_ms


def _time_ms(claims: Mapping[str, object], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    # A number with a fraction is allowed; bool is an int in Python, and no number in JSON.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenRefused(f"its {name} is no number")
    if not 0 <= value <= TIME_S_MAX:  # nor is Infinity or NaN, which Python takes
        raise TokenRefused(f"its {name} is no time")
    return int(value * MS_PER_S)


def _check_issuer(claims: Mapping[str, object], rules: TokenRules) -> None:
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenRefused("its iss is not the one that is expected")
    audiences = claims.get("aud")
    if audiences is None:
        if rules.audiences:
            raise TokenRefused("it has no aud, and one is expected")
        return
    named = {audiences} if isinstance(audiences, str) else set(_texts(audiences, "aud"))
    if not rules.audiences:
        raise TokenRefused("it has an aud, and sasl.oauthbearer.expected.audience names none")
    if named.isdisjoint(rules.audiences):
        raise TokenRefused("its aud is none of those that are expected")


def _check_scope(claims: Mapping[str, object], rules: TokenRules) -> None:
    scope = claims.get(rules.scope_claim)
    if scope is None:
        granted = list[str]()
    else:
        granted = scope.split() if isinstance(scope, str) else _texts(scope, rules.scope_claim)
    if len(set(granted)) != len(granted) or not all(map(str.strip, granted)):
        raise TokenRefused("its scope is empty somewhere, or has something twice")
    if missing := [each for each in rules.required_scope if each not in granted]:
        raise TokenRefused(
            f"its scope lacks {', '.join(missing)}", INSUFFICIENT_SCOPE, scope=" ".join(rules.required_scope)
        )


def _texts(value: object, name: str) -> list[str]:
    """Raises TokenRefused."""
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) != len(items):
        raise TokenRefused(f"its claim {name!a} is neither a text nor a list of texts")
    return texts


def _each_once(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Raises ValueError: who reads the first one and who reads the last would be of two minds."""
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(name)
        found[name] = value
    return found
