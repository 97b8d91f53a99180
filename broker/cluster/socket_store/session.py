"""One connection to the server of a store: what comes is carried out, and answered when it is done.

Renewals are answered at once, in the turn in which they come. Everything else is a task, so that what is quick
(reading, for one) never waits behind a commit that is being synced. Watches send what has changed as it changes, up to
the window that their client has opened: one that stands still costs nothing here but a revision.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Protocol, cast

from odradek.broker.cluster.socket_store.address import Peer, peer_of
from odradek.broker.cluster.socket_store.messages import (
    VERSION,
    CommandRefused,
    Kind,
    Welcome,
    decode_commit,
    decode_hello,
    encode_change,
    encode_error,
    encode_snapshot,
    encode_welcome,
)
from odradek.broker.cluster.socket_store.wire import (
    Frame,
    FrameSplitter,
    MalformedFrame,
    Packer,
    Unpacker,
    encode_frame,
)
from odradek.broker.cluster.store import LeaseLost, MetadataStore, StoreClosed, Txn
from odradek.runtime.signal import Signal
from odradek.runtime.tasks import Tasks

logger = logging.getLogger(__name__)


class Serving(Protocol):
    """What a session needs of its server: the store, the leases, and a place for its tasks."""

    store: MetadataStore
    path: str
    user_id: int
    tasks: Tasks
    sessions: "dict[Session, None]"
    on_command: Callable[[str], AsyncGenerator[str]] | None

    def look(self) -> None: ...
    async def welcome(self) -> Welcome: ...
    async def commit(self, txn: Txn, lease_id: int) -> int: ...
    async def grant(self, ttl_ms: int, pid: int) -> int: ...
    def renew(self, lease_id: int) -> bool: ...
    async def revoke(self, lease_id: int) -> None: ...


class _Watch:
    """What one watch may send yet."""

    def __init__(self, window: int) -> None:
        self.left = window
        self.more = Signal()
        self.task: asyncio.Task[None] | None = None


class Session(asyncio.Protocol):
    """See the module."""

    def __init__(self, server: Serving) -> None:
        self._server = server
        self._splitter = FrameSplitter()
        self._watches: dict[int, _Watch] = {}
        self._is_greeted = False
        self.peer = Peer(0, -1)
        self.transport: asyncio.Transport

    @property
    def watches_full(self) -> int:
        """How many watches may send nothing before their client has taken something."""
        return sum(not watch.left for watch in self._watches.values())

    # -- the connection -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.peer = peer_of(transport.get_extra_info("socket"))
        self._server.sessions[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        """No lease ends with its connection: the broker may come back in time. What was begun is done, but watches."""
        self._server.sessions.pop(self, None)
        for number in list(self._watches):
            self._unwatch(number)

    def data_received(self, data: bytes) -> None:
        self._server.look()
        try:
            for frame in self._splitter.feed(data):
                if self.transport.is_closing():
                    return
                self._take(frame)
        except MalformedFrame as error:
            logger.error("process %d sent what cannot be read, and is cut off: %s", self.peer.pid, error)
            self.transport.abort()

    def _send(self, kind: Kind, number: int, body: bytes = b"") -> None:
        if not self.transport.is_closing():
            self.transport.write(encode_frame(kind, number, body))

    # -- what comes -----------------------------------------------------------------------------------------------

    def _take(self, frame: Frame) -> None:
        """Raises MalformedFrame."""
        kind, number, body = frame
        if not self._is_greeted:
            if kind != Kind.HELLO:
                raise MalformedFrame("it does not begin with a greeting")
            self._is_greeted = True
            self._greet(number, decode_hello(body))
            return
        unpacker = Unpacker(body)
        match kind:
            case Kind.RENEW:
                self._renew(number, unpacker.u64())
            case Kind.READ:
                self._answer(number, self._read(unpacker.text()))
            case Kind.COMMIT:
                txn, lease_id = decode_commit(body)
                self._answer(number, self._revision(self._server.commit(txn, lease_id)))
            case Kind.WATCH:
                self._watch(number, unpacker.text(), unpacker.u64(), unpacker.u32())
            case Kind.MORE:
                self._open_window(number, unpacker.u32())
            case Kind.UNWATCH:
                self._unwatch(number)
            case Kind.GRANT:
                self._answer(number, self._grant(unpacker.u32()))
            case Kind.REVOKE:
                self._answer(number, self._revoke(unpacker.u64()))
            case Kind.COMMAND:
                self._answer(number, self._command(number, unpacker.text()))
            case _:
                raise MalformedFrame(f"a frame of kind {kind} is none that clients send")

    def _greet(self, number: int, version: int) -> None:
        server = self._server
        if self.peer.user_id != server.user_id:
            self._refuse(
                number,
                f"the metadata store at {server.path} serves processes of user {server.user_id} alone, and this one "
                f"belongs to user {self.peer.user_id}: run it as that user",
            )
        elif version != VERSION:
            self._refuse(
                number,
                f"the metadata store at {server.path} is served by another release of Odradek (its protocol has "
                f"version {VERSION}, and this process speaks version {version}): start the whole cluster again",
            )
        else:
            self._answer(number, self._welcome())

    def _refuse(self, number: int, why: str) -> None:
        logger.warning("process %d is refused: %s", self.peer.pid, why)
        self._send(Kind.REFUSED, number, Packer().text(why).body())
        self.transport.close()

    def _renew(self, number: int, lease_id: int) -> None:
        if self._server.renew(lease_id):
            self._send(Kind.DONE, number)
        else:
            self._send(Kind.ERROR, number, encode_error(LeaseLost(f"lease {lease_id:x} has ended")))

    async def _welcome(self) -> tuple[Kind, bytes]:
        return Kind.WELCOME, encode_welcome(await self._server.welcome())

    async def _read(self, prefix: str) -> tuple[Kind, bytes]:
        return Kind.SNAPSHOT, encode_snapshot(await self._server.store.read(prefix))

    async def _revision(self, commit: Coroutine[Any, Any, int]) -> tuple[Kind, bytes]:
        return Kind.REVISION, Packer().u64(await commit).body()

    async def _grant(self, ttl_ms: int) -> tuple[Kind, bytes]:
        lease_id = await self._server.grant(ttl_ms, self.peer.pid)
        return Kind.GRANTED, Packer().u64(lease_id).u32(ttl_ms).body()

    async def _revoke(self, lease_id: int) -> tuple[Kind, bytes]:
        await self._server.revoke(lease_id)
        return Kind.DONE, b""

    async def _command(self, number: int, command: str) -> tuple[Kind, bytes]:
        on_command = self._server.on_command
        if on_command is None:
            raise CommandRefused(f"nobody here does {command}")
        async with aclosing(on_command(command)) as lines:
            async for line in lines:
                self._send(Kind.LINE, number, Packer().text(line).body())
        return Kind.DONE, b""

    # -- answers --------------------------------------------------------------------------------------------------

    def _answer(self, number: int, work: Coroutine[Any, Any, tuple[Kind, bytes]]) -> None:
        self._server.tasks.start(self._answered(number, work), "answer a client of the metadata store")

    async def _answered(self, number: int, work: Coroutine[Any, Any, tuple[Kind, bytes]]) -> None:
        try:
            kind, body = await work
        except StoreClosed:
            self.transport.close()  # for the client the store is away, and not closed
        except Exception as error:  # noqa: BLE001 - it is the answer
            self._send(Kind.ERROR, number, encode_error(error))
        else:
            self._send(kind, number, body)

    # -- watches --------------------------------------------------------------------------------------------------

    def _watch(self, number: int, prefix: str, after: int, window: int) -> None:
        self._watches[number] = watch = _Watch(window)
        watch.task = self._server.tasks.start(self._follow(number, watch, prefix, after), "send what changes")

    async def _follow(self, number: int, watch: _Watch, prefix: str, after: int) -> None:
        try:
            async with aclosing(self._server.store.watch(prefix, after)) as changes:
                async for change in changes:
                    while not watch.left:
                        await watch.more.after(watch.more.count)
                    watch.left -= 1
                    self._send(Kind.CHANGE, number, encode_change(change))
        except Exception as error:  # noqa: BLE001 - it is the answer
            self._send(Kind.ERROR, number, encode_error(error))
        else:
            self.transport.close()  # the store was closed
        finally:
            self._watches.pop(number, None)

    def _open_window(self, number: int, count: int) -> None:
        if (watch := self._watches.get(number)) is not None:
            watch.left += count
            watch.more.give()

    def _unwatch(self, number: int) -> None:
        if (watch := self._watches.pop(number, None)) is not None and watch.task is not None:
            watch.task.cancel()
