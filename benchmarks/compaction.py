"""p99 of Produce at 5 MB/s while 1 GB is compacted, beside the same without, and how long the compaction takes.

A topic gets 1 GB of records with keys while it is one whose segments are deleted. Then 5,000 records of 1 KiB a second
go to another topic; half a minute later the first one's `cleanup.policy` becomes `compact`. Compaction is under way
from when the server, or a process that it has started, begins to read much until no file of it is left (`.cleaned`,
`.swap`): requests that were due in that time are compared with those that were due before. Afterwards the newest record
of each key must be there.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench, unless_refused
from benchmarks.harness.contest import Run
from benchmarks.harness.plan import MEBIBYTE, MEGABYTE
from benchmarks.harness.readback import LogDiffers, batches_in, compare_log
from benchmarks.harness.results import Outcome, Unavailable
from benchmarks.harness.servers import Server
from benchmarks.host.machine import child_pids, read_bytes, settle_pages
from benchmarks.host.work import Watch
from benchmarks.latency import PRODUCE, latency_values, run_steady, text_of
from benchmarks.load.frames import KEY_BYTES, Load
from benchmarks.load.load import run_load
from benchmarks.load.pace import NS_PER_S
from benchmarks.load.paced import pacing
from benchmarks.load.wire import LATEST, Wire, create_topic, delete_topic, offset_at, set_topic_options
from benchmarks.produce import now_ms
from odradek.protocol.batches.records import iterate_records

SEGMENTS = 16
SEGMENT_BYTES_MIN = MEBIBYTE
RECORDS_PER_KEY = 4
BEFORE = {"cleanup.policy": "delete", "retention.ms": "-1"}
AFTER = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
COMPACTION_S_MIN = 40.0
"""Both look for something to compact every 15 s (log.cleaner.backoff.ms)."""
LOOK_EVERY_S = 0.02
BUSY_BYTES_PER_S = 50 * MEGABYTE
"""Reading more than this, of which 5 MB/s are Produce requests, is reading a log."""
UNDER_WAY = (".cleaned", ".swap")
BAR = Bar("≤", 2.0)
TIME_BAR = Bar("≤", 4.0)


def measure_compaction(bench: Bench, record_bytes: int | None = None) -> Outcome:
    """Of records of this size, by which nothing is judged; None: of the plan's. Raises Unavailable where a broker does
    not compact, LoadFailed, LogDiffers, KafkaError, OSError."""
    outcome = Outcome()
    is_judged = record_bytes is None
    size_bytes = record_bytes or bench.plan.record_bytes
    runs = bench.contest.hold(
        "compaction" if is_judged else f"compaction-{size_bytes}",
        lambda server: run_compaction(bench, server, size_bytes),
        *bench.pair(),
        slice_of=lambda server: run_steady(bench, PRODUCE, server, 0.0, min(10.0, bench.plan.measured_s)),
    )
    gigabytes = f"{bench.plan.compacted_bytes / 1e9:.2g} GB{'' if is_judged else f' of {size_bytes} B records'}"
    title = f"Produce p99 at 5 MB/s while {gigabytes} is compacted"
    outcome.add(runs.statement("ratio", f"{title}, by the same without", "", BAR if is_judged else None, 2))
    outcome.add(runs.figure("with", title, "ms", digits=3), runs.figure("without", "– without", "ms", digits=3))
    outcome.add(runs.figure("seconds", "– and how long that takes", "s", TIME_BAR if is_judged else None, 1))
    outcome.notes += runs.notes
    outcome.is_disturbed = runs.is_disturbed
    return outcome


def keyed_load(bench: Bench, record_bytes: int) -> Load:
    total_bytes = bench.plan.compacted_bytes
    keys = total_bytes // record_bytes // RECORDS_PER_KEY
    return Load(bench.topic("compacted"), total_bytes, now_ms(), record_bytes=record_bytes, keys=keys)


def run_compaction(bench: Bench, server: Server, record_bytes: int) -> Run:
    """One run. Raises Unavailable, LoadFailed, LogDiffers, KafkaError, OSError."""
    plan, host, port = bench.plan, server.process.host, server.process.port
    load = keyed_load(bench, record_bytes)
    compaction_s = max(COMPACTION_S_MIN, plan.measured_s)
    without_s = plan.measured_s / 2
    pace = PRODUCE.pace(bench.topic("compaction"), plan.discarded_s + without_s + compaction_s)
    with Wire(host, port) as wire:
        segment_bytes = max(SEGMENT_BYTES_MIN, load.total_bytes // SEGMENTS)
        create_topic(wire, load.topic, configs={**BEFORE, "segment.bytes": str(segment_bytes)})
        create_topic(wire, pace.load.topic, pace.load.partitions)
        run_load(host, port, load)
        compare_log(wire, load)
        dirty = settle_pages()
        with Watch(server.process.pid) as watch, pacing(host, port, pace) as finished:
            time.sleep(plan.discarded_s + without_s)  # what is measured without compaction
            triggered_ns = time.perf_counter_ns()
            with unless_refused(server, AFTER):
                set_topic_options(wire, load.topic, AFTER)
            cleaning = Cleaning(server, load.topic)
            cleaning.watch(compaction_s)
            paced = finished()
        compare_log(wire, pace.load)
        check_newest(wire, load)
        for topic in (load.topic, pace.load.topic):
            delete_topic(wire, topic)
    for topic in (load.topic, pace.load.topic):
        server.wait_gone(topic)
    since_ns = paced.begin_ns + round(plan.discarded_s * NS_PER_S)
    without = latency_values(paced.due_from(pace, since_ns, triggered_ns))
    during = latency_values(paced.due_from(pace, cleaning.first_ns, cleaning.last_ns))
    seconds = (cleaning.last_ns - cleaning.first_ns) / NS_PER_S
    return Run(
        seconds=plan.discarded_s + without_s + compaction_s,
        speed=without["p50"],
        values={
            "with": during["p99"],
            "without": without["p99"],
            "ratio": during["p99"] / without["p99"],
            "seconds": seconds,
        },
        text=f"{text_of(during)} in {seconds:.1f} s of compaction, {text_of(without)} without",
        other_cores=watch.work.other_cores,
        dirty_bytes=dirty,
    )


@dataclass(slots=True)
class Cleaning:
    """When a server was busy with compaction, seen from outside: by its reading, and by the files in the directory."""

    server: Server
    topic: str
    first_ns: int = 0
    last_ns: int = 0
    _has_files: bool = field(default=False)

    def watch(self, seconds: float) -> None:
        """Looks on for so long. Raises Unavailable when nothing was compacted."""
        directory = self.server.data_dir / f"{self.topic}-0"
        deadline = time.perf_counter_ns() + round(seconds * NS_PER_S)
        reading = Reading(self.server.process.pid)
        then = time.perf_counter_ns()
        while then < deadline:
            time.sleep(LOOK_EVERY_S)  # between two looks
            now, read = time.perf_counter_ns(), reading.since_last()
            has_files = is_under_way(directory)
            self._has_files = self._has_files or has_files
            if has_files or read * NS_PER_S > BUSY_BYTES_PER_S * (now - then):
                self.first_ns = self.first_ns or then
                self.last_ns = now
            then = now
        if not self._has_files:
            raise Unavailable(f"{self.server} compacted nothing within {seconds:.0f} s")


class Reading:
    """What a server and the processes that it has started read. The kernel adds those that have ended, and were waited
    for, to the server's own."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._read = self._total()

    def since_last(self) -> int:
        """How many bytes since this was asked last."""
        before, self._read = self._read, self._total()
        return self._read - before

    def _total(self) -> int:
        total = read_bytes(self._pid)
        for pid in child_pids(self._pid):
            try:
                total += read_bytes(pid)
            except OSError:  # it has ended since
                continue
        return total


def is_under_way(directory: Path) -> bool:
    return any(path.name.endswith(UNDER_WAY) for path in directory.iterdir())


def check_newest(wire: Wire, load: Load) -> None:
    """Raises LogDiffers unless the newest record of each key is there, and fewer records than there were."""
    newest: dict[bytes, int] = {}
    count = 0
    end = offset_at(wire, load.topic, LATEST)
    for _header, batch in batches_in(wire, load.topic, 0, end, has_gaps=True):
        for record in iterate_records(batch):
            assert record.key is not None
            newest[record.key] = record.offset
            count += 1
    if count >= load.record_count:
        raise LogDiffers(f"{load.topic} still holds all of its {count} records")
    for offset in range(load.record_count - load.keys, load.record_count):
        key = (offset % load.keys).to_bytes(KEY_BYTES, "big")
        if newest.get(key) != offset:
            raise LogDiffers(
                f"{load.topic}: the newest record of key {key.hex()} is at {newest.get(key)}, not {offset}"
            )
