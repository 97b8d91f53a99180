"""`kafka.faults`: what a test does to the requests of its clients. Each call puts a fault in force, until it is undone.

    kafka.faults.fail(api="Produce", error="NOT_LEADER_OR_FOLLOWER", topic="orders", partition=0, times=3)
    with kafka.faults.delay(api="Fetch", ms=200, broker=1): ...
    held = kafka.faults.hold(api="OffsetCommit", group="billing", times=1)
    ...; held.wait_until_held(); ...; held.release()
    kafka.faults.clear()

Which requests are meant, say the same arguments everywhere (`match_of`, fault.py): `api`, `broker`, `topic`,
`partition`, `client_id`, `group`, `transactional_id`, `brokers_too`; none of them: all requests of all clients.
"""

import inspect
from collections.abc import Callable
from typing import Final, Generic, Literal, TypedDict, TypeVar, Unpack

from odradek.protocol.errors import ErrorCode
from odradek.testing.faults.fault import Fault, FaultRefused, Kind, Where, error_code, match_of
from odradek.testing.faults.fault_changes import FaultChanges, FaultFunction
from odradek.testing.faults.fault_handle import AnyFaultHandle

__all__ = ["Faults", "Meant"]

H = TypeVar("H", bound=AnyFaultHandle)
Side = Literal["request", "answer"]


class Meant(TypedDict, total=False):
    """Which requests."""

    api: str | int | None
    broker: int | None
    topic: str | None
    partition: int | None
    client_id: str | None
    group: str | None
    transactional_id: str | None
    brokers_too: bool


class Faults(Generic[H]):
    """See the module. All of it may be called in any thread, and raises FaultRefused for what cannot be."""

    def __init__(self, table: FaultChanges, handle: Callable[[FaultChanges, int, Fault], H]) -> None:
        self._table: Final = table
        self._handle = handle

    def fail(self, *, error: ErrorCode | str | int, times: int | None = None, **meant: Unpack[Meant]) -> H:
        """They are answered with the error and not handled. Where a topic is named, only what they say of it fails, and
        the rest is handled. `error`: a name, a number, or an ErrorCode."""
        return self._add(Fault(kind=Kind.FAIL, match=match_of(**meant), error=error_code(error), times=times))

    def delay(self, *, ms: float, where: Side = "request", times: int | None = None, **meant: Unpack[Meant]) -> H:
        """They wait before they are handled, or their answers do. Others of the same connection wait behind them."""
        return self._add(Fault(kind=Kind.DELAY, match=match_of(**meant), delay_ms=ms, where=Where(where), times=times))

    def drop(self, *, where: Side = "request", times: int | None = None, **meant: Unpack[Meant]) -> H:
        """They are not handled, or handled, and not answered. The connection goes on."""
        return self._add(Fault(kind=Kind.DROP, match=match_of(**meant), where=Where(where), times=times))

    def disconnect(self, *, where: Side = "request", times: int | None = None, **meant: Unpack[Meant]) -> H:
        """Their connection is closed before they are handled, or behind that, without an answer."""
        return self._add(Fault(kind=Kind.DISCONNECT, match=match_of(**meant), where=Where(where), times=times))

    def half_open(self, *, times: int | None = None, **meant: Unpack[Meant]) -> H:
        """From the first of them on nothing of its connection is handled or answered, and the connection stays open, as
        behind a router that has forgotten it. `times`: so many connections. Undone, these are closed."""
        return self._add(Fault(kind=Kind.HALF_OPEN, match=match_of(**meant), times=times))

    def hold(self, *, where: Side = "request", times: int | None = None, **meant: Unpack[Meant]) -> H:
        """They wait before they are handled, or their answers do, until the handle's `release`."""
        return self._add(Fault(kind=Kind.HOLD, match=match_of(**meant), where=Where(where), times=times))

    def corrupt(self, *, times: int | None = None, **meant: Unpack[Meant]) -> H:
        """The answers are damaged: of Fetch (the default) the records have a CRC that is wrong, and with a topic only
        its own; of any other API nothing can be read."""
        meant["api"] = meant.get("api", "Fetch")
        return self._add(Fault(kind=Kind.CORRUPT, match=match_of(**meant), times=times))

    def throttle(self, *, ms: float, times: int | None = None, **meant: Unpack[Meant]) -> H:
        """The answers say that the client is over its quota and has to wait for so long, and what it sends sooner over
        the same connection waits (KIP-219)."""
        return self._add(Fault(kind=Kind.THROTTLE, match=match_of(**meant), delay_ms=ms, times=times))

    def stall_follower(self, topic: str, partition: int | None = None, *, broker: int | None = None) -> H:
        """Followers get nothing of the partition (None: of all that the topic has), though they ask: all, or `broker`.
        Half a second later they leave the in-sync set; the handle counts those. Undone, they catch up, and join it."""
        match = match_of(topic=topic, partition=partition)
        return self._add(Fault(kind=Kind.STALL_FOLLOWER, match=match, follower=broker))

    def intercept(self, function: FaultFunction, *, times: int | None = None, **meant: Unpack[Meant]) -> H:
        """`await function(seen, proceed)` says what they are answered: None for nothing. `seen`: a RecordedRequest;
        `await proceed(seen.request)`, or another request, has the broker answer.

        What it raises is treated as what a handler raises: KafkaError is answered, CloseConnection closes. It runs in
        the loop of the broker's thread, and needs the brokers in this process.
        """
        if not inspect.iscoroutinefunction(function):
            raise FaultRefused(f"{function!r} is no coroutine function: write `async def`")
        return self._add(Fault(kind=Kind.INTERCEPT, match=match_of(**meant), times=times), function)

    @property
    def in_force(self) -> list[H]:
        """Those that do anything yet, oldest first; for failure reports, by `str`."""
        return [self._handle(self._table, fault_id, fault) for fault_id, fault in self._table.in_force()]

    def clear(self) -> None:
        """Undoes all, lets go what they hold, and forgets how often they were applied."""
        self._table.clear()

    def __repr__(self) -> str:
        return f"<faults: {'; '.join(map(str, self.in_force)) or 'none'}>"

    def _add(self, fault: Fault, function: FaultFunction | None = None) -> H:
        return self._handle(self._table, self._table.add(fault, function), fault)
