"""SASL: how a connection shows on whose behalf it is there, at its beginning and again when its session ends (KIP-368).

    SaslHandshake v1     names the mechanism
    SaslAuthenticate     carries tokens there and back until the mechanism has nothing more to say

A mechanism is a state machine without a connection: it is given the broker's tokens and gives its own, `None` at the
end. PLAIN sends the password, SCRAM proves to know it and has the broker prove it too, OAUTHBEARER sends a token that
the caller's coroutine function provides.

What a broker refuses is not tried again: `AuthenticationFailed` names broker, mechanism and user and says what to do.
Passwords and tokens stand in no text, not even where a broker repeats them. (Source: SaslClientAuthenticator.java.)
"""

import asyncio
import re
from base64 import b64encode
from collections.abc import Awaitable, Sequence
from inspect import isawaitable
from typing import Final, Protocol, TypeVar, cast

from odradek.client.configuration.security_settings import Credentials, SecuritySettings, TokenProvider
from odradek.client.errors.client_errors import AuthenticationFailed, ClientError, ConnectionFailed, UnsupportedVersion
from odradek.client.network.negotiation import Versions
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, code_of
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest
from odradek.protocol.scram import ALGORITHMS, ScramClient, ScramError, salted_password
from odradek.runtime.environment import Environment

__all__ = ["Ask", "Authenticator", "Mechanism"]

R = TypeVar("R", bound=Response)

NONCE_BYTES: Final = 18
_TOKEN: Final = re.compile(r"[!-~]+")
"""Visible ASCII: anything else could say more than a token (RFC 6750; RFC 7628 separates by control-A)."""


class Ask(Protocol):
    """Sends a request at once and returns its response."""

    def __call__(self, request: Request[R], version: int) -> Awaitable[R]: ...


class Mechanism(Protocol):
    """One exchange of one mechanism."""

    @property
    def secrets(self) -> Sequence[str]:
        """What no text may contain."""
        ...

    async def respond(self, challenge: bytes | None) -> bytes | None:
        """The next token, after the broker's; first after None. None: all is said.

        Raises AuthenticationRefused, ScramError.
        """
        ...


class AuthenticationRefused(Exception):
    """The exchange cannot succeed. The text holds no secrets."""


class Plain:
    """RFC 4616: user and password, as they are."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials
        self.secrets = (credentials.password,)

    async def respond(self, challenge: bytes | None) -> bytes | None:
        if challenge is not None:
            return None
        user, password = self._credentials
        if not user or not password or "\0" in user + password:
            raise AuthenticationRefused("user name and password must not be empty, nor contain the character NUL")
        return f"\0{user}\0{password}".encode()


class Scram:
    """RFC 5802, see `protocol/scram.py`. The password is hashed in a helper thread: it takes milliseconds.

    But the program may have all of these at work for itself, so there is a limit. Past it: ConnectionFailed.
    """

    def __init__(
        self, mechanism: str, credentials: Credentials, environment: Environment, broker: str, timeout_ms: float
    ) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._environment = environment
        self._broker = broker
        self._timeout_ms = timeout_ms
        nonce = b64encode(environment.random_bytes(NONCE_BYTES)).decode()
        self._client = ScramClient(mechanism, credentials.username, nonce)
        self._has_proved = False
        self.secrets = (credentials.password,)

    async def respond(self, challenge: bytes | None) -> bytes | None:
        if challenge is None:
            return self._client.first()
        if self._has_proved:
            self._client.verify(challenge)
            return None
        wanted, password = self._client.challenge(challenge), self._credentials.password
        try:
            async with asyncio.timeout(self._timeout_ms / 1000.0):
                salted = await self._environment.run_blocking(salted_password, self._mechanism, password, wanted)
        except TimeoutError as error:
            why = f"the password was not hashed within {self._timeout_ms:.0f} ms: all helper threads are busy"
            raise ConnectionFailed(self._broker, why) from error
        self._has_proved = True
        return self._client.final(salted)


class OAuthBearer:
    """RFC 7628: a token. A broker that refuses it says why, in JSON, and ends the exchange after one more byte."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._error: str | None = None
        self.secrets = (token,)

    async def respond(self, challenge: bytes | None) -> bytes | None:
        if challenge is None:
            return f"n,,\1auth=Bearer {self._token}\1\1".encode()
        if self._error is not None:
            raise AuthenticationRefused(f"the broker refused the token: {self._error}")
        if challenge:
            self._error = challenge.decode(errors="replace")
            return b"\1"
        return None


class Authenticator:
    """The SASL of one connection: what the settings say, and with whom."""

    def __init__(self, settings: SecuritySettings, environment: Environment, broker: str, timeout_ms: float) -> None:
        assert settings.sasl_mechanism is not None
        self.mechanism = settings.sasl_mechanism
        self.broker = broker
        self._environment = environment
        self._credentials = settings.sasl_credentials
        self._provider = settings.sasl_oauthbearer_token_provider
        self._timeout_ms = timeout_ms
        self.method = f"SASL {self.mechanism}"
        if self._credentials is not None:
            self.method += f" as user {self._credentials.username!r}"

    async def prepare(self) -> Mechanism:
        """What can be done before a word is said to the broker: a token is obtained.

        Raises ConnectionFailed when the caller's function fails: what it asks may be away for a moment, so this is
        tried again as a connection is.
        """
        if self._provider is not None:
            return OAuthBearer(await self._token(self._provider))
        assert self._credentials is not None, "the settings have been checked"
        if self.mechanism in ALGORITHMS:
            return Scram(self.mechanism, self._credentials, self._environment, self.broker, self._timeout_ms)
        return Plain(self._credentials)

    async def authenticate(self, ask: Ask, versions: Versions, mechanism: Mechanism) -> int:
        """Carries the exchange out, and returns the session's lifetime in milliseconds; 0: it has no end.

        Raises AuthenticationFailed, and what `ask` raises.
        """
        if not (versions.offers(SaslHandshakeRequest) and versions.offers(SaslAuthenticateRequest)):
            raise self._failure("its listener has no SASL", hint=_NO_SASL_HINT)
        try:
            handshake_version = versions.version_of(SaslHandshakeRequest)
            version = versions.version_of(SaslAuthenticateRequest)
        except UnsupportedVersion as error:
            raise self._failure(error.message, hint=error.hint) from error
        if handshake_version < 1:
            raise self._failure("it is older than Kafka 1.0, whose SASL this client does not know")
        handshake = await ask(SaslHandshakeRequest(mechanism=self.mechanism), handshake_version)
        if handshake.error_code:
            raise self._handshake_failure(handshake.error_code, handshake.mechanisms)
        try:
            return await self._exchange(ask, version, mechanism)
        except (AuthenticationRefused, ScramError) as error:
            raise self._failure(_without(mechanism.secrets, str(error)), hint=_CREDENTIALS_HINT) from None
        except UnicodeEncodeError:  # it would quote the password
            raise self._failure("user name or password hold surrogates, which are no text") from None

    async def _exchange(self, ask: Ask, version: int, mechanism: Mechanism) -> int:
        lifetime_ms = 0
        token = await mechanism.respond(None)
        while token is not None:
            answer = await ask(SaslAuthenticateRequest(auth_bytes=token), version)
            if answer.error_code:
                raise self._refusal(answer, mechanism)
            lifetime_ms = max(lifetime_ms, answer.session_lifetime_ms)
            token = await mechanism.respond(answer.auth_bytes)
        return lifetime_ms

    async def _token(self, provider: TokenProvider) -> str:
        limit = asyncio.timeout(self._timeout_ms / 1000.0)
        try:
            async with limit:
                promised = cast(object, provider())
                if not isawaitable(promised):
                    why = f"returned a {type(promised).__name__}, where an awaitable was due"
                    raise self._failure(f"sasl_oauthbearer_token_provider {why}", hint="Define it by `async def`.")
                token = cast(object, await promised)
        except ClientError:
            raise
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and self._is_cancelled():
                raise
            why = f"failed with {type(error).__name__}: {error}"
            if limit.expired():
                why = f"gave no token within {self._timeout_ms:.0f} ms"
            failure = ConnectionFailed(self.broker, f"sasl_oauthbearer_token_provider {why}")
            failure.hint = "Look whether what it asks for tokens can be reached; the client tries again by itself."
            raise failure from error
        if not isinstance(token, str) or _TOKEN.fullmatch(token) is None:
            kind = "text that is no token" if isinstance(token, str) else f"a {type(token).__name__}"
            raise self._failure(
                f"sasl_oauthbearer_token_provider returned {kind}",
                hint="It has to return the token alone: a str of visible ASCII, without 'Bearer'.",
            )
        return token

    def _is_cancelled(self) -> bool:
        """By somebody else than the caller's function, which may raise CancelledError as well."""
        task = asyncio.current_task(self._environment.loop)
        return task is None or task.cancelling() > 0

    def _handshake_failure(self, code: int, offered: list[str]) -> ClientError:
        known = code_of(code)
        if known is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            why = f"its listener offers other mechanisms: {', '.join(offered) or 'none'}"
            return self._failure(why, hint="Set sasl_mechanism to one of these.", code=known)
        if known is ErrorCode.ILLEGAL_SASL_STATE:
            return self._failure("its listener has no SASL", hint=_NO_SASL_HINT, code=known)
        return self._failure_of(code, "")

    def _refusal(self, answer: SaslAuthenticateResponse, mechanism: Mechanism) -> ClientError:
        return self._failure_of(answer.error_code, _without(mechanism.secrets, answer.error_message or ""))

    def _failure_of(self, number: int, said: str) -> ClientError:
        code = code_of(number)
        if code.retriable:
            return ConnectionFailed(self.broker, f"{self.method} ended with {code.name}: {said or code.text}")
        text = code.text if int(code) == number else f"the unknown error code {number}"
        return self._failure(text, said, hint=_CREDENTIALS_HINT, code=code)

    def _failure(
        self, why: str, said: str = "", *, hint: str | None = None, code: ErrorCode | None = None
    ) -> AuthenticationFailed:
        failure = AuthenticationFailed(self.broker, self.method, why, said, code)
        if hint is not None:
            failure.hint = hint
        return failure


_NO_SASL_HINT: Final = (
    "Use the port of a listener with SASL, or set security_protocol to what this listener has: PLAINTEXT or SSL."
)
_CREDENTIALS_HINT: Final = (
    "Check the user name and password, or the token, and whether the broker knows them for this mechanism."
)


def _without(hidden: Sequence[str], text: str) -> str:
    """A text of the broker without what it must not repeat."""
    for secret in hidden:
        if secret:
            text = text.replace(secret, "[hidden]")
    return text
