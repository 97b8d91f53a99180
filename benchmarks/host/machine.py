"""The machine under measurement: what it is, how busy it is, and what a process of it has used.

What is known comes from Linux: its /proc, and the clock of each process. The functions that take text are pure;
`read_…` and others look at this machine. CPU seconds count user and system time of all threads of a process, and not
that of its children, but where it says so.
"""

import mmap
import os
import platform
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

DIRTY_BYTES_MAX = 50_000_000
"""More dirty pages than this before a run would be written back during it."""
SYNC_ATTEMPTS = 5
SPARED_BYTES = 1 << 30
"""Left free by `touch_memory` and `fill_page_cache`, so that nothing else is driven out."""
PIECE_BYTES = 1 << 20
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
CPUCLOCK_SCHED = 2
"""Of the clocks of a process that which adds up what its threads ran (include/linux/posix-timers_types.h)."""
KERNEL_PARENT = 2
"""kthreadd, the parent of all the kernel's threads."""
REPOSITORY = Path(__file__).resolve().parents[2]
MEASURED = ("broker", "client", "protocol", "odradek", "requirements", "benchmarks/**.py")
"""The files that figures depend on, as git names them."""


def parse_dirty_bytes(meminfo: str) -> int:
    """Pages that are dirty or being written back, of /proc/meminfo."""
    sizes = dict(re.findall(r"^(Dirty|Writeback):\s+(\d+) kB$", meminfo, re.MULTILINE))
    return 1024 * (int(sizes["Dirty"]) + int(sizes["Writeback"]))


def parse_cpu_ticks(stat: str) -> int:
    """utime + stime of /proc/PID/stat. The name before them stands in brackets and may hold anything, brackets too."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def parse_resident_bytes(status: str) -> int:
    """VmRSS of /proc/PID/status."""
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    if found is None:
        raise ValueError("a process without memory: it has ended")
    return 1024 * int(found[1])


def parse_proportional_bytes(smaps_rollup: str) -> int:
    """Pss of /proc/PID/smaps_rollup: what a process has resident, a page that several have divided among them."""
    found = re.search(r"^Pss:\s+(\d+) kB$", smaps_rollup, re.MULTILINE)
    if found is None:
        raise ValueError("a process without memory: it has ended")
    return 1024 * int(found[1])


def parse_busy_ticks(stat: str) -> int:
    """All but idle and iowait of the first line of /proc/stat: work of every process, the kernel's and stolen time."""
    user, nice, system, _idle, _iowait, irq, softirq, steal, *_guests = map(int, stat.split("\n", 1)[0].split()[1:])
    return user + nice + system + irq + softirq + steal


def cpu_seconds(pid: int) -> float:
    """By the clock of the process, whose number is worked out as in clock_getcpuclockid(3): it counts nanoseconds, and
    /proc/PID/stat ticks of 10 ms. Raises ProcessLookupError."""
    try:
        return time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)
    except OSError as error:
        raise ProcessLookupError(f"no process has the number {pid}, or not any more: {error}") from error


def parse_read_bytes(io: str) -> int:
    """rchar of /proc/PID/io: what the process asked the kernel to read, from the page cache too."""
    found = re.search(r"^rchar: (\d+)$", io, re.MULTILINE)
    assert found is not None
    return int(found[1])


def read_bytes(pid: int) -> int:
    return parse_read_bytes((PROC / str(pid) / "io").read_text())


def parse_waited_ticks(stat: str) -> int:
    """cutime + cstime of /proc/PID/stat: of children that have ended and been waited for, and theirs."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[13]) + int(fields[14])


def waited_cpu_seconds(pid: int) -> float:
    """CPU seconds of the children of a process that have ended and been waited for. Raises ProcessLookupError."""
    try:
        return parse_waited_ticks((PROC / str(pid) / "stat").read_text()) / TICKS_PER_SECOND
    except FileNotFoundError as error:
        raise ProcessLookupError(f"no process has the number {pid}, or not any more") from error


def child_pids(pid: int) -> list[int]:
    """The children of a process that live; none where it has ended."""
    children: list[int] = []
    for path in (PROC / str(pid) / "task").glob("*/children"):
        try:
            children += map(int, path.read_text().split())
        except OSError:  # the thread has ended since
            continue
    return children


def parse_parent(stat: str) -> int:
    """The parent of /proc/PID/stat."""
    return int(stat.rpartition(")")[2].split()[1])


def kernel_cpu_seconds() -> float:
    """Of the kernel's own threads, such as those that write dirty pages out; 0 where they cannot be seen."""
    ticks = 0
    for path in PROC.glob("[0-9]*/stat"):
        try:
            stat = path.read_text()
        except OSError:  # it has ended since
            continue
        if parse_parent(stat) == KERNEL_PARENT:
            ticks += parse_cpu_ticks(stat)
    return ticks / TICKS_PER_SECOND


def child_cpu_seconds() -> float:
    """Of our own child processes that have ended and been waited for, and theirs."""
    times = os.times()
    return times.children_user + times.children_system


def descriptor_count(pid: int) -> int:
    return len(os.listdir(PROC / str(pid) / "fd"))


def resident_bytes(pid: int) -> int:
    return parse_resident_bytes((PROC / str(pid) / "status").read_text())


def proportional_bytes(pid: int) -> int:
    return parse_proportional_bytes((PROC / str(pid) / "smaps_rollup").read_text())


def busy_seconds() -> float:
    """CPU seconds that the whole machine has worked since it started."""
    return parse_busy_ticks((PROC / "stat").read_text()) / TICKS_PER_SECOND


def busy_cores(seconds: float = 2.0) -> float:
    """How many cores are busy, on average over the coming `seconds`."""
    before, started = busy_seconds(), time.monotonic()
    time.sleep(seconds)  # the measurement itself
    return (busy_seconds() - before) / (time.monotonic() - started)


def parse_free_bytes(meminfo: str) -> int:
    """Memory that nothing is in, of /proc/meminfo."""
    found = re.search(r"^MemFree:\s+(\d+) kB$", meminfo, re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


def _spare_bytes(size_bytes_max: int | None) -> int:
    """Free memory, but what is left free, and at most `size_bytes_max`."""
    free_bytes = max(0, parse_free_bytes((PROC / "meminfo").read_text()) - SPARED_BYTES)
    return free_bytes if size_bytes_max is None else min(free_bytes, size_bytes_max)


def touch_memory(size_bytes_max: int | None = None) -> int:
    """Uses all free memory once, and gives it back; how many bytes that were.

    A virtual machine may get its memory from its host only when it touches it: a third of the broker's time under load
    was that, until everything had been touched, and whoever is measured later would have the better of it.
    """
    size_bytes = max(mmap.PAGESIZE, _spare_bytes(size_bytes_max))
    mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()
    return size_bytes


def fill_page_cache(directory: Path, size_bytes_max: int | None = None) -> int:
    """Has the page cache take all free memory, and leaves it there; how many bytes that were.

    Free memory may go back to the host of a virtual machine at once, so touching it does not last: whoever writes
    gigabytes then pays for it anew. Clean pages stay, and are given to whoever writes, as on any machine that has run
    for a while. They are of a new file in `directory` that is one hole, and go with it.
    """
    size_bytes = _spare_bytes(size_bytes_max)
    descriptor, _ = tempfile.mkstemp(prefix="hole-", dir=directory)
    with open(descriptor, "r+b", buffering=0) as file:
        file.truncate(size_bytes)
        piece, filled_bytes = bytearray(PIECE_BYTES), 0
        while (count := file.readinto(piece)) > 0:
            filled_bytes += count
    return filled_bytes


def settle_pages() -> int:
    """Writes all dirty pages out; how many bytes are dirty afterwards. Others may dirty pages all the time."""
    attempts = SYNC_ATTEMPTS
    while True:
        os.sync()
        dirty = parse_dirty_bytes((PROC / "meminfo").read_text())
        attempts -= 1
        if dirty < DIRTY_BYTES_MAX or attempts == 0:
            return dirty


@dataclass(frozen=True, slots=True)
class Machine:
    """What a result is worth nothing without."""

    date: str
    commit: str
    hardware: str
    software: str
    busy_cores: float

    @property
    def is_idle(self) -> bool:
        """Whether next to nothing else ran when the measurement began."""
        return self.busy_cores < 0.1

    def lines(self) -> list[str]:
        idle = "" if self.is_idle else "; NOT IDLE: these figures are preliminary"
        return [
            f"date      {self.date}, commit {self.commit}",
            f"hardware  {self.hardware}",
            f"software  {self.software}",
            f"before    {self.busy_cores:.2f} cores busy with other work{idle}",
        ]


def describe(directory: Path, software: Sequence[str]) -> Machine:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    cores = len(os.sched_getaffinity(0))
    filesystem = parse_filesystem((PROC / "self/mounts").read_text(), str(directory.resolve()))
    return Machine(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        commit=commit(),
        hardware=f"{cores} cores of {_processor()}, {memory / 2**30:.0f} GiB, data on {filesystem}",
        software=", ".join([*software, f"Linux {platform.release()}"]),
        busy_cores=busy_cores(),
    )


def parse_filesystem(mounts: str, path: str) -> str:
    """The kind of filesystem that `path` lies on: that of the longest mount point it is under."""
    points = [(fields[1], fields[2]) for fields in map(str.split, mounts.splitlines())]
    under = [(len(point), kind) for point, kind in points if f"{path}/".startswith(f"{point.rstrip('/')}/")]
    return max(under)[1]


def commit() -> str:
    """The last commit that changed what is measured or how, with a plus when those files differ from it; "none" outside
    of a repository. So documents and tests may be committed between two measurements."""
    found = _git("log", "-1", "--format=%h", "--", *MEASURED)
    if not found:
        return "none"
    return f"{found}+" if _git("status", "--porcelain", "--", *MEASURED) else found


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", (PROC / "cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()
