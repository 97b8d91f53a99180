"""What is printed: tables aligned for people and separated for programs, JSON, and the end of the pipe."""

import io
import json
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.commands.failures import OutputClosed
from odradek.client.commands.output import Cell, aligned, print_json, print_line, print_table, separated

COLUMNS = ("NAME", "SIZE", "INTERNAL")
ROWS: list[tuple[Cell, ...]] = [("orders", 12, True), ("x", 1234, False), ("a\tb", None, None)]


def test_a_table_is_aligned_with_numbers_to_the_right() -> None:
    assert aligned(COLUMNS, ROWS) == (
        "NAME    SIZE  INTERNAL\n"
        "orders    12  yes\n"
        "x       1234  no\n"
        "a\\tb       -  -\n"
    )  # fmt: skip


def test_a_table_without_rows_is_its_header() -> None:
    assert aligned(COLUMNS, []) == "NAME  SIZE  INTERNAL\n"


def test_programs_get_tabs_and_no_header() -> None:
    assert separated(ROWS) == "orders\t12\tyes\nx\t1234\tno\na\\tb\t-\t-\n"
    assert separated([]) == ""


@given(st.lists(st.tuples(st.text(), st.one_of(st.none(), st.integers())), max_size=5))
def test_any_values_are_one_line_a_row_and_one_tab_between_columns(rows: list[tuple[str, int | None]]) -> None:
    lines = separated(rows).split("\n")
    assert [line.count("\t") for line in lines] == [1] * len(rows) + [0]
    assert not any("\r" in line for line in lines)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, expected in ((Terminal(), aligned(COLUMNS, ROWS)), (io.StringIO(), separated(ROWS))):
        monkeypatch.setattr(sys, "stdout", stream)
        print_table(COLUMNS, iter(ROWS))
        assert stream.getvalue() == expected


def test_json_keeps_letters_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"name": "größe", "parts": [1, None, True]}
    print_json(value)
    printed = capsys.readouterr().out
    assert json.loads(printed) == value
    assert "größe" in printed
    assert printed.endswith("}\n")


def test_a_pipe_that_nobody_reads_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = io.TextIOWrapper(io.FileIO(writing, "wb", closefd=False), write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    try:
        with pytest.raises(OutputClosed):
            print_line("nobody")
    finally:
        monkeypatch.undo()
        os.close(writing)
