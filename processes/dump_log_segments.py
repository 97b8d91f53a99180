"""Runs Apache Kafka's DumpLogSegments over a partition's directory and judges what it prints.

The tool ends with 0 on corrupt batches, and its `--index-sanity-check` passes nonsense, so its output is read line by
line: whatever is not known to be harmless is a finding. On top of that come two things that the tool does not look at:
each batch's count against its offsets, and the step from one segment to the next.

Formats: org.apache.kafka.tools.DumpLogSegments of 4.3.1. That version starts to count at -1 in every file, so it calls
the first record of each segment but the first non-consecutive, in Apache Kafka's own logs too. This complaint alone
("-1 is followed by" the offset in the file's name) is passed over.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from processes.apache_kafka import run_tool

MAIN_CLASS = "org.apache.kafka.tools.DumpLogSegments"
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")

DUMPING = re.compile(r"Dumping (.+)")
BATCH = re.compile(
    r"baseOffset: (?P<base_offset>\d+) lastOffset: (?P<last_offset>\d+) count: (?P<count>\d+)"
    r" baseSequence: (?P<base_sequence>-?\d+) lastSequence: -?\d+"
    r" producerId: (?P<producer_id>-?\d+) producerEpoch: (?P<producer_epoch>-?\d+)"
    r" partitionLeaderEpoch: (?P<leader_epoch>-?\d+) isTransactional: (?:true|false) isControl: (?:true|false)"
    r" deleteHorizonMs: \S+ position: (?P<position>\d+) \w+: -?\d+ size: (?P<size_bytes>\d+) magic: 2"
    r" compresscodec: (?P<codec>\w+) crc: \d+ isvalid: (?P<is_valid>true|false)"
)
RECORD = re.compile(r"\| offset: (\d+) \w+: -?\d+ keySize: -?\d+ valueSize: -?\d+ sequence: -?\d+ headerKeys: \[.*\].*")
INDEX_ENTRY = re.compile(r"offset: \d+ position: \d+")
TIME_INDEX_ENTRY = re.compile(r"timestamp: -?\d+ offset: \d+")
NON_CONSECUTIVE = re.compile(r"Non-consecutive offsets in (.+)")
PAIR = re.compile(r"  (-?\d+) is followed by (\d+)")
HARMLESS = re.compile(
    r"Log starting offset: \d+|.+\.(?:index|timeindex) is empty\.|producerId: -?\d+ producerEpoch: .*|version: \d+ .*|"
)


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    """What the tool printed about one record batch."""

    file: str
    base_offset: int
    last_offset: int
    count: int
    base_sequence: int
    producer_id: int
    producer_epoch: int
    leader_epoch: int
    position: int
    size_bytes: int
    codec: str
    is_valid: bool


@dataclass(slots=True)
class Dump:
    """A partition as Apache Kafka sees it. `findings` is empty when there is nothing to complain about."""

    batches: list[DumpedBatch] = field(default_factory=list[DumpedBatch])
    files: list[str] = field(default_factory=list[str])
    findings: list[str] = field(default_factory=list[str])
    record_count: int = 0
    index_entry_count: int = 0
    time_index_entry_count: int = 0


def dump_log_segments(directory: Path) -> Dump:
    """Dumps every segment, index and snapshot in `directory`, records included. The log must not be written to."""
    files = sorted(path for path in directory.iterdir() if path.suffix in SUFFIXES)
    if not any(path.suffix == ".log" for path in files):
        raise FileNotFoundError(f"no segment in {directory}")
    output = run_tool(MAIN_CLASS, "--deep-iteration", "--files", ",".join(map(str, files)), check=False)
    dump = read_dump(output)
    if dump.files != [path.name for path in files]:
        dump.findings.append(f"dumped {dump.files} instead of {[path.name for path in files]}")
    return dump


def read_dump(output: str, *, expects_gaps: bool = False) -> Dump:
    """Reads the tool's output, its standard error included. `expects_gaps` is for compacted logs."""
    reader = Reader(expects_gaps)
    for line in output.splitlines():
        reader.read_line(line)
    dump = reader.dump
    counted = sum(batch.count for batch in dump.batches)
    if counted != dump.record_count:
        dump.findings.append(f"the batches announce {counted} records and hold {dump.record_count}")
    return dump


class Reader:
    """Reads line after line into a `Dump`, each by the first pattern that it matches."""

    def __init__(self, expects_gaps: bool) -> None:
        self.dump = Dump()
        self.expects_gaps = expects_gaps
        self.last_offset: int | None = None
        self.complaint_file = ""

    def read_line(self, line: str) -> None:
        for pattern, read in (
            (RECORD, self.read_record),
            (BATCH, self.read_batch),
            (DUMPING, self.read_file),
            (INDEX_ENTRY, self.read_index_entry),
            (TIME_INDEX_ENTRY, self.read_time_index_entry),
            (NON_CONSECUTIVE, self.read_complaint),
            (PAIR, self.read_pair),
            (HARMLESS, pass_over),
        ):
            if (match := pattern.fullmatch(line)) is not None:
                read(match)
                return
        self.dump.findings.append(line)

    def read_file(self, match: re.Match[str]) -> None:
        self.dump.files.append(Path(match[1]).name)

    def read_index_entry(self, match: re.Match[str]) -> None:
        self.dump.index_entry_count += 1

    def read_time_index_entry(self, match: re.Match[str]) -> None:
        self.dump.time_index_entry_count += 1

    def read_complaint(self, match: re.Match[str]) -> None:
        self.complaint_file = Path(match[1]).name

    def read_pair(self, match: re.Match[str]) -> None:
        file = self.complaint_file
        if match[1] != "-1" or int(match[2]) != offset_in_name(file):
            self.dump.findings.append(f"Non-consecutive offsets in {file}: {match[1]} is followed by {match[2]}")

    def read_record(self, match: re.Match[str]) -> None:
        self.dump.record_count += 1
        offset = int(match[1])
        if self.last_offset is not None and offset != self.last_offset + 1 and not self.expects_gaps:
            self.dump.findings.append(f"{self.dump.files[-1]}: {self.last_offset} is followed by {offset}")
        self.last_offset = offset

    def read_batch(self, match: re.Match[str]) -> None:
        def number(name: str) -> int:
            return int(match[name])

        batch = DumpedBatch(
            file=self.dump.files[-1],
            base_offset=number("base_offset"),
            last_offset=number("last_offset"),
            count=number("count"),
            base_sequence=number("base_sequence"),
            producer_id=number("producer_id"),
            producer_epoch=number("producer_epoch"),
            leader_epoch=number("leader_epoch"),
            position=number("position"),
            size_bytes=number("size_bytes"),
            codec=match["codec"],
            is_valid=match["is_valid"] == "true",
        )
        previous = self.dump.batches[-1] if self.dump.batches else None
        self.dump.batches.append(batch)
        if not batch.is_valid:
            self.dump.findings.append(match[0])
        self.check_offsets(batch, previous)

    def check_offsets(self, batch: DumpedBatch, previous: DumpedBatch | None) -> None:
        findings, file = self.dump.findings, batch.file
        if not self.expects_gaps and batch.count != batch.last_offset - batch.base_offset + 1:
            findings.append(f"{file}: count {batch.count} for offsets {batch.base_offset}..{batch.last_offset}")
        if previous is None or previous.file != file:
            named = offset_in_name(file)
            if batch.base_offset < named or (batch.base_offset != named and not self.expects_gaps):
                findings.append(f"{file} starts with offset {batch.base_offset}")
        if previous is not None and batch.leader_epoch < previous.leader_epoch:
            findings.append(f"{file}: leader epoch {batch.leader_epoch} after {previous.leader_epoch}")


def pass_over(match: re.Match[str]) -> None:
    """A line that tells nothing to be counted or complained about."""


def offset_in_name(file: str) -> int:
    return int(file.partition(".")[0])
