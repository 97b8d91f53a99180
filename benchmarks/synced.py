"""Every acknowledgement after an fsync: 64 connections with one record of 1 KiB each, on 1 and on 64 partitions.

Both brokers have `flush.messages=1` on the topic, which is Kafka's `log.flush.interval.messages=1`. Requests that wait
together may share an fsync; what there is without that is shown by one connection alone, which has nobody to share
with. It cannot be faster than the device, whose time is printed: if it is, something was not synced. How often the
device was flushed meanwhile, by anybody, is printed, too.
"""

from dataclasses import replace

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench, unless_refused
from benchmarks.harness.contest import Run, Runs
from benchmarks.harness.limits import generator_speed, verdict
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.device import SyncTimes, flush_count, measure_sync
from benchmarks.load.frames import Load
from benchmarks.load.pace import RECORD_OVERHEAD
from benchmarks.produce import now_ms, run_produce

CONNECTIONS = 64
BATCH_BYTES = 1024 + RECORD_OVERHEAD
ALONE_SHARE = 0.1
"""Of the requests of a run: as many does a connection send that is alone."""
BAR = Bar("≥", 2.0)
SYNCED = {"flush.messages": "1"}


def measure_synced(bench: Bench, partitions: int) -> Outcome:
    """Raises Unavailable where a broker refuses the option, LoadFailed, LogDiffers, KafkaError, OSError."""
    device = measure_sync(bench.directory)
    bench.say(str(device))
    name = f"synced-{partitions}"
    outcome = Outcome(notes=[f"{name}: {device}"])
    runs = hold(bench, name, CONNECTIONS, partitions, bench.plan.synced_requests)
    title = f"fsync on every ack, {CONNECTIONS} connections, {partitions} partition{'s' * (partitions > 1)}"
    outcome.add(runs.figure("requests/s", title, "requests/s", BAR))
    speed = generator_speed(bench, load_of("sink", CONNECTIONS, partitions, bench.plan.synced_requests), "requests/s")
    fastest = max(run.values["requests/s"] for run in (*runs.ours, *runs.theirs))
    outcome.notes += [*runs.notes, f"{name}: {verdict('requests/s', speed, fastest)}"]
    outcome.is_disturbed = runs.is_disturbed or not device.is_slow_enough
    return outcome


def measure_alone(bench: Bench) -> Outcome:
    """What there is without grouping. Raises what `measure_synced` raises."""
    device = measure_sync(bench.directory)
    bench.say(str(device))
    runs = hold(bench, "synced-alone", 1, 1, round(bench.plan.synced_requests * ALONE_SHARE))
    outcome = Outcome(notes=[f"synced-alone: {device}", *runs.notes, *suspicions(runs, device)])
    outcome.add(runs.figure("requests/s", "fsync on every ack, ungrouped: one connection", "requests/s"))
    outcome.is_disturbed = runs.is_disturbed or not device.is_slow_enough
    return outcome


def suspicions(alone: Runs, device: SyncTimes) -> list[str]:
    """Whose acknowledgements came faster than the device was in the best of its moments."""
    return [
        f"{server} acknowledged more often than the device can sync: IT DID NOT SYNC EACH TIME"
        for server, runs in (("Odradek", alone.ours), ("Apache Kafka", alone.theirs))
        if max(run.values["requests/s"] for run in runs) > 1 / min(device.seconds)
    ]


def hold(bench: Bench, name: str, connections: int, partitions: int, requests: int) -> Runs:
    def run(server: Server) -> Run:
        load = load_of(bench.topic("synced"), connections, partitions, requests)
        before = flush_count(bench.directory)
        with unless_refused(server, SYNCED):
            done = run_produce(server, load, configs=SYNCED)
        after = flush_count(bench.directory)
        if before is None or after is None:
            return done
        flushes = (after - before) / load.batch_count
        return replace(done, text=f"{done.text}, the device flushed {flushes:.2f} times a request")

    return bench.contest.hold(name, run, *bench.pair())


def load_of(topic: str, connections: int, partitions: int, requests: int) -> Load:
    return Load(
        topic,
        requests * BATCH_BYTES,
        now_ms(),
        batch_bytes=BATCH_BYTES,
        record_bytes=BATCH_BYTES,
        in_flight=1,
        connections=connections,
        partitions=partitions,
        acks=-1,
    )
