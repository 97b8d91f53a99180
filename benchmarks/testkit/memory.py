"""What a fixture of three brokers adds to the memory of a pytest process that has imported kafka-python in any case.

The same test runs in a process without brokers and in one with them, where kafka-python has sent a record too; each
tells its memory after `idle_s` seconds. RSS decides: what several processes share counts in full, in both.
"""

from collections.abc import Mapping

from benchmarks.figures.figures import Bar
from benchmarks.harness.bench import Bench
from benchmarks.harness.plan import MEGABYTE
from benchmarks.harness.results import Outcome
from benchmarks.host.machine import parse_proportional_bytes, parse_resident_bytes
from benchmarks.testkit.installed import Project, installed
from benchmarks.testkit.rounds import hold_rounds, outcome_of

NAME = "testkit-memory"
BAR = Bar("≤", 60.0)
PROGRAM = "fixture_memory"


def measure_testkit_memory(bench: Bench) -> Outcome:
    """Raises ProjectFailed, what building and installing do."""
    bench.close()
    project, plan = installed(bench), bench.plan

    def once() -> Mapping[str, float]:
        bare, bare_pss = memory(project, 0, plan.idle_s)
        with_brokers, with_brokers_pss = memory(project, 3, plan.idle_s)
        return {"more": with_brokers - bare, "more (PSS)": with_brokers_pss - bare_pss, "bare": bare}

    runs = hold_rounds(bench, NAME, plan.testkit_runs, once)
    outcome = outcome_of(NAME, runs)
    title = "test kit, three brokers: memory (RSS) over the bare pytest process"
    outcome.add(
        runs.statement("more", title, "MB", BAR, 1),
        runs.statement("more (PSS)", "– the same of PSS", "MB", None, 1),
        runs.statement("bare", "– the bare process, with pytest and kafka-python (RSS)", "MB", None, 1),
    )
    return outcome


def memory(project: Project, brokers: int, idle_s: float) -> tuple[float, float]:
    """MB resident, and the same with shared pages divided. Raises ProjectFailed, OSError."""
    answer = project.directory / "answer.txt"
    settings = {"TESTKIT_BROKERS": str(brokers), "TESTKIT_IDLE_S": str(idle_s), "TESTKIT_ANSWER": str(answer)}
    project.run_tests(PROGRAM, settings)
    told = answer.read_text()
    answer.unlink()
    return parse_resident_bytes(told) / MEGABYTE, parse_proportional_bytes(told) / MEGABYTE
