"""PLAIN (RFC 4616), the broker's side: a user and a password, as they are.

    [authorization id] NUL user NUL password

Users stand in the JAAS line of the listener (`user_NAME="PASSWORD"`), in a password file, or in both. A name that
nobody has costs the same work as one that somebody has, and is answered with the same words. (PlainSaslServer.java.)
"""

import hmac
from collections.abc import Mapping
from functools import partial
from typing import Final

from odradek.broker.authentication.mechanism import Answer, Authenticated, Refused
from odradek.broker.authentication.password_checks import PasswordChecks
from odradek.broker.authentication.password_file import HashedUsers
from odradek.broker.authentication.password_hash import fits

USER_PREFIX: Final = "user_"
INVALID: Final = "Authentication failed: Invalid username or password"
OTHER_AUTHORIZATION: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class WrittenUsers:
    """The users of a JAAS line. Their passwords are kept as keyed hashes, which are compared in constant time, whatever
    their lengths. Immutable."""

    __slots__ = ("_digests", "_key")

    def __init__(self, options: Mapping[str, str], key: bytes) -> None:
        """`options`: of the login module. `key`: random."""
        self._key = key
        self._digests = {
            name.removeprefix(USER_PREFIX): self._digest(password.encode())
            for name, password in options.items()
            if name.startswith(USER_PREFIX) and password
        }

    def __len__(self) -> int:
        return len(self._digests)

    def fits(self, user: str, password: bytes) -> bool:
        expected = self._digests.get(user, b"\0" * 32)  # no password is known whose hash is that
        return hmac.compare_digest(self._digest(password), expected)

    def _digest(self, password: bytes) -> bytes:
        return hmac.digest(self._key, password, "sha256")


class PlainExchange:
    """One exchange. `hashed`: the users of the password file, None where there is no file."""

    def __init__(self, users: WrittenUsers, hashed: HashedUsers | None, checks: PasswordChecks) -> None:
        self._users = users
        self._hashed = hashed
        self._checks = checks

    async def respond(self, token: bytes) -> Answer:
        """Raises Refused, TooBusy."""
        authorization_id, user, password = _parts(token)
        known = self._users.fits(user, password)
        if self._hashed is not None:  # also where the line knows the user: what takes how long must not tell
            check = partial(fits, password, self._hashed.hash_of(user))
            known = await self._checks.run(check) or known
        if not known:
            raise Refused("no such user with this password", told=INVALID, user=user)
        if authorization_id not in ("", user):
            raise Refused("it wants to be authorized as somebody else", told=OTHER_AUTHORIZATION, user=user)
        return Answer(b"", Authenticated(user))


def _parts(token: bytes) -> tuple[str, str, bytes]:
    """Raises Refused."""
    parts = token.split(b"\0")
    if len(parts) != 3:
        told = f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}"
        raise Refused("the token has not the three parts of PLAIN", told=told)
    try:
        authorization_id, user = parts[0].decode(), parts[1].decode()
        parts[2].decode()
    except UnicodeDecodeError:
        raise Refused("the token is no UTF-8", told=INVALID) from None
    if not user:
        raise Refused("it names no user", told="Authentication failed: username not specified")
    if not parts[2]:
        raise Refused("it has no password", told="Authentication failed: password not specified", user=user)
    return authorization_id, user, parts[2]
