"""The plan: how much is measured, how often, and how long Apache Kafka is warmed up. The issue's conditions are the
defaults; `Plan.small` is for trying something out, and decides nothing."""

from dataclasses import asdict, dataclass
from typing import Any, Self

MEBIBYTE = 1024 * 1024
GIBIBYTE = 1024 * MEBIBYTE
MEGABYTE = 1_000_000
GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. `warm_s` is how long Kafka is under load at first at least, `warm_s_max` at most,
    `rewarm_s` before each run; `dirty_bytes` are produced without sync before the runs of second rows."""

    touches_memory: bool = True  # before anything else, see machine.touch_memory
    runs: int = 5
    run_bytes: int = GIBIBYTE
    record_bytes: int = 1024
    dirty_bytes: int = 4 * GIBIBYTE
    filling_bytes: int = 5 * GIGABYTE  # produced before memory is read
    warm_s: float = 40.0
    warm_s_max: float = 240.0
    rewarm_s: float = 5.0
    idle_s: float = 5.0
    discarded_s: float = 10.0  # of a run at a steady rate, before what is measured
    measured_s: float = 60.0
    fetch_passes: int = 4  # over the log, in a run
    synced_requests: int = 20_000  # in a run in which every acknowledgement is synced
    full_partitions: int = 1000
    partition_bytes: int = 10 * MEGABYTE
    empty_partitions: tuple[int, ...] = (1000, 5000, 10_000)
    compacted_bytes: int = GIGABYTE
    growth_bytes: int = GIBIBYTE // 4  # produced in a run of the tables that show how cost grows

    @classmethod
    def small(cls) -> Self:
        """A few seconds a figure."""
        return cls(
            touches_memory=False,
            runs=1,
            run_bytes=64 * MEBIBYTE,
            dirty_bytes=128 * MEBIBYTE,
            filling_bytes=128 * MEGABYTE,
            warm_s=1.0,
            warm_s_max=3.0,
            rewarm_s=0.1,
            idle_s=0.5,
            discarded_s=1.0,
            measured_s=3.0,
            fetch_passes=1,
            synced_requests=1000,
            full_partitions=50,
            partition_bytes=MEGABYTE,
            empty_partitions=(20, 60, 100),
            compacted_bytes=64 * MEGABYTE,
            growth_bytes=32 * MEBIBYTE,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"empty_partitions": list(self.empty_partitions)}
