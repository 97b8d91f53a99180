"""`python -m tests.sim 7 8 9`, `--seeds 150`: histories from seeds, and what went wrong in them.

    python -m tests.sim 7 --log                      what happens in one, line by line
    python -m tests.sim 7 --canary NAME              with a mistake put in
    python -m tests.sim --seeds 150 --recorded       and each canary on the seed that is recorded to find it
    python -m tests.sim --seeds 10000 --done FILE    goes on where it was stopped: finished seeds stand in FILE
    python -m tests.sim --canaries --seeds 200       with a mistake put in: how many seeds it takes to find each

`--jobs 2` uses two processes. A seed that fails is printed with the command that replays it, and makes the exit code 1;
so does a canary that no seed finds. The hash seed of the interpreter is fixed: sets of texts have another order with
another one.
"""

import gc
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import click

from odradek.testing.sim.simulation import simulate
from tests.sim.canaries import CANARIES
from tests.sim.recorded import FOUND_BY
from tests.sim.search import Task, again, hunts, outcomes, run

HASH_SEED: Final = "0"


@click.command()
@click.argument("chosen", metavar="SEED…", type=int, nargs=-1)
@click.option("--seeds", "count", type=int, default=0, help="So many seeds, from --first on.")
@click.option("--first", type=int, default=1, show_default=True, help="The first of them.")
@click.option("--jobs", type=int, default=1, show_default=True, help="So many at a time.")
@click.option("--done", type=click.Path(path_type=Path), help="A file of finished seeds, which are left out.")
@click.option("--log", is_flag=True, help="Print what happens.")
@click.option("--history", is_flag=True, help="Print the history, as lines of JSON.")
@click.option("--brief", is_flag=True, help="Print seed and hash alone.")
@click.option("--canary", type=click.Choice(list(CANARIES)), help="Put this mistake in.")
@click.option("--canaries", is_flag=True, help="Put each mistake in, and look which seed finds it.")
@click.option("--recorded", is_flag=True, help="See that the recorded seed still finds each mistake.")
def main(
    chosen: tuple[int, ...],
    count: int,
    first: int,
    jobs: int,
    done: Path | None,
    log: bool,
    history: bool,
    brief: bool,
    canary: str | None,
    canaries: bool,
    recorded: bool,
) -> None:
    """Runs histories from seeds."""
    wanted = [*chosen, *range(first, first + count)]
    if log or history:
        shown = [_show(Task(seed, canary), is_logged=log, has_history=history) for seed in wanted]
        is_good = all(shown)
    elif canaries:
        is_good = _hunt([canary] if canary else list(CANARIES), wanted, jobs)
    else:
        is_good = _search([Task(seed, canary) for seed in _left(wanted, done)], jobs, done, is_brief=brief)
        if recorded:
            is_good = _look_again(set(wanted), jobs) and is_good
    sys.exit(0 if is_good else 1)


def _show(task: Task, *, is_logged: bool, has_history: bool) -> bool:
    outcome = run(task, _print if is_logged else None)
    if has_history:
        _print(simulate(task.seed).history.to_json())
    _print(outcome.text)
    return outcome.is_good


def _search(tasks: Sequence[Task], jobs: int, done: Path | None, *, is_brief: bool) -> bool:
    """Whether all is good."""
    failed: list[int] = []
    virtual_s = cpu_s = 0.0
    for outcome in outcomes(tasks, jobs):
        seed = outcome.task.seed
        if not outcome.is_good:
            failed.append(seed)
        virtual_s, cpu_s = virtual_s + outcome.virtual_s, cpu_s + outcome.cpu_s
        _print(f"{seed} {outcome.digest}\n" if is_brief else outcome.text)
        if done is not None:
            with done.open("a") as file:
                file.write(f"{seed} {outcome.digest} {'good' if outcome.is_good else 'failed'}\n")
    if len(tasks) > 1 and not is_brief:
        _print(f"{len(tasks)} seeds, {virtual_s:.0f} s in {cpu_s:.0f} s: {virtual_s / cpu_s:.0f} a second and core\n")
    if failed:
        _print(f"{len(failed)} of {len(tasks)} seeds failed: {' '.join(map(str, sorted(failed)))}\n")
    return not failed


def _hunt(names: Sequence[str], wanted: Sequence[int], jobs: int) -> bool:
    """Whether each canary is found."""
    missed = 0
    for found in hunts(names, wanted, jobs):
        missed += found.found_by is None
        what = f"found by seed {found.found_by}" if found.found_by is not None else "NOT FOUND"
        _print(f'    "{found.canary}": {found.found_by},  # {what}, the {found.seeds}. tried, in {found.cpu_s:.0f} s\n')
    return not missed


def _look_again(finished: set[int], jobs: int) -> bool:
    """Whether each recorded seed finds its canary, and nothing without it. `finished`: those that were simulated."""
    is_good = set(FOUND_BY) == set(CANARIES)
    if not is_good:
        _print(f"no seed is recorded for {sorted(set(CANARIES) - set(FOUND_BY))}\n")
    tasks = [Task(seed, name) for name, seed in FOUND_BY.items()]
    tasks += [Task(seed) for seed in sorted(set(FOUND_BY.values()) - finished)]
    for outcome in outcomes(tasks, jobs):
        if outcome.is_good == (outcome.task.canary is None):
            if outcome.task.canary is not None:
                _print(f"{outcome.task.canary}: found by seed {outcome.task.seed}\n")
            continue
        is_good = False
        what = outcome.text if outcome.task.canary is None else f"{outcome.task.canary}: NOT FOUND\n"
        _print(f"{what}{again(outcome.task)}")
    return is_good


def _left(wanted: Iterable[int], done: Path | None) -> list[int]:
    finished: set[int] = set()
    if done is not None and done.exists():
        finished = {int(line.split()[0]) for line in done.read_text().splitlines()}
    return [seed for seed in wanted if seed not in finished]


def _print(text: str) -> None:
    click.echo(text, nl=False)


def with_fixed_hashes() -> None:
    """Starts this program anew, should its hashes be by chance."""
    if os.environ.get("PYTHONHASHSEED") != HASH_SEED:
        os.environ["PYTHONHASHSEED"] = HASH_SEED
        os.execv(sys.executable, [sys.executable, "-m", "tests.sim", *sys.argv[1:]])  # noqa: S606 - it is this program


if __name__ == "__main__":
    with_fixed_hashes()
    gc.collect()
    gc.freeze()  # what was imported stays
    main()
