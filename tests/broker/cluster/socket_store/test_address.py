"""The socket of a store: for its user alone, at a path of any length, in place of what a killed server has left."""

import os
import socket
import stat
from pathlib import Path

import pytest

from odradek.broker.cluster.socket_store.address import (
    PATH_BYTES_MAX,
    connecting_socket,
    listening_socket,
    peer_of,
    remove_socket,
)


def connected(path: str) -> bool:
    try:
        connecting_socket(path).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("depth", [1, 8])
def test_a_server_is_reached_at_a_path_of_any_length(tmp_path: Path, depth: int) -> None:
    directory = tmp_path.joinpath(*["a-directory-with-a-long-name"] * depth)
    directory.mkdir(parents=True)
    path = str(directory / "store.sock")
    assert (len(path) > PATH_BYTES_MAX) == (depth > 1) or len(str(tmp_path)) > 60
    before = os.listdir("/proc/self/fd")
    with listening_socket(path), connecting_socket(path) as client:
        assert client.getpeername()
        assert os.path.exists(path)
    assert os.listdir("/proc/self/fd") == before
    remove_socket(path)
    assert not os.path.exists(path)


def test_the_socket_is_for_its_user_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sock")
    before = os.umask(0)
    try:
        with listening_socket(path):
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    finally:
        os.umask(before)


def test_the_kernel_says_whose_process_connects(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sock")
    with listening_socket(path) as listening, connecting_socket(path):
        listening.setblocking(True)
        accepted, _ = listening.accept()
        with accepted:
            assert peer_of(accepted) == (os.getpid(), os.geteuid())


def test_what_a_killed_server_left_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sock")
    listening_socket(path).close()
    assert os.path.exists(path)
    assert not connected(path)
    with listening_socket(path):
        assert connected(path)


def test_another_kind_of_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.sock"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="another kind of file"):
        listening_socket(str(path))
    assert path.read_text() == "mine"


def test_where_nobody_listens_nobody_is_reached(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        connecting_socket(str(tmp_path / "store.sock"))
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "store.sock"))
    with pytest.raises(ConnectionRefusedError):
        connecting_socket(str(tmp_path / "store.sock"))
