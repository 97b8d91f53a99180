"""Prints files and what verifying found, line by line, to a descriptor.

The descriptor is written to without a buffer of Python's in between: nothing is left in one when who reads goes away,
as `head` does, and BrokenPipeError comes from here alone.
"""

import io
from collections.abc import Iterable

from odradek.broker.disk.disk import Disk
from odradek.broker.offline.dump.findings import Inconsistency, Note
from odradek.broker.offline.dump.lines import Line, Value, json_of, printable_path, text_of
from odradek.broker.offline.dump.names import Name
from odradek.broker.offline.dump.partition_check import Report
from odradek.broker.offline.dump.reading import DAMAGE, RECORDS, lines_of
from odradek.broker.offline.dump.verifying import FileReport
from odradek.protocol.primitives import uuid_text

_FLUSH_BYTES = 64 * 1024


class Output:
    """Where lines go, each about a file."""

    def __init__(self, descriptor: int, *, as_json: bool) -> None:
        self._file = io.FileIO(descriptor, "wb", closefd=False)
        self._as_json = as_json
        self._waiting = bytearray()
        self._path: str | None = None

    def print(self, path: str, line: Line) -> None:
        """Prints a line about the file at `path`; in text a heading says which it is. Raises OSError."""
        if self._as_json:
            self.write(json_of(line, path))
            return
        self.begin(path)
        self.write(f"{'    ' if line.kind in RECORDS else '  '}{text_of(line)}")

    def begin(self, path: str) -> None:
        """The next lines are about this file."""
        if path != self._path and not self._as_json:
            self._path = path
            self.write(printable_path(path))

    def say(self, path: str, sentence: str, line: Line) -> None:
        """Prints a sentence about a path, or instead of it a JSON object, at once. Raises OSError."""
        self.write(json_of(line, path) if self._as_json else f"{printable_path(path)}: {sentence}")
        self.flush()

    def write(self, text: str) -> None:
        self._waiting += text.encode() + b"\n"
        if len(self._waiting) >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Raises OSError."""
        waiting, self._waiting = memoryview(bytes(self._waiting)), bytearray()
        while waiting:
            waiting = waiting[self._file.write(waiting) or 0 :]


class Printer:
    """Prints the content of files; stops behind so many records."""

    def __init__(self, disk: Disk, output: Output, *, with_records: bool, records_max: int | None) -> None:
        self._disk = disk
        self._output = output
        self._with_records = with_records
        self._left = records_max
        self.damages = 0
        """How many places were found where a file is not what it should be."""

    def print_files(self, files: Iterable[tuple[str, Name]]) -> bool:
        """Returns whether more records may follow. Raises OSError."""
        for path, name in files:
            self._output.begin(path)
            try:
                if not self._print(path, lines_of(self._disk, path, name, with_records=self._with_records)):
                    return False
            except FileNotFoundError:
                if self._disk.exists(path):
                    raise
                self._output.print(path, Line("gone", {}))  # as a running broker deletes old segments
        return True

    def _print(self, path: str, lines: Iterable[Line]) -> bool:
        for line in lines:
            self._output.print(path, line)
            if line.kind == DAMAGE or line.fields.get("is_crc_valid") is False:
                self.damages += 1
            if self._left is not None and line.kind in RECORDS:
                self._left -= 1
                if not self._left:
                    return False
        return True


def say_checked(output: Output, checked: Report | FileReport | Note) -> None:
    """Says what was verified, or a note. Raises OSError."""
    match checked:
        case Note():
            output.say(checked.path, f"note: {checked.text}", Line("note", {"text": checked.text}))
        case FileReport():
            fields: dict[str, Value] = {"batches": checked.batches, "entries": checked.entries}
            found = [_counted(number, what) for what, number in _file_counts(checked) if number]
            output.say(checked.path, ", ".join(["ok", *found]), Line("file", fields))
        case Report():
            for note in checked.notes:
                say_checked(output, note)
            output.say(checked.path, _sentence(checked), Line("partition", _fields(checked)))


def say_inconsistency(output: Output, found: Inconsistency) -> None:
    """Says what was found as a JSON object. Raises OSError."""
    fields: dict[str, Value] = {
        "position": found.position,
        "line": found.line,
        "offset": found.offset,
        "text": found.text,
    }
    output.say(found.path, found.text, Line("inconsistency", fields))


def _file_counts(report: FileReport) -> list[tuple[str, int]]:
    return [("batch", report.batches), ("entry", report.entries)]


def _sentence(report: Report) -> str:
    if report.first_offset == report.end_offset:
        offsets = f"nothing before offset {report.end_offset}"
    else:
        offsets = f"offsets {report.first_offset} to {report.end_offset - 1}"
    counts = [
        (report.batches, "batch"),
        (report.records, "record"),
        (report.offset_entries, "index entry"),
        (report.time_entries, "time index entry"),
        (report.aborted_transactions, "aborted transaction"),
        (report.snapshots, "snapshot"),
        (report.leader_epochs, "leader epoch"),
        (report.gaps, "gap"),
    ]
    found = [_counted(number, what) for number, what in counts if number]
    return ", ".join(["ok", _counted(report.segments, "segment"), offsets, *found])


def _counted(number: int, what: str) -> str:
    if number == 1:
        return f"1 {what}"
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}es" if what == "batch" else f"{what}s"
    return f"{number} {plural}"


def _fields(report: Report) -> dict[str, Value]:
    return {
        "topic_id": uuid_text(report.topic_id) if report.topic_id else None,
        "first_offset": report.first_offset,
        "end_offset": report.end_offset,
        "segments": report.segments,
        "batches": report.batches,
        "records": report.records,
        "gaps": report.gaps,
        "offset_entries": report.offset_entries,
        "time_entries": report.time_entries,
        "aborted_transactions": report.aborted_transactions,
        "snapshots": report.snapshots,
        "leader_epochs": report.leader_epochs,
    }
