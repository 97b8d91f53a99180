"""Connections on loopback that can be delayed, slowed, cut, reset and left half-open: a relay process between brokers.

    with Relay() as relay:
        port = relay.route("broker-2", "127.0.0.1", 9093)      # who wants broker 2 connects to this port
        relay.know("broker-1", broker_1.pid)                   # and connections that broker 1 opens are told apart
        relay.cut("broker-1", "broker-2", way="out")           # what 1 sends to 2 does not come; what 2 answers does
        relay.delay(20.0, route="broker-2")                    # everybody's, in both directions
        relay.heal()

A route is a port of the relay's and its target; an origin is a process that opens connections (`socket_owners.py`), or
`other`. A broker advertises its route's port (`--advertise`), so everybody comes through the relay; the directions
between two brokers are those of the connections that each of them opens: to cut 1 from 2, cut both routes (`part`).

What it cannot do, and namespaces can: a cut leaves the kernel's own answers alone, so that connecting to a route that
is cut succeeds and then nothing comes, and a few hundred kilobytes are taken from a sender before its writes wait. A
target that refuses shows as a reset, unless its route is `shut`, which refuses.

Methods return when the relay has done what was asked.
"""

import json
import socket
import subprocess
import sys
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, Self

from processes.child_process import REPOSITORY
from tests.cluster.relay_flow import Way

ANSWER_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 10.0


class RelayFailed(Exception):
    """The relay refused a command, or is gone."""


class FlowSeen(NamedTuple):
    """A connection that the relay holds."""

    origin: str
    route: str
    out_bytes: int
    """Passed on to the target."""
    back_bytes: int
    coming_bytes: int
    """Read, and not passed on yet, in both directions."""


class Relay:
    """A relay process, as long as the `with` block."""

    def __enter__(self) -> Self:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cluster.relay_process", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd=REPOSITORY,
            )
        ours.settimeout(ANSWER_TIMEOUT_S)
        self._control = ours
        self._answers = ours.makefile("rb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._answers.close()
        self._control.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    # -- who and where --------------------------------------------------------------------------------------------

    def route(self, name: str, host: str, port: int) -> int:
        """A new port whose connections go to `host` and `port`."""
        found: int = self._ask("route", route=name, host=host, port=port)["port"]
        return found

    def know(self, origin: str, pid: int) -> None:
        """Connections that this process opens from now on are `origin`'s; no other process is `origin` any more."""
        self._ask("origin", origin=origin, pid=pid)

    def flows(self) -> list[FlowSeen]:
        """The connections that there are."""
        return [FlowSeen(*each) for each in self._ask("flows")["flows"]]

    # -- faults. `origin` and `route`: None for all; `way`: None for both directions -------------------------------

    def cut(self, origin: str | None = None, route: str | None = None, *, way: Way | None = None) -> None:
        """A black hole: nothing is read and nothing is passed on. Connections stay; so does what is on its way."""
        self._change(origin, route, way, is_cut=True)

    def mend(self, origin: str | None = None, route: str | None = None, *, way: Way | None = None) -> None:
        """The end of a cut: what had waited goes on."""
        self._change(origin, route, way, is_cut=False)

    def part(self, one: str, other: str) -> None:
        """Cuts both directions of all connections between two who have the same name as origin and as route."""
        self.cut(one, other)
        self.cut(other, one)

    def delay(
        self, delay_ms: float, origin: str | None = None, route: str | None = None, *, way: Way | None = None
    ) -> None:
        """In each direction; a question and its answer take twice that."""
        self._change(origin, route, way, delay_ms=delay_ms)

    def limit(
        self, bytes_per_s: float, origin: str | None = None, route: str | None = None, *, way: Way | None = None
    ) -> None:
        """Of each connection. 0 for no limit."""
        self._change(origin, route, way, bytes_per_s=bytes_per_s)

    def reset(self, origin: str | None = None, route: str | None = None) -> int:
        """Resets the connections that there are, on both sides; how many."""
        count: int = self._ask("reset", origin=origin, route=route)["count"]
        return count

    def leave_half_open(
        self, origin: str | None = None, route: str | None = None, *, lost_by: Literal["origin", "target"]
    ) -> int:
        """One side is told that the connections are gone, the other side waits for ever; how many."""
        side = "near" if lost_by == "origin" else "far"
        count: int = self._ask("lose", origin=origin, route=route, side=side)["count"]
        return count

    def shut(self, route: str) -> None:
        """Who connects is refused. Connections stay."""
        self._ask("shut", route=route)

    def open(self, route: str) -> None:
        """The end of `shut`, on the same port."""
        self._ask("open", route=route)

    def heal(self) -> None:
        """No cut, delay or limit any more, and every route is open."""
        self._ask("heal")

    # -- below ----------------------------------------------------------------------------------------------------

    def _change(
        self,
        origin: str | None,
        route: str | None,
        way: Way | None,
        *,
        delay_ms: float | None = None,
        bytes_per_s: float | None = None,
        is_cut: bool | None = None,
    ) -> None:
        self._ask(
            "change", origin=origin, route=route, way=way, delay_ms=delay_ms, bytes_per_s=bytes_per_s, is_cut=is_cut
        )

    def _ask(self, do: str, **command: object) -> dict[str, Any]:
        self._control.sendall(json.dumps({"do": do, **command}).encode() + b"\n")
        line = self._answers.readline()
        if not line:
            raise RelayFailed(f"the relay ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RelayFailed(f"{do}: {answer['error']}")
        return answer
