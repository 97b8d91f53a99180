"""Which of the processes that are named holds a connection."""

import os
import socket
import subprocess
import sys
from collections.abc import Generator

import pytest

from tests.cluster.socket_owners import Address, owner_of

HOLDER = "import sys; sys.stdin.read()"
"""A process that holds what it is given until its input ends."""


@pytest.fixture
def listener() -> Generator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def connect_from(port: int, target: socket.socket) -> socket.socket:
    """From this port of ours, or from a free one for 0."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    connection.bind(("127.0.0.1", port))
    connection.connect(target.getsockname())
    return connection


def ends(connection: socket.socket) -> tuple[Address, Address]:
    return connection.getsockname(), connection.getpeername()


def test_the_process_that_holds_it_is_found_among_those_that_are_named(listener: socket.socket) -> None:
    with connect_from(0, listener) as ours:
        assert owner_of(*ends(ours), [os.getppid(), os.getpid()]) == os.getpid()
        assert owner_of(*ends(ours), [os.getppid()]) is None
        ended = ends(ours)
    assert owner_of(*ended, [os.getpid()]) is None


def test_a_connection_that_never_was_has_no_owner(listener: socket.socket) -> None:
    assert owner_of(("127.0.0.1", 1), listener.getsockname(), [os.getpid()]) is None


def test_an_ipv6_socket_with_an_ipv4_address(listener: socket.socket) -> None:
    host, port = listener.getsockname()
    with socket.create_connection((f"::ffff:{host}", port)) as ours:
        near, peer = listener.accept()
        with near:
            assert ours.family is socket.AF_INET6
            assert owner_of(peer, near.getsockname(), [os.getpid()]) == os.getpid()


def test_two_connections_from_one_port_are_told_apart(listener: socket.socket) -> None:
    """As Linux hands out ports: who connects elsewhere may get the same one."""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere, connect_from(0, listener) as ours:
        theirs = connect_from(ours.getsockname()[1], elsewhere)
        with subprocess.Popen(
            [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, pass_fds=[theirs.fileno()]
        ) as holder:
            between = ends(theirs)
            theirs.close()
            named = [holder.pid, os.getpid()]
            assert ends(ours)[0] == between[0]
            assert (owner_of(*ends(ours), named), owner_of(*between, named)) == (os.getpid(), holder.pid)


def test_who_is_gone_holds_nothing(listener: socket.socket) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    with connect_from(0, listener) as ours:
        assert owner_of(*ends(ours), [gone.pid]) is None
