"""Asks etcd: another member when one does not answer, another token when one is not valid any more, one kind of error.

What may be repeated (reading, granting, renewing, revoking) is asked again, elsewhere, until the time is over; each
attempt gets a part of it. What may not (a transaction) is sent once: without an answer its outcome is `Unknown`.
What etcd answered with a no has not happened, and is repeated only if it was the token's fault.
"""

import asyncio
from typing import Final, NamedTuple

from odradek.broker.cluster.etcd.member import CallFailed, Member, Metadata
from odradek.broker.cluster.etcd.members import Members
from odradek.broker.cluster.etcd.messages import AUTHENTICATE, authenticate_request, decode_token
from odradek.broker.cluster.store import StoreClosed, StoreRefused, Unknown, Unreachable
from odradek.runtime.environment import Environment

ATTEMPTS: Final = 3
"""Into how many the time is divided, where there are several members."""
PAUSE_MS: Final = 20.0

_REFUSALS: Final = frozenset(
    (
        "FAILED_PRECONDITION",
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "OUT_OF_RANGE",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "UNAUTHENTICATED",
        "UNIMPLEMENTED",
    )
)
"""With these etcd says that it has not done it. Everything else may come from the way, or after the deed."""
_TOKEN_ERRORS: Final = ("invalid auth token", "revision of auth store is old", "user name is empty")
_NO_AUTHENTICATION: Final = "authentication is not enabled"
_REQUIRE_LEADER: Final = ("hasleader", "true")
"""A member that has lost its cluster says so at once, and does not let us wait."""
_NO_LEADER: Final = "etcdserver: no leader"
"""What it says then, before it looks at the request."""


class Credentials(NamedTuple):
    """Of a user of etcd."""

    username: str
    password: str


class EtcdRefusal(StoreRefused):
    """etcd's no, with gRPC's code and etcd's words."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"etcd refuses: {details} ({code})")
        self.code = code
        self.details = details


class Client:
    """What the parts of the store ask etcd through."""

    def __init__(
        self, members: Members, credentials: Credentials | None, environment: Environment, request_timeout_ms: float
    ) -> None:
        self.members = members
        self.environment = environment
        self.request_timeout_ms = request_timeout_ms
        self._credentials = credentials
        self._token: str | None = None
        self._authentication = asyncio.Lock()
        self._is_closed = False

    async def once(self, method: str, request: bytes) -> bytes:
        """Sends it at most once. Raises EtcdRefusal, Unknown, Unreachable, StoreClosed."""
        return await self._ask(method, request, self.request_timeout_ms, 1, is_stream=False)

    async def repeatedly(
        self, method: str, request: bytes, timeout_ms: float = 0.0, *, is_stream: bool = False
    ) -> bytes:
        """Sends it until there is an answer. Raises EtcdRefusal, Unknown, Unreachable, StoreClosed.

        `timeout_ms`: for all attempts together, at most and by default the request's.
        """
        limit_ms = min(timeout_ms or self.request_timeout_ms, self.request_timeout_ms)
        return await self._ask(method, request, limit_ms, ATTEMPTS, is_stream=is_stream)

    async def metadata(self, member: Member, deadline_ms: float) -> Metadata:
        """What every call carries. Raises EtcdRefusal, CallFailed."""
        if self._credentials is None:
            return (_REQUIRE_LEADER,)
        async with self._authentication:
            if self._token is None:
                self._token = await self._authenticate(member, self._credentials, deadline_ms)
            return (_REQUIRE_LEADER, ("token", self._token)) if self._token else (_REQUIRE_LEADER,)

    def check_open(self) -> None:
        """Raises StoreClosed."""
        if self._is_closed:
            raise StoreClosed("the metadata store is closed")

    async def close(self) -> None:
        self._is_closed = True
        await self.members.close()

    async def _ask(self, method: str, request: bytes, timeout_ms: float, attempts: int, *, is_stream: bool) -> bytes:
        self.check_open()
        deadline_ms = self.environment.monotonic_ms() + timeout_ms
        attempt_ms = timeout_ms / min(attempts, len(self.members))
        may_be_the_token = self._credentials is not None
        is_sent = False
        while True:
            member = await self.members.connected(deadline_ms)
            try:
                metadata = await self.metadata(member, deadline_ms)
                limit_ms = max(1.0, min(deadline_ms - self.environment.monotonic_ms(), attempt_ms))
                is_sent = True
                call = member.converse if is_stream else member.ask
                return await call(method, request, limit_ms, metadata)
            except CallFailed as error:
                self.check_open()
                if error.code in _REFUSALS:
                    if not may_be_the_token or not _is_about_token(error.details):
                        raise EtcdRefusal(error.code, error.details) from None
                    may_be_the_token = False
                    self._token = None  # the next attempt asks for another one
                    continue
                self.members.failed(member)
                if attempts == 1 and error.details == _NO_LEADER:
                    is_sent = False
                if is_sent and attempts == 1:
                    raise Unknown(f"etcd's member {member} gave no answer: the outcome is unknown ({error})") from None
                if self.environment.monotonic_ms() + PAUSE_MS >= deadline_ms:
                    kind = Unknown if is_sent else Unreachable
                    raise kind(f"etcd ({self.members}) gave no answer within {timeout_ms:.0f} ms: {error}") from None
            await self.environment.sleep(PAUSE_MS)

    async def _authenticate(self, member: Member, credentials: Credentials, deadline_ms: float) -> str:
        """A token; an empty one where etcd asks for none."""
        left_ms = max(1.0, deadline_ms - self.environment.monotonic_ms())
        try:
            return decode_token(await member.ask(AUTHENTICATE, authenticate_request(*credentials), left_ms))
        except CallFailed as error:
            if _NO_AUTHENTICATION in error.details:
                return ""
            if error.code in _REFUSALS:
                raise EtcdRefusal(
                    error.code, f"{error.details}; check metadata.etcd.username and metadata.etcd.password"
                ) from None
            raise


def _is_about_token(details: str) -> bool:
    return any(text in details for text in _TOKEN_ERRORS)
