"""Records a second and CPU time a record of every client that reads a topic, each run in a fresh process, in turn.

The topic of a setting is filled once, by confluent-kafka, and read back by hand: it holds what was sent, and its sum is
what every run has to come to (`contenders/reading.py`). All contenders read all of it. A tenth of the records is read
before the clock starts: connections, metadata and code are warm then, and fetches are under way.

Records of one size and records of mixed sizes are two cases: Odradek reads the former many at once, and of the latter
one after the other (`protocol/batches/columns.py`).
"""

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.clients.check import Expected, Reckoning
from benchmarks.clients.process import contending
from benchmarks.clients.runs import Disturbances, Topics, Watch, existing_topic, now_ms, settle_if_dirty
from benchmarks.clients.speed import CONFLUENT, Contender, Runs, Setting, SpeedRun, Values, bar_figures, run_of
from benchmarks.clients.topics import records_of
from benchmarks.contenders.client_load import PARTITION_COUNT, ClientLoad
from benchmarks.contenders.job import OURS, ContenderFailed, Job, Kind, Loop, Reading, Timing
from benchmarks.figures.figures import Bar, Figure
from benchmarks.harness.servers import Server
from benchmarks.load.wire import Wire
from odradek.protocol.batches.records import Record

CONSUMED = {
    "small": (Values("100 B", 100, 100, 600_000), Values("50–150 B", 50, 150, 600_000)),
    "large": (Values("1 KiB", 1024, 1024, 150_000), Values("0.5–1.5 KiB", 512, 1536, 150_000)),
}

POLL = Contender("kafka-python", "poll")
GETMANY = Contender("aiokafka", "getmany")
AIOKAFKA_EACH = Contender("aiokafka", "async for")
CONSUME = Contender("confluent-kafka", "consume")
GET_BATCH = Contender(OURS, "get_batch")
EACH = Contender(OURS, "async for")
CONSUMERS = (POLL, GETMANY, AIOKAFKA_EACH, CONSUME, GET_BATCH, EACH)

CONSUMING_BARS = (
    (GET_BATCH, POLL, Bar("≥", 5.0)),
    (GET_BATCH, GETMANY, Bar("≥", 2.0)),
    (GET_BATCH, CONSUME, Bar("≥", 1.0)),
    (EACH, AIOKAFKA_EACH, Bar("≥", 1.5)),
)


@dataclass(frozen=True, slots=True)
class FilledTopic:
    """A load whose topic is there, and the sum of its records."""

    load: ClientLoad
    total: int


@dataclass(slots=True)
class Consuming:
    """Runs of all consumers. `identities` are what the clients said they are."""

    topics: Topics
    disturbances: Disturbances
    say: Callable[[str], None]
    loop: Loop
    scale: float = 1.0
    identities: dict[str, str] = field(default_factory=dict[str, str])

    def measure(self, settings: Sequence[Setting], contenders: Sequence[Contender], runs: int) -> Runs:
        """Setting by setting; every second round goes through the contenders from the last to the first.

        Raises what `filled` and `run` raise.
        """
        done: Runs = {(setting, contender): [] for setting in settings for contender in contenders}
        for setting in settings:
            with self.filled(setting) as topic:
                for number in range(1, runs + 1):
                    for contender in contenders[:: 1 if number % 2 else -1]:
                        run, other_cores = self.run(setting, contender, topic)
                        done[setting, contender].append(run)
                        company = self.disturbances.add("consuming", other_cores)
                        self.say(
                            f"consuming {number}/{runs} {setting.server}, {setting}, {contender}: {run}, {company}"
                        )
        return done

    @contextlib.contextmanager
    def filled(self, setting: Setting) -> Generator[FilledTopic, None, None]:
        """A topic with the setting's records, as long as the block. Raises ContenderFailed, LogDiffers, KafkaError."""
        load = self.topics.named(setting.load_of(CONFLUENT, self.scale))
        server = setting.server
        with existing_topic(server, load.topic) as wire:
            since_ms = now_ms()
            with contending(job_of("speed", CONFLUENT, server, load, self.loop)) as conversation:
                conversation.hear()
            total = sum_of(wire, load, Reckoning(Expected(load.records()), since_ms, now_ms()))
            settle_if_dirty()
            yield FilledTopic(load, total)

    def run(self, setting: Setting, contender: Contender, topic: FilledTopic) -> tuple[SpeedRun, float]:
        """One run, and how many cores did anything else. Raises ContenderFailed, also where other records were read."""
        watch = Watch([setting.server])
        with contending(job_of("consume", contender, setting.server, topic.load, self.loop)) as conversation:
            reading = Reading(**conversation.hear())
        self.identities[contender.client] = conversation.identity
        other_cores = watch.other_cores()
        if reading.total != topic.total:
            raise ContenderFailed(f"{contender} read {topic.load.topic} to the sum {reading.total}, not {topic.total}")
        return run_of(Timing(reading.seconds, reading.cpu_seconds), topic.load), other_cores


def sum_of(wire: Wire, load: ClientLoad, reckoning: Reckoning) -> int:
    """What the records of a topic add up to, read by hand. Raises LogDiffers where they are not those of the load."""
    total = 0

    def summed(partition: int) -> Iterator[Record]:
        nonlocal total
        for record in records_of(wire, load.topic, partition):
            assert record.key and record.value, "a load with keys"
            total += record.offset + record.timestamp_ms + record.key[-1] + record.value[-1]
            yield record

    for partition in range(PARTITION_COUNT):
        reckoning.take(partition, summed(partition))
    reckoning.close()
    return total


def job_of(kind: Kind, contender: Contender, server: Server, load: ClientLoad, loop: Loop) -> Job:
    return Job(kind, contender.client, contender.idiom, server.process.host, server.process.port, load, loop)


def consuming_figures(runs: Runs, server: Server) -> list[Figure]:
    """A line for each bar, setting by setting, as far as both contenders ran; no bar is set for mixed sizes."""
    even = {key: done for key, done in runs.items() if key[0].values.bytes_min == key[0].values.bytes_max}
    mixed = {key: done for key, done in runs.items() if key not in even}
    without_bars = [(ours, theirs, None) for ours, theirs, _bar in CONSUMING_BARS]
    return bar_figures(even, server, CONSUMING_BARS) + bar_figures(mixed, server, without_bars)
