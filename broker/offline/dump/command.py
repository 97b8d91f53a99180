"""`odradek dump`: the command line. What it needs is imported when it runs, so that `--help` answers at once."""

import sys
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from odradek.broker.disk.disk import Disk
    from odradek.broker.offline.dump.printing import Output

INCONSISTENT: Final = 1
INTERRUPTED: Final = 130
OUTPUT_CLOSED: Final = 141


@click.command(
    epilog="Exit codes: 0 done, 1 an inconsistency or a damage was found, 2 wrong command line, 130 interrupted."
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True), metavar="PATH…")
@click.option("--records", "with_records", is_flag=True, help="Print the records of each batch, too.")
@click.option("--max-records", "records_max", type=click.IntRange(1), metavar="N", help="End after so many of them.")
@click.option("--verify", "verifies", is_flag=True, help="Check instead of printing; end at the first inconsistency.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def dump(paths: tuple[str, ...], with_records: bool, records_max: int | None, verifies: bool, as_json: bool) -> None:
    """Print or verify the files of a log.

    PATH is a data directory, the directory of a partition, or one of their files: *.log, *.index, *.timeindex,
    *.txnindex, *.snapshot, *-checkpoint, partition.metadata, meta.properties. All that is there is printed, in order.

    Nothing is written or locked, so a broker may be running on the directory. What it appends at that moment can look
    like a torn batch at the end of the last segment: try again then.
    """
    from odradek.broker.disk.file_disk import FileDisk
    from odradek.broker.offline.dump.places import NothingToDump, place_of
    from odradek.broker.offline.dump.printing import Output

    if records_max is not None and not with_records:
        raise click.UsageError("--max-records counts what --records prints: give both")
    if verifies and with_records:
        raise click.UsageError("--verify looks at every record and prints none: leave --records out")
    disk, output = FileDisk(), Output(sys.stdout.fileno(), as_json=as_json)
    try:
        for path in paths:
            place_of(disk, path)
        fault = (
            _verify(disk, output, paths, as_json)
            if verifies
            else _print(disk, output, paths, with_records, records_max)
        )
    except NothingToDump as error:
        raise click.UsageError(str(error)) from error
    except BrokenPipeError:
        sys.exit(OUTPUT_CLOSED)
    except OSError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    if fault is not None:
        click.echo(f"Error: {fault}", err=True)
        sys.exit(INCONSISTENT)


def _print(
    disk: "Disk", output: "Output", paths: tuple[str, ...], with_records: bool, records_max: int | None
) -> str | None:
    """What was wrong, if anything. Raises OSError."""
    from odradek.broker.offline.dump.places import files_of
    from odradek.broker.offline.dump.printing import Printer

    printer = Printer(disk, output, with_records=with_records, records_max=records_max)
    for path in paths:
        if not printer.print_files(files_of(disk, path)):
            break
    output.flush()
    return f"damage was found in {printer.damages} place(s); --verify says more" if printer.damages else None


def _verify(disk: "Disk", output: "Output", paths: tuple[str, ...], as_json: bool) -> str | None:
    """The first inconsistency, if any. Raises OSError."""
    from odradek.broker.offline.dump.findings import Inconsistency
    from odradek.broker.offline.dump.printing import say_checked, say_inconsistency
    from odradek.broker.offline.dump.verifying import verify

    try:
        for path in paths:
            for checked in verify(disk, path):
                say_checked(output, checked)
    except Inconsistency as found:
        if as_json:
            say_inconsistency(output, found)
        return str(found)
    return None
