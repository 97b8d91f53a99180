"""The process of the relay: routes, who uses them, and the socket by which a test controls it (relay.py).

    python -m tests.cluster.relay_process DESCRIPTOR

reads commands from the descriptor, a JSON object a line, and answers each with one: what was asked, or `error`. It ends
when the other end is closed, so it cannot outlive its test.
"""

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import Coroutine
from typing import Any, Final

from tests.cluster.relay_flow import Condition, Flow, Way
from tests.cluster.socket_owners import Address, owner_of

LOOPBACK: Final = "127.0.0.1"
OTHER: Final = "other"
"""Who opened a connection and is no process that was named."""
COMMAND_BYTES_MAX: Final = 1 << 20
WAYS: Final[tuple[Way, Way]] = ("out", "back")

Command = dict[str, Any]


class Conditions:
    """The state of each direction of each pair of origin and route, those included that no connection has used yet."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, Way], Condition] = {}
        self._changes: list[Command] = []

    def of(self, origin: str, route: str, way: Way) -> Condition:
        key = origin, route, way
        if key not in self._found:
            self._found[key] = Condition()
            for change in self._changes:
                self._apply(change, key)
        return self._found[key]

    def change(self, command: Command) -> None:
        self._changes.append(command)
        for key in self._found:
            self._apply(command, key)

    def heal(self) -> None:
        self._changes.clear()
        for condition in self._found.values():
            condition.change(0.0, 0.0, False)

    def _apply(self, command: Command, key: tuple[str, str, Way]) -> None:
        if matches(command, key[0], key[1]) and command["way"] in (None, key[2]):
            self._found[key].change(command["delay_ms"], command["bytes_per_s"], command["is_cut"])


def matches(command: Command, origin: str, route: str) -> bool:
    """None stands for all of them."""
    return command["origin"] in (None, origin) and command["route"] in (None, route)


class Route:
    """A port of ours, and where its connections go."""

    def __init__(self, relay: "RelayProcess", name: str, target: Address) -> None:
        self.name = name
        self.port = 0
        self._relay = relay
        self._target = target
        self._accepting: asyncio.Task[None] | None = None

    def open(self) -> None:
        """On a free port at first, on the same one later."""
        if self._accepting is None:
            listener = socket.create_server((LOOPBACK, self.port), backlog=128)
            listener.setblocking(False)
            self.port = listener.getsockname()[1]
            self._accepting = asyncio.create_task(self._accept(listener))

    async def shut(self) -> None:
        """Who connects is refused."""
        accepting, self._accepting = self._accepting, None
        if accepting is not None:
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)

    async def _accept(self, listener: socket.socket) -> None:
        with listener:
            while True:
                near, peer = await asyncio.get_running_loop().sock_accept(listener)
                self._relay.start(self._connect(near, peer))

    async def _connect(self, near: socket.socket, peer: Address) -> None:
        near.setblocking(False)
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        far = socket.socket()
        far.setblocking(False)
        far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        origin = self._relay.origin_of(peer, near.getsockname())
        conditions = self._relay.conditions
        out, back = (conditions.of(origin, self.name, way) for way in WAYS)
        flow = Flow(origin, self.name, near, far, out, back)
        self._relay.flows.append(flow)
        try:
            await flow.run(self._target)
        finally:
            self._relay.flows.remove(flow)


class RelayProcess:
    """Everything in the process."""

    def __init__(self) -> None:
        self.conditions = Conditions()
        self.flows: list[Flow] = []
        self._routes: dict[str, Route] = {}
        self._origins: dict[int, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def origin_of(self, peer: Address, route: Address) -> str:
        pid = owner_of(peer, route, self._origins)
        return OTHER if pid is None else self._origins[pid]

    async def run(self, control: socket.socket) -> None:
        """Until the other end of `control` is closed."""
        control.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=control, limit=COMMAND_BYTES_MAX)
        with contextlib.suppress(ConnectionResetError):
            while line := await reader.readline():
                try:
                    answer = await self._do(json.loads(line))
                except (KeyError, OSError, TypeError, ValueError) as error:
                    answer = {"error": repr(error)}
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()

    async def _do(self, command: Command) -> Command:
        match command["do"]:
            case "route":
                return {"port": self._add_route(command["route"], (command["host"], command["port"]))}
            case "origin":
                self._origins = {pid: name for pid, name in self._origins.items() if name != command["origin"]}
                self._origins[command["pid"]] = command["origin"]
            case "change":
                self.conditions.change(command)
            case "heal":
                self.conditions.heal()
                for route in self._routes.values():
                    route.open()
            case "shut":
                await self._routes[command["route"]].shut()
            case "open":
                self._routes[command["route"]].open()
            case "reset":
                return {"count": sum([flow.reset() for flow in self._chosen(command)])}
            case "lose":
                return {"count": sum([await flow.lose(command["side"]) for flow in self._chosen(command)])}
            case "flows":
                return {"flows": [flow.seen() for flow in self.flows]}
            case unknown:
                raise ValueError(f"no such command: {unknown}")
        return {}

    def _add_route(self, name: str, target: Address) -> int:
        if name in self._routes:
            raise ValueError(f"there is a route {name} already")
        route = self._routes[name] = Route(self, name, target)
        route.open()
        return route.port

    def _chosen(self, command: Command) -> list[Flow]:
        return [flow for flow in self.flows if matches(command, flow.origin, flow.route)]


def main() -> None:
    with socket.socket(fileno=int(sys.argv[1])) as control:
        asyncio.run(RelayProcess().run(control))


if __name__ == "__main__":
    main()
