"""Network namespaces, one for each broker, whose packets to one another can be dropped: a real network, on one machine.

    with Namespaces(3) as network:
        network.address(1)                            # of the broker in the first
        [*network.command(1), "odradek", "serve", …]  # runs there
        network.cut(1, 2)                             # packets from 1 to 2 vanish; those from 2 to 1 come
        network.limit(3, 1_000_000)                   # a slow link of 3
        network.heal()

Each namespace is linked by a veth pair to a router, a namespace too, which forwards between them; the address `OUTSIDE`
is this side's own, for clients in the test's process. A cut is a rule of the router's, source and destination to a
black hole: dropped without a word, in that direction alone, for connections that there are and for new ones.

Only for root, on Linux with iproute2: `why_not` says what is missing. Links are slowed by the kernel's token bucket; a
delay needs its netem, which not every kernel has (`has_netem`).

Nothing is left over. Names hold the process id and the start time of the test that made them. `Namespaces` first
removes those whose maker is gone, with what still runs in them.
"""

import contextlib
import functools
import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PREFIX: Final = "odradek-"
OUTSIDE: Final = 0
"""The number of this side."""
_ROUTER: Final = "router"
_NETWORKS: Final = 256
_BURST_BYTES: Final = 32_768
_QUEUE_MS: Final = 400
_COUNT_MAX: Final = 62
_numbers = itertools.count(1)
"""What is removed goes a moment later, so no name comes twice from one process."""


class NamespacesFailed(Exception):
    """A command of iproute2 failed; the text holds what it said."""


def why_not() -> str | None:
    """What is missing here; None if namespaces can be made."""
    if sys.platform != "linux":
        return f"{sys.platform} has no network namespaces"
    if os.geteuid() != 0:
        return "network namespaces are for root"
    if shutil.which("ip") is None or shutil.which("tc") is None:
        return "iproute2 is not installed"
    return _refusal()


@functools.cache
def _refusal() -> str | None:
    """Root in a container may still be refused."""
    try:
        with Namespaces(1) as network:
            network.cut(1, OUTSIDE)
    except NamespacesFailed as error:
        return str(error)
    return None


class Namespaces:
    """`count` namespaces, numbered from 1, as long as the `with` block."""

    def __init__(self, count: int) -> None:
        assert 1 <= count <= _COUNT_MAX, count
        self._count = count
        serial = next(_numbers)
        self._stem = f"{PREFIX}{os.getpid()}-{_start_of(os.getpid())}-{serial}-"
        self._outside = f"odr{os.getpid()}x{serial}"
        self._network = 0
        self._cuts: set[tuple[int, int]] = set()
        self._slowed: set[int] = set()

    def __enter__(self) -> Self:
        remove_stale()
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Removes them, and kills what still runs in them."""
        for name in _names():
            if name.startswith(self._stem):
                _remove(name)

    # -- what is there --------------------------------------------------------------------------------------------

    def address(self, number: int) -> str:
        """Of a namespace, or of OUTSIDE."""
        assert 0 <= number <= self._count, number
        return f"198.18.{self._network}.{4 * number + 2}"

    def name(self, number: int) -> str:
        assert 1 <= number <= self._count, number
        return f"{self._stem}{number}"

    def command(self, number: int) -> list[str]:
        """What a command line begins with that is to run in there. It keeps its process id."""
        return ["ip", "netns", "exec", self.name(number)]

    # -- faults ---------------------------------------------------------------------------------------------------

    def cut(self, source: int, destination: int) -> None:
        """From now on no packet comes through in this direction."""
        if (source, destination) not in self._cuts:
            self._rule("add", source, destination)
            self._cuts.add((source, destination))

    def mend(self, source: int, destination: int) -> None:
        """The end of `cut`."""
        if (source, destination) in self._cuts:
            self._rule("del", source, destination)
            self._cuts.remove((source, destination))

    def part(self, one: int, other: int) -> None:
        """Cuts both directions."""
        self.cut(one, other)
        self.cut(other, one)

    def limit(self, number: int, bytes_per_s: int) -> None:
        """What comes to a namespace, and what it sends, is no faster than this, each."""
        shape = ["tbf", "rate", f"{8 * bytes_per_s}bit", "burst", str(_BURST_BYTES), "latency", f"{_QUEUE_MS}ms"]
        self._shape(number, shape)

    def delay(self, number: int, delay_ms: float) -> None:
        """Each packet to a namespace, and each from it, comes so much later. Raises NamespacesFailed without netem."""
        self._shape(number, ["netem", "delay", f"{delay_ms}ms", "limit", "100000"])

    def heal(self) -> None:
        """No cut, no limit and no delay any more."""
        for source, destination in sorted(self._cuts):
            self.mend(source, destination)
        for number in sorted(self._slowed):
            _run("tc", "-n", self._router, "qdisc", "del", "dev", f"v{number}", "root")
            _run("tc", "-n", self.name(number), "qdisc", "del", "dev", "uplink", "root")
        self._slowed.clear()

    @property
    def has_netem(self) -> bool:
        """Whether `delay` works here."""
        try:
            _run("tc", "-n", self._router, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        except NamespacesFailed:
            return False
        _run("tc", "-n", self._router, "qdisc", "del", "dev", "lo", "root")
        return True

    # -- below ----------------------------------------------------------------------------------------------------

    @property
    def _router(self) -> str:
        return f"{self._stem}{_ROUTER}"

    def _make(self) -> None:
        self._network = _free_network()
        _run("ip", "netns", "add", self._router)
        _run("ip", "-n", self._router, "link", "set", "lo", "up")
        _run(*self._inside_router(), "sysctl", "-q", "-w", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0")
        self._link(OUTSIDE, self._outside, [])
        whole = f"198.18.{self._network}.0/24"
        _run("ip", "route", "add", whole, "via", self._gateway(OUTSIDE), "dev", self._outside)
        for number in range(1, self._count + 1):
            _run("ip", "netns", "add", self.name(number))
            _run("ip", "-n", self.name(number), "link", "set", "lo", "up")
            self._link(number, "uplink", ["-n", self.name(number)])
            _run("ip", "-n", self.name(number), "route", "add", "default", "via", self._gateway(number))

    def _link(self, number: int, device: str, where: Sequence[str]) -> None:
        """A veth pair between the router and a namespace, or this side (`where` is empty)."""
        there = where[1] if where else str(os.getpid())
        pair = ["link", "add", f"v{number}", "type", "veth", "peer", "name", device, "netns", there]
        _run("ip", "-n", self._router, *pair)
        _run("ip", "-n", self._router, "address", "add", f"{self._gateway(number)}/30", "dev", f"v{number}")
        _run("ip", "-n", self._router, "link", "set", f"v{number}", "up")
        _run("ip", *where, "address", "add", f"{self.address(number)}/30", "dev", device)
        _run("ip", *where, "link", "set", device, "up")

    def _gateway(self, number: int) -> str:
        return f"198.18.{self._network}.{4 * number + 1}"

    def _inside_router(self) -> list[str]:
        return ["ip", "netns", "exec", self._router]

    def _rule(self, action: str, source: int, destination: int) -> None:
        addresses = ["from", self.address(source), "to", self.address(destination)]
        _run("ip", "-n", self._router, "rule", action, *addresses, "blackhole")

    def _shape(self, number: int, shape: Sequence[str]) -> None:
        _run("tc", "-n", self._router, "qdisc", "replace", "dev", f"v{number}", "root", *shape)
        self._slowed.add(number)
        _run("tc", "-n", self.name(number), "qdisc", "replace", "dev", "uplink", "root", *shape)


# -- what is left over ------------------------------------------------------------------------------------------------


def remove_stale() -> list[str]:
    """Removes namespaces whose maker is gone; their names."""
    stale = [name for name in _names() if not _is_maker_there(name)]
    for name in stale:
        _remove(name)
    return stale


def _names() -> list[str]:
    names = [line.split()[0] for line in _run("ip", "netns", "list").splitlines() if line]
    return [name for name in names if name.startswith(PREFIX)]


def _is_maker_there(name: str) -> bool:
    pid, _, rest = name.removeprefix(PREFIX).partition("-")
    return pid.isdecimal() and _start_of(int(pid)) == rest.partition("-")[0]


def _remove(name: str) -> None:
    """A namespace lives on as long as a process in it, so those go first; its links go with it."""
    for pid in _run("ip", "netns", "pids", name).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    _run("ip", "netns", "delete", name)


def _start_of(pid: int) -> str:
    """The moment at which the process was started, which tells it from a later one of the same number; "" if there is
    none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat.rpartition(")")[2].split()[19]


def _free_network() -> int:
    """The third number of 198.18.x.0/24 (RFC 2544, for tests of networks), which nobody uses here."""
    routes = _run("ip", "-4", "route", "show").split()
    first = os.getpid() % _NETWORKS
    for network in _around(first):
        if not any(word.startswith(f"198.18.{network}.") for word in routes):
            return network
    raise NamespacesFailed("all networks of 198.18.0.0/16 are in use")


def _around(first: int) -> Iterator[int]:
    return ((first + step) % _NETWORKS for step in range(_NETWORKS))


def _run(*command: str) -> str:
    """What it printed. Raises NamespacesFailed."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NamespacesFailed(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
