"""What worked while something ran: the server, our own processes, the kernel's writers, and anything else.

Anything else is what disturbs a measurement. The kernel's threads are not part of it: before a run the pages are clean,
so what they write meanwhile is the run's own.
"""

import time
from dataclasses import dataclass
from typing import Self

from benchmarks.host.machine import (
    busy_seconds,
    child_cpu_seconds,
    cpu_seconds,
    kernel_cpu_seconds,
    waited_cpu_seconds,
)

OTHER_CORES_MAX = 0.2
"""More other work than this disturbs a run, in either direction: Kafka was seen slower and faster beside it."""
DISTURBED_SHARE_MAX = 0.1
"""Of the runs: more than one in ten is more than medians of five bear."""


@dataclass(frozen=True, slots=True)
class Work:
    """CPU seconds of the server's processes and of their children that have ended, of processes that we started and
    waited for, of the kernel's threads, and of everybody; and the clock's."""

    server: float
    children: float
    kernel: float
    everybody: float
    clock: float

    @classmethod
    def until_now(cls, *pids: int) -> Self:
        return cls(
            sum(map(cpu_seconds, pids)) + sum(map(waited_cpu_seconds, pids)),
            child_cpu_seconds(),
            kernel_cpu_seconds(),
            busy_seconds(),
            time.monotonic(),
        )

    def since(self, before: "Work") -> "Work":
        return Work(
            self.server - before.server,
            self.children - before.children,
            self.kernel - before.kernel,
            self.everybody - before.everybody,
            self.clock - before.clock,
        )

    @property
    def other_cores(self) -> float:
        """How many cores were busy with anything else. Ticks are counted apart, and may disagree a little."""
        return max(0.0, self.everybody - self.server - self.children - self.kernel) / self.clock


def disturbance_note(name: str, disturbed: int, count: int) -> str:
    """How many runs of a measurement had more than their own pages to write, or more company than they can bear."""
    return f"{name}: {disturbed} of {count} runs were disturbed, mostly by more than {OTHER_CORES_MAX} busy cores"


class Watch:
    """Looks at the machine before and after a block: `work` is what was done in it."""

    work: Work

    def __init__(self, *pids: int) -> None:
        """`pids` are those of the server's processes."""
        self._pids = pids

    def __enter__(self) -> Self:
        self.work = Work.until_now(*self._pids)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return  # whoever is watched may be gone, and why the block failed is what has to be told
        self.work = Work.until_now(*self._pids).since(self.work)
