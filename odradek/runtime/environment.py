"""The seams to the outside world: loop, clocks, entropy, helper threads, names, listening and connecting.

Broker and client take all of these from an `Environment` and nothing from the air, so that a whole cluster can run on
virtual time, a simulated network and seeded randomness by passing another one. `tests/test_source.py` refuses direct
use of `time`, `uuid`, `os.urandom` and executors elsewhere in `broker` and `client`. Tasks are started through
`odradek/runtime/tasks.py`; files are opened through `broker/disk/disk.py`.
"""

import asyncio
import os
import socket
import sys
import time
import uuid
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from ssl import SSLContext
from typing import Any, Final, ParamSpec, Protocol, TypeVar
from weakref import WeakSet

from odradek.runtime.own_program import own_program
from odradek.runtime.stall_watch import StallListener, watch_stalls
from odradek.runtime.tls_transport import start_tls
from odradek.runtime.worker import GiveWay, Talk, Worker, WorkerInThread, WorkerUnavailable
from odradek.runtime.worker_process import WorkerProcess

__all__ = ["NS_PER_MS", "Environment", "Forkable", "ThreadFuture", "loop_factory", "tell_when_forked"]

_P = ParamSpec("_P")
_T = TypeVar("_T")
_D = TypeVar("_D")


NS_PER_MS: Final = 1_000_000
BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_DASH: Final = 62
"""The six bits that base64 for URLs writes as a dash."""
SWITCH_S: Final = 0.005
SWITCH_S_COMPUTING: Final = 0.0001
"""How long a thread keeps the interpreter while another one wants it; the first is the interpreter's default."""

ThreadFuture = Future
"""What another thread waits for: a future of `concurrent.futures`."""


class Forkable(Protocol):
    """What must not be used in a forked child, where its loop does not run."""

    def was_forked(self) -> None: ...


_forkable: WeakSet[Forkable] = WeakSet()


def tell_when_forked(owner: Forkable) -> None:
    """Has `was_forked` called in every child that this process forks, for as long as somebody keeps the owner."""
    _forkable.add(owner)


def _forked() -> None:
    for owner in list(_forkable):
        owner.was_forked()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)


def loop_factory() -> "type[asyncio.AbstractEventLoop] | None":
    """The event loop of a process that is ours alone: uvloop's, where there is one, else (None) asyncio's own."""
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.Loop


class Environment:
    """The real world, seen from one running event loop."""

    __slots__ = ("_computing", "_helpers", "_owns_process", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, *, owns_process: bool = False) -> None:
        """`owns_process`: nothing else runs in it, and what counts for all of it may be changed."""
        self.loop = loop if loop is not None else asyncio.get_running_loop()
        self._owns_process = owns_process
        self._computing = 0  # helper threads
        self._helpers: ThreadPoolExecutor | None = None

    now_ns = staticmethod(time.time_ns)
    """Wall-clock nanoseconds since 1970. It may jump. (Without a call in between: every record asks for it.)"""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970, as record timestamps use them. It may jump."""
        return self.now_ns() // NS_PER_MS

    def monotonic_ms(self) -> float:
        """The loop's clock in milliseconds, for deadlines and durations. It never goes back."""
        return self.loop.time() * 1000.0

    precise_s = staticmethod(time.perf_counter)
    """Seconds, to the microsecond, for durations that are measured: `monotonic_ms` stands still while the loop does not
    turn, and uvloop has it in whole milliseconds."""

    def lease_clock_ms(self) -> float:
        """A clock that runs on while the machine sleeps, where it has one, and never goes back: for leases."""
        if sys.platform == "linux":
            return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000.0  # the other one stands still in a suspended machine
        return time.monotonic() * 1000.0

    def boot_id(self) -> str | None:
        """Names this run of the machine: what its page cache holds is gone when it is another one. None: unknown."""
        try:
            with open(BOOT_ID) as file:
                return file.read().strip()
        except OSError:
            return None

    def watch_stalls(self, listener: StallListener) -> Callable[[], None]:
        """Has it told when code has blocked the loop for a second or more, until what is returned is called."""
        return watch_stalls(self.loop, listener)

    def random_bytes(self, size: int) -> bytes:
        return os.urandom(size)

    def random_uuid(self) -> bytes:
        """A random UUID (version 4) as its 16 bytes, which is how topic, cluster and directory ids travel.

        Its text in base64 begins with no dash (Uuid.randomUuid): a command would take it for an option.
        """
        first, *others = self.random_bytes(16)
        if first >> 2 == _DASH:
            first &= 0x7F
        return uuid.UUID(bytes=bytes((first, *others)), version=4).bytes

    def random(self) -> float:
        """A random number from 0 up to, and never, 1."""
        return (int.from_bytes(self.random_bytes(7)) >> 3) / (1 << 53)

    def random_below(self, limit: int) -> int:
        """A random whole number from 0 up to, and never, `limit`, which is at most 2**32."""
        return int(self.random() * limit)

    async def sleep(self, delay_ms: float) -> None:
        """Returns after so many milliseconds of `monotonic_ms`."""
        await asyncio.sleep(delay_ms / 1000.0)

    def allow_helper_threads(self, count: int) -> None:
        """So many may run at the same time; what more is asked of them waits. The interpreter's own limit is four more
        than the machine has processors, which is little for threads that wait for a device. `end_helper_threads` ends
        them."""
        self.end_helper_threads()
        self._helpers = ThreadPoolExecutor(count, "helper")

    def end_helper_threads(self) -> None:
        """Waits for those that run, and ends all; those of the loop come in their place."""
        helpers, self._helpers = self._helpers, None
        if helpers is not None:
            helpers.shutdown()

    async def run_blocking(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Runs `function` in a helper thread. It may touch files, never the state that the loop's thread owns."""
        return await self.loop.run_in_executor(self._helpers, lambda: function(*args, **kwargs))

    async def run_computing(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """As `run_blocking`, for what has much to compute, and says `give_way` now and then.

        Meanwhile the interpreter takes a thread's turn away after 0.1 ms, and not after 5 ms, if the process is ours: a
        request would wait for the loop's turn as long as that.
        """
        if not self._owns_process:
            return await self.run_blocking(function, *args, **kwargs)
        self._computing += 1
        sys.setswitchinterval(SWITCH_S_COMPUTING)
        try:
            return await self.run_blocking(function, *args, **kwargs)
        finally:
            self._computing -= 1
            if not self._computing:
                sys.setswitchinterval(SWITCH_S)

    def give_way(self) -> None:
        """For a helper thread with much to compute: lets the loop's thread run, if that has something to do."""
        time.sleep(0)

    async def start_worker(
        self, module: str, serve: Callable[[_D, GiveWay], Talk], disk: _D, *, in_process: bool
    ) -> Worker:
        """Starts a worker (worker.py) for long work on files.

        `in_process`: it is a process, which runs `module`, serves as `serve` does, and opens the files by itself. Else
        `serve` works on `disk` in helper threads. Raises WorkerUnavailable.
        """
        if not in_process:
            return WorkerInThread(self._answered, self.give_way, partial(serve, disk))
        try:
            program = own_program(module)
        except OSError as error:
            raise WorkerUnavailable(str(error)) from error
        return await WorkerProcess.start(self, program)

    async def _answered(self, function: Callable[[bytes], bytes], question: bytes) -> bytes:
        return await self.run_computing(function, question)

    def run_threadsafe(self, coroutine: Coroutine[Any, Any, _T]) -> ThreadFuture[_T]:
        """Runs a coroutine in the loop on behalf of another thread, which may wait for the future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
    ) -> tuple[asyncio.AbstractServer, Sequence[tuple[str, int]]]:
        """Accepts connections on `host:port`, with TLS where `ssl` is given, and returns the server with the addresses
        really bound.

        Port 0 picks a free one. `connection_made` is called when TLS stands, and never where it fails: the connection
        closes. Raises OSError when the address is taken or not ours.
        """
        server = await self.loop.create_server(factory, host, port, ssl=ssl, backlog=1024, start_serving=False)
        sockets = server.sockets
        return server, [(str(name[0]), int(name[1])) for name in (sock.getsockname() for sock in sockets)]

    async def resolve(self, host: str, port: int) -> list[str]:
        """The IP addresses of `host`, each once, in the order of the resolver. Raises OSError, UnicodeError.

        An IP address is its own answer. A link-local one keeps its zone, as in `fe80::1%eth0`.
        """
        if _family_of(host) is not None:
            return [host]
        found = await self.loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(_address(family, name) for family, _, _, _, name in found))

    async def canonical_name(self, address: str) -> str:
        """The name that reverse look-up gives to an IP address. Raises OSError when there is none."""
        name, _ = await self.loop.getnameinfo((address, 0), socket.NI_NAMEREQD)
        return name

    async def connect(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
        server_hostname: str | None = None,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
    ) -> asyncio.BaseTransport:
        """Opens one TCP connection without delays of its own (TCP_NODELAY), and TLS on it where `ssl` is given.

        `host`: an IP address, as `resolve` gives it; of a name, the first address is taken. `server_hostname`: whose
        certificate TLS asks for; `host` by default. The buffers' sizes are the socket's; -1: the system chooses. The
        factory is called when TCP stands, `connection_made` when TLS does. The transport's write buffer is all that
        the system has not taken yet, beneath TLS, too. Raises OSError, of which `ssl.SSLError` is one.
        """
        address = (await self.resolve(host, port))[0]
        family = _family_of(address)
        sock = socket.socket(socket.AF_INET6 if family is None else family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            # Before it connects: the window that TCP may ever offer follows from it.
            for option, size_bytes in ((socket.SO_SNDBUF, send_buffer_bytes), (socket.SO_RCVBUF, receive_buffer_bytes)):
                if size_bytes >= 0:
                    sock.setsockopt(socket.SOL_SOCKET, option, size_bytes)
            await self.loop.sock_connect(sock, (address, port))
        except BaseException:
            sock.close()
            raise
        if ssl is None:
            transport, _ = await self.loop.create_connection(factory, sock=sock)
            return transport
        transport, _ = await self.loop.create_connection(asyncio.Protocol, sock=sock)
        return await start_tls(self.loop, transport, factory(), ssl, server_hostname or host)


def _family_of(host: str) -> socket.AddressFamily | None:
    """The family of an IP address; None for anything else: a name, or an address with a zone."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, UnicodeError, ValueError):
            continue
        return family
    return None


def _address(family: int, name: tuple[Any, ...]) -> str:
    """The address in what `getaddrinfo` calls a socket address."""
    address = str(name[0])
    if family == socket.AF_INET6 and name[3] and "%" not in address:
        return f"{address}%{name[3]}"
    return address
