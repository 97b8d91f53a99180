"""A slice of a file arrives byte for byte, sent in both ways through sockets that take little, and is closed then."""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from odradek.broker.disk.disk_descriptors import Descriptor
from odradek.broker.disk.file_slice import FileSlice
from tests.descriptors import open_below

CONTENT = Random(7).randbytes(3 << 20)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f"
    path.write_bytes(CONTENT)
    return path


def slice_of(path: Path, position: int, size_bytes: int) -> FileSlice:
    return FileSlice(Descriptor(os.open(path, os.O_RDONLY)), str(path), position, size_bytes)


@contextmanager
def connected() -> Generator[tuple[socket.socket, socket.socket]]:
    """One that does not wait, and who reads."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def drained(theirs: socket.socket, size_bytes_max: int = 1 << 30) -> bytes:
    """What can be read now."""
    received = bytearray()
    theirs.setblocking(False)
    while len(received) < size_bytes_max:
        try:
            received += theirs.recv(min(1 << 16, size_bytes_max - len(received)))
        except BlockingIOError:
            break
    return bytes(received)


@pytest.mark.parametrize("by_sendfile", [True, False])
@pytest.mark.parametrize(("position", "size_bytes"), [(0, 1), (5, 100_000), (1 << 20, 2 << 20), (77, (3 << 20) - 77)])
def test_a_slice_arrives_whole_through_a_socket_that_is_full_again_and_again(
    position: int, size_bytes: int, by_sendfile: bool, path: Path
) -> None:
    part = slice_of(path, position, size_bytes)
    received, refusals = b"", 0
    with connected() as (ours, theirs):
        while True:
            try:
                part.send(ours, by_sendfile=by_sendfile)
            except BlockingIOError:
                refusals += 1
                received += drained(theirs, 50_000 + refusals)
                assert len(part) > 0
            else:
                break
        assert len(part) == 0
        received += drained(theirs)
    assert received == CONTENT[position : position + size_bytes]
    assert (refusals > 0) == (size_bytes > 1 << 20), "a socket takes some hundred kilobytes"
    assert open_below(path.parent) == []


@pytest.mark.parametrize("by_sendfile", [True, False])
def test_what_was_not_sent_can_be_read(by_sendfile: bool, path: Path) -> None:
    part = slice_of(path, 100, 2 << 20)
    assert len(part) == 2 << 20
    with connected() as (ours, theirs):
        with pytest.raises(BlockingIOError):
            part.send(ours, by_sendfile=by_sendfile)
        left = len(part)
        assert 0 < left < 2 << 20
        rest = part.read()
        assert len(rest) == left
        assert drained(theirs) + rest == CONTENT[100 : 100 + (2 << 20)]
    assert len(part) == 0
    assert open_below(path.parent) == []


def test_it_is_the_same_when_its_file_is_renamed_deleted_or_longer(path: Path) -> None:
    part = slice_of(path, 0, 1000)
    with path.open("ab") as file:
        file.write(b"more")
    path.unlink()
    assert part.read() == CONTENT[:1000]


@pytest.mark.parametrize("by_sendfile", [True, False])
def test_a_file_that_is_shorter_than_was_promised_is_an_error_that_names_it(by_sendfile: bool, path: Path) -> None:
    """The client was told another length: nothing that could follow would be right."""
    for use in ("send", "read"):
        part = slice_of(path, 0, 100_000)
        os.truncate(path, 1000)
        with connected() as (ours, _), pytest.raises(OSError, match="has lost its end") as caught:
            part.read() if use == "read" else part.send(ours, by_sendfile=by_sendfile)
        assert caught.value.filename == str(path)
        path.write_bytes(CONTENT)


def test_one_that_nobody_sends_gives_its_descriptor_back(path: Path) -> None:
    part = slice_of(path, 0, 10)
    part.close()
    part.close()
    assert open_below(path.parent) == []
    part = slice_of(path, 0, 10)
    del part
    assert open_below(path.parent) == []
