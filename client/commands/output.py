"""What a command prints: a table for people, lines for programs, or JSON.

On a terminal a table has a header and aligned columns, numbers to the right. Otherwise, as for `cut`, `awk` and
`while read`, there is no header and a tab between the columns; a tab or line end inside of a value is written as \\t or
\\n. With `--json` it is one JSON value with names, whether on a terminal or not: that is the form that stays the same.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from odradek.client.commands.failures import OutputClosed

__all__ = ["Cell", "aligned", "print_json", "print_line", "print_table", "separated"]

Cell = str | int | bool | None

GAP: Final = "  "
NOTHING: Final = "-"
"""Stands where there is no value."""
_ESCAPES: Final = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Prints rows in the form that standard output calls for. Raises OutputClosed."""
    if sys.stdout.isatty():
        _write(aligned(columns, list(rows)))
    else:
        _write(separated(rows))


def print_json(value: object) -> None:
    """Prints one JSON value. Raises OutputClosed."""
    _write(f"{json.dumps(value, indent=2, ensure_ascii=False)}\n")


def print_line(text: str) -> None:
    """Prints a line. Raises OutputClosed."""
    _write(f"{text}\n")


def aligned(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table for people. A column of nothing but numbers stands to the right."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(line[index]) for line in [columns, *cells]) for index in range(len(columns))]
    numeric = [
        bool(rows) and all(row[index] is None or type(row[index]) is int for row in rows)
        for index in range(len(columns))
    ]
    lines: list[str] = []
    for line in [columns, *cells]:
        padded = [
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ]
        lines.append(f"{GAP.join(padded).rstrip()}\n")
    return "".join(lines)


def separated(rows: Iterable[Sequence[Cell]]) -> str:
    """Lines for programs: columns with a tab between them."""
    return "".join("\t".join(_text(cell) for cell in row) + "\n" for row in rows)


def _text(cell: Cell) -> str:
    match cell:
        case None:
            return NOTHING
        case bool():
            return "yes" if cell else "no"
        case int():
            return str(cell)
        case str():
            return cell.translate(_ESCAPES)


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise OutputClosed from None
