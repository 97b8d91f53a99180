"""Raw produce throughput, and what it costs the server: a fixed number of bytes over one connection, 16 KiB a batch.

Apache Kafka is warmed up with slices of the same load and size until two differ by less than 5 %, and again before each
of its runs; Odradek gets one slice before the first run. Before each run the topic is created anew and dirty pages are
written out; after it the log is read back, compared batch by batch, counted, and deleted. Runs alternate.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Self

from benchmarks.figures import Bar, Figure, Summary, is_steady
from benchmarks.frames import DISTINCT_BATCHES, Load, batches_of
from benchmarks.load import run_load
from benchmarks.machine import busy_seconds, child_cpu_seconds, cpu_seconds, settle_pages
from benchmarks.servers import Server
from benchmarks.wire import EARLIEST, LATEST, Wire, create_topic, delete_topic, fetch, offset_at
from protocol.batch import iterate_batches

MEGABYTE = 1_000_000
GIGABYTE = 1_000_000_000
OTHER_CORES_MAX = 0.2
"""More other work than this disturbs a run, in either direction: Kafka was seen slower and faster beside it."""
UNCHANGED_FROM = 16
"""A broker puts base offset and leader epoch before this position of a batch, and changes nothing after it."""


class LogDiffers(Exception):
    """What a server holds is not what it acknowledged."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured. `warm_s` is how long Kafka is under load at first at least, `warm_s_max` at most,
    `rewarm_s` before each run."""

    runs: int
    run_bytes: int
    record_bytes: int
    warm_s: float
    warm_s_max: float
    rewarm_s: float


@dataclass(frozen=True, slots=True)
class Run:
    """What one run measured."""

    seconds: float
    megabytes_per_s: float
    server_cpu_s_per_gb: float
    generator_share: float  # of the time, in which the generator was on a CPU
    other_cores: float  # busy with neither server nor generator: the kernel's writers, other programs, stolen time


@dataclass(slots=True)
class Producing:
    """Runs against both contenders under one plan, each into a topic of its own."""

    plan: Plan
    say: Callable[[str], None]
    notes: list[str] = field(default_factory=list[str])
    """What a reader of the figures has to know: how Kafka was warmed up, and what disturbed the runs."""
    is_disturbed: bool = False
    _number: "count[int]" = field(default_factory=lambda: count(1))

    def measure(self, ours: Server, theirs: Server) -> list[Figure]:
        self._slice(ours)
        self.warm_up(theirs)
        done: dict[str, list[Run]] = {ours.name: [], theirs.name: []}
        for number in range(1, self.plan.runs + 1):
            for server in (ours, theirs):
                if server is theirs:
                    self._warm_again(server)
                run, dirty = self.run(server)
                done[server.name].append(run)
                dirtied = f"{dirty / MEGABYTE:.0f} MB dirty before"
                self.say(f"produce {number}/{self.plan.runs} {server}: {describe(run)}, {dirtied}")
        self._note_disturbance([run for runs in done.values() for run in runs])
        return figures(done[ours.name], done[theirs.name])

    def _note_disturbance(self, runs: list[Run]) -> None:
        disturbed = sum(run.other_cores > OTHER_CORES_MAX for run in runs)
        self.is_disturbed = disturbed > 0
        self.notes.append(
            f"{disturbed} of {len(runs)} produce runs had more than {OTHER_CORES_MAX} cores busy otherwise"
        )

    def warm_up(self, server: Server) -> None:
        """Until two slices differ by less than 5 %, after `warm_s` of load at least; says so if it never got steady."""
        under_load_s, speeds = 0.0, list[float]()
        while under_load_s < self.plan.warm_s or not is_steady(speeds):
            if under_load_s > self.plan.warm_s_max:
                self._note(f"{server} is NOT STEADY after {under_load_s:.0f} s under load")
                return
            run = self._slice(server)
            under_load_s += run.seconds
            speeds.append(run.megabytes_per_s)
            self.say(f"warm-up {server}: {describe(run)}")
        self._note(f"{server} is steady after {under_load_s:.0f} s under load")

    def _note(self, note: str) -> None:
        self.notes.append(note)
        self.say(note)

    def _warm_again(self, server: Server) -> None:
        under_load_s = 0.0
        while under_load_s < self.plan.rewarm_s:
            under_load_s += self._slice(server).seconds

    def _slice(self, server: Server) -> Run:
        return self.run(server)[0]

    def run(self, server: Server) -> tuple[Run, int]:
        """One run, and how many bytes were dirty before it. Raises LoadFailed, LogDiffers, KafkaError, OSError."""
        topic = f"produce-{next(self._number)}"
        load = Load(topic, self.plan.run_bytes, time.time_ns() // 1_000_000, record_bytes=self.plan.record_bytes)
        with Wire(server.process.host, server.process.port) as wire:
            create_topic(wire, topic)
            dirty = settle_pages()
            run = measured(server, load)
            compare_log(wire, load)
            delete_topic(wire, topic)
        server.wait_gone(topic)
        return run, dirty


def measured(server: Server, load: Load) -> Run:
    """Runs the load, and looks at the machine before and after it."""
    pid = server.process.pid
    before = Work.until_now(pid)
    result = run_load(server.process.host, server.process.port, load)
    work = Work.until_now(pid).since(before)
    return Run(
        seconds=result.seconds,
        megabytes_per_s=load.produced_bytes / MEGABYTE / result.seconds,
        server_cpu_s_per_gb=work.server / (load.produced_bytes / GIGABYTE),
        generator_share=result.cpu_seconds / result.seconds,
        other_cores=max(0.0, work.everybody - work.server - work.children) / work.clock,
    )


@dataclass(frozen=True, slots=True)
class Work:
    """CPU seconds of the server, of processes that we started and waited for, and of everybody; and the clock's."""

    server: float
    children: float
    everybody: float
    clock: float

    @classmethod
    def until_now(cls, pid: int) -> Self:
        return cls(cpu_seconds(pid), child_cpu_seconds(), busy_seconds(), time.monotonic())

    def since(self, before: "Work") -> "Work":
        return Work(
            self.server - before.server,
            self.children - before.children,
            self.everybody - before.everybody,
            self.clock - before.clock,
        )


def describe(run: Run) -> str:
    return (
        f"{run.megabytes_per_s:.0f} MB/s, {run.server_cpu_s_per_gb:.1f} CPU s/GB, "
        f"generator {run.generator_share:.0%} busy, {run.other_cores:.2f} cores busy otherwise"
    )


def figures(ours: list[Run], theirs: list[Run]) -> list[Figure]:
    both = (ours, theirs)
    speeds = [Summary(tuple(run.megabytes_per_s for run in runs)) for runs in both]
    costs = [Summary(tuple(run.server_cpu_s_per_gb for run in runs)) for runs in both]
    return [
        Figure("produce, 16 KiB batches, acks=1, 5 in flight", "MB/s", speeds[0], speeds[1], Bar("≥", 1.0), 0),
        Figure("server CPU for it", "s/GB", costs[0], costs[1], None, 1),
    ]


def compare_log(wire: Wire, load: Load) -> None:
    """Reads the topic back. Raises LogDiffers unless it holds the load's batches, all and nothing else, in order."""
    start, end = offset_at(wire, load.topic, EARLIEST), offset_at(wire, load.topic, LATEST)
    if (start, end) != (0, load.record_count):
        raise LogDiffers(f"{load.topic} reaches from {start} to {end}, sent were {load.record_count} records")
    batches = [memoryview(batch)[UNCHANGED_FROM:] for batch in batches_of(load)]
    offset = number = 0
    while offset < end:
        data = memoryview(fetch(wire, load.topic, offset))
        before = number
        for position, header in iterate_batches(data):
            held = data[position + UNCHANGED_FROM : position + header.size_bytes]
            if header.base_offset != offset or held != batches[number % DISTINCT_BATCHES]:
                raise LogDiffers(f"{load.topic}: batch {number} at offset {offset} is not the one that was sent")
            offset += header.record_count
            number += 1
        if number == before:
            raise LogDiffers(f"{load.topic}: nothing is read at offset {offset} of {end}")
    if number != load.batch_count:
        raise LogDiffers(f"{load.topic} holds {number} batches, sent were {load.batch_count}")
