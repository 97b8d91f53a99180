"""`odradek secure`: init, check. What they run is imported when it runs, so that `--help` answers at once."""

from typing import TYPE_CHECKING, Final

import click

from odradek.client.commands.failures import EXIT_CODES_HELP, NO_ANSWER, USAGE, CommandFailed
from odradek.client.commands.options import FiniteRange, json_option
from odradek.client.commands.output import print_json, print_line

if TYPE_CHECKING:
    from odradek.secure.findings import Finding
    from odradek.secure.listener_facts import ListenerFacts
    from odradek.secure.plan import Plan

DIRECTORY: Final = "odradek-secure"
LISTEN: Final = "0.0.0.0:9093"
DAYS: Final = 365
DAYS_MAX: Final = 3650
TIMEOUT_S: Final = 10.0
WIDTH: Final = 18
STORE_OPTIONS: Final = "metadata."


@click.group(epilog=EXIT_CODES_HELP)
def secure() -> None:
    """Make a secure broker and its clients; check a listener."""


@secure.command("init", epilog=EXIT_CODES_HELP)
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="By which clients reach the broker; repeatable.")
@click.option("--clients", multiple=True, metavar="NAME,NAME…", help="A user for each of these; repeatable.")
@click.option(
    "--directory", metavar="DIR", default=DIRECTORY, show_default=True,
    help="Where all of it goes: a directory that is not there yet.",
)  # fmt: skip
@click.option("--listen", metavar="HOST:PORT", default=LISTEN, show_default=True, help="Where the broker accepts.")
@click.option("--data-dir", metavar="DIR", help="The broker's, without metadata. Default: data in --directory.")
@click.option(
    "--days", type=click.IntRange(1, DAYS_MAX), default=DAYS, show_default=True,
    help="How long the broker's certificate is valid.",
)  # fmt: skip
@click.option(
    "--config", "config_file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
    help="A broker's options for a store on etcd (metadata.…), in Kafka's properties form.",
)  # fmt: skip
def init(
    hosts: tuple[str, ...],
    clients: tuple[str, ...],
    directory: str,
    listen: str,
    data_dir: str | None,
    days: int,
    config_file: str | None,
) -> None:
    """Make an authority, a broker's certificate, users, ACLs, and the files of broker and clients.

    The broker runs with `odradek serve --config DIR/secure.properties`; what each client needs lies in DIR/clients.
    Nothing is overwritten. All files are for their owner alone: they hold keys and passwords.
    """
    from odradek.client.commands.running import run

    async def main() -> None:
        from odradek.broker.offline.adopt.claim import DirectoryRefused
        from odradek.runtime.environment import Environment
        from odradek.secure.first_contents import StoreRefused
        from odradek.secure.initialisation import initialise
        from odradek.secure.new_directory import DirectoryExists
        from odradek.secure.plan import PlanRefused

        try:
            plan = _plan(hosts, clients, directory, listen, data_dir, days, config_file)
            lines = await initialise(plan, Environment())
        except PlanRefused as error:
            raise CommandFailed(f"{error}.", USAGE) from error
        except (DirectoryExists, DirectoryRefused, StoreRefused) as error:
            raise CommandFailed(f"{error}.") from error
        for line in lines:
            print_line(line)

    run(main)


@secure.command("check", epilog=EXIT_CODES_HELP)
@click.argument("address", metavar="[HOST:PORT]", required=False)
@click.option(
    "--ca", "authority", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
    help="The authorities (PEM) that clients trust. Default: those of the system.",
)  # fmt: skip
@click.option(
    "--config", "config_file", type=click.Path(exists=True, dir_okay=False), metavar="FILE",
    help="A broker's configuration, to be looked at with the files that it names.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", type=FiniteRange(0.001, 86_400.0), metavar="SECONDS", default=TIMEOUT_S,
    show_default=True, help="How long to wait for each answer.",
)  # fmt: skip
@json_option
def check(address: str | None, authority: str | None, config_file: str | None, timeout_s: float, as_json: bool) -> None:
    """Show what a listener offers to a stranger, and what of that is weak.

    Versions and ciphers of TLS, its certificate, whether clients need one, mechanisms of SASL, and what is answered
    before anybody has logged in. The exit code is 1 if anything is weak.
    """
    if address is None and config_file is None:
        raise click.UsageError("what is to be checked? give HOST:PORT, or --config")
    from odradek.client.commands.running import run

    run(lambda: _check(address, authority, config_file, timeout_s, as_json=as_json))


async def _check(
    address: str | None, authority: str | None, config_file: str | None, timeout_s: float, *, as_json: bool
) -> None:
    from odradek.runtime.environment import Environment
    from odradek.secure.findings import Level, judged, offered, offered_json

    now_ms = Environment().now_ms()
    findings = [] if config_file is None else _of_config(config_file)
    told: dict[str, object] = {"config": config_file}
    if address is not None:
        facts = await _looked_at(address, authority, timeout_s)
        its = judged(facts, now_ms)
        findings = [*its, *findings]
        told |= offered_json(facts, findings, now_ms)
        for name, text in () if as_json else offered(facts, now_ms):
            print_line(f"{name:{WIDTH}}  {text}")
    if as_json:
        findings_json = [{"level": finding.level.value, "what": finding.what} for finding in findings]
        print_json({**told, "findings": findings_json})
    else:
        for finding in findings:
            print_line(f"{finding.level.value}: {finding.what}")
    if weak := sum(finding.level is Level.WEAK for finding in findings):
        raise CommandFailed(f"{weak} weak point(s).")


async def _looked_at(address: str, authority: str | None, timeout_s: float) -> "ListenerFacts":
    """Raises CommandFailed."""
    from odradek.broker.launch.listen_options import ListenerError, parse_address
    from odradek.secure.probes import NothingThere, look_at
    from odradek.secure.tls_contexts import trusting

    try:
        listener = parse_address(address, "the address")
    except ListenerError as error:
        raise CommandFailed(f"{error}.", USAGE) from error
    try:
        context = trusting(authority)
    except OSError as error:
        raise CommandFailed(f"{authority} holds no certificates as PEM: {error.strerror or error}.", USAGE) from error
    try:
        return await look_at(listener.host, listener.port, context, timeout_s)
    except NothingThere as error:
        raise CommandFailed(f"{error}.", NO_ANSWER) from error


def _of_config(config_file: str) -> "list[Finding]":
    """Raises CommandFailed."""
    from odradek.broker.config.option import ConfigError
    from odradek.secure.config_findings import config_findings

    try:
        return config_findings(config_file)
    except (ConfigError, ValueError) as error:
        raise CommandFailed(f"{config_file}: {error}.", USAGE) from error


def _plan(
    hosts: tuple[str, ...],
    clients: tuple[str, ...],
    directory: str,
    listen: str,
    data_dir: str | None,
    days: int,
    config_file: str | None,
) -> "Plan":
    """Raises PlanRefused, OSError."""
    import os

    from odradek.broker.launch.listen_options import ListenerError, parse_address
    from odradek.secure.plan import Plan, PlanRefused, checked_clients, checked_hosts

    try:
        listener = parse_address(listen, "--listen")
    except ListenerError as error:
        raise PlanRefused(str(error)) from error
    if listener.port == 0:
        raise PlanRefused("--listen with port 0 takes any free port, and clients have to know which one: name one")
    place = os.path.abspath(directory)
    return Plan(
        checked_hosts(hosts),
        checked_clients(clients),
        place,
        os.path.join(place, "data") if data_dir is None else os.path.abspath(data_dir),
        listener.host,
        listener.port,
        days,
        _store_options(config_file),
    )


def _store_options(config_file: str | None) -> tuple[tuple[str, str], ...]:
    """Raises PlanRefused for options of anything else than the store, OSError."""
    import os
    from pathlib import Path

    from odradek.runtime.properties import parse_properties
    from odradek.secure.plan import PlanRefused

    if config_file is None:
        return ()
    try:
        written = parse_properties(Path(config_file).read_text(encoding="utf-8"))
    except ValueError as error:
        raise PlanRefused(f"{config_file}: {error}") from error
    if others := [name for name in written if not name.startswith(STORE_OPTIONS)]:
        raise PlanRefused(f"{config_file} has {others[0]}, and here it is for metadata.store and its options alone")
    return tuple(
        (name, os.path.abspath(value) if name.endswith(".location") and value else value)
        for name, value in written.items()
    )
