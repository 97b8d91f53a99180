"""One connection's way through SASL: from nobody to a principal, and again when its session ends (KIP-368). Pure, but
for clocks and what a mechanism waits for.

    UNAUTHENTICATED   handshake: which mechanism     -> AUTHENTICATING
    AUTHENTICATING    tokens to and fro              -> READY
    READY             its session has an end: handshake, by the same mechanism -> REAUTHENTICATING
    REAUTHENTICATING  tokens to and fro, for the same principal                -> READY

Everything else is FAILED, and stays so. `admits` says which requests a stage lets through; `network` asks it of each,
and moves with the stages (connection_state.py). After the session's end a connection is served a handshake, and closed
for anything else. (SaslServerAuthenticator.java, KafkaChannel.java.)
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, NamedTuple

from odradek.broker.access.principal import Principal
from odradek.broker.authentication.mechanism import Authenticated, Exchange, Refused, TooBusy
from odradek.broker.authentication.sasl_listener import SaslListener
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.protocol.messages.sasl_handshake import SaslHandshakeRequest

USER: Final = "User"
HEADERS_SINCE: Final = 1
"""The version of SaslHandshake; tokens behind an older one have no header."""
REAUTHENTICATION_MS_MIN: Final = 1_000.0
LIFETIME_MS_MAX: Final = 2**53
"""A session without need of a longer one; longer numbers are no numbers everywhere."""
GREETINGS: Final = frozenset({ApiVersionsRequest.api_key, SaslHandshakeRequest.api_key})
HANDSHAKE: Final = frozenset({SaslHandshakeRequest.api_key})
TOKENS: Final = frozenset({SaslAuthenticateRequest.api_key})


class Stage(Enum):
    """Named as the states of a connection (network/connection_state.py), which follow it."""

    UNAUTHENTICATED = auto()
    AUTHENTICATING = auto()
    READY = auto()
    REAUTHENTICATING = auto()
    FAILED = auto()


class Handshake(NamedTuple):
    """The answer to one."""

    code: ErrorCode
    mechanisms: tuple[str, ...] = ()


class Session(NamedTuple):
    """What a token has come to."""

    token: bytes
    lifetime_ms: int = 0
    """0 while the exchange goes on, and of a session without end."""


class AuthenticationFailed(Exception):
    """The connection is to be closed, behind an answer with this text, which tells strangers nothing."""


def _nobody(stage: Stage) -> None:
    """The connection is lost."""


class SaslConnection:
    """See the module. `peer`: address and port, for the log."""

    def __init__(self, listener: SaslListener) -> None:
        self._listener = listener
        self._environment = listener.environment
        self.peer = "unknown"
        self.stage = Stage.UNAUTHENTICATED
        self.moved: Callable[[Stage], None] = _nobody
        """Told of each stage that comes."""
        self.principal: Principal | None = None
        """Of the last exchange that went well."""
        self.ends_ms: float | None = None
        """The end of the session, by the lease clock, which runs on while the machine sleeps."""
        self._mechanism = ""
        self._exchange: Exchange | None = None
        self._has_headers = False
        self._wrong_mechanism: str | None = None
        self._begun_again_ms: float | None = None

    @property
    def takes_tokens(self) -> bool:
        """Whether what comes next is a token without a header (behind SaslHandshake 0)."""
        return self.is_asked_for_tokens and not self._has_headers

    @property
    def is_asked_for_tokens(self) -> bool:
        """Whether an exchange is under way."""
        return self.stage in (Stage.AUTHENTICATING, Stage.REAUTHENTICATING)

    @property
    def has_ended(self) -> bool:
        """Whether the session is over."""
        return self.ends_ms is not None and self._environment.lease_clock_ms() > self.ends_ms

    def admits(self, api_key: int) -> bool:
        """Whether a request of this API is served now."""
        match self.stage:
            case Stage.UNAUTHENTICATED:
                return api_key in GREETINGS
            case Stage.AUTHENTICATING | Stage.REAUTHENTICATING:
                return self._has_headers and api_key in TOKENS
            case Stage.READY:
                return api_key in HANDSHAKE or not self.has_ended
            case Stage.FAILED:
                return False

    def expired(self) -> None:
        """Somebody went on after the session."""
        self._listener.counts.expired[self._listener.name] += 1

    def lost(self) -> None:
        """The connection is gone."""
        self.moved = _nobody

    # -- handshake ----------------------------------------------------------------------------------------------------

    def handshake(self, mechanism: str, version: int) -> Handshake:
        """ILLEGAL_SASL_STATE where there is nothing to begin, which harms nobody; after UNSUPPORTED_SASL_MECHANISM the
        connection has failed."""
        if self.stage is Stage.READY and not self._may_begin_again():
            return Handshake(ErrorCode.ILLEGAL_SASL_STATE)
        assert self.stage in (Stage.UNAUTHENTICATED, Stage.READY), "nothing else admits it"
        again = self.stage is Stage.READY
        offered = self._listener.mechanisms
        exchange = self._listener.begin(mechanism) if mechanism in offered else None
        if exchange is None:
            self._fail(mechanism, "", "it asks for a mechanism that is not offered", again=again)
            return Handshake(ErrorCode.UNSUPPORTED_SASL_MECHANISM, offered)
        self._exchange = exchange
        self._has_headers = version >= HEADERS_SINCE
        self._wrong_mechanism = None
        if again and mechanism != self._mechanism:
            self._wrong_mechanism = (
                f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of mechanism "
                f"'{self._mechanism}'"
            )
        else:
            self._mechanism = mechanism
        self._move(Stage.REAUTHENTICATING if again else Stage.AUTHENTICATING)
        return Handshake(ErrorCode.NONE, offered)

    def _may_begin_again(self) -> bool:
        """Only where the session has an end, and once a second at most."""
        if self.ends_ms is None:
            return False
        now_ms = self._environment.monotonic_ms()
        if self._begun_again_ms is not None and now_ms - self._begun_again_ms < REAUTHENTICATION_MS_MIN:
            return False
        self._begun_again_ms = now_ms
        return True

    # -- tokens -------------------------------------------------------------------------------------------------------

    async def authenticate(self, token: bytes) -> Session:
        """Raises AuthenticationFailed; TooBusy, behind which the connection closes without an answer. Whatever it
        raises, the connection has failed."""
        assert self.is_asked_for_tokens and self._exchange is not None, self.stage
        again = self.stage is Stage.REAUTHENTICATING
        stage, self.stage = self.stage, Stage.FAILED  # until it has gone well, and if anything else comes of it
        user = ""
        try:
            if self._wrong_mechanism is not None:
                raise Refused("it has changed the mechanism", told=self._wrong_mechanism)
            answer = await self._exchange.respond(token)
            lifetime_ms = 0
            if answer.authenticated is not None:
                user = answer.authenticated.user
                lifetime_ms = self._authenticated(answer.authenticated)
        except Refused as refused:
            self._fail(self._mechanism, refused.user or user, str(refused), again=again)
            raise AuthenticationFailed(refused.told or self._usual_words(again)) from None
        except TooBusy as error:
            self._fail(self._mechanism, "", str(error), again=again)
            raise
        except BaseException:
            self._move(Stage.FAILED)
            raise
        if answer.authenticated is None:
            self.stage = stage
            return Session(answer.token)
        self._exchange = None
        self._listener.counts.succeeded(self._listener.name, self._mechanism, again=again)
        self._move(Stage.READY)
        return Session(answer.token, lifetime_ms)

    def _authenticated(self, found: Authenticated) -> int:
        """The lifetime of the session that begins. Raises Refused."""
        principal = Principal(USER, found.user)
        if self.principal is not None and principal != self.principal:
            before, after = (f"{each.kind}.{each.name}" for each in (self.principal, principal))
            told = f"Cannot change principals during re-authentication from {before}: {after}"
            raise Refused("it has become somebody else", told=told, user=found.user)
        lifetimes_ms = [LIFETIME_MS_MAX]
        if (longest_ms := self._listener.max_reauth_ms(self._mechanism)) > 0:
            lifetimes_ms.append(longest_ms)
        if found.expires_at_ms is not None:
            lifetimes_ms.append(found.expires_at_ms - self._environment.now_ms())
        has_end = len(lifetimes_ms) > 1
        lifetime_ms = min(lifetimes_ms)
        if lifetime_ms <= 0:
            raise Refused("its credential has expired meanwhile", user=found.user)
        self.principal = principal
        self.ends_ms = self._environment.lease_clock_ms() + lifetime_ms if has_end else None
        return lifetime_ms if has_end else 0

    def _usual_words(self, again: bool) -> str:
        what = "re-authentication" if again else "authentication"
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._mechanism}"

    def _fail(self, mechanism: str, user: str, why: str, *, again: bool) -> None:
        name, counts = self._listener.name, self._listener.counts
        counts.failed(name, mechanism, again=again)
        counts.tell(self._environment.monotonic_ms(), self.peer, name, mechanism, user, why)
        self._exchange = None
        self._move(Stage.FAILED)

    def _move(self, stage: Stage) -> None:
        self.stage = stage
        self.moved(stage)
