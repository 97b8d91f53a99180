"""Where a command takes a password from: a file, standard input, or a person who types it. Never from the command line,
which everybody on the machine can read (`ps`), and a shell writes down.

A password is one line: what stands in front of the first line end. Nothing else is taken away from it.
"""

import stat
import sys
from pathlib import Path
from typing import Final

import click

from odradek.client.commands.failures import USAGE, CommandFailed
from odradek.client.commands.warnings import warn

__all__ = ["password_of"]

STANDARD: Final = "-"
OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def password_of(user: str, file: str | None) -> str:
    """The password for a user. `file`: "-" is standard input; None: a terminal, or else standard input.

    Raises CommandFailed, which never quotes what was read.
    """
    if file is not None and file != STANDARD:
        return _line_of(_read(file), file)
    if file is None and sys.stdin.isatty():
        typed: str = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
        return typed
    try:
        return _line_of(sys.stdin.readline(), "standard input")
    except UnicodeDecodeError:
        raise CommandFailed("Standard input is no text: no password can be read from it.", USAGE) from None


def _read(file: str) -> str:
    path = Path(file)
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & OTHERS:
            warn(f"{file} has mode {stat.S_IMODE(mode):04o}: others may read the password in it; chmod 600 {file}")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandFailed(f"{file} is no text in UTF-8: no password can be read from it.", USAGE) from None
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}.", USAGE) from error


def _line_of(text: str, place: str) -> str:
    first = text.partition("\n")[0]
    if not first:
        raise CommandFailed(f"The first line of {place} is empty: it has to be the password.", USAGE)
    return first
