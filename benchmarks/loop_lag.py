"""How late Odradek's event loop is, p99.9, while everything happens that could stall it.

All at once, to an Odradek of its own: a producer at full speed into segments of 4 MiB of which 64 MiB are kept, so that
segments roll and old ones are deleted all the time; eight connections whose every record is synced; and a reader of a
log that is taken out of the page cache before each pass. The broker samples its lag itself every 10 ms
(`odradek_loop_lag_seconds` on the metrics page); what is known is the bucket in which the p99.9 lies.
"""

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench, unless_refused
from benchmarks.harness.metrics_page import Histogram, parse_histogram, read_page
from benchmarks.harness.plan import MEBIBYTE, MEGABYTE
from benchmarks.harness.results import Outcome, Unavailable
from benchmarks.harness.servers import Server
from benchmarks.host.device import measure_sync
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import DISTURBED_SHARE_MAX, OTHER_CORES_MAX, Watch, disturbance_note
from benchmarks.load.fetch_load import Reading, run_reading
from benchmarks.load.frames import Load
from benchmarks.load.load import run_load
from benchmarks.load.wire import EARLIEST, LATEST, Wire, create_topic, offset_at
from benchmarks.produce import now_ms
from benchmarks.synced import SYNCED, load_of
from processes.free_ports import free_ports

METRIC = "odradek_loop_lag_seconds"
SHARE = 0.999
BAR = Bar("≤", 50.0)
ROLLED = {
    "segment.bytes": str(4 * MEBIBYTE),
    "retention.bytes": str(64 * MEBIBYTE),
    "retention.ms": "-1",
    "file.delete.delay.ms": "1000",
}
CHECKED_OFTEN = ("--set", "log.initial.task.delay.ms=1000", "--set", "log.retention.check.interval.ms=1000")
SYNCING_CONNECTIONS = 8
SYNCED_REQUESTS = 1000
READ_BYTES = 64 * 1024


def measure_loop_lag(bench: Bench) -> Outcome:
    """Raises Unavailable where the broker lacks what is needed, LoadFailed, KafkaError, OSError."""
    device = measure_sync(bench.directory)
    bench.say(str(device))
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    lags: list[float] = []
    disturbed = 0
    outcome = Outcome(notes=[f"loop-lag: {device}"])
    with bench.own_odradek("loop-lag", "--metrics", address, *CHECKED_OFTEN) as server:
        for number in range(1, bench.plan.runs + 1):
            before = lag_of(address)
            busy = Busy(bench, server)
            text = busy.run()
            lag = lag_of(address).since(before)
            lags.append(1000 * lag.bound_of(SHARE))
            bench.say(f"loop-lag {number}/{bench.plan.runs}: {shares_of(lag)}; {text}")
            disturbed += busy.other_cores > OTHER_CORES_MAX
    outcome.notes.append(disturbance_note("loop-lag", disturbed, bench.plan.runs))
    outcome.is_disturbed = disturbed > DISTURBED_SHARE_MAX * bench.plan.runs
    title = f"loop lag p{100 * SHARE:g} with cold reads, rolls, retention, fsync: at most"
    outcome.add(Statement(title, "ms", Summary(tuple(lags)), None, BAR))
    return outcome


def lag_of(address: str) -> Histogram:
    histogram = parse_histogram(read_page(address), METRIC)
    if histogram is None:
        raise Unavailable(f"the broker's metrics page has no {METRIC}")
    return histogram


def shares_of(lag: Histogram) -> str:
    shares = ", ".join(f"p{100 * share:g} ≤ {1000 * lag.bound_of(share):g} ms" for share in (0.5, 0.99, SHARE, 1.0))
    return f"{lag.count:,.0f} samples, {shares}"


@dataclass(slots=True)
class Busy:
    """Everything at once, for as long as the producer at full speed takes."""

    bench: Bench
    server: Server
    other_cores: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)
    _rounds: dict[str, int] = field(default_factory=dict[str, int])
    _errors: list[BaseException] = field(default_factory=list[BaseException])

    def run(self) -> str:
        """What was done. Raises what any part of it raises, and Unavailable when nothing was deleted."""
        host, port = self.server.process.host, self.server.process.port
        cold = Load(self.bench.topic("cold"), self.bench.plan.run_bytes // 4, now_ms())
        rolled = Load(self.bench.topic("rolled"), self.bench.plan.filling_bytes, now_ms())
        with Wire(host, port) as wire:
            create_topic(wire, cold.topic)
            self._create(wire, rolled.topic, ROLLED)
            run_load(host, port, cold)
            settle_pages()
            with (
                Watch(self.server.process.pid) as watch,
                self._meanwhile("synced", self._sync),
                self._meanwhile("cold passes", lambda: self._read_cold(cold)),
            ):
                result = run_load(host, port, rolled)
            start = offset_at(wire, rolled.topic, EARLIEST)
            end = offset_at(wire, rolled.topic, LATEST)
        if self._errors:
            raise self._errors[0]
        if start == 0 or end != rolled.record_count:
            raise Unavailable(f"offsets reach from {start} to {end} of {rolled.record_count}: nothing was deleted")
        done = ", ".join(f"{count} {name}" for name, count in self._rounds.items())
        speed = rolled.produced_bytes / MEGABYTE / result.seconds
        self.other_cores = watch.work.other_cores
        return f"{speed:.0f} MB/s for {result.seconds:.0f} s, {done}, {self.other_cores:.2f} cores busy otherwise"

    @contextmanager
    def _meanwhile(self, name: str, once: Callable[[], int]) -> Generator[None, None, None]:
        """Does something again and again, in a thread, as long as the block lasts; `once` says how much it did."""

        def loop() -> None:
            try:
                while not self._over.is_set():
                    self._rounds[name] = self._rounds.get(name, 0) + once()
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
                self._errors.append(error)

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _sync(self) -> int:
        load = load_of(self.bench.topic("synced"), SYNCING_CONNECTIONS, 1, SYNCED_REQUESTS)
        with self.server.wire() as wire:
            self._create(wire, load.topic, SYNCED)
        run_load(self.server.process.host, self.server.process.port, load)
        return load.batch_count

    def _read_cold(self, load: Load) -> int:
        forget(self.server.data_dir / f"{load.topic}-0")
        reading = Reading.of(load, READ_BYTES, 1)
        run_reading(self.server.process.host, self.server.process.port, reading)
        return 1

    def _create(self, wire: Wire, topic: str, configs: dict[str, str]) -> None:
        with unless_refused(self.server, configs):
            create_topic(wire, topic, configs=configs)


def forget(directory: Path) -> None:
    """Takes the logs there out of the page cache, as far as they are written out. Raises OSError."""
    for path in directory.glob("*.log"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
