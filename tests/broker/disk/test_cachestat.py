"""What is in the page cache is told exactly, and where nobody tells nothing is taken for cached."""

import mmap
import os
from pathlib import Path

import pytest

from odradek.broker.disk import cachestat
from odradek.broker.disk.cachestat import CacheStat

PAGE = mmap.PAGESIZE
PAGES = 64


@pytest.fixture
def descriptor(tmp_path: Path) -> int:
    """Of a file of which, on a device, the second half is in memory: it is written past the page cache, and read."""
    path = tmp_path / "f"
    content = mmap.mmap(-1, PAGES * PAGE)
    try:
        direct = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
    except OSError as error:
        pytest.skip(f"the file system of the temporary directory does not take O_DIRECT: {error}")
    try:
        assert os.pwrite(direct, content, 0) == PAGES * PAGE
    finally:
        os.close(direct)
    opened = os.open(path, os.O_RDWR)
    os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_RANDOM)
    os.pread(opened, PAGES // 2 * PAGE, PAGES // 2 * PAGE)
    if not CacheStat().is_cached(opened, PAGES // 2 * PAGE, PAGE):
        pytest.skip("this kernel or file system has no cachestat")
    return opened


@pytest.mark.parametrize(
    ("position", "size_bytes", "expected"),
    [
        (0, 1, False),
        (0, PAGES * PAGE, False),
        (PAGES // 2 * PAGE - 1, 1, False),
        (PAGES // 2 * PAGE - 1, 2, False),
        (PAGES // 2 * PAGE - 1, PAGE, False),
        (PAGES // 2 * PAGE, 1, True),
        (PAGES // 2 * PAGE, PAGE, True),
        (PAGES // 2 * PAGE + 1, PAGE, True),
        (PAGES // 2 * PAGE, PAGES // 2 * PAGE, True),
        (PAGES * PAGE - 1, 1, True),
    ],
)
def test_a_range_is_cached_when_every_page_of_it_is(
    position: int, size_bytes: int, expected: bool, descriptor: int
) -> None:
    told = CacheStat()
    assert [told.is_cached(descriptor, position, size_bytes) for _ in range(2)] == [expected] * 2


def test_a_kernel_that_does_not_know_the_call_is_asked_once(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cachestat, "_CACHESTAT", 100_000)
    told = CacheStat()
    assert not told.is_cached(descriptor, PAGES // 2 * PAGE, PAGE)
    monkeypatch.undo()
    assert not told.is_cached(descriptor, PAGES // 2 * PAGE, PAGE)
    assert CacheStat().is_cached(descriptor, PAGES // 2 * PAGE, PAGE)


def test_another_operating_system_is_not_asked(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert not CacheStat().is_cached(descriptor, PAGES // 2 * PAGE, PAGE)
