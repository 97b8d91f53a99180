"""The job `delays`: flight records -> delay statistics per carrier and day, and what does not parse -> dead letters.

Two queries read the topic, each with a checkpoint of its own under the job's: `statistics` (stateful, update mode)
and `dead-letters` (stateless, append mode). One query with `foreachBatch` could write both, but there a micro-batch is
a plain table: no watermark, no state over batches. Both deliver at least once; docs/spark.md says what a reader makes
of that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from odradek.spark_jobs.sources import AVAILABLE_NOW, Kafka, read_stream, start_query
from odradek.spark_jobs.transforms import as_result_records, daily_delays, dead_letters, good_flights, parse_flights

STATISTICS = "statistics"
DEAD_LETTERS = "dead-letters"
# How often the queries are asked what they have done, in seconds; an end is noticed at once.
POLL_INTERVAL = 1

OnProgress = Callable[[StreamingQueryProgress], None]


@dataclass(frozen=True, slots=True)
class DelayOptions:
    kafka: Kafka
    topic: str
    result_topic: str
    dead_letter_topic: str
    # Directory (any file system that Spark knows). It belongs to these topics: other topics, other checkpoint.
    checkpoint: str
    trigger: str = AVAILABLE_NOW
    max_offsets_per_trigger: int = 24_000
    starting_offsets: str = "earliest"


@dataclass(slots=True)
class Totals:
    """What this run did; a resumed run counts from its resumption."""

    batch_count: int = 0
    row_count: int = 0
    dropped_by_watermark: int = 0
    dead_letter_count: int = 0

    def add(self, progress: StreamingQueryProgress) -> None:
        """Counts one micro-batch of either query."""
        if progress.name == STATISTICS:
            self.batch_count += 1
            self.row_count += progress.numInputRows
            self.dropped_by_watermark += sum(state.numRowsDroppedByWatermark for state in progress.stateOperators)
        else:
            self.dead_letter_count += progress.sink.numOutputRows


def run_delays(session: SparkSession, options: DelayOptions, on_progress: OnProgress | None = None) -> Totals:
    """Runs until the queries end (`available-now`) or one fails, which stops the other.

    `on_progress` is called once for each micro-batch. Raises StreamingQueryException with the cause of the failure.
    """
    queries = _start(session, options)
    try:
        return follow(queries, on_progress)
    finally:
        for query in queries:
            query.stop()


def follow(queries: Sequence[StreamingQuery], on_progress: OnProgress | None = None) -> Totals:
    """Waits for the queries to end, and counts what they do meanwhile; raises what ends one of them."""
    totals = Totals()
    last_batch: dict[str, int] = {}
    running = True
    while running:
        # First this, then the progress: what a query did last is then seen in the last turn.
        ended = [query.awaitTermination(POLL_INTERVAL) for query in queries]
        running = not all(ended)
        for query in queries:
            for progress in query.recentProgress:
                # A query that found nothing new reports, too, with the number of the batch that comes next.
                if "addBatch" in progress.durationMs and progress.batchId > last_batch.get(query.name, -1):
                    last_batch[query.name] = progress.batchId
                    totals.add(progress)
                    if on_progress is not None:
                        on_progress(progress)
    return totals


def _start(session: SparkSession, options: DelayOptions) -> tuple[StreamingQuery, StreamingQuery]:
    records = read_stream(
        session, options.kafka, options.topic, options.starting_offsets, options.max_offsets_per_trigger
    )
    parsed = parse_flights(records)
    statistics = start_query(
        as_result_records(daily_delays(good_flights(parsed))),
        options.kafka,
        options.result_topic,
        name=STATISTICS,
        output_mode="update",
        checkpoint=f"{options.checkpoint}/{STATISTICS}",
        trigger=options.trigger,
    )
    rejected = start_query(
        dead_letters(parsed),
        options.kafka,
        options.dead_letter_topic,
        name=DEAD_LETTERS,
        output_mode="append",
        checkpoint=f"{options.checkpoint}/{DEAD_LETTERS}",
        trigger=options.trigger,
    )
    return statistics, rejected
