"""What every replica's files hold after a run, as Apache Kafka's DumpLogSegments sees them: batch by batch what was
sent.

The tool ends with 0 whatever it finds, so its output is read line by line, and what is not known to be harmless is a
difference. A batch is known by its checksum, which the tool computes anew and calls valid: the producer's bytes from
the attributes on. `processes/dump_log_segments.py` does the same for records.

The brokers run on meanwhile, and a segment that is written to may be longer than what it holds, for Odradek lets the
file grow ahead of it. So the tool reads what was sent, and behind that there may be nothing but zeros.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.readback import LogDiffers
from benchmarks.load.frames import DISTINCT_BATCHES, Load, batches_of
from processes.apache_kafka import run_tool

MAIN_CLASS = "org.apache.kafka.tools.DumpLogSegments"
DUMPING = re.compile(r"Dumping (.+)")
BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* size: (\d+) magic: 2 .* crc: (\d+) isvalid: (true|false)"
)
HARMLESS = re.compile(r"Log starting offset: \d+|")
CRC = slice(17, 21)
"""Of a batch."""
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SeenBatch:
    """What the tool printed of a batch."""

    base_offset: int
    last_offset: int
    size_bytes: int
    crc: int


def compare_replicas(data_dirs: Sequence[Path], load: Load) -> None:
    """Raises LogDiffers unless each directory holds the load's batches in all its partitions, and nothing else."""
    expected = expected_batches(load)
    for directory in data_dirs:
        files = [segment_of(directory / f"{load.topic}-{partition}") for partition in range(load.partitions)]
        size_bytes = load.batches_to(0) * load.batch_bytes
        for file in files:
            require_zeros(file, size_bytes)
        asked = ("--max-bytes", str(size_bytes), "--files", ",".join(map(str, files)))
        seen = read_dump(run_tool(MAIN_CLASS, *asked, check=False))
        for partition, file in enumerate(files):
            _compare(f"{file}", seen.get(file.parent.name, []), load, partition, expected)


def segment_of(directory: Path) -> Path:
    """Raises LogDiffers unless there is just one."""
    files = sorted(directory.glob("*.log"))
    if len(files) != 1:
        raise LogDiffers(f"{directory} has {len(files)} segments, and should have one")
    return files[0]


def require_zeros(file: Path, from_position: int) -> None:
    """Raises LogDiffers if there is anything else behind this position."""
    with file.open("rb") as segment:
        position = segment.seek(from_position)
        while part := segment.read(CHUNK_BYTES):
            if part.strip(b"\0"):
                raise LogDiffers(f"{file} holds more than was sent, behind position {position}")
            position += len(part)


def expected_batches(load: Load) -> list[tuple[int, int]]:
    """Size and checksum of the distinct batches."""
    assert not load.is_stamped and load.connections == load.partitions, "only then is a batch known by its number"
    return [(len(batch), int.from_bytes(batch[CRC], "big")) for batch in batches_of(load)]


def _compare(
    name: str, seen: Sequence[SeenBatch], load: Load, partition: int, expected: Sequence[tuple[int, int]]
) -> None:
    count, records = load.batches_to(partition), load.records_per_batch
    if len(seen) != count:
        raise LogDiffers(f"{name} holds {len(seen)} batches of {count}")
    for number, batch in enumerate(seen):
        size_bytes, crc = expected[number % DISTINCT_BATCHES]
        if batch != SeenBatch(number * records, (number + 1) * records - 1, size_bytes, crc):
            raise LogDiffers(f"{name}: {batch} is not batch {number} that was sent, checksum {crc}")


def read_dump(output: str) -> dict[str, list[SeenBatch]]:
    """The batches by the name of their partition's directory. Raises LogDiffers for anything that is not harmless."""
    found: dict[str, list[SeenBatch]] = {}
    batches: list[SeenBatch] | None = None
    for line in output.splitlines():
        if (match := BATCH.fullmatch(line)) is not None and batches is not None and match[6] == "true":
            base_offset, last_offset, count, size_bytes, crc = map(int, match.groups()[:5])
            if count != last_offset - base_offset + 1:
                raise LogDiffers(f"a count that does not fit its offsets: {line}")
            batches.append(SeenBatch(base_offset, last_offset, size_bytes, crc))
        elif (match := DUMPING.fullmatch(line)) is not None:
            batches = found.setdefault(Path(match[1]).parent.name, [])
        elif HARMLESS.fullmatch(line) is None:
            raise LogDiffers(f"DumpLogSegments says: {line}")
    return found
