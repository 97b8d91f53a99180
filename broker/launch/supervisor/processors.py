"""How many processors this process may use, and how many brokers that makes.

A machine's own count is wrong where the process is bound to some of them (taskset, a cpuset) or where its control group
has a quota, as in a container with a limit.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

Read = Callable[[str], str | None]
"""The text of a file; None where there is none."""

BROKERS_MAX: Final = 50
_GROUPS: Final = "/sys/fs/cgroup"
_MEMBERSHIP: Final = "/proc/self/cgroup"


def read_file(path: str) -> str | None:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError):
        return None


def usable_processors(read: Read = read_file) -> int:
    """At least 1. A quota of a part of one counts as none of it: 2.5 are 2."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([bound, *(int(quota) for quota in quotas(read))]))


def brokers_for(processors: int) -> int:
    """One for each processor, but one less where that leaves two: clients, and the system, need one, too. BROKERS_MAX
    at most."""
    return min(BROKERS_MAX, processors - 1 if processors > 2 else processors)


def quotas(read: Read) -> Iterator[float]:
    """In processors: those of the control group of this process and of the groups above it."""
    for line in (read(_MEMBERSHIP) or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            for group in _upwards(path):
                yield from _unified(read(f"{_GROUPS}{group}/cpu.max"))
        elif "cpu" in controllers.split(","):
            for group in _upwards(path):
                for root in (f"{_GROUPS}/cpu", f"{_GROUPS}/{controllers}"):
                    quota, period = (read(f"{root}{group}/cpu.cfs_{name}_us") for name in ("quota", "period"))
                    yield from _unified(f"{quota or ''} {period or ''}")


def _upwards(path: str) -> Iterator[str]:
    """The group and those above it; the last is the root, an empty text."""
    path = path.rstrip("/")
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield ""


def _unified(text: str | None) -> Iterator[float]:
    """Of `QUOTA PERIOD` in microseconds, as cpu.max has it; nothing where there is no quota."""
    match (text or "").split():
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period) > 0:
            yield int(quota) / int(period)
        case _:
            return
