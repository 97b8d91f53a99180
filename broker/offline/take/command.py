"""`odradek cluster take`: the command line. What it runs is imported when it runs, so that `--help` answers at once."""

import os.path
from typing import Final

import click

EXIT_CODES_HELP: Final = "Exit codes: 0 done, 1 refused, 2 wrong command line."


@click.command(epilog=EXIT_CODES_HELP)
@click.argument("serve_dir", metavar="SERVE_DIR")
@click.option("--data-dir", metavar="DIR", required=True, help="That of the cluster; not there yet, unless --back.")
@click.option("--back", "is_back", is_flag=True, help="From the cluster, whose other brokers hold nothing.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
def take(serve_dir: str, data_dir: str, is_back: bool, dry_run: bool) -> None:
    """Make a broker of `odradek serve` the first one of `odradek cluster run`.

    SERVE_DIR, its data directory, moves into DIR, within one file system: nothing is copied. Cluster id and node id
    stay. The broker must be stopped. When this was interrupted, the same command goes on.
    """
    from odradek.broker.disk.file_disk import FileDisk
    from odradek.broker.offline.adopt.claim import DirectoryRefused
    from odradek.broker.offline.take.taking import move

    serve_dir, data_dir = os.path.abspath(serve_dir), os.path.abspath(data_dir)
    for path in (serve_dir, data_dir):
        if os.path.islink(path):
            raise click.ClickException(f"{path} is a symbolic link: give {os.path.realpath(path)}, where it leads to")
    try:
        done = move(FileDisk(), serve_dir, data_dir, is_back=is_back, is_dry_run=dry_run)
    except DirectoryRefused as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:  # the disk, at some step: the text names the file
        raise click.ClickException(f"{error}; give the same command again when that is mended") from error
    if dry_run:
        for step in done.steps:
            click.echo(f"would {step}")
        return
    known = done.known
    if not is_back:
        click.echo(
            f"{serve_dir} is now broker {known.node_id} of {data_dir}, cluster {known.cluster_id}: start it with "
            f"`odradek cluster run --data-dir {data_dir}`, and spread what it has with `odradek partitions spread`. "
            f"`odradek serve --data-dir {serve_dir}` would begin an empty broker"
        )
        return
    click.echo(
        f"broker {known.node_id} of {data_dir} is now {serve_dir}, cluster {known.cluster_id}: start it with "
        f"`odradek serve --data-dir {serve_dir} --node-id {known.node_id}`"
    )
    if done.left:
        click.echo(f"of the cluster are left, without a partition, and can be deleted: {', '.join(done.left)}")
