"""A file in memory has a path while it is needed, and is on no disk."""

import os
from pathlib import Path

import pytest

from odradek.broker.disk.memory_file import memory_file


@pytest.mark.parametrize("content", [b"", b"secret", bytes(1_000_000)])
def test_it_is_there_for_the_block_alone(content: bytes) -> None:
    with memory_file(content) as path:
        assert Path(path).read_bytes() == content
        assert Path(path).read_bytes() == content, "as often as one likes"
        assert os.readlink(path).startswith("/memfd:"), "in no directory"
        inode = os.stat(path).st_ino
    assert not os.path.exists(path) or os.stat(path).st_ino != inode


def test_a_child_does_not_inherit_it() -> None:
    with memory_file(b"secret") as path:
        assert not os.get_inheritable(int(path.rpartition("/")[2]))
