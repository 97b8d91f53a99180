"""The relay between real sockets: what it does to bytes, to the end of a stream, and to whom.

Most tests hold both ends: `near`, which connected to a route, and `far`, which the target accepted.
"""

import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from typing import NamedTuple

import pytest

from tests.cluster.relay import Relay, RelayFailed
from tests.killed_test import outlives_its_test

SILENCE_S = 0.15
TIMEOUT_S = 10.0
BEHIND = 1.0
"""How much earlier than asked a delay may seem to end, in ms: two clocks are read."""


CLIENT = """
import socket, sys
input()
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
input()
sock.sendall(b"child")
sys.stdin.read()
"""


class Link(NamedTuple):
    """A connection through the relay."""

    near: socket.socket
    far: socket.socket


@pytest.fixture
def relay() -> Generator[Relay]:
    with Relay() as running:
        running.know("me", os.getpid())
        yield running


@pytest.fixture
def target() -> Generator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        yield listener


@pytest.fixture
def port(relay: Relay, target: socket.socket) -> int:
    return relay.route("target", *target.getsockname())


@pytest.fixture
def link(target: socket.socket, port: int) -> Generator[Link]:
    made = connected(target, port)
    with made.near, made.far:
        yield made


def connected(target: socket.socket, port: int) -> Link:
    near = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    far, _ = target.accept()
    far.settimeout(TIMEOUT_S)
    return Link(near, far)


def received(sock: socket.socket, size_bytes: int) -> bytes:
    parts = bytearray()
    while len(parts) < size_bytes:
        part = sock.recv(size_bytes - len(parts))
        assert part, f"only {len(parts)} bytes came"
        parts += part
    return bytes(parts)


def is_silent(sock: socket.socket) -> bool:
    return not select.select([sock], [], [], SILENCE_S)[0]


# -- without faults ---------------------------------------------------------------------------------------------------


def test_bytes_pass_in_both_directions_and_are_counted(relay: Relay, link: Link) -> None:
    link.near.sendall(b"question")
    assert received(link.far, 8) == b"question"
    link.far.sendall(b"answer")
    assert received(link.near, 6) == b"answer"
    assert relay.flows() == [("me", "target", 8, 6, 0)]


def test_the_end_of_a_stream_passes_and_the_other_direction_goes_on(relay: Relay, link: Link) -> None:
    link.near.sendall(b"last words")
    link.near.shutdown(socket.SHUT_WR)
    assert received(link.far, 10) == b"last words"
    assert link.far.recv(1) == b""
    link.far.sendall(b"answer")
    assert received(link.near, 6) == b"answer"
    link.far.close()
    assert link.near.recv(1) == b""
    until(lambda: relay.flows() == [], "the relay has forgotten it")


def test_much_passes_whole_and_in_order(link: Link) -> None:
    data = bytes(range(256)) * 20_000
    source = "import socket, sys; sys.stdout.buffer.write(socket.socket(fileno=int(sys.argv[1])).makefile('rb').read())"
    link.far.settimeout(None)  # the mode is the descriptor's, also in the other process
    far = link.far.fileno()
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", source, str(far)], stdout=subprocess.PIPE, pass_fds=[far]
    ) as reader:
        assert reader.stdout is not None
        link.near.sendall(data)
        link.near.shutdown(socket.SHUT_WR)
        assert reader.stdout.read() == data


def test_a_reset_passes(link: Link) -> None:
    reset(link.near)
    with pytest.raises(ConnectionResetError):
        link.far.recv(1)


# -- slow -------------------------------------------------------------------------------------------------------------


def test_a_delay_holds_for_its_direction(relay: Relay, link: Link) -> None:
    relay.delay(150.0, way="out")
    started = time.monotonic()
    link.near.sendall(b"question")
    assert received(link.far, 8) == b"question"
    assert (time.monotonic() - started) * 1000 >= 150.0 - BEHIND
    relay.delay(10_000.0, way="out")
    link.far.sendall(b"answer")
    assert received(link.near, 6) == b"answer"


def test_what_was_delayed_keeps_its_order_and_is_not_overtaken(relay: Relay, link: Link) -> None:
    relay.delay(100.0)
    link.near.sendall(b"first")
    until(lambda: relay.flows()[0].coming_bytes == 5, "the relay has read it")
    relay.delay(0.0)
    link.near.sendall(b"second")
    link.near.shutdown(socket.SHUT_WR)
    assert received(link.far, 11) == b"firstsecond"
    assert link.far.recv(1) == b""


def test_a_slow_link_takes_its_time(relay: Relay, link: Link) -> None:
    relay.limit(400_000)
    started = time.monotonic()
    link.near.sendall(bytes(100_000))
    received(link.far, 100_000)
    seconds = time.monotonic() - started
    assert 0.15 <= seconds < TIMEOUT_S
    relay.heal()
    started = time.monotonic()
    link.near.sendall(bytes(100_000))
    received(link.far, 100_000)
    assert time.monotonic() - started < 0.15


def test_a_slow_link_holds_up_its_sender(relay: Relay, link: Link) -> None:
    relay.limit(100_000)
    link.near.setblocking(False)
    while select.select([], [link.near], [], SILENCE_S)[1]:
        link.near.send(bytes(1 << 16))
    received(link.far, 100_000)
    assert relay.flows()[0].coming_bytes <= 100_000 * 0.4 + (1 << 16)


# -- cut --------------------------------------------------------------------------------------------------------------


def test_a_cut_holds_back_one_direction_until_it_is_mended(relay: Relay, link: Link) -> None:
    relay.cut("me", "target", way="out")
    link.near.sendall(b"question")
    link.far.sendall(b"unasked")
    assert received(link.near, 7) == b"unasked"
    assert is_silent(link.far)
    relay.mend("me", "target", way="out")
    assert received(link.far, 8) == b"question"


def test_neither_the_end_nor_a_reset_passes_a_cut(relay: Relay, target: socket.socket, port: int) -> None:
    for end in (shut_down, reset):
        link = connected(target, port)
        with link.near, link.far:
            relay.cut()
            end(link.near)
            assert is_silent(link.far)
            link.far.sendall(b"is anybody there?")
            assert is_silent(link.far)
            relay.heal()
            try:
                assert link.far.recv(1) == b""
            except ConnectionResetError:
                assert end is reset


def test_a_sender_is_held_up_by_a_cut_and_nothing_is_lost(relay: Relay, link: Link) -> None:
    relay.cut()
    link.near.setblocking(False)
    sent = 0
    part = bytes(1 << 16)
    while select.select([], [link.near], [], SILENCE_S)[1]:
        sent += link.near.send(part)
        assert sent < 1 << 26, "the relay reads on"
    assert is_silent(link.far)
    relay.heal()
    assert len(received(link.far, sent)) == sent


def test_nobody_connects_through_a_cut(relay: Relay, target: socket.socket, port: int) -> None:
    relay.cut(way="back")
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as near:
        near.sendall(b"hello")
        assert is_silent(target)
        relay.heal()
        far, _ = target.accept()
        with far:
            far.settimeout(TIMEOUT_S)
            assert received(far, 5) == b"hello"


def test_a_cut_that_is_healed_is_none_for_who_comes_later(relay: Relay, target: socket.socket, port: int) -> None:
    relay.cut()
    relay.heal()
    link = connected(target, port)
    with link.near, link.far:
        link.near.sendall(b"hello")
        assert received(link.far, 5) == b"hello"


def test_a_cut_is_for_whom_it_is_made(relay: Relay, target: socket.socket, port: int) -> None:
    """Another process's connection by the same route goes on, and so does ours by another one."""
    with subprocess.Popen([sys.executable, "-c", CLIENT, str(port)], stdin=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        relay.know("child", child.pid)
        print(file=child.stdin, flush=True)
        other_port = relay.route("other target", *target.getsockname())
        far_of_child, _ = target.accept()
        far_of_child.settimeout(TIMEOUT_S)
        mine, other = connected(target, port), connected(target, other_port)
        with far_of_child, mine.near, mine.far, other.near, other.far:
            assert sorted((flow.origin, flow.route) for flow in relay.flows()) == [
                ("child", "target"),
                ("me", "other target"),
                ("me", "target"),
            ]
            relay.part("me", "target")
            mine.near.sendall(b"mine")
            other.near.sendall(b"other")
            print(file=child.stdin, flush=True)
            assert received(far_of_child, 5) == b"child"
            assert received(other.far, 5) == b"other"
            assert is_silent(mine.far)
        child.stdin.close()


def test_who_is_no_process_that_was_named_is_another(relay: Relay, link: Link) -> None:
    del link
    relay.know("me", os.getppid())
    assert [flow.origin for flow in relay.flows()] == ["me"], "a connection keeps its origin"
    with socket.create_server(("127.0.0.1", 0)) as second:
        second.settimeout(TIMEOUT_S)
        made = connected(second, relay.route("second", *second.getsockname()))
        with made.near, made.far:
            assert ("other", "second", 0, 0, 0) in relay.flows()


# -- gone -------------------------------------------------------------------------------------------------------------


def test_both_sides_learn_of_a_reset(relay: Relay, link: Link) -> None:
    assert relay.reset("nobody") == 0
    assert relay.reset("me", "target") == 1
    for end in link:
        with pytest.raises(ConnectionResetError):
            end.recv(1)


@pytest.mark.parametrize("lost_by", ["origin", "target"])
def test_of_a_half_open_connection_one_side_is_told(relay: Relay, link: Link, lost_by: str) -> None:
    told, left = (link.near, link.far) if lost_by == "origin" else (link.far, link.near)
    assert relay.leave_half_open(lost_by="origin" if lost_by == "origin" else "target") == 1
    with pytest.raises(ConnectionResetError):
        told.recv(1)
    left.sendall(b"are you there?")
    assert is_silent(left)
    assert relay.reset() == 1
    with pytest.raises(ConnectionResetError):
        left.recv(1)


def test_a_route_that_is_shut_refuses_and_opens_on_its_port(relay: Relay, target: socket.socket, port: int) -> None:
    link = connected(target, port)
    with link.near, link.far:
        relay.shut("target")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        link.near.sendall(b"still here")
        assert received(link.far, 10) == b"still here"
    relay.open("target")
    again = connected(target, port)
    again.near.close()
    again.far.close()


def test_a_target_that_refuses_shows_as_a_reset(relay: Relay) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = gone.getsockname()
    port = relay.route("gone", *address)
    with pytest.raises(ConnectionResetError), socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as near:
        near.recv(1)


# -- the process ------------------------------------------------------------------------------------------------------


def test_a_command_that_cannot_be_done_is_refused_and_the_next_one_is_done(relay: Relay, port: int) -> None:
    del port
    with pytest.raises(RelayFailed, match="there is a route target already"):
        relay.route("target", "127.0.0.1", 1)
    with pytest.raises(RelayFailed, match="no route"):
        relay.shut("no route")
    assert relay.flows() == []


def test_it_does_not_outlive_its_test() -> None:
    test = "from tests.cluster.relay import Relay\nrelay = Relay().__enter__()\nprint(relay.pid, flush=True)\ninput()\n"
    assert not outlives_its_test(test), "the relay is still there"


def shut_down(sock: socket.socket) -> None:
    """Says that nothing more comes."""
    sock.shutdown(socket.SHUT_WR)


def reset(sock: socket.socket) -> None:
    """Closes with RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()


def until(is_true: Callable[[], bool], what: str) -> None:
    """Asks again until it is so."""
    deadline = time.monotonic() + TIMEOUT_S
    while not is_true():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)  # between two questions
