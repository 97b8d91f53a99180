"""What every client run needs around it: a topic of its own, clean pages, and an eye on what else the machine does."""

import contextlib
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from benchmarks.clients.check import Expected, Reckoning, check_topic
from benchmarks.clients.topics import create_topic
from benchmarks.contenders.client_load import ClientLoad
from benchmarks.harness.servers import Server
from benchmarks.host.machine import (
    DIRTY_BYTES_MAX,
    PROC,
    busy_seconds,
    child_cpu_seconds,
    cpu_seconds,
    parse_dirty_bytes,
    settle_pages,
)
from benchmarks.load.wire import Wire, delete_topic
from benchmarks.produce import OTHER_CORES_MAX

DISTURBED_SHARE_MAX = 0.1


class Watch:
    """How many cores are busy with neither the servers nor the contenders that have ended by then."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._pids = [server.process.pid for server in servers]
        self._clock = time.monotonic()
        self._others = self._others_until_now()

    def other_cores(self) -> float:
        return max(0.0, self._others_until_now() - self._others) / (time.monotonic() - self._clock)

    def _others_until_now(self) -> float:
        return busy_seconds() - child_cpu_seconds() - sum(map(cpu_seconds, self._pids))


@dataclass(slots=True)
class Disturbances:
    """How many runs of a kind there were, and how many of them had more company than they can bear."""

    runs: dict[str, int] = field(default_factory=dict[str, int])
    disturbed: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, kind: str, other_cores: float) -> str:
        """Counts a run; how the line that reports it ends."""
        is_disturbed = other_cores > OTHER_CORES_MAX
        self.runs[kind] = self.runs.get(kind, 0) + 1
        self.disturbed[kind] = self.disturbed.get(kind, 0) + is_disturbed
        return f"{other_cores:.2f} cores busy otherwise{': disturbed' if is_disturbed else ''}"

    @property
    def are_many(self) -> bool:
        """More than medians bear: one in ten of a kind, where each median is that of five runs."""
        return any(self.disturbed[kind] > DISTURBED_SHARE_MAX * runs for kind, runs in self.runs.items())

    def notes(self) -> list[str]:
        return [
            f"{self.disturbed[kind]} of {runs} {kind} runs had more than {OTHER_CORES_MAX} cores busy otherwise"
            for kind, runs in self.runs.items()
        ]


@dataclass(slots=True)
class Topics:
    """Topics of fresh names, and what has to be in them afterwards."""

    _numbers: "count[int]" = field(default_factory=lambda: count(1))
    _expected: dict[ClientLoad, Expected] = field(default_factory=dict[ClientLoad, Expected])

    @contextlib.contextmanager
    def checked(self, server: Server, load: ClientLoad, *, in_order: bool) -> Generator[ClientLoad, None, None]:
        """The load with a topic that exists as long as the block, and holds just the load's records at its end.

        Raises LogDiffers, KafkaError, OSError.
        """
        named = self.named(load)
        expected = self._expected.get(load)
        if expected is None:
            expected = self._expected[load] = Expected(load.records())
        with existing_topic(server, named.topic) as wire:
            since_ms = now_ms()
            yield named
            check_topic(wire, named.topic, Reckoning(expected, since_ms, now_ms(), in_order))

    def named(self, load: ClientLoad) -> ClientLoad:
        """The load with a topic that nobody else uses."""
        return replace(load, topic=f"clients-{next(self._numbers)}")


@contextlib.contextmanager
def existing_topic(server: Server, topic: str) -> Generator[Wire, None, None]:
    """Creates the topic, and deletes it at the end if all went well. Raises KafkaError, OSError."""
    with server.wire() as wire:
        create_topic(wire, topic)
        settle_if_dirty()
        yield wire
        delete_topic(wire, topic)


def settle_if_dirty() -> None:
    """Writes out dirty pages, if there are so many that a run would notice."""
    if parse_dirty_bytes((PROC / "meminfo").read_text()) > DIRTY_BYTES_MAX:
        settle_pages()


def now_ms() -> int:
    return time.time_ns() // 1_000_000
