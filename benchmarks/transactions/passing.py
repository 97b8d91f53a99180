"""Log offsets that a reader passes in a second where one transaction of ten is aborted: read_committed, by
read_uncommitted, with our own consumer and with librdkafka.

The topic has four partitions, with transactions of 100 records of 100 B, each in one of them; the last ones are
committed. Offsets of aborted records and of markers count as passed, whether or not the reader hands anything out. It
is written once to each broker; then both kinds of reader go through it in turn, out of the page cache, and what counts
is the ratio of each pair of runs.
"""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.work import Watch
from benchmarks.load.wire import create_topic
from benchmarks.transactions.reader import Client, Reading, run_reader
from benchmarks.transactions.transaction_topic import Place, require_committed, transaction_servers
from odradek import Producer

BAR: Final = Bar("≥", 0.9)
CLIENTS: Final[dict[Client, str]] = {"odradek": "our client", "librdkafka": "librdkafka"}
PARTITIONS: Final = 4
RECORDS: Final = 100
"""Of a transaction."""
ABORTED_OF: Final = 10
"""One of so many transactions is aborted."""
VALUE: Final = bytes(100)


@dataclass(frozen=True, slots=True)
class Written:
    """A topic, and what is in it."""

    topic: str
    records: int
    committed: int
    offsets: int
    """All that there are, with those of markers."""


def measure_passing(bench: Bench) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, ClientError, OSError."""
    outcome = Outcome()
    topic = bench.topic("passed")
    with transaction_servers(bench, "passing") as pair:
        written = {server.name: fill(server, topic, bench.plan.passed_records) for server in pair}
        bench.say(f"passing: {written}")
        for client, name in CLIENTS.items():
            runs = bench.contest.hold(f"passing-{client}", partial(pass_twice, client, written), *pair)
            title = f"offsets passed, 10 % aborted, {name}"
            outcome.add(
                runs.statement("ratio", f"{title}, read_committed by read_uncommitted", "", BAR, 2),
                runs.statement("read_committed", f"{title}, read_committed", "offsets/s"),
                runs.statement("read_uncommitted", f"{title}, read_uncommitted", "offsets/s"),
            )
            outcome.notes += runs.notes
            outcome.is_disturbed = outcome.is_disturbed or runs.is_disturbed
    return outcome


def fill(server: Server, topic: str, records: int) -> Written:
    """Writes the topic. Raises LogDiffers, KafkaError, ClientError, OSError."""
    with server.wire() as wire:
        create_topic(wire, topic, PARTITIONS)
    rounds = max(1, records // (RECORDS * ABORTED_OF * PARTITIONS))
    committed = asyncio.run(_write_all(server.address, topic, rounds))
    written = rounds * PARTITIONS * ABORTED_OF * RECORDS
    offsets = require_committed([Place(server, range(PARTITIONS))], topic, written)
    return Written(topic, written, committed, offsets)


async def _write_all(bootstrap: str, topic: str, rounds: int) -> int:
    """A producer for each partition; how many records are committed."""
    writers = (_write(bootstrap, topic, partition, rounds) for partition in range(PARTITIONS))
    return sum(await asyncio.gather(*writers))


async def _write(bootstrap: str, topic: str, partition: int, rounds: int) -> int:
    committed = 0
    async with Producer(bootstrap, acks="all", transactional_id=f"{topic}-{partition}") as producer:
        for number in range(rounds * ABORTED_OF):
            async with producer.transaction() as transaction:
                await transaction.send_batch(topic, [VALUE] * RECORDS, partition=partition)
                if number % ABORTED_OF == 0:
                    await transaction.abort()
                else:
                    committed += RECORDS
    return committed


def pass_twice(client: Client, written: dict[str, Written], server: Server) -> Run:
    """Read_committed and read_uncommitted. Raises LoadFailed, OSError."""
    what = written[server.name]
    seconds: dict[str, float] = {}
    with Watch(server.process.pid) as watch:
        committed = Reading(server.address, what.topic, client, "read_committed", PARTITIONS, what.committed)
        seconds["read_committed"] = run_reader(committed)
        everything = Reading(server.address, what.topic, client, "read_uncommitted", PARTITIONS, what.records)
        seconds["read_uncommitted"] = run_reader(everything)
    rates = {level: what.offsets / took for level, took in seconds.items()}
    values = {"ratio": rates["read_committed"] / rates["read_uncommitted"], **rates}
    text = ", ".join(f"{rate:,.0f} offsets/s {level}" for level, rate in rates.items())
    return Run(watch.work.clock, rates["read_committed"], values, text, watch.work.other_cores)
