"""Lines are written whole and in order, in pieces that do not pile up; counts are told in words, and a file that goes
away while it is printed does not end the rest.
"""

import os
from pathlib import Path

import pytest

from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.lines import Line
from odradek.broker.offline.dump.partition_check import Report
from odradek.broker.offline.dump.places import files_of
from odradek.broker.offline.dump.printing import Output, Printer, say_checked, say_inconsistency
from odradek.broker.offline.dump.verifying import FileReport
from tests.broker.offline.dump.damages import FIRST
from tests.broker.offline.dump.laid_down import DATA_DIR, ORDERS, sample_disk


class Pipe:
    """What was written to it."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def output(self, *, as_json: bool = False) -> Output:
        return Output(self.writer, as_json=as_json)

    def taken(self) -> list[str]:
        os.close(self.writer)
        with os.fdopen(self.reader, "rb") as stream:
            return stream.read().decode().splitlines()


def told(checked: Report | FileReport | Note, *, as_json: bool = False) -> list[str]:
    pipe = Pipe()
    say_checked(pipe.output(as_json=as_json), checked)
    return pipe.taken()


def test_lines_stand_below_the_path_of_their_file() -> None:
    pipe = Pipe()
    output = pipe.output()
    output.print("a", Line("batch", {"n": 1}))
    output.print("a", Line("record", {"n": 2}))
    output.print("b", Line("batch", {"n": 3}))
    output.begin("c\udcff")
    output.begin("c\udcff")
    output.flush()
    assert pipe.taken() == ["a", "  batch n=1", "    record n=2", "b", "  batch n=3", "c\ufffd"]


def test_what_waits_is_written_before_it_piles_up(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with path.open("wb") as file:
        output = Output(file.fileno(), as_json=True)
        for _ in range(60):
            output.print("a", Line("batch", {"text": "x" * 1000}))
        assert path.stat().st_size == 0
        for _ in range(60):
            output.print("a", Line("batch", {"text": "x" * 1000}))
        assert 64_000 < path.stat().st_size < 120_000
        output.flush()
    assert len(path.read_text().splitlines()) == 120


def test_nobody_reads_any_more() -> None:
    pipe = Pipe()
    os.close(pipe.reader)
    output = pipe.output()
    output.write("text")
    with pytest.raises(BrokenPipeError):
        output.flush()
    output.flush()  # nothing is left that would be written
    os.close(pipe.writer)


def test_counts_are_told_in_words() -> None:
    assert told(Report("p", first_offset=3, end_offset=4, segments=1, batches=1, records=1, gaps=1)) == [
        "p: ok, 1 segment, offsets 3 to 3, 1 batch, 1 record, 1 gap"
    ]
    several = Report("p", b"", 0, 9, 2, 2, 2, 2, 2, 2, 2, 2, 2)
    assert told(several) == [
        "p: ok, 2 segments, offsets 0 to 8, 2 batches, 2 records, 2 index entries, 2 time index entries, "
        "2 aborted transactions, 2 snapshots, 2 leader epochs, 2 gaps"
    ]
    assert told(Report("p", end_offset=7, first_offset=7)) == ["p: ok, 0 segments, nothing before offset 7"]
    assert told(FileReport("f", batches=1)) == ["f: ok, 1 batch"]
    assert told(FileReport("f", entries=2)) == ["f: ok, 2 entries"]


def test_notes_come_before_what_they_are_about() -> None:
    report = Report("p", notes=[Note("p/a", "one"), Note("p/b", "two")])
    assert [line.partition(" ")[0] for line in told(report)] == ["p/a:", "p/b:", "p:"]
    assert told(Note("p/a", "one"), as_json=True) == ['{"file": "p/a", "kind": "note", "text": "one"}']
    assert told(Report("p"), as_json=True)[0].startswith('{"file": "p", "kind": "partition", "topic_id": null, ')


def test_an_inconsistency_has_its_place() -> None:
    pipe = Pipe()
    say_inconsistency(pipe.output(as_json=True), Inconsistency("p/a", "wrong", position=7, offset=9))
    expected = '{"file": "p/a", "kind": "inconsistency", "position": 7, "line": null, "offset": 9, "text": "wrong"}'
    assert pipe.taken() == [expected]


class ForgettingDisk(MemoryDisk):
    """From which an index goes when the log before it was read."""

    is_forgetting = False

    def read_range(self, path: str, position: int, size_bytes: int) -> bytes:
        data = super().read_range(path, position, size_bytes)
        if self.is_forgetting and path == f"{FIRST}.log" and self.exists(f"{FIRST}.index"):
            self.remove(f"{FIRST}.index")
        return data


def test_a_file_that_went_away_is_told() -> None:
    intact, disk = sample_disk(), ForgettingDisk()
    for directory in (DATA_DIR, ORDERS):
        disk.make_dir(directory)
        for name in intact.sizes(directory):
            disk.write_whole(f"{directory}/{name}", intact.read_whole(f"{directory}/{name}"))
    disk.is_forgetting = True
    pipe = Pipe()
    output = pipe.output()
    printer = Printer(disk, output, with_records=False, records_max=None)
    assert printer.print_files(files_of(disk, ORDERS))
    output.flush()
    lines = pipe.taken()
    assert lines[lines.index(f"{FIRST}.index") + 1] == "  gone"
    assert f"{FIRST}.timeindex" in lines
    assert printer.damages == 0
