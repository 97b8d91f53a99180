"""Network namespaces: packets that pass and packets that vanish, in each direction, and nothing that is left over.

An agent in a namespace sends datagrams on request and tells which came. Datagrams between two keep their order, so that
one that comes proves of an earlier one that it will not.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Self

import pytest

from processes.child_process import REPOSITORY
from tests.cluster.namespaces import OUTSIDE, PREFIX, Namespaces, remove_stale, why_not

AGENT = """
import os, select, socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("0.0.0.0", 9000))
print("ready", flush=True)
while True:
    readable, _, _ = select.select([sock, sys.stdin], [], [])
    if sys.stdin in readable:
        lines = os.read(0, 10_000).decode().splitlines()
        if not lines:
            break
        for address, payload in map(str.split, lines):
            sock.sendto(payload.encode(), (address, 9000))
            print("sent", flush=True)
    if sock in readable:
        payload, (address, _) = sock.recvfrom(100)
        print(address, payload.decode(), flush=True)
"""
ECHO = """
import socket
server = socket.create_server(("0.0.0.0", 9001))
print("ready", flush=True)
connection, _ = server.accept()
while part := connection.recv(1 << 16):
    connection.sendall(part)
"""
TIMEOUT_S = 20.0
SILENCE_S = 0.3


@pytest.fixture(scope="module")
def network() -> Generator[Namespaces]:
    if reason := why_not():
        pytest.skip(reason)
    with Namespaces(3) as made:
        yield made


class Agent:
    """A program in a namespace that is talked to in lines."""

    def __init__(self, network: Namespaces, number: int, source: str = AGENT) -> None:
        self.process = subprocess.Popen(
            [*network.command(number), sys.executable, "-u", "-c", source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._network = network
        self._unread = b""
        self._heard: deque[str] = deque()
        assert self.hear() == "ready"

    def send(self, number: int, payload: str) -> None:
        """Returns when the kernel has it."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{self._network.address(number)} {payload}\n".encode())
        self.process.stdin.flush()
        while (line := self._line()) != "sent":
            self._heard.append(line)

    def hear(self) -> str:
        return self._heard.popleft() if self._heard else self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        while b"\n" not in self._unread:
            assert select.select([self.process.stdout], [], [], TIMEOUT_S)[0], "nothing came"
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            assert part, "it has ended"
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def agents(network: Namespaces) -> Generator[tuple[Agent, Agent, Agent]]:
    with ExitStack() as closing:
        closing.callback(network.heal)
        made = [closing.enter_context(Agent(network, number)) for number in (1, 2, 3)]
        yield made[0], made[1], made[2]


@contextmanager
def echoing(network: Namespaces) -> Generator[None]:
    """A program in the first sends back what one connection brings."""
    with ExitStack() as closing:
        closing.callback(network.heal)
        closing.enter_context(Agent(network, 1, ECHO))
        yield


def test_packets_pass_between_all_until_one_direction_is_cut(network: Namespaces) -> None:
    one, two, three = map(network.address, (1, 2, 3))
    with agents(network) as (first, second, third):
        first.send(2, "hello")
        assert second.hear() == f"{one} hello"

        network.cut(1, 2)
        first.send(2, "lost")
        first.send(3, "aside")
        assert third.hear() == f"{one} aside"
        second.send(1, "back")
        assert first.hear() == f"{two} back"
        third.send(2, "round")
        assert second.hear() == f"{three} round"

        network.mend(1, 2)
        first.send(2, "again")
        assert second.hear() == f"{one} again", "what was sent meanwhile is lost"


def test_two_who_are_parted_hear_nothing_of_one_another_until_they_are_healed(network: Namespaces) -> None:
    one, two = map(network.address, (1, 2))
    with agents(network) as (first, second, _):
        network.part(1, 2)
        network.cut(1, 2)  # once more is no more
        first.send(2, "lost")
        second.send(1, "lost-too")
        network.heal()
        first.send(2, "there")
        assert second.hear() == f"{one} there"
        second.send(1, "here")
        assert first.hear() == f"{two} here"


def test_a_connection_outlives_a_cut_and_what_was_sent_comes_then(network: Namespaces) -> None:
    """From this side, into a namespace: TCP repeats itself."""
    with echoing(network), socket.create_connection((network.address(1), 9001), timeout=TIMEOUT_S) as connection:
        connection.sendall(b"before")
        assert connection.recv(100) == b"before"
        network.cut(OUTSIDE, 1)
        connection.sendall(b"during")
        assert not select.select([connection], [], [], SILENCE_S)[0]
        network.heal()
        assert connection.recv(100) == b"during"


def test_nobody_connects_through_a_cut_and_nobody_is_told(network: Namespaces) -> None:
    with echoing(network):
        network.cut(1, OUTSIDE)
        with pytest.raises(TimeoutError):
            socket.create_connection((network.address(1), 9001), timeout=SILENCE_S)


def test_a_slow_link_takes_its_time(network: Namespaces) -> None:
    with echoing(network), socket.create_connection((network.address(1), 9001), timeout=TIMEOUT_S) as connection:
        assert round_trip_s(connection, 100_000) < 0.15
        network.limit(1, 400_000)
        assert round_trip_s(connection, 100_000) >= 0.15
        network.heal()
        assert round_trip_s(connection, 100_000) < 0.15


def test_a_delay_holds_for_each_direction(network: Namespaces) -> None:
    if not network.has_netem:
        pytest.skip("this kernel has no netem")
    with echoing(network), socket.create_connection((network.address(1), 9001), timeout=TIMEOUT_S) as connection:
        network.delay(1, 50.0)
        assert round_trip_s(connection, 1) >= 0.099


def round_trip_s(connection: socket.socket, size_bytes: int) -> float:
    started = time.monotonic()
    connection.sendall(bytes(size_bytes))
    left = size_bytes
    while left:
        left -= len(connection.recv(left))
    return time.monotonic() - started


def test_a_program_there_keeps_its_process_id_and_sees_its_own_network_alone(network: Namespaces) -> None:
    source = "import os, socket; print(os.getpid(), *sorted(name for _, name in socket.if_nameindex()))"
    with subprocess.Popen(
        [*network.command(2), sys.executable, "-c", source], stdout=subprocess.PIPE, text=True
    ) as process:
        out, _ = process.communicate()
        pid, *devices = out.split()
    assert int(pid) == process.pid
    assert {"lo", "uplink"} <= set(devices)
    assert "eth0" not in devices


def test_nothing_is_left_of_it_nor_of_what_ran_there(network: Namespaces) -> None:
    """And others are left alone."""
    with Namespaces(1) as other:
        name = other.name(1)
        agent = Agent(other, 1)
        assert name in names()
        assert network.name(1) in names()
    assert agent.process.wait(TIMEOUT_S) == -signal.SIGKILL
    agent.process.communicate()
    assert name not in names()
    assert network.name(1) in names()
    assert remove_stale() == []


def test_what_a_killed_test_has_left_is_removed_by_the_next(network: Namespaces) -> None:
    del network
    test = (
        "import subprocess\nfrom tests.cluster.namespaces import Namespaces\n"
        "network = Namespaces(1).__enter__()\n"
        "left = subprocess.Popen([*network.command(1), 'sleep', '600'])\n"
        "print(network.name(1), left.pid, flush=True)\ninput()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", test], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        name, left = process.stdout.readline().split()
        watched = os.pidfd_open(int(left))
        process.kill()
    try:
        assert name in names()
        assert name in remove_stale()
        assert name not in names()
        assert select.select([watched], [], [], TIMEOUT_S)[0], "what ran there is still running"
    finally:
        os.close(watched)


def names() -> list[str]:
    done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in done.stdout.splitlines() if line.startswith(PREFIX)]
