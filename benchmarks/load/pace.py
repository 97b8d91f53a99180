"""A pace: a load whose requests are due at even distances, and what they took. Pure; `paced.py` sends them."""

import json
from array import array
from dataclasses import asdict, dataclass
from typing import Any, Self

from benchmarks.load.frames import Load

NS_PER_S = 1_000_000_000
RECORD_OVERHEAD = 70
"""What a batch of one record of a kibibyte takes besides its value: the header's 61 bytes, and 9 of the record."""


@dataclass(frozen=True, slots=True)
class Pace:
    """`load`, one request every `1 / rate_per_s`. Its requests are one record each and not bounded in flight."""

    load: Load
    rate_per_s: float

    @property
    def count(self) -> int:
        return self.load.batch_count

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        values: dict[str, Any] = json.loads(text)
        return cls(Load(**values["load"]), values["rate_per_s"])


def paced_load(
    topic: str, seconds: float, rate_per_s: float, timestamp_ms: int, *, connections: int, record_bytes: int
) -> Pace:
    """Single records of `record_bytes`, acks=all, each connection to a partition of its own."""
    batch_bytes = record_bytes + RECORD_OVERHEAD
    count = round(seconds * rate_per_s)
    load = Load(
        topic,
        count * batch_bytes,
        timestamp_ms,
        batch_bytes=batch_bytes,
        record_bytes=batch_bytes,
        connections=connections,
        partitions=connections,
        acks=-1,
    )
    return Pace(load, rate_per_s)


@dataclass(frozen=True, slots=True)
class Paced:
    """What the requests took, in nanoseconds; the monotonic clock when the first one was due."""

    begin_ns: int
    latencies_ns: "array[int]"

    def due_from(self, pace: Pace, from_ns: int, until_ns: int) -> "array[int]":
        """Of the requests that were due in this time."""
        schedule = Schedule(self.begin_ns, pace.rate_per_s, pace.count)
        return self.latencies_ns[schedule.number_at(from_ns) : schedule.number_at(until_ns)]


@dataclass(frozen=True, slots=True)
class Schedule:
    """When each of `count` requests is due, at even distances."""

    begin_ns: int
    rate_per_s: float
    count: int

    def due_ns(self, number: int) -> int:
        return self.begin_ns + round(number * NS_PER_S / self.rate_per_s)

    def number_at(self, moment_ns: int) -> int:
        """The first request that is due then or later; `count` if there is none."""
        number = max(0, min(self.count, int((moment_ns - self.begin_ns) * self.rate_per_s / NS_PER_S) - 1))
        while number < self.count and self.due_ns(number) < moment_ns:
            number += 1
        return number
