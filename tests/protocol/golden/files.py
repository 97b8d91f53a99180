"""The golden files: bytes of real clients and of Apache Kafka, as text.

A file holds one frame without its length, or one record batch. Lines that begin with `#` come first: what it is, who
sent it, and what it is known to say, by the way it was made:

    # Produce request v9
    # sent by kafka-python 3.0.12
    # expect: topic_data[0].name = "golden"
    0000                                      # request_api_key = 0
    0009                                      # request_api_version = 9

Then hexadecimal digits, up to a `#` or the end of the line. Of each API, the oldest and the newest version have a
comment per field; those were made from Kafka's own message descriptions, not from our declarations (annotation.py).
`messages/<api>/v<version>-<request or response>[-<client>].hex`, `batches/<client>-<codec>.hex`. All are written by
`python -m tests.protocol.golden.capture`.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from odradek.protocol.batches.records import Record

MESSAGES = Path(__file__).parent / "messages"
BATCHES = Path(__file__).parent / "batches"
TOPIC = "golden"
GROUP = "golden"

BASE_TIMESTAMP = 1_700_000_000_000
RECORDS = [
    Record(0, BASE_TIMESTAMP, b"key-0", b"the first value"),
    Record(1, BASE_TIMESTAMP + 10, None, b"a value without a key"),
    Record(2, BASE_TIMESTAMP + 20, b"tombstone", None),
    Record(3, BASE_TIMESTAMP + 30, b"", b""),
    Record(4, BASE_TIMESTAMP + 40, b"key-4", b"with headers", (("a", b"1"), ("é", b""))),
    *(
        Record(n, BASE_TIMESTAMP + 10 * n, f"key-{n}".encode(), f"value number {n}{', ' * n}".encode())
        for n in range(5, 40)
    ),
]
"""What every client was given to send, as one batch a codec. java_client.jsh has the same list."""


class Golden(NamedTuple):
    """A golden file as it was read."""

    path: Path
    expected: dict[str, Any]
    data: bytes


def read(path: Path) -> Golden:
    """Reads a file of the format above."""
    expected: dict[str, Any] = {}
    digits: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# expect: "):
            where, _, value = line.removeprefix("# expect: ").partition(" = ")
            expected[where] = json.loads(value)
        digits.append(line.partition("#")[0])
    return Golden(path, expected, bytes.fromhex("".join(digits)))


def write(path: Path, title: Iterable[str], expected: dict[str, Any], lines: Iterable[str]) -> None:
    """Writes a file of the format above."""
    head = [f"# {line}" for line in title]
    head += [f"# expect: {where} = {json.dumps(value, ensure_ascii=False)}" for where, value in expected.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in (*head, *lines)), encoding="utf-8")


def value_at(message: Any, path: str) -> Any:
    """What stands at a path such as `topics[0].name` in a message."""
    value = message
    for name, index in re.findall(r"([a-z_][a-z_0-9]*)|(\d+)", path):
        value = getattr(value, name) if name else value[int(index)]
    return value
