"""The seams to the outside world: loop, clocks, entropy, helper threads, listening and connecting.

Broker and client take all of these from an `Environment` and nothing from the air, so that a whole cluster can run on
virtual time, a simulated network and seeded randomness by passing another one. `tests/test_source.py` refuses direct
use of `time`, `uuid`, `os.urandom` and executors elsewhere in `broker` and `client`. Tasks are started through
`client/tasks.py`; files are opened through `broker/disk.py`.
"""

import asyncio
import os
import time
import uuid
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Environment:
    """The real world, seen from one running event loop."""

    __slots__ = ("loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop if loop is not None else asyncio.get_running_loop()

    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970, as record timestamps use them. It may jump."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """The loop's clock in milliseconds, for deadlines and durations. It never goes back."""
        return self.loop.time() * 1000.0

    def random_bytes(self, size: int) -> bytes:
        return os.urandom(size)

    def random_uuid(self) -> bytes:
        """A random UUID (version 4) as its 16 bytes, which is how topic, cluster and directory ids travel."""
        return uuid.UUID(bytes=self.random_bytes(16), version=4).bytes

    async def run_blocking(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Runs `function` in a helper thread. It may touch files, never the state that the loop's thread owns."""
        return await self.loop.run_in_executor(None, lambda: function(*args, **kwargs))

    async def listen(
        self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[asyncio.AbstractServer, Sequence[tuple[str, int]]]:
        """Accepts connections on `host:port` and returns the server with the addresses really bound.

        Port 0 picks a free one. Raises OSError when the address is taken or not ours.
        """
        server = await self.loop.create_server(factory, host, port, backlog=1024, start_serving=False)
        sockets = server.sockets
        return server, [(str(name[0]), int(name[1])) for name in (sock.getsockname() for sock in sockets)]

    async def connect(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> asyncio.BaseTransport:
        """Opens one TCP connection. Raises OSError."""
        transport, _ = await self.loop.create_connection(factory, host, port)
        return transport
