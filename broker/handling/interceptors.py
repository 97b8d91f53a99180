"""What stands between a client and the handlers, for faults that are put in on purpose: by tests, and by who embeds a
broker. There is nothing by default, and that costs nothing.

| to | a request (`RequestInterceptor`) | a connection (`ConnectionInterceptor`) |
|---|---|---|
| pass | `return await proceed(request)` | return what came |
| delay | wait before or behind that | |
| drop | return None: no answer is sent | return None |
| replace | give `proceed` another request, or return another answer | return other bytes |
| disconnect | raise CloseConnection | raise CloseConnection |

Of several the first in the list is the outermost. They may be added and taken away while the broker runs.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from odradek.protocol.primitives import Buffer

if TYPE_CHECKING:
    from odradek.broker.handling.context import Api, Call, Caller

Proceed = Callable[[Any], Awaitable[Any]]
"""Has a request answered by whoever comes next: another interceptor, or the handler."""


class RequestInterceptor(Protocol):
    """Around the handlers: decoded requests and answers."""

    async def intercept(self, call: "Call", api: "Api", request: Any, proceed: Proceed) -> Any:
        """The answer, None for none. What it raises is treated as what a handler raises."""
        ...


class ConnectionInterceptor(Protocol):
    """Around connections: bytes. Nothing here waits; each may raise CloseConnection."""

    def connected(self, caller: "Caller") -> None:
        """A client has connected, and nothing was read of it yet."""
        ...

    def received(self, caller: "Caller", frame: memoryview) -> memoryview | None:
        """A request, without its size, on its way to be handled."""
        ...

    def replying(self, caller: "Caller", reply: list[Buffer]) -> list[Buffer] | None:
        """A reply with its size, in buffers that are not to be changed."""
        ...


@dataclass(slots=True)
class Interceptors:
    """Those of one broker."""

    requests: list[RequestInterceptor] = field(default_factory=list[RequestInterceptor])
    connections: list[ConnectionInterceptor] = field(default_factory=list[ConnectionInterceptor])

    async def answer(self, call: "Call", api: "Api", request: Any, handle: Proceed) -> Any:
        """What the request is answered, through all that are there now."""
        proceed = handle
        for interceptor in reversed(self.requests):
            proceed = partial(_through, interceptor, call, api, proceed)
        return await proceed(request)

    def received(self, caller: "Caller", frame: memoryview) -> memoryview | None:
        """Raises CloseConnection."""
        for interceptor in self.connections:
            if (passed := interceptor.received(caller, frame)) is None:
                return None
            frame = passed
        return frame

    def replying(self, caller: "Caller", reply: list[Buffer]) -> list[Buffer] | None:
        """Raises CloseConnection."""
        for interceptor in reversed(self.connections):
            if (passed := interceptor.replying(caller, reply)) is None:
                return None
            reply = passed
        return reply


async def _through(interceptor: RequestInterceptor, call: "Call", api: "Api", proceed: Proceed, request: Any) -> Any:
    return await interceptor.intercept(call, api, request, proceed)
