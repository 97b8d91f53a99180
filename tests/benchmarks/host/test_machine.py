"""What /proc says is read by the right field: excerpts with different numbers in every place."""

import ctypes
import mmap
import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.host import machine
from benchmarks.host.machine import (
    TICKS_PER_SECOND,
    Machine,
    child_cpu_seconds,
    child_pids,
    commit,
    cpu_seconds,
    descriptor_count,
    fill_page_cache,
    kernel_cpu_seconds,
    parse_busy_ticks,
    parse_cpu_ticks,
    parse_dirty_bytes,
    parse_filesystem,
    parse_free_bytes,
    parse_parent,
    parse_proportional_bytes,
    parse_read_bytes,
    parse_resident_bytes,
    parse_waited_ticks,
    proportional_bytes,
    read_bytes,
    resident_bytes,
    touch_memory,
    waited_cpu_seconds,
)


def test_dirty_pages_are_those_that_wait_and_those_on_their_way() -> None:
    meminfo = "MemTotal: 1 kB\nDirty:       32132 kB\nWriteback:     100 kB\nWritebackTmp:      7 kB\n"
    assert parse_dirty_bytes(meminfo) == 1024 * 32232


def test_free_memory_is_what_nothing_is_in() -> None:
    assert parse_free_bytes("MemTotal: 9 kB\nMemFree:   21 kB\nMemAvailable: 99 kB\nSwapFree: 7 kB\n") == 21 * 1024


def test_memory_that_several_processes_have_is_divided_among_them() -> None:
    assert parse_proportional_bytes("Rss:   9 kB\nPss:   21 kB\nPss_Dirty:  7 kB\nSwapPss: 3 kB\n") == 21 * 1024
    with pytest.raises(ValueError, match="it has ended"):
        parse_proportional_bytes("")
    assert 1_000_000 < proportional_bytes(os.getpid()) <= resident_bytes(os.getpid()) + (1 << 20)


def test_touched_memory_is_given_back() -> None:
    before = resident_bytes(os.getpid())
    assert touch_memory(200 << 20) <= 200 << 20
    assert resident_bytes(os.getpid()) - before < 50 << 20


def cached_bytes(path: Path) -> int:
    """How much of the file is in the page cache (mincore)."""
    libc, size_bytes = ctypes.CDLL(None, use_errno=True), path.stat().st_size
    pages = (ctypes.c_ubyte * -(-size_bytes // mmap.PAGESIZE))()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        is_refused = libc.mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(size_bytes), pages)
        del first
    assert not is_refused, os.strerror(ctypes.get_errno())
    return sum(page & 1 for page in pages) * mmap.PAGESIZE


def test_the_page_cache_keeps_what_fills_it_until_its_file_goes(tmp_path: Path) -> None:
    assert fill_page_cache(tmp_path, 200 << 20) == 200 << 20
    (hole,) = tmp_path.iterdir()
    assert cached_bytes(hole) > 150 << 20
    assert hole.stat().st_blocks == 0, "nothing of it is on the device"


def test_cpu_time_is_found_behind_any_process_name() -> None:
    stat = "77 (a) b (c 1 2) S " + " ".join(str(number) for number in range(4, 53))
    assert parse_cpu_ticks(stat) == 14 + 15


def test_resident_memory_is_neither_virtual_nor_peak() -> None:
    assert parse_resident_bytes("VmPeak:\t9 kB\nVmHWM:\t8 kB\nVmRSS:\t   34700 kB\n") == 34700 * 1024
    with pytest.raises(ValueError, match="ended"):
        parse_resident_bytes("Name:\tzombie\n")


def test_a_parent_is_found_behind_any_process_name() -> None:
    assert parse_parent("77 (a) b (c 1 2) S 42 43 44") == 42


def test_cpu_time_of_children_is_found_behind_any_process_name() -> None:
    stat = "77 (a) b (c 1 2) S " + " ".join(str(number) for number in range(4, 53))
    assert parse_waited_ticks(stat) == 16 + 17


def test_a_child_is_one_until_it_was_waited_for_and_its_time_counts_then() -> None:
    before = waited_cpu_seconds(os.getpid())
    busy = "import time\nwhile time.process_time() < 0.1: pass\nprint(1, flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.read(1) == b"1"
        assert child.pid in child_pids(os.getpid())
        assert waited_cpu_seconds(os.getpid()) == before
    assert child.pid not in child_pids(os.getpid())
    assert waited_cpu_seconds(os.getpid()) - before >= 0.09
    assert child_pids(child.pid) == []
    with pytest.raises(ProcessLookupError):
        waited_cpu_seconds(child.pid)


def test_what_was_read_from_the_page_cache_counts() -> None:
    assert parse_read_bytes("rchar: 12345\nwchar: 7\nsyscr: 1\nread_bytes: 4096\n") == 12345
    before = read_bytes(os.getpid())
    with open(__file__, "rb") as file:
        size_bytes = len(file.read())
    assert read_bytes(os.getpid()) - before >= size_bytes


def test_descriptors_are_counted() -> None:
    before = descriptor_count(os.getpid())
    with open(__file__, "rb"):
        assert descriptor_count(os.getpid()) == before + 1


def test_idle_and_waiting_cores_are_not_busy_and_guests_count_once() -> None:
    assert parse_busy_ticks("cpu  1 20 300 4000 50000 600000 7000000 80000000 1 1\ncpu0 9 9") == 87600321


def test_the_filesystem_is_that_of_the_nearest_mount_point() -> None:
    mounts = "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/data xfs rw 0 0\n"
    assert parse_filesystem(mounts, "/tmp/data/kafka") == "xfs"  # noqa: S108 (a name in a text)
    assert parse_filesystem(mounts, "/tmp/database") == "tmpfs"  # noqa: S108
    assert parse_filesystem(mounts, "/var") == "ext4"


def test_a_machine_that_was_busy_says_that_its_figures_are_preliminary() -> None:
    assert "preliminary" in "\n".join(Machine("d", "c", "h", "s", busy_cores=0.5).lines())
    assert "preliminary" not in "\n".join(Machine("d", "c", "h", "s", busy_cores=0.05).lines())


def test_this_machine_answers_in_the_expected_form() -> None:
    before, children_before = cpu_seconds(os.getpid()), child_cpu_seconds()
    while cpu_seconds(os.getpid()) - before < 2 / TICKS_PER_SECOND:
        pass
    assert resident_bytes(os.getpid()) > 1_000_000
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    assert child_cpu_seconds() > children_before
    assert kernel_cpu_seconds() >= 0


def test_work_of_less_than_a_tick_is_seen() -> None:
    """16 MiB in large batches cost a broker about one of the ticks that /proc counts, and now and then none."""
    readings = [cpu_seconds(os.getpid()) for _ in range(100)]
    assert all(later > earlier for earlier, later in pairwise(readings))
    assert readings[-1] == pytest.approx(time.process_time(), abs=2 / TICKS_PER_SECOND)


def test_work_of_another_process_is_seen_until_nobody_knows_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "sum(range(10**6))"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert 0 < cpu_seconds(process.pid) < 60
    with pytest.raises(ProcessLookupError, match=f"no process has the number {process.pid}"):
        cpu_seconds(process.pid)


def test_the_commit_is_the_last_one_that_changed_what_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document that is committed or changed meanwhile makes no measurement stale; a source does."""
    monkeypatch.setattr(machine, "REPOSITORY", tmp_path)

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *identity, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    def write_and_commit(name: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        git("add", "--all")
        git("commit", "--quiet", "--message", name)
        return git("rev-parse", "--short", "HEAD").strip()

    assert commit() == "none"
    git("init", "--quiet")
    assert commit() == "none"
    write_and_commit("broker/log/log.py")
    measured = write_and_commit("benchmarks/contenders/job.py")
    write_and_commit("docs/performance.md")
    write_and_commit("benchmarks/results.jsonl")
    assert commit() == measured
    (tmp_path / "benchmarks/results.jsonl").write_text("more")
    assert commit() == measured
    (tmp_path / "broker/log/new.py").write_text("")
    assert commit() == f"{measured}+"
