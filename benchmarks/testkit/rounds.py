"""Rounds of a measurement of the test kit: in each, everything is done once, one after the other; who else was busy
meanwhile is told of the round as a whole, for a single start is too short for the kernel's ticks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Contest, Run, Runs
from benchmarks.harness.results import Outcome
from benchmarks.host.work import Watch, disturbance_note
from benchmarks.testkit.installed import Project
from benchmarks.testkit.worker_process import Worker, working


def run_of(values: Mapping[str, float], watch: Watch) -> Run:
    """Of a round that is over: what it measured, by name."""
    text = ", ".join(f"{name}: {value:.4g}" for name, value in values.items())
    return Run(watch.work.clock, 1.0, values, text, watch.work.other_cores)


def hold_rounds(bench: Bench, name: str, times: int, once: Callable[[], Mapping[str, float]]) -> Runs:
    """So many of them. All processes of a round have ended when it has. Raises what a round does."""
    runs = Runs()
    for number in range(1, times + 1):
        with Watch() as watch:
            values = once()
        runs.ours.append(run_of(values, watch))
        bench.say(f"{name} {number}/{times}: {runs.ours[-1]}")
    runs.notes.append(disturbance_note(name, runs.disturbed_count, len(runs.ours)))
    return runs


def hold_worker_rounds(
    bench: Bench, name: str, project: Project, lines: Sequence[str], also: Callable[[], Mapping[str, float]] = dict
) -> Runs:
    """Of one worker, which is told these lines in each; what it answers is named by the line. `also`: done after them,
    by processes that have ended then. The first round does not count. Raises ProjectFailed, and what `also` does."""

    def once(worker: Worker) -> Run:
        with Watch(worker.pid) as watch:
            values = {**{line: worker.ask(line) for line in lines}, **also()}
        return run_of(values, watch)

    with working(project) as worker:
        contest = Contest(replace(bench.plan, runs=bench.plan.testkit_runs), bench.say)
        return contest.hold_alone(name, once, worker)


def outcome_of(name: str, runs: Runs) -> Outcome:
    """Without any line yet."""
    note = f"{name}: from the installed wheel, {len(runs.ours)} rounds"
    return Outcome(notes=[note, *runs.notes], is_disturbed=runs.is_disturbed)
