"""A broker of the test kit is killed, which leads a partition: how long kafka-python's next acks=all record takes.

The record is sent when it is dead. The other brokers find that nobody listens at its address, and elect; the client has
to find out who leads now.
"""

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.results import Outcome
from benchmarks.testkit.installed import installed
from benchmarks.testkit.rounds import hold_worker_rounds, outcome_of

NAME = "testkit-kill"
BAR = Bar("≤", 1.0)


def measure_testkit_kill(bench: Bench) -> Outcome:
    """Raises ProjectFailed, what building and installing do."""
    bench.close()
    runs = hold_worker_rounds(bench, NAME, installed(bench), ["kill"])
    outcome = outcome_of(NAME, runs)
    title = "test kit, three brokers: kill() of a leader until the next acks=all record of kafka-python"
    outcome.add(runs.statement("kill", title, "s", BAR, 3))
    return outcome
