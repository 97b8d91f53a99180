"""Records a second and CPU time a record of every client, each run in a fresh process, the contenders in turn.

A run sends a tenth of its records before the clock starts: connections, metadata and code are warm then. Slow clients
get fewer records, so that a run of theirs does not take long and one of a fast client does not end at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.clients.process import contending
from benchmarks.clients.runs import Disturbances, Topics, Watch
from benchmarks.contenders.client_load import ClientLoad
from benchmarks.contenders.job import OURS, Job, Loop, Timing
from benchmarks.figures.figures import Bar, Figure, Summary
from benchmarks.harness.servers import Server

WARM_SHARE = 0.1
MICROSECONDS = 1_000_000
KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class Values:
    """Sizes of values, and how many of them a run sends or reads at most."""

    name: str
    bytes_min: int
    bytes_max: int
    count: int


SMALL = Values("50–150 B", 50, 150, 200_000)
LARGE = Values("0.5–1.5 KiB", 512, 1536, 80_000)


@dataclass(frozen=True, slots=True)
class Contender:
    """A client with an idiom. It sends `share` of the records; `in_order` is whether one task sends them all."""

    client: str
    idiom: str
    share: float = 1.0
    in_order: bool = True

    def __str__(self) -> str:
        return f"{self.client} {self.idiom}"


KAFKA_PYTHON = Contender("kafka-python", "send", share=0.25)
AIOKAFKA = Contender("aiokafka", "send", share=0.5)
AIOKAFKA_TASKS = Contender("aiokafka", "task per record", share=0.25, in_order=False)
CONFLUENT = Contender("confluent-kafka", "produce")
SEND = Contender(OURS, "send")
SEND_NOWAIT = Contender(OURS, "send_nowait")
SEND_BATCH = Contender(OURS, "send_batch")
TASKS = Contender(OURS, "task per record", share=0.25, in_order=False)
CONTENDERS = (KAFKA_PYTHON, AIOKAFKA, AIOKAFKA_TASKS, CONFLUENT, SEND, SEND_NOWAIT, SEND_BATCH, TASKS)

Bars = Sequence[tuple[Contender, Contender, Bar | None]]
"""One of ours, the one that it is measured by, and what their ratio has to be."""
SPEED_BARS: Bars = (
    (SEND, KAFKA_PYTHON, Bar("≥", 6.0)),
    (SEND, AIOKAFKA, Bar("≥", 1.5)),
    (SEND_NOWAIT, AIOKAFKA, Bar("≥", 2.0)),
    (SEND_BATCH, CONFLUENT, Bar("≥", 1.0)),
    (TASKS, AIOKAFKA_TASKS, None),
)
CPU_BARS: Bars = ((SEND, KAFKA_PYTHON, Bar("≤", 0.2)), (SEND, AIOKAFKA, Bar("≤", 0.7)))


@dataclass(frozen=True, slots=True)
class Setting:
    """What the contenders of one comparison have in common."""

    server: Server
    values: Values
    has_keys: bool

    def __str__(self) -> str:
        return f"{self.values.name}, {'keys' if self.has_keys else 'no keys'}"

    def load_of(self, contender: Contender, scale: float) -> ClientLoad:
        """The same records in every run. `scale` makes all runs smaller."""
        records = max(1, round(self.values.count * contender.share * scale))
        return ClientLoad(
            topic="",
            count=records,
            warm_count=max(1, round(records * WARM_SHARE)),
            value_bytes_min=self.values.bytes_min,
            value_bytes_max=self.values.bytes_max,
            key_bytes=KEY_BYTES if self.has_keys else 0,
        )


@dataclass(frozen=True, slots=True)
class SpeedRun:
    """What one run measured."""

    records_per_s: float
    cpu_us_per_record: float
    records: int

    def __str__(self) -> str:
        return f"{self.records_per_s:,.0f} records/s, {self.cpu_us_per_record:.2f} µs CPU a record"


Runs = dict[tuple[Setting, Contender], list[SpeedRun]]


@dataclass(slots=True)
class Racing:
    """Runs of all contenders. `identities` are what the clients said they are."""

    topics: Topics
    disturbances: Disturbances
    say: Callable[[str], None]
    loop: Loop
    scale: float = 1.0
    identities: dict[str, str] = field(default_factory=dict[str, str])

    def measure(self, settings: Sequence[Setting], contenders: Sequence[Contender], runs: int) -> Runs:
        """Every second round goes through the contenders from the last to the first. Raises what `run` raises."""
        done: Runs = {(setting, contender): [] for setting in settings for contender in contenders}
        for number in range(1, runs + 1):
            for setting in settings:
                for contender in contenders[:: 1 if number % 2 else -1]:
                    run, other_cores = self.run(setting, contender)
                    done[setting, contender].append(run)
                    company = self.disturbances.add("speed", other_cores)
                    self.say(f"speed {number}/{runs} {setting.server}, {setting}, {contender}: {run}, {company}")
        return done

    def run(self, setting: Setting, contender: Contender) -> tuple[SpeedRun, float]:
        """One run, read back and checked, and how many cores did anything else. Raises ContenderFailed, LogDiffers."""
        server = setting.server
        load = setting.load_of(contender, self.scale)
        with self.topics.checked(server, load, in_order=contender.in_order) as named:
            watch = Watch([server])
            process = server.process
            job = Job("speed", contender.client, contender.idiom, process.host, process.port, named, self.loop)
            with contending(job) as conversation:
                timing = Timing(**conversation.hear())
            self.identities[contender.client] = conversation.identity
            other_cores = watch.other_cores()
        return run_of(timing, load), other_cores

    def warm_up(self, server: Server, seconds: float) -> None:
        """Has the fastest client of the others send until it has sent for so long: a JVM is slow at first."""
        setting = Setting(server, SMALL, has_keys=False)
        while seconds > 0:
            run, _other_cores = self.run(setting, CONFLUENT)
            seconds -= run.records / run.records_per_s
            self.say(f"warm-up {server}: {run.records_per_s:,.0f} records/s by {CONFLUENT}")


def run_of(timing: Timing, load: ClientLoad) -> SpeedRun:
    return SpeedRun(load.count / timing.seconds, timing.cpu_seconds / load.count * MICROSECONDS, load.count)


def speed_figures(runs: Runs, server: Server) -> list[Figure]:
    """A line for each bar, setting by setting, as far as both contenders ran."""
    return bar_figures(runs, server, SPEED_BARS, CPU_BARS)


def bar_figures(runs: Runs, server: Server, speed_bars: Bars, cpu_bars: Bars = ()) -> list[Figure]:
    """The same for these bars: those of speed first, then those of CPU time."""
    settings = list(dict.fromkeys(setting for setting, _contender in runs if setting.server is server))
    figures: list[Figure] = []
    for ours, theirs, bar in speed_bars:
        for name, mine, other in _pairs(runs, settings, ours, theirs):
            speeds = [Summary(tuple(run.records_per_s for run in side)) for side in (mine, other)]
            figures.append(Figure(name, "records/s", speeds[0], speeds[1], bar))
    for ours, theirs, bar in cpu_bars:
        for name, mine, other in _pairs(runs, settings, ours, theirs):
            costs = [Summary(tuple(run.cpu_us_per_record for run in side)) for side in (mine, other)]
            figures.append(Figure(f"CPU a record, {name}", "µs", costs[0], costs[1], bar, 2))
    return figures


def _pairs(
    runs: Runs, settings: Sequence[Setting], ours: Contender, theirs: Contender
) -> list[tuple[str, list[SpeedRun], list[SpeedRun]]]:
    return [
        (f"{ours.idiom} beside {theirs.client}, {setting}", runs[setting, ours], runs[setting, theirs])
        for setting in settings
        if runs.get((setting, ours)) and runs.get((setting, theirs))
    ]
