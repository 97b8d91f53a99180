"""The device below a directory: how long a small append takes there to be durable, and how often it was flushed."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

APPEND_BYTES = 1024
APPENDS = 200
DISCARDED = 10
SLOW_ENOUGH_S = 0.0002
"""A device that is faster than this would measure the brokers instead of what they share of its work."""


SYS_BLOCK = Path("/sys/dev/block")
FLUSHES = 15
"""The field of `stat`; kernels before 5.5 have fewer."""


@dataclass(frozen=True, slots=True)
class SyncTimes:
    """Seconds that each fdatasync took."""

    seconds: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return median(self.seconds)

    @property
    def is_slow_enough(self) -> bool:
        return self.median_s >= SLOW_ENOUGH_S

    def __str__(self) -> str:
        milliseconds = [1000 * each for each in (self.median_s, min(self.seconds), max(self.seconds))]
        text = "{:.3f} ms [{:.3f}–{:.3f}]".format(*milliseconds)
        bare = f"fdatasync after an append of {APPEND_BYTES} bytes takes {text}: {1 / self.median_s:,.0f}/s"
        return bare if self.is_slow_enough else f"{bare}. THE DEVICE IS TOO FAST to decide: less than 0.2 ms"


def measure_sync(directory: Path, appends: int = APPENDS) -> SyncTimes:
    """Of appends to a new file there. Raises OSError."""
    path = directory / "device"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600)
    seconds: list[float] = []
    try:
        for _ in range(DISCARDED + appends):
            os.write(descriptor, bytes(APPEND_BYTES))
            started = time.perf_counter()
            os.fdatasync(descriptor)
            seconds.append(time.perf_counter() - started)
    finally:
        os.close(descriptor)
        path.unlink()
    return SyncTimes(tuple(seconds[DISCARDED:]))


def flush_count(directory: Path) -> int | None:
    """How often the device was flushed since the machine started, by anybody; None where that is not counted."""
    device = directory.stat().st_dev
    stat = SYS_BLOCK / f"{os.major(device)}:{os.minor(device)}" / "stat"
    return parse_flushes(stat.read_text()) if stat.exists() else None


def parse_flushes(stat: str) -> int | None:
    """Flush requests that were completed, of a block device's `stat` (Documentation/block/stat.rst)."""
    fields = stat.split()
    return int(fields[FLUSHES]) if len(fields) > FLUSHES else None
