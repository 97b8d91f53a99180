"""A cluster of the test kit in a program that runs: from its start to the first record that all replicas have.

One process does so again and again, with all modules imported; beside that, each time, a process of its own for each
kind, whose first start it is: then the classes of the messages are made, and the libraries wake up.
"""

from collections.abc import Mapping

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.results import Outcome
from benchmarks.testkit.installed import Project, installed
from benchmarks.testkit.rounds import hold_worker_rounds, outcome_of
from benchmarks.testkit.worker_process import working

NAME = "testkit-start"
BARS = {
    (3, "confluent-kafka"): Bar("≤", 0.03),
    (3, "kafka-python"): Bar("≤", 0.15),
    (1, "confluent-kafka"): Bar("≤", 0.015),
    (1, "kafka-python"): Bar("≤", 0.13),
}
WORDS = {1: "one broker", 3: "three brokers"}


def measure_testkit_start(bench: Bench) -> Outcome:
    """Raises ProjectFailed, what building and installing do."""
    bench.close()
    project = installed(bench)
    runs = hold_worker_rounds(bench, NAME, project, [line_of(*kind) for kind in BARS], lambda: first_starts(project))
    outcome = outcome_of(NAME, runs)
    for kind, bar in BARS.items():
        brokers, client = kind
        title = f"test kit, {WORDS[brokers]}: start to the first acks=all record of {client}"
        outcome.add(
            runs.statement(line_of(*kind), title, "s", bar, 3),
            runs.statement(first(line_of(*kind)), "– the first start of a process", "s", None, 3),
        )
    return outcome


def line_of(brokers: int, client: str) -> str:
    return f"start {brokers} {client}"


def first(line: str) -> str:
    return f"first {line}"


def first_starts(project: Project) -> Mapping[str, float]:
    """Seconds of each kind in a process of its own, whose modules are imported."""
    seconds: dict[str, float] = {}
    for kind in BARS:
        with working(project) as worker:
            seconds[first(line_of(*kind))] = worker.ask(line_of(*kind))
    return seconds
