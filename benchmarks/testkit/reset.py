"""`kafka.reset()` of the test kit: topics, each with a record, are gone. The cluster is quiet for 0.1 s before."""

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.results import Outcome
from benchmarks.testkit.installed import installed
from benchmarks.testkit.rounds import hold_worker_rounds, outcome_of
from benchmarks.testkit.start import WORDS

NAME = "testkit-reset"
BARS: dict[tuple[int, int], Bar | None] = {
    (1, 1): Bar("≤", 0.01),
    (3, 1): Bar("≤", 0.02),
    (1, 6): None,
    (3, 6): None,
}
"""By brokers, and partitions of each topic."""


def measure_testkit_reset(bench: Bench) -> Outcome:
    """Raises ProjectFailed, what building and installing do."""
    bench.close()
    topics = bench.plan.testkit_topics
    lines = {kind: line_of(topics, *kind) for kind in BARS}
    runs = hold_worker_rounds(bench, NAME, installed(bench), list(lines.values()))
    outcome = outcome_of(NAME, runs)
    for kind, bar in BARS.items():
        brokers, partitions = kind
        each = "one partition" if partitions == 1 else f"{partitions} partitions"
        title = f"test kit, {WORDS[brokers]}: reset() with {topics} topics of {each}"
        outcome.add(runs.statement(lines[kind], title, "s", bar, 4))
    return outcome


def line_of(topics: int, brokers: int, partitions: int) -> str:
    return f"reset {brokers} {topics} {partitions}"
