"""What a mechanism of SASL is to who drives it: tokens in, tokens out, and in the end a user or a refusal. Pure.

An exchange answers one token of the client after the other. It ends with an answer that says who was authenticated, or
by an exception; it is asked nothing more then.
"""

from typing import NamedTuple, Protocol


class Authenticated(NamedTuple):
    """Who the client is."""

    user: str
    expires_at_ms: int | None = None
    """Until when its credential is good, as wall-clock time; None: without end."""


class Answer(NamedTuple):
    """A token for the client, which may be empty."""

    token: bytes
    authenticated: Authenticated | None = None
    """None: the exchange goes on."""


class Refused(Exception):
    """The client is not who it says, or breaks the rules of the mechanism. The text is for the log, and holds no
    secrets.

    `told`: what the client is told, None for words that are the same whatever was wrong: who asks must not learn from
    them which users there are. `user`: as the client has named itself; empty: it has not come so far.
    """

    def __init__(self, why: str, *, told: str | None = None, user: str = "") -> None:
        super().__init__(why)
        self.told = told
        self.user = user


class TooBusy(Exception):
    """The broker cannot look at the credentials now: the connection is closed, and its client comes again."""


class Exchange(Protocol):
    """One exchange of one mechanism."""

    async def respond(self, token: bytes) -> Answer:
        """Raises Refused, TooBusy."""
        ...
