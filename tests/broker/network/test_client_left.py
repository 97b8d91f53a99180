"""Who has left is known of a connection that nobody reads from; of one that has no socket, nothing is."""

import asyncio
import socket
from typing import cast

from odradek.broker.network.client_left import has_left


class Transport:
    """Has this socket."""

    def __init__(self, sock: socket.socket | None) -> None:
        self.sock = sock

    def get_extra_info(self, name: str) -> socket.socket | None:
        assert name == "socket"
        return self.sock


def left(sock: socket.socket | None) -> bool:
    return has_left(cast(asyncio.BaseTransport, Transport(sock)))


def test_whoever_has_closed_his_end_has_left_even_if_he_has_sent_something() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        assert not left(ours)
        theirs.send(b"something")
        assert not left(ours)
        theirs.shutdown(socket.SHUT_WR)
        assert left(ours)
        assert ours.recv(100) == b"something", "nothing was read for that"
        theirs.close()
        assert left(ours)


def test_of_what_is_no_socket_any_more_nobody_says_so() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    assert not left(ours)
    assert not left(None)
