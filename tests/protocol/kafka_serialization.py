"""Apache Kafka's own serialization: its classes read bytes of ours, say what these mean, and write them again.

One JVM for all that is asked; it runs kafka_serialization.jsh through jshell. `members` is what Java's consumer writes
of a member that had partitions 2 and 0 of topic b and 1 of a, in generation 7.

The messages are those of Kafka's next release, which has all versions of 4.3.1 and the few of its own that are ours.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from processes.jars import APACHE_KAFKA, LATER_CLIENTS, java, resolve

SCRIPT = Path(__file__).with_suffix(".jsh")


class Written(NamedTuple):
    """What one of Kafka's classes makes of given bytes."""

    data: bytes
    contents: dict[str, Any]
    """By Kafka's JSON converter."""


class Member(NamedTuple):
    """What Java's consumer writes: subscription and assignment by version, the user data of its sticky assignors."""

    subscriptions: tuple[bytes, ...]
    assignments: tuple[bytes, ...]
    sticky: bytes
    cooperative: bytes


def ask_kafka(cases: Sequence[tuple[str, int, bytes]]) -> tuple[list[Written | str], Member]:
    """Each case is the name of a class, a version, and the bytes; what a class refuses is answered by its error."""
    with tempfile.TemporaryDirectory() as directory:
        given, answered = Path(directory, "given"), Path(directory, "answered")
        given.write_text("".join(f"{name} {version} {data.hex()}\n" for name, version, data in cases))
        jars = os.pathsep.join(map(str, (*resolve(*LATER_CLIENTS), *resolve(*APACHE_KAFKA))))  # the first one counts
        command = [str(Path(java()).with_name("jshell")), "--class-path", jars]
        command += [f"-R-Dgiven={given}", f"-R-Danswered={answered}"]
        command += [
            "-R-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-R-XX:TieredStopAtLevel=1",
            "-R-XX:+UseSerialGC",
        ]
        command += ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
        ended = subprocess.run(
            [*command, str(SCRIPT)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=120
        )
        # jshell ends with 0 after an error, too.
        if not answered.exists():
            raise RuntimeError(ended.stdout + ended.stderr)
        lines = answered.read_text(encoding="utf-8").splitlines()
    *encoded, sticky, cooperative = (bytes.fromhex(line) for line in lines[len(cases) :])
    member = Member(tuple(encoded[::2]), tuple(encoded[1::2]), sticky, cooperative)
    return [_written(line) for line in lines[: len(cases)]], member


def _written(line: str) -> Written | str:
    data, _, contents = line.partition(" ")
    return contents if data == "!" else Written(bytes.fromhex(data), json.loads(contents))
