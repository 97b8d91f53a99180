"""Figures as a Markdown table that reads as well in a terminal: columns are padded, numbers end at one edge."""

from collections.abc import Sequence
from unicodedata import combining

from benchmarks.figures.figures import Figure, Line, Summary


def figure_table(figures: Sequence[Line], ours: str, theirs: str, *, is_preliminary: bool = False) -> str:
    """The result: a row a line, with the medians, the spread in brackets, the ratio and whether its bar is met.

    A bar that bounds the median instead of a ratio bears the unit. Where the measurement was disturbed there is no
    verdict, for that may favour either of the two.
    """
    return markdown(head(ours, theirs), [row(figure, is_preliminary=is_preliminary) for figure in figures])


def head(ours: str, theirs: str) -> list[str]:
    return ["figure", ours, theirs, "ratio", "bar", ""]


def row(line: Line, *, is_preliminary: bool = False) -> list[str]:
    """A line of `figure_table`, cell by cell."""
    verdict = "" if line.bar is None else "open" if is_preliminary else "met" if line.is_met else "MISSED"
    ratio, bar = "", "" if line.bar is None else str(line.bar)
    if isinstance(line, Figure):
        ratio = f"{line.ratio:.3g}"
    elif bar:
        bar = f"{bar} {line.unit}".rstrip()
    return [
        f"{line.name}, {line.unit}" if line.unit else line.name,
        _cell(line.ours, line.digits),
        "" if line.theirs is None else _cell(line.theirs, line.digits),
        ratio,
        bar,
        verdict,
    ]


def _cell(summary: Summary, digits: int) -> str:
    lowest, highest = summary.spread
    return f"{summary.median:,.{digits}f} [{lowest:,.{digits}f}–{highest:,.{digits}f}]"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is aligned left and whose others are aligned right."""
    assert all(len(row) == len(head) for row in rows)
    widths = [max(3, *(_width(row[column]) for row in (head, *rows))) for column in range(len(head))]
    rule = [("-" * width if column == 0 else "-" * (width - 1) + ":") for column, width in enumerate(widths)]
    return "\n".join(_line(row, widths) for row in (head, rule, *rows))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell + " " * (width - _width(cell)) if column == 0 else " " * (width - _width(cell)) + cell
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def _width(text: str) -> int:
    return sum(not combining(character) for character in text)
