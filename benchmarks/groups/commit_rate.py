"""Offset commits a second: 64 groups with a connection each, one commit after the other, and five in flight.

The commits are of no member, so that what is measured is the coordinator's way into its log and back. After each run
every group has to have the last offset committed that was acknowledged.
"""

from functools import partial

from benchmarks.figures.figures import Bar
from benchmarks.groups.commit_load import CommitLoad, run_commits
from benchmarks.groups.group_servers import commit_when_led, committed, group_servers
from benchmarks.harness.bench import Bench
from benchmarks.harness.contest import Run
from benchmarks.harness.readback import LogDiffers
from benchmarks.harness.results import Outcome
from benchmarks.harness.servers import Server
from benchmarks.host.machine import settle_pages
from benchmarks.host.work import Watch
from benchmarks.load.wire import create_topic

GROUPS = 64
SLICE_SHARE = 0.1
"""Of a run: as much is a slice of the warm-up."""
BAR = Bar("≥", 1.5)
SHAPES = ((1, "one after the other"), (5, "five in flight"))


def measure_commit_rate(bench: Bench) -> Outcome:
    """Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    outcome = Outcome()
    with group_servers(bench, "commit-rate") as pair:
        for in_flight, how in SHAPES:
            commits = bench.plan.group_commits // GROUPS
            run = partial(commit_once, bench, in_flight, commits)
            slice_of = partial(commit_once, bench, in_flight, max(1, round(commits * SLICE_SHARE)))
            name = f"commits-{in_flight}"
            runs = bench.contest.hold(name, run, *pair, slice_of=slice_of)
            outcome.add(runs.figure("commits/s", f"offset commits, {GROUPS} groups, {how}", "commits/s", BAR))
            outcome.notes += runs.notes
            outcome.is_disturbed = outcome.is_disturbed or runs.is_disturbed
    return outcome


def commit_once(bench: Bench, in_flight: int, commits: int, server: Server) -> Run:
    """One run, read back. Raises LoadFailed, LogDiffers, KafkaError, OSError."""
    name = bench.topic("commits")
    load = CommitLoad(name, name, GROUPS, in_flight, commits)
    with server.wire() as wire:
        create_topic(wire, name)
        for group in load.names:
            commit_when_led(wire, group, name, {0: 0})
        dirty_bytes = settle_pages()
        with Watch(server.process.pid) as watch:
            seconds = run_commits(server.address, load)
        for group in load.names:
            if (found := committed(wire, group, name, [0])) != {0: commits}:
                raise LogDiffers(f"{server}: {group} has {found} committed, and {commits} was acknowledged")
    speed = load.count / seconds
    text = f"{speed:,.0f} commits/s, {in_flight} in flight"
    return Run(seconds, speed, {"commits/s": speed}, text, watch.work.other_cores, dirty_bytes)
