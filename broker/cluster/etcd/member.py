"""One member of etcd: its channel, the calls over it, and how they fail.

gRPC opens its own sockets and has a thread of its own, so what happens here is not on the `Environment` and is not
simulated. Nothing else of ours imports grpc. Retries and proxies of gRPC's own are off: what was sent is never sent
again without our knowing.
"""

import asyncio
import ipaddress
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import grpc
from grpc import aio

from odradek.broker.cluster.etcd.certificates import Certificates
from odradek.broker.config.store_address import Endpoint

GRACE_MS: Final = 500.0
"""So much later than gRPC should have ended a call, it is not waited for any more."""

_OPTIONS: Final[Sequence[tuple[str, Any]]] = (
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", -1),  # one change may be larger than gRPC's 4 MiB
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),  # this is how long an attempt may take
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.dns_min_time_between_resolutions_ms", 1000),
    ("grpc.keepalive_time_ms", 6000),  # etcd hangs up on who asks more often than each five seconds
    ("grpc.keepalive_timeout_ms", 2000),
    ("grpc.http2.ping_timeout_ms", 2000),  # else a minute, whatever the line above says
    ("grpc.http2.max_pings_without_data", 0),
)

Metadata = tuple[tuple[str, str], ...]


class CallFailed(Exception):
    """A call ended without an answer. `code` is gRPC's name for it, the text is etcd's or gRPC's."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"{details} ({code})")
        self.code = code
        self.details = details


class Stream:
    """A call in both directions, with one member. Requests go out by themselves, in the order given."""

    def __init__(self, call: "aio.StreamStreamCall[bytes, bytes]", requests: "asyncio.Queue[bytes | None]") -> None:
        self._call = call
        self._requests = requests
        # Of a call that has ended by itself gRPC leaves the task that waits for requests behind.
        call.add_done_callback(lambda _: requests.put_nowait(None))

    @property
    def has_ended(self) -> bool:
        return self._call.done()

    def send(self, request: bytes) -> None:
        self._requests.put_nowait(request)

    async def read(self) -> bytes:
        """The next message. Raises CallFailed, at the end of the stream, too."""
        with _call_failures():
            reply = await self._call.read()
        if not isinstance(reply, bytes):
            raise CallFailed("UNAVAILABLE", "etcd ended the call")
        return reply

    def cancel(self) -> None:
        self._call.cancel()


async def _taken(requests: "asyncio.Queue[bytes | None]") -> AsyncGenerator[bytes, None]:
    """As gRPC takes them. (Its `write` would wait for ever where the call ends before it has begun.)"""
    while (request := await requests.get()) is not None:
        yield request


class Member:
    """One member of etcd."""

    def __init__(self, endpoint: Endpoint, channel: aio.Channel) -> None:
        self.endpoint = endpoint
        self.is_checked = False
        """Whether it is known to belong to the same cluster as the others."""
        self._channel = channel
        self._kept: dict[str, Stream] = {}  # by method: at rest, for the next question
        self._calls: dict[
            aio.Call, None
        ] = {}  # under way; a channel that is closed looks for them in the tasks' stacks

    def __str__(self) -> str:
        return str(self.endpoint)

    async def ask(self, method: str, request: bytes, timeout_ms: float, metadata: Metadata = ()) -> bytes:
        """Raises CallFailed."""
        with _call_failures():
            asking: aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(method)
            call = asking(request, timeout=timeout_ms / 1000.0, metadata=metadata)
            self._remember(call)
            async with asyncio.timeout((timeout_ms + GRACE_MS) / 1000.0):
                return await call

    async def converse(self, method: str, request: bytes, timeout_ms: float, metadata: Metadata = ()) -> bytes:
        """One question and one answer on a stream. Raises CallFailed.

        It is kept for the next question, for to open one costs more than to ask. One question at a time: what has no
        answer takes its stream along, lest that comes as the answer to the next.
        """
        stream = self._kept.pop(method, None)
        if stream is None or stream.has_ended:
            stream = self.stream(method, metadata)
        is_at_rest = False
        try:
            stream.send(request)
            with _call_failures():
                async with asyncio.timeout(timeout_ms / 1000.0):
                    reply = await stream.read()
            is_at_rest = method not in self._kept
            return reply
        finally:
            if is_at_rest:
                self._kept[method] = stream
            else:
                stream.cancel()

    def stream(self, method: str, metadata: Metadata = ()) -> Stream:
        """Raises CallFailed."""
        with _call_failures():
            opening: aio.StreamStreamMultiCallable[bytes, bytes] = self._channel.stream_stream(method)
            requests: asyncio.Queue[bytes | None] = asyncio.Queue()
            call = opening(_taken(requests), metadata=metadata)
            self._remember(call)
            return Stream(call, requests)

    async def is_connected(self, timeout_ms: float) -> bool:
        """Whether it is, or comes to be before the time is over or an attempt has failed."""
        ready, down = grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.TRANSIENT_FAILURE
        state = self._channel.get_state(try_to_connect=True)
        try:
            async with asyncio.timeout(timeout_ms / 1000.0):
                while state not in (ready, down, grpc.ChannelConnectivity.SHUTDOWN):
                    await self._channel.wait_for_state_change(state)
                    state = self._channel.get_state(try_to_connect=True)
        except TimeoutError:
            return False
        return state is ready

    async def close(self) -> None:
        """Calls that are under way fail."""
        for call in list(self._calls):
            call.cancel()
        await self._channel.close()

    def _remember(self, call: aio.Call) -> None:
        self._calls[call] = None
        call.add_done_callback(lambda _: self._calls.pop(call, None))


def open_channel(endpoint: Endpoint, certificates: Certificates | None) -> aio.Channel:
    target = _target(endpoint)
    if certificates is None:
        return aio.insecure_channel(target, options=_OPTIONS)
    credentials = grpc.ssl_channel_credentials(certificates.authority, certificates.key, certificates.certificate)
    return aio.secure_channel(target, credentials, options=_OPTIONS)


def _target(endpoint: Endpoint) -> str:
    """An address is no name to be looked up, again and again."""
    try:
        version = ipaddress.ip_address(endpoint.host).version
    except ValueError:
        return f"dns:///{endpoint}"
    return f"ipv{version}:{endpoint}"


@contextmanager
def _call_failures() -> Generator[None]:
    """Whatever gRPC raises, as CallFailed.

    It raises CancelledError not only where the task was cancelled but also where the call was, as on a channel that is
    closed; the difference matters to whoever awaits.
    """
    try:
        yield
    except aio.AioRpcError as error:
        raise CallFailed(error.code().name, error.details() or "") from None
    except TimeoutError:
        raise CallFailed("DEADLINE_EXCEEDED", "no answer, and gRPC does not say so") from None
    except (aio.UsageError, asyncio.InvalidStateError) as error:
        raise CallFailed("CANCELLED", str(error)) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise CallFailed("CANCELLED", "the call has ended") from None
