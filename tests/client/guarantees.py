"""The table of delivery guarantees in docs/producer.md as data, and which test shows which of its cells.

    @shows("doubled", "yes", ACKS_1_RETRIES, ACKS_ALL_RETRIES)
    async def test_a_lost_answer_doubles(row: Row) -> None: ...

runs the test with each of these rows and notes in `CELLS` that it stands for their cells in that column. `Document`
reads what the page says, so that the two can be compared.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pytest

PAGE: Final = Path(__file__).parents[2] / "docs" / "producer.md"
COLUMNS: Final = ("lost", "doubled", "reordered")

Test = TypeVar("Test", bound=Callable[..., Any])


class Row(NamedTuple):
    """Settings, as the page writes them. `retries` "> 0": as many as come by default."""

    acks: str
    idempotence: str
    retries: str

    def __str__(self) -> str:
        return f"acks={self.acks}, idempotence={self.idempotence}, retries={self.retries}"

    @property
    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"acks": self.acks, "enable_idempotence": self.idempotence == "True"}
        return settings if self.retries == "> 0" else settings | {"retries": 0}


ACKS_0 = Row("0", "False", "0")
ACKS_0_RETRIES = Row("0", "False", "> 0")
ACKS_1 = Row("1", "False", "0")
ACKS_1_RETRIES = Row("1", "False", "> 0")
ACKS_ALL = Row("all", "False", "0")
ACKS_ALL_RETRIES = Row("all", "False", "> 0")
IDEMPOTENT = Row("all", "True", "> 0")

CELLS: dict[tuple[Row, str], tuple[str, str]] = {}
"""Row and column: the answer, and the name of the test that shows it."""


def shows(column: str, answer: str, *rows: Row) -> Callable[[Test], Test]:
    """See the module. `answer`: "yes" or "no"."""
    assert column in COLUMNS
    assert answer in ("yes", "no")

    def decorate(test: Test) -> Test:
        for row in rows:
            assert (row, column) not in CELLS, f"{row}: two tests for {column!r}"
            CELLS[row, column] = (answer, test.__name__)
        decorated: Test = pytest.mark.parametrize("row", rows, ids=str)(test)
        return decorated

    return decorate


class Document:
    """What the page says: `cells` like CELLS, `tests` all test functions that it names, with their files."""

    def __init__(self, text: str) -> None:
        tables = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
        rows = [[cell.strip().replace("`", "") for cell in row] for row in tables]
        self.tests = re.findall(r"\[`(test_\w+)`\]\(([^)]+)\)", text)
        names = dict(self.tests)
        self.letters: dict[str, str] = {}
        """The test that a letter stands for."""
        for row in rows:
            if len(row[0]) == 1 and (named := re.search(r"test_\w+", row[-1])) and named[0] in names:
                self.letters[row[0]] = named[0]
        self.cells: dict[tuple[Row, str], tuple[str, str]] = {}
        for acks, idempotence, retries, *cells in (row for row in rows if len(row) == 3 + len(COLUMNS)):
            if idempotence in ("True", "False"):
                for column, cell in zip(COLUMNS, cells, strict=True):
                    answer, letter = re.split(r"\W", cell)[0], cell[-2:-1]
                    self.cells[Row(acks, idempotence, retries), column] = (answer, self.letters.get(letter, "no test"))
