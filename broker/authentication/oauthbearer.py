"""OAUTHBEARER (RFC 7628), the broker's side: a token, by which its bearer is who it says.

    client    n,[a=<authorization id>],<01>auth=Bearer <token><01>[<name>=<value><01>…]<01>
    broker    nothing; or why not, as JSON, which the client answers by <01>, and the exchange fails

(OAuthBearerSaslServer.java, OAuthBearerClientInitialResponse.java. Kafka begins again where another token comes in
place of the <01>; here one token is all that an exchange takes.)
"""

import json
import re
from collections.abc import Callable
from typing import Final, NamedTuple

from odradek.broker.authentication.mechanism import Answer, Authenticated, Refused
from odradek.broker.authentication.token_claims import TokenRefused

Validate = Callable[[str], Authenticated]
"""Who bears this token. Raises TokenRefused."""

_NAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_INITIAL: Final = re.compile(
    rf"n,(?:a=(?P<authorization>{_NAME}))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x20-\x7e\t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


class _Initial(NamedTuple):
    authorization_id: str
    token: str

    def __repr__(self) -> str:
        return f"_Initial(authorization_id={self.authorization_id!r}, token=[hidden])"


class OAuthBearerExchange:
    """One exchange."""

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        self._failure: Refused | None = None

    async def respond(self, token: bytes) -> Answer:
        """Raises Refused."""
        if self._failure is not None:  # the client has read why
            raise self._failure
        initial = _read(token)
        try:
            found = self._validate(initial.token)
        except TokenRefused as refused:
            answer = _error(refused)
            self._failure = Refused(f"the token is refused: {refused}", told=answer, user=refused.user)
            return Answer(answer.encode())
        if initial.authorization_id not in ("", found.user):
            told = "Authentication failed: Client requested an authorization id that is different from the token's user"
            raise Refused("it wants to be authorized as somebody else", told=told, user=found.user)
        return Answer(b"", found)


def _read(message: bytes) -> _Initial:
    """Raises Refused."""
    found = _INITIAL.fullmatch(message.decode("ascii", "replace"))
    if found is None:
        raise Refused("the message is none of OAUTHBEARER")
    pairs = [pair.partition("=") for pair in found["pairs"].split("\x01") if pair]
    values = {name: value for name, _, value in pairs}
    auth = _AUTH.fullmatch(values.get("auth", ""))
    if len(values) != len(pairs) or auth is None or auth["scheme"].lower() != "bearer":
        raise Refused("the message has no auth=Bearer TOKEN, or something twice")
    return _Initial((found["authorization"] or "").replace("=2C", ",").replace("=3D", "="), auth["token"])


def _error(refused: TokenRefused) -> str:
    """What RFC 7628 has of it (3.2.2)."""
    fields = {"status": refused.status}
    if refused.scope:
        fields["scope"] = refused.scope
    return json.dumps(fields, separators=(",", ":"))
