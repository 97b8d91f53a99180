"""Records a second of our own producer in transactions of 10,000 records of 100 B, by the same without transactions.

Both are run in turn, to our broker, and as a pair to Apache Kafka; what counts is the ratio of each pair of runs.
Without transactions `send_batch` waits for its 10,000 records, and `send` for nothing until the end.
"""

from functools import partial
from typing import Final

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import Watch
from benchmarks.transactions.own_load import TOGETHER, Idiom, OwnLoad, run_own
from benchmarks.transactions.transaction_topic import require_committed, transaction_servers, transaction_topic

BAR: Final = Bar("≥", 0.9)
SLICE_SHARE: Final = 0.2
"""Of a run: as much is a slice of the warm-up."""
IDIOMS: Final[tuple[Idiom, ...]] = ("send", "send_batch")


def measure_own_rate(bench: Bench) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    outcome = Outcome()
    times = max(1, bench.plan.own_records // TOGETHER)
    with transaction_servers(bench, "own-transactions") as pair:
        for idiom in IDIOMS:
            run = partial(send_twice, bench, idiom, times)
            slice_of = partial(send_twice, bench, idiom, max(1, round(SLICE_SHARE * times)))
            runs = bench.contest.hold(f"own-transactions-{idiom}", run, *pair, slice_of=slice_of)
            title = f"{idiom} of our client, 100 B"
            outcome.add(
                runs.statement("ratio", f"{title}, in transactions of 10,000 by without", "", BAR, 2),
                runs.statement("with", f"{title}, in transactions", "records/s"),
                runs.statement("without", f"{title}, without", "records/s"),
            )
            outcome.notes += runs.notes
            outcome.is_disturbed = outcome.is_disturbed or runs.is_disturbed
    return outcome


def send_twice(bench: Bench, idiom: Idiom, times: int, server: Server) -> Run:
    """With transactions and without, read back. Raises LoadFailed, LogDiffers, KafkaError, OSError, TimeoutError."""
    with Watch(server.process.pid) as watch:
        dirty_bytes, rates = 0, list[float]()
        for is_transactional in (True, False):
            topic = bench.topic("own-transactions")
            load = OwnLoad(server.address, topic, idiom, is_transactional, times)
            with transaction_topic(server, topic) as places:
                dirty_bytes = max(dirty_bytes, settle_pages())
                rates.append(run_own(load))
                require_committed(places, topic, load.records)
    within, without = rates
    values = {"ratio": within / without, "with": within, "without": without}
    text = f"{within:,.0f} records/s in transactions, {without:,.0f} without"
    return Run(watch.work.clock, within, values, text, watch.work.other_cores, dirty_bytes)
