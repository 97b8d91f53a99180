"""How long a start takes with 1,000 partitions and 10 GB: after a clean stop; after SIGKILL, with nothing unflushed.

Each partition gets two segments from the broker itself: one batch with as many records as the full segment will have
batches, and, with a timestamp beyond `segment.ms`, another one. While the broker is stopped the first segments are
filled out (`sparse.py`): what a start may not read without being slow is there to be read. The time runs until every
partition has answered where it ends, rightly; afterwards the first and the last record of some are read.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import GIGABYTE
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.results import Outcome, Unavailable
from benchmarks.harness.servers import Server, running_kafka
from benchmarks.host.machine import settle_pages
from benchmarks.load.sparse import BATCH_BYTES, fill_out
from benchmarks.load.wire import Wire, check, create_topic, fetch, offsets_once_led
from benchmarks.produce import now_ms
from benchmarks.start import start
from odradek.protocol.batches.batch import crc_matches, iterate_batches
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPIC = "full"
SEGMENT_MS = 1000
CONFIGS = {"segment.ms": str(SEGMENT_MS), "retention.ms": "-1"}
BAR = Bar("≤", 2.0)
READ_EVERY = 100
"""Of the partitions: those whose records are read."""
PARTITIONS_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds from the start of the process."""

    first_answer_s: float
    all_answers_s: float


def measure_full_partitions(bench: Bench) -> Outcome:
    """Raises Unavailable, LogDiffers, KafkaError, OSError."""
    with (
        bench.own_odradek("full-odradek") as ours,
        running_kafka(bench.directory / "full-kafka") as theirs,
    ):
        pair = (ours, theirs)
        gigabytes = [fill(bench, server) / GIGABYTE for server in pair]
        done: dict[str, list[Times]] = {server.name: [] for server in pair}
        for number in range(1, bench.plan.runs + 1):
            for server in pair:
                times = start_until_all_answer(bench, server)
                bench.say(f"full-partitions {number}/{bench.plan.runs} {server}: {times}")
                done[server.name].append(times)
                server.stop()
        for server in pair:
            start(server)
            read_some(bench, server)
        my_kill, other_kill = (Summary((start_after_kill(bench, server),)) for server in pair)
    mine, other = done[ours.name], done[theirs.name]
    what = f"{bench.plan.full_partitions:,} partitions with {gigabytes[0]:.3g} GB"
    outcome = Outcome()
    outcome.add(
        Statement(f"start with {what} after a clean stop", "s", all_answers(mine), all_answers(other), BAR, 2),
        Statement("– to its first answer", "s", first_answers(mine), first_answers(other), None, 2),
        Statement("– after SIGKILL, nothing unflushed", "s", my_kill, other_kill, None, 2),
    )
    return outcome


def all_answers(times: Sequence[Times]) -> Summary:
    return Summary(tuple(each.all_answers_s for each in times))


def first_answers(times: Sequence[Times]) -> Summary:
    return Summary(tuple(each.first_answer_s for each in times))


def fill(bench: Bench, server: Server) -> int:
    """Makes the partitions and leaves the server stopped; how many bytes the full segments have."""
    partitions = bench.plan.full_partitions
    batch_count = max(2, bench.plan.partition_bytes // BATCH_BYTES)
    with server.wire() as wire:
        create_topic(wire, TOPIC, partitions, CONFIGS)
        then = now_ms() - 10 * SEGMENT_MS
        produce_everywhere(wire, partitions, [Record(offset, then, None, b"") for offset in range(batch_count)])
        produce_everywhere(wire, partitions, [Record(0, then + 2 * SEGMENT_MS, None, b"last")])
    server.stop()
    size_bytes = 0
    for partition in range(partitions):
        logs = sorted((server.data_dir / f"{TOPIC}-{partition}").glob("*.log"))
        if len(logs) != 2:
            raise Unavailable(f"{server}: {TOPIC}-{partition} has {len(logs)} segments instead of 2")
        size_bytes += fill_out(*logs)
    dirty = settle_pages()
    bench.say(f"{server}: {size_bytes / GIGABYTE:.3g} GB in {partitions} partitions, {dirty:,} bytes dirty")
    return size_bytes


def produce_everywhere(wire: Wire, partitions: int, records: Sequence[Record]) -> None:
    """One batch to each partition. Raises KafkaError."""
    batch = build_batch(records)
    for first in range(0, partitions, PARTITIONS_AT_A_TIME):
        indexes = range(first, min(partitions, first + PARTITIONS_AT_A_TIME))
        data = [PartitionProduceData(index=index, records=batch) for index in indexes]
        request = ProduceRequest(
            acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=data)]
        )
        (topic,) = wire.ask(request, 9).responses
        for partition in topic.partition_responses:
            check(partition.error_code, partition.error_message)


def start_until_all_answer(bench: Bench, server: Server) -> Times:
    """Starts a stopped server. Raises LogDiffers unless every partition ends where it did."""
    began = time.perf_counter()
    first_answer_s = start(server)
    with server.wire() as wire:
        ends = offsets_once_led(wire, TOPIC, bench.plan.full_partitions)
        all_answers_s = time.perf_counter() - began
    if set(ends) != {expected_end(bench)}:
        raise LogDiffers(f"{server}: partitions end at {sorted(set(ends))} instead of {expected_end(bench)}")
    return Times(first_answer_s, all_answers_s)


def expected_end(bench: Bench) -> int:
    return max(2, bench.plan.partition_bytes // BATCH_BYTES) + 1


def read_some(bench: Bench, server: Server) -> None:
    """Raises LogDiffers unless the first batch of a full segment and the last one of the log are there, undamaged."""
    with server.wire() as wire:
        for partition in range(0, bench.plan.full_partitions, READ_EVERY):
            for offset, size_bytes in ((0, BATCH_BYTES), (expected_end(bench) - 1, None)):
                data = memoryview(fetch(wire, TOPIC, offset, partition))
                position, header = next(iterate_batches(data))
                batch = data[position : position + header.size_bytes]
                if header.base_offset != offset or size_bytes not in (None, len(batch)) or not crc_matches(batch):
                    raise LogDiffers(f"{server}: {TOPIC}-{partition} does not hold its batch at offset {offset}")


def start_after_kill(bench: Bench, server: Server) -> float:
    server.process.kill()
    times = start_until_all_answer(bench, server)
    bench.say(f"full-partitions, after SIGKILL {server}: {times}")
    return times.all_answers_s
