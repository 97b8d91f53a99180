"""The command line of the benchmarks: which measurements are made, how large they are, and where they are kept."""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.catalogue import CATALOGUE, PARTS, chosen
from benchmarks.clients.comparison import Clients, add_options
from benchmarks.harness.bench import Bench, Measurement
from benchmarks.harness.plan import MEBIBYTE, MEGABYTE, Plan
from benchmarks.harness.report import Report
from benchmarks.harness.results import Outcome, Results, Stamp
from benchmarks.harness.servers import versions
from benchmarks.host.machine import REPOSITORY, Machine, describe, touch_memory

CLIENT_OPTIONS = {"measure", "brokers", "clients", "values", "kafka_values", "scale", "clients_warm_s", "loop"}
RESULTS = REPOSITORY / "benchmarks" / "results.jsonl"
TRIALS = REPOSITORY / "build" / "benchmarks.jsonl"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Odradek beside Apache Kafka.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; without any, all")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this measurement; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the names of the measurements, and end")
    parser.add_argument("--again", action="store_true", help="repeat what is finished for this commit, too")
    parser.add_argument("--small", action="store_true", help="a few seconds a figure, which decides nothing")
    parser.add_argument("--runs", type=int, help="of each figure and contender")
    parser.add_argument("--run-mib", type=int, help="produced in a run")
    parser.add_argument("--dirty-mib", type=int, help="produced without sync before the runs of second rows")
    parser.add_argument("--record-bytes", type=int, help="of a record, about")
    parser.add_argument("--warm-s", type=float, help="least seconds to warm Kafka up")
    parser.add_argument("--warm-s-max", type=float, help="and the most")
    parser.add_argument("--rewarm-s", type=float, help="the same before each run")
    parser.add_argument("--idle-s", type=float, help="before idle memory is read")
    parser.add_argument("--measured-s", type=float, help="of a run at a steady rate")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of Odradek's")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()), help="for the data (%(default)s)"
    )
    parser.add_argument("--results", type=Path, help=f"finished measurements ({RESULTS}; of other plans {TRIALS})")
    parser.add_argument("--check", action="store_true", help="exit with 1 unless every bar is known to be met")
    add_options(parser)
    options = parser.parse_args(arguments)
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]}: one of {', '.join(PARTS)}")
    names = [*(measurement.name for measurement in CATALOGUE), "clients"]
    if unknown := [name for name in options.only if name not in names]:
        parser.error(f"there is no measurement {unknown[0]}: one of {', '.join(names)}")
    return options


def plan_of(options: argparse.Namespace) -> Plan:
    """The issue's, or the small one, with what the options change of it."""
    changes = {
        "runs": options.runs,
        "run_bytes": None if options.run_mib is None else options.run_mib * MEBIBYTE,
        "dirty_bytes": None if options.dirty_mib is None else options.dirty_mib * MEBIBYTE,
        "record_bytes": options.record_bytes,
        "warm_s": options.warm_s,
        "warm_s_max": options.warm_s_max,
        "rewarm_s": options.rewarm_s,
        "idle_s": options.idle_s,
        "measured_s": options.measured_s,
    }
    plan = Plan.small() if options.small else Plan()
    return replace(plan, **{name: value for name, value in changes.items() if value is not None})


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    plan = plan_of(options)
    catalogue = [*CATALOGUE, clients(options, plan)]
    if options.list:
        print("\n".join(f"{each.part:8} {each.name:24} {each.about}" for each in catalogue))
        return 0
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {line}", flush=True)

    with tempfile.TemporaryDirectory(prefix="odradek-benchmarks-", dir=options.directory) as name:
        directory = Path(name)
        if plan.touches_memory:
            say(f"touched {touch_memory() / MEGABYTE:,.0f} MB of free memory")
        machine = describe(directory, versions())
        print("\n".join(machine.lines()), flush=True)
        report = Report(results_of(options, plan), stamp_of(machine, plan, options), machine, say)
        try:
            with Bench(plan, directory, options.set, say) as bench:
                report.measure(bench, chosen(catalogue, options.parts, options.only), again=options.again)
        finally:
            print(report.text())  # of what was finished, whatever went wrong then
    return int(options.check and not report.is_met)


def results_of(options: argparse.Namespace, plan: Plan) -> Results:
    """What the whole plan came to is part of the repository: the evidence for docs/performance.md."""
    return Results(options.results or (RESULTS if plan == Plan() else TRIALS))


def clients(options: argparse.Namespace, plan: Plan) -> Measurement:
    """The part `clients` as one measurement: it has options and tables of its own."""
    options.runs = plan.runs

    def measure(bench: Bench) -> Outcome:
        measuring = Clients(options, bench.say)
        ours, theirs = bench.pair()
        measuring.measure(ours, theirs)
        return Outcome(
            notes=measuring.notes,
            tables=measuring.tables(ours, theirs, is_preliminary=measuring.is_disturbed),
            is_disturbed=measuring.is_disturbed,
            are_bars_met=all(figure.is_met for figure in measuring.all_figures),
        )

    return Measurement(
        "clients", "clients", "Odradek's producer and consumer beside other clients, with both brokers", measure
    )


def stamp_of(machine: Machine, plan: Plan, options: argparse.Namespace) -> Stamp:
    """The options of the part `clients` count, where they ask for less than all of it."""
    of_clients = [f"{name}={value}" for name, value in sorted(vars(options).items()) if name in CLIENT_OPTIONS]
    return Stamp(machine.commit, plan.to_json(), machine.hardware, machine.software, [*options.set, *of_clients])
