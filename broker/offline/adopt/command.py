"""`odradek adopt`: the command line. What it runs is imported when it runs, so that `--help` answers at once."""

import click

EXIT_CODES_HELP = "Exit codes: 0 done, 1 refused, 2 wrong command line."


@click.command(epilog=EXIT_CODES_HELP)
@click.argument("data_dir", metavar="DIR")
@click.option("--dry-run", is_flag=True, help="Say what would be taken and what not; change nothing.")
@click.option("--node-id", type=click.IntRange(0), help="Refuse the directory of another node.")
@click.option("--metadata-dir", metavar="DIR", help="Where Kafka kept its metadata, if metadata.log.dir was set.")
def adopt(data_dir: str, dry_run: bool, node_id: int | None, metadata_dir: str | None) -> None:
    """Take over the data directory of a stopped Apache Kafka.

    DIR is what log.dirs of its server.properties names. Its topics keep their ids, options and records; no log is
    changed. What cannot be taken is listed.
    """
    from odradek.broker.disk.descriptor_limits import raise_descriptor_limit
    from odradek.broker.disk.file_disk import FileDisk
    from odradek.broker.offline.adopt import adoption
    from odradek.broker.offline.adopt.claim import DirectoryRefused
    from odradek.broker.offline.adopt.report import report

    raise_descriptor_limit()
    try:
        done = adoption.adopt(FileDisk(), data_dir, node_id=node_id, metadata_dir=metadata_dir, is_dry_run=dry_run)
    except DirectoryRefused as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:  # the disk, at some step: the text names the file
        raise click.ClickException(f"{data_dir} cannot be adopted: {error}") from error
    for line in report(done, is_dry_run=dry_run):
        click.echo(line)
