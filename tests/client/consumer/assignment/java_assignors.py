"""Java's own assignors, from the jar of kafka-clients: one JVM divides the partitions of many groups.

It runs java_assignors.jsh through jshell.
"""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from odradek.client.consumer.assignment.assignor import Member, TopicLayout
from odradek.client.topic_partition import TopicPartition
from processes.jars import APACHE_KAFKA, java, resolve
from tests.client.consumer.assignment.groups import parts, shown

SCRIPT = Path(__file__).with_suffix(".jsh")


class Group(NamedTuple):
    """What an assignor is given. Topics have names of one letter."""

    assignor: str
    members: Sequence[Member]
    topics: Mapping[str, TopicLayout]


def divided_by_java(groups: Sequence[Group]) -> list[dict[str, list[TopicPartition]]]:
    with tempfile.TemporaryDirectory() as directory:
        given, answered = Path(directory, "given"), Path(directory, "answered")
        given.write_text("".join(map(_line, groups)))
        jars = os.pathsep.join(map(str, resolve(*APACHE_KAFKA)))
        command = [str(Path(java()).with_name("jshell")), "--class-path", jars]
        command += [f"-R-Dgiven={given}", f"-R-Danswered={answered}"]
        command += ["-R-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        ended = subprocess.run(
            [*command, str(SCRIPT)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=120
        )
        # jshell ends with 0 after an error, too.
        if not answered.exists():
            raise RuntimeError(ended.stdout + ended.stderr)
        return [_read(line) for line in answered.read_text().splitlines()]


def _line(group: Group) -> str:
    topics = ";".join(
        f"{topic}=" + ",".join("".join(sorted(each)) for each in layout.racks or [""] * layout.partition_count)
        for topic, layout in group.topics.items()
        if layout.partition_count
    )
    members = ";".join(
        ",".join(
            (
                member.member_id,
                member.instance_id or "",
                member.rack or "",
                " ".join(sorted(member.topics)),
                shown({"": member.owned})[""],
                str(member.generation),
            )
        )
        for member in group.members
    )
    return f"{group.assignor}|{topics}|{members}\n"


def _read(line: str) -> dict[str, list[TopicPartition]]:
    assert not line.startswith("!"), line
    return {member_id: parts(mine) for member_id, mine in (each.split("=") for each in line.split(";"))}
