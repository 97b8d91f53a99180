"""`odradek cluster backup`, `restore` and `rebuild`: the command lines.

What they run is imported when they run, so that `--help` answers at once.
"""

import os
import sys
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from odradek.broker.cluster.backup import Backup
    from odradek.broker.cluster.store import MetadataStore
    from odradek.broker.disk.disk import Disk

EXIT_CODES_HELP: Final = "Exit codes: 0 done, 1 refused, 2 wrong command line."
STANDARD: Final = "-"
T = TypeVar("T")


class Place(NamedTuple):
    """A store by its address, and the broker's options for it."""

    disk: "Disk"
    address: str
    options: Mapping[str, str]


def _with_store_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds `--config` and `--set`: certificates and the user for a store on etcd stand there."""
    for option in (
        click.option("--set", "assignments", multiple=True, metavar="NAME=VALUE", help="One of them; wins."),
        click.option(
            "--config", "config_file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
            help="A broker's options, of which those for a store on etcd count.",
        ),
        click.option("--metadata", "address", metavar="ADDRESS", help="Instead: the store, as metadata.store has it."),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command(epilog=EXIT_CODES_HELP)
@click.argument("file", metavar="FILE")
@click.option(
    "--data-dir", metavar="DIR", help="The directory in which metadata.log is. A broker may be running on it."
)
@_with_store_options
@click.option("--with-secrets", is_flag=True, help="Also the credentials of users, and options that are passwords.")
def backup(
    file: str,
    data_dir: str | None,
    address: str | None,
    config_file: str | None,
    assignments: tuple[str, ...],
    with_secrets: bool,
) -> None:
    """Save the metadata of a cluster to a file.

    Topics, replicas, options and ids as of one moment, as JSON lines; no records, and no secrets unless they are asked
    for: then FILE is for its owner alone. It is written whole, or "-" for standard output.
    """
    from odradek.broker.cluster.backup import encode_backup
    from odradek.broker.disk.file_disk import FileDisk
    from odradek.broker.disk.open_files import for_owner_alone
    from odradek.broker.offline.rescue.directory import backup_of_directory
    from odradek.runtime.environment import Environment

    disk, place = FileDisk(), _one_of(data_dir, address)
    if file != STANDARD and os.path.exists(file) and not os.path.isfile(file):
        raise click.ClickException(
            f"{file} is there and is no regular file, and a backup would take its place: give another name, or - for "
            f"standard output and send that to it"
        )
    now = _utc(Environment.now_ns())
    with _refusals(place):
        if address is not None:
            taken = _saved(_place(disk, address, config_file, assignments), now, with_secrets=with_secrets)
        else:
            taken = backup_of_directory(disk, place, now, with_secrets=with_secrets)
        data = encode_backup(taken)
        if file == STANDARD:
            sys.stdout.buffer.write(data)
        elif with_secrets:
            with for_owner_alone():
                disk.write_whole(file, data)
        else:
            disk.write_whole(file, data)
    if taken.left_out:
        click.echo(f"{len(taken.left_out)} secret(s) left out, which --with-secrets keeps", err=True)
    click.echo(
        f"{len(taken.values)} keys of cluster {taken.cluster_id} at revision {taken.revision}, {len(data)} bytes",
        err=file == STANDARD,
    )


@click.command(epilog=EXIT_CODES_HELP)
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--data-dir", metavar="DIR", help="The directory that shall have it: one without metadata.")
@_with_store_options
@click.option(
    "--revision-at-least", type=click.IntRange(0), default=0, metavar="N",
    help="The largest revision in the metadata.revision of the brokers, to be above it.",
)  # fmt: skip
@click.option("--clear", "clears", is_flag=True, help="Remove what an interrupted restore has left in the store.")
def restore(
    file: str | None,
    data_dir: str | None,
    address: str | None,
    config_file: str | None,
    assignments: tuple[str, ...],
    revision_at_least: int,
    clears: bool,
) -> None:
    """Bring the metadata of a cluster back from a file.

    What was changed since the backup is not in it: partitions that were created since are put aside by the next start,
    and in-sync sets are those of then. Where the data directories are at hand, `rebuild --backup FILE` knows better.

    A restore into a store that was interrupted is gone on with when it is given again. Until it has ended no broker
    takes the store.
    """
    from odradek.broker.disk.file_disk import FileDisk
    from odradek.broker.offline.rescue.directory import restore_directory

    disk, place = FileDisk(), _one_of(data_dir, address)
    if clears:
        if file is not None or address is None:
            raise click.UsageError("--clear takes --metadata, and neither FILE nor --data-dir")
        with _refusals(place):
            click.echo(f"removed {_cleared(_place(disk, address, config_file, assignments))} key(s)")
        return
    if file is None:
        raise click.UsageError("give FILE, or --clear")
    with _refusals(place):
        found = _read(disk, file)
        if address is not None:
            revision = _restored(_place(disk, address, config_file, assignments), found, revision_at_least)
        else:
            revision = restore_directory(disk, place, found, revision_at_least=revision_at_least)
    click.echo(
        f"restored {len(found.values)} keys of cluster {found.cluster_id}, as of {found.time} and revision "
        f"{found.revision}; the metadata goes on at revision {revision}"
    )
    _tell_of_missing(found)


@click.command(epilog=EXIT_CODES_HELP)
@click.argument("data_dirs", metavar="DIR...", nargs=-1, required=True)
@click.option(
    "--into", metavar="DIR", help="Which one shall have the metadata, of these or another. Needed if there are several."
)
@_with_store_options
@click.option(
    "--backup", "backup_file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
    help="A backup, for the options that no directory has.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would be found and what not; change nothing.")
def rebuild(
    data_dirs: tuple[str, ...],
    into: str | None,
    address: str | None,
    config_file: str | None,
    assignments: tuple[str, ...],
    backup_file: str | None,
    dry_run: bool,
) -> None:
    """Rebuild lost metadata from the data directories of all brokers.

    The brokers must be stopped. Of each partition the replica leads whose log goes farthest in the newest leader epoch;
    those that agree with it are in sync. What cannot be known from the directories is said. Look at --dry-run first.
    """
    from odradek.broker.disk.descriptor_limits import raise_descriptor_limit
    from odradek.broker.disk.file_disk import FileDisk
    from odradek.broker.offline.rescue import rebuilding
    from odradek.broker.offline.rescue.plan import as_backup
    from odradek.broker.offline.rescue.report import report

    unique = list(dict.fromkeys(data_dirs))
    if address is not None and into is not None:
        raise click.UsageError("--metadata stands in place of --into")
    if address is None and into is None and len(unique) > 1:
        raise click.UsageError("--into says which directory shall have the metadata: give it, or --metadata")
    place = address or into or unique[0]
    raise_descriptor_limit()
    disk = FileDisk()
    with _refusals(place):
        known = None if backup_file is None else _read(disk, backup_file)
        if address is None:
            plan = rebuilding.rebuild(disk, unique, place, backup=known, is_dry_run=dry_run)
        else:
            store = _place(disk, address, config_file, assignments)
            plan = rebuilding.rebuild_with(
                disk,
                unique,
                None if dry_run else lambda plan: _restored(store, as_backup(plan), plan.revision),
                backup=known,
            )
    for line in report(plan, place, is_dry_run=dry_run):
        click.echo(line)


def _one_of(data_dir: str | None, address: str | None) -> str:
    """Where the metadata is. Raises UsageError."""
    if (data_dir is None) == (address is None):
        raise click.UsageError("give --data-dir or --metadata, and one of them only")
    return data_dir if data_dir is not None else str(address)


def _place(disk: "Disk", address: str, config_file: str | None, assignments: tuple[str, ...]) -> Place:
    """Raises ConfigError, OSError."""
    from odradek.broker.config.static_options import Sources, load_static

    text = None if config_file is None else disk.read_whole(config_file).decode("utf-8", "replace")
    return Place(disk, address, load_static(text, assignments, sources=Sources(os.environ, disk.read_whole)))


def _saved(place: Place, now: str, *, with_secrets: bool) -> "Backup":
    from odradek.broker.cluster.backup import take_backup

    async def save(store: "MetadataStore") -> "Backup":
        return take_backup(await store.read("/"), now, with_secrets=with_secrets)

    return _with_store(place, save)


def _restored(place: Place, backup: "Backup", revision_at_least: int) -> int:
    from odradek.broker.offline.rescue.restoring import restore

    return _with_store(place, partial(restore, backup=backup, revision_at_least=revision_at_least)).revision


def _cleared(place: Place) -> int:
    from odradek.broker.offline.rescue.restoring import clear

    return _with_store(place, clear)


def _with_store(place: Place, work: "Callable[[MetadataStore], Coroutine[Any, Any, T]]") -> T:
    """Raises what `opened` and the work do."""
    import asyncio

    from odradek.broker.offline.rescue.stores import opened
    from odradek.runtime.environment import loop_factory

    async def run() -> T:
        async with opened(place.address, place.disk, place.options) as store:
            return await work(store)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(run())


def _tell_of_missing(backup: "Backup") -> None:
    from odradek.broker.cluster.secret_values import told_of

    for sentence in told_of(backup.left_out):
        click.echo(sentence, err=True)


def _read(disk: "Disk", file: str) -> "Backup":
    """Raises ClickException, OSError."""
    from odradek.broker.cluster.backup import BadBackup, decode_backup

    try:
        return decode_backup(disk.read_whole(file))
    except BadBackup as error:
        raise click.ClickException(f"{file} is no backup to be used: {error}") from error


@contextmanager
def _refusals(place: str) -> Generator[None]:
    """One sentence instead of a trace."""
    from odradek.broker.cluster.keys import MalformedMetadata
    from odradek.broker.config.option import ConfigError
    from odradek.broker.offline.adopt.claim import DirectoryRefused
    from odradek.broker.offline.rescue.restoring import RestoreInterrupted, RestoreRefused

    try:
        yield
    except (ConfigError, DirectoryRefused, MalformedMetadata, RestoreInterrupted, RestoreRefused) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:  # the disk, at some step: the text names the file
        raise click.ClickException(f"{place}: {error}") from error


def _utc(now_ns: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(now_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
