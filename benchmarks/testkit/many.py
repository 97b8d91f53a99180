"""1,000 tests in one pytest process: each makes a topic, produces, consumes in a group and asserts, on one cluster.

With our client; with kafka-python and confluent-kafka, which wait for longer themselves, a tenth as many. The time is
that of the whole process, from before it exists.
"""

import re
import time
from collections.abc import Mapping

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.results import Outcome
from benchmarks.testkit.installed import Project, ProjectFailed, installed
from benchmarks.testkit.rounds import hold_rounds, outcome_of

NAME = "testkit-many"
BAR = Bar("≤", 60.0)
OTHERS = ("kafka-python", "confluent-kafka")
PROGRAM = "many_tests"


def measure_testkit_many(bench: Bench) -> Outcome:
    """Raises ProjectFailed, what building and installing do."""
    bench.close()
    project, tests = installed(bench), bench.plan.testkit_tests
    counts = {"Odradek": tests, **dict.fromkeys(OTHERS, tests // 10)}

    def once() -> Mapping[str, float]:
        return {client: seconds(project, client, count) for client, count in counts.items()}

    runs = hold_rounds(bench, NAME, bench.plan.testkit_tests_runs, once)
    outcome = outcome_of(NAME, runs)
    for client, count in counts.items():
        title = f"test kit, three brokers: {count:,} tests that produce and consume in a group, by {client}"
        # The bar is for the number of tests that the whole plan has.
        outcome.add(runs.statement(client, title, "s", BAR if client == "Odradek" else None, 1))
    return outcome


def seconds(project: Project, client: str, tests: int) -> float:
    """Raises ProjectFailed where a test fails, or another number of them passed."""
    began_s = time.perf_counter()
    printed = project.run_tests(PROGRAM, {"TESTKIT_CLIENT": client, "TESTKIT_TESTS": str(tests)})
    took_s = time.perf_counter() - began_s
    if not re.search(rf"^{tests} passed\b", printed, re.MULTILINE):
        raise ProjectFailed(f"{tests} tests were to pass by {client}; pytest said:\n{printed[-4000:]}")
    return took_s
