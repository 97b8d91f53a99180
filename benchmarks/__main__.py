"""`python -m benchmarks [PART…]`: measures Odradek beside Apache Kafka and prints a table with ratios.

    start     start time and idle memory
    log       raw produce throughput and what it costs the server
    clients   Odradek's producer beside other clients, to both brokers

The issue's conditions are the defaults; options make a run smaller, for trying something out.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.clients import Clients, add_options
from benchmarks.figures import Figure
from benchmarks.limits import measure_limits
from benchmarks.machine import describe
from benchmarks.produce import Plan, Producing
from benchmarks.servers import running_servers, versions
from benchmarks.start import measure_start
from benchmarks.table import figure_table

PARTS = ("start", "log", "clients")
MEBIBYTE = 1024 * 1024


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description="Odradek beside Apache Kafka.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; without any, all")
    parser.add_argument("--runs", type=int, default=5, help="of each figure and contender (%(default)s)")
    parser.add_argument("--run-mib", type=int, default=512, help="produced in a run (%(default)s)")
    parser.add_argument("--record-bytes", type=int, default=1024, help="of a record, about (%(default)s)")
    parser.add_argument("--warm-s", type=float, default=40.0, help="least seconds to warm Kafka up (%(default)g)")
    parser.add_argument("--warm-s-max", type=float, default=240.0, help="and the most (%(default)g)")
    parser.add_argument("--rewarm-s", type=float, default=5.0, help="the same before each run (%(default)g)")
    parser.add_argument("--idle-s", type=float, default=5.0, help="before idle memory is read (%(default)g)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="an option of Odradek's")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()), help="for the data (%(default)s)"
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 unless every bar is known to be met")
    add_options(parser)
    options = parser.parse_args(arguments)
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]}: one of {', '.join(PARTS)}")
    return options


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    started = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {line}", flush=True)

    with tempfile.TemporaryDirectory(prefix="odradek-benchmarks-", dir=options.directory) as directory:
        machine = describe(Path(directory), versions())
        print("\n".join(machine.lines()), flush=True)
        settings = [part for setting in options.set for part in ("--set", setting)]
        plan = Plan(
            runs=options.runs,
            run_bytes=options.run_mib * MEBIBYTE,
            record_bytes=options.record_bytes,
            warm_s=options.warm_s,
            warm_s_max=options.warm_s_max,
            rewarm_s=options.rewarm_s,
        )
        producing = Producing(plan, say)
        parts = options.parts or PARTS
        if "log" in parts:
            measure_limits(plan, Path(directory), say)
        figures: list[Figure] = []
        clients = Clients(options, say)
        with running_servers(Path(directory), settings) as (ours, theirs):
            if "start" in parts:
                figures += measure_start(ours, theirs, runs=options.runs, idle_s=options.idle_s, say=say)
            if "log" in parts:
                figures += producing.measure(ours, theirs)
            if "clients" in parts:
                clients.measure(ours, theirs)
    notes = [f"{options.runs} runs of each, medians [lowest–highest]", *producing.notes, *clients.notes]
    print("\n".join(["", *machine.lines(), *(f"note      {note}" for note in notes), ""]))
    is_preliminary = not machine.is_idle or producing.is_disturbed or clients.is_disturbed
    tables = [figure_table(figures, str(ours), str(theirs), is_preliminary=is_preliminary)] if figures else []
    tables += clients.tables(ours, theirs, is_preliminary=is_preliminary)
    print("\n\n".join(tables))
    figures += clients.all_figures
    if is_preliminary:
        print("\nThe machine was not idle: nothing is decided about the bars. Repeat it when nothing else runs.")
    return int(options.check and (is_preliminary or not all(figure.is_met for figure in figures)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
