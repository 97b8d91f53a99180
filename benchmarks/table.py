"""Figures as a Markdown table that reads as well in a terminal: columns are padded, numbers end at one edge."""

from collections.abc import Sequence
from unicodedata import combining

from benchmarks.figures import Figure, Summary


def figure_table(figures: Sequence[Figure], ours: str, theirs: str, *, is_preliminary: bool = False) -> str:
    """The result: a row a figure, with the medians, the spread in brackets, the ratio and whether its bar is met.

    Where the measurement was disturbed there is no such verdict, for that may favour either of the two.
    """
    head = ["figure", ours, theirs, "ratio", "bar", ""]
    return markdown(head, [_row(figure, is_preliminary) for figure in figures])


def _row(figure: Figure, is_preliminary: bool) -> list[str]:
    verdict = "" if figure.bar is None else "open" if is_preliminary else "met" if figure.is_met else "MISSED"
    return [
        f"{figure.name}, {figure.unit}",
        _cell(figure.ours, figure.digits),
        _cell(figure.theirs, figure.digits),
        f"{figure.ratio:.3g}",
        "" if figure.bar is None else str(figure.bar),
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
