"""The front door: its commands exist, are told of in their own words, and are imported when called, not before.

That `--help` answers at once is shown by counting what is imported, which does not depend on the machine as times do.
"""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from odradek.cli import COMMANDS, main
from odradek.client.commands.failures import NO_ANSWER

REPOSITORY = Path(__file__).resolve().parents[2]
MODULES_MAX = 130
"""More than what click takes (85) and a command (12), less than asyncio would add."""
DOOR = re.compile(
    r"odradek\.broker(\.launch(\.(\w+_command|log_level_option))?|\.offline(\.(adopt|dump|rescue|take)(\.command)?)?)?"
)
"""Modules of the broker with commands and their options alone, and the packages they are in, which import nothing."""
HEAVY = re.compile(
    r"(asyncio|ssl|uvloop|cramjam|crc32c|prometheus_client|logging|odradek\.broker|odradek\.protocol)(\..*)?"
)

COUNT = """
import contextlib, io, sys
before = set(sys.modules)
from odradek.cli import main
with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
    main(sys.argv[1:], prog_name="odradek")
assert "Usage: odradek" in printed.getvalue()
sys.stdout.write("\\n".join(set(sys.modules) - before))
"""


def run_by_shell(redirections: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = f'"$0" -m odradek "$@" {redirections}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_streams_may_be_missing(closed: str) -> None:
    """The event loop took their numbers for its own descriptors, and uvloop aborted the process."""
    done = run_by_shell(closed, "topics", "list", "--bootstrap-server", "127.0.0.1:1", "--timeout", "0.2")
    assert done.returncode == NO_ANSWER
    assert done.stdout == ""
    assert ("Error: " in done.stderr) == ("2>" not in closed)


def imported_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.split("\n"))


def commands() -> list[tuple[str, ...]]:
    """Every command but `serve`, with those of groups."""
    found: list[tuple[str, ...]] = [()]
    for name, (load, _) in COMMANDS.items():
        command = load()
        if name == "serve":
            continue
        found.append((name,))
        if isinstance(command, click.Group):
            found += [(name, each) for each in command.commands]
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_help_imports_next_to_nothing(command: tuple[str, ...]) -> None:
    modules = imported_by(*command, "--help")
    assert "click" in modules
    assert [name for name in sorted(modules) if HEAVY.fullmatch(name) and not DOOR.fullmatch(name)] == []
    assert len(modules) <= MODULES_MAX


def test_the_list_of_commands_tells_of_each_in_its_own_words() -> None:
    printed = CliRunner().invoke(main, ["--help"], prog_name="odradek").output
    for name, (load, summary) in COMMANDS.items():
        command = load()
        assert command.name == name
        assert command.get_short_help_str(limit=100) == summary
        assert re.search(rf"^  {name} +{re.escape(summary)}$", printed, re.MULTILINE)


def test_a_command_that_does_not_exist_is_told_with_the_nearest() -> None:
    done = CliRunner().invoke(main, ["topic"], prog_name="odradek")
    assert done.exit_code == 2
    assert "No such command 'topic'" in done.output
    assert "topics" in done.output


def test_the_version_is_printed() -> None:
    done = CliRunner().invoke(main, ["--version"], prog_name="odradek")
    assert done.exit_code == 0
    assert re.fullmatch(r"odradek, version \d+\.\d+\.\d+\S*\n", done.output)


@pytest.mark.parametrize("command", commands()[1:], ids=" ".join)
def test_every_command_has_a_help_for_every_option_and_says_how_it_ends(command: tuple[str, ...]) -> None:
    found: click.Command = main
    for name in command:
        assert isinstance(found, click.Group)
        found = found.commands[name]
    assert found.help
    assert found.help.partition("\n")[0].endswith((".", ","))
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{parameter.opts} of {' '.join(command)}"
    assert "Exit codes: 0 done" in (found.epilog or "")


def test_commands_can_be_added_and_taken_away_like_any_groups() -> None:
    shelf = main.commands
    shelf["extra"] = click.Command("extra")
    try:
        assert CliRunner().invoke(main, ["extra", "--help"]).exit_code == 0
        assert len(shelf) == len(COMMANDS) + 1
    finally:
        del shelf["extra"]
    assert list(shelf) == list(COMMANDS)
