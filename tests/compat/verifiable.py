"""VerifiableProducer and VerifiableConsumer of Apache Kafka's own system tests: Java's clients, each in a JVM of its
own, which print an event a line.

    with VerifiableProducer(bootstrap, topic, directory) as producer, VerifiableConsumer(…) as consumer:
        producer.acknowledged                           # by partition: the offsets
        consumer.consumed                               # by partition: ranges of offsets, in the order of reading
        consumer.assigned
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from processes.apache_kafka import java_command, quick_jvm
from tests.compat.foreign_process import ForeignProcess

TOOLS: Final = "org.apache.kafka.tools"
HEAP: Final = ("-Xmx96m",)
KEYS: Final = 100


def verifiable_command(name: str, bootstrap: str, topic: str, *words: str) -> list[str]:
    """The command line of VerifiableProducer or VerifiableConsumer."""
    here = ("--bootstrap-server", bootstrap, "--topic", topic, *words)
    return java_command(f"{TOOLS}.{name}", *here, jvm_options=(*HEAP, *quick_jvm()), log_level="error")


class VerifiableProcess(ForeignProcess):
    """What both have in common."""

    def __init__(self, name: str, bootstrap: str, topic: str, directory: Path, *words: str) -> None:
        super().__init__(verifiable_command(name, bootstrap, topic, *words), directory)

    def events(self, name: str) -> Iterator[dict[str, Any]]:
        """Those of this name, oldest first."""
        for line in self.lines:
            if line.startswith("{") and (event := json.loads(line))["name"] == name:
                yield event


class VerifiableProducer(VerifiableProcess):
    """Sends with acks=all until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, directory: Path, throughput: int) -> None:
        """`throughput`: records a second. They have keys, so that all partitions get some at any time."""
        words = ("--acks", "-1", "--throughput", str(throughput), "--repeating-keys", str(KEYS))
        super().__init__("VerifiableProducer", bootstrap, topic, directory, *words)

    @property
    def acknowledged(self) -> dict[int, set[int]]:
        """By partition: the offsets."""
        found: dict[int, set[int]] = {}
        for event in self.events("producer_send_success"):
            found.setdefault(event["partition"], set()).add(event["offset"])
        return found


class VerifiableConsumer(VerifiableProcess):
    """A static member that commits what it has read before it reads on."""

    def __init__(
        self, bootstrap: str, topic: str, directory: Path, group: str, protocol: str, instance: str, *words: str
    ) -> None:
        member = ("--group-id", group, "--group-protocol", protocol, "--group-instance-id", instance)
        super().__init__("VerifiableConsumer", bootstrap, topic, directory, *member, *words)

    @property
    def consumed(self) -> dict[int, list[range]]:
        """By partition: ranges of offsets, in the order of reading."""
        found: dict[int, list[range]] = {}
        for event in self.events("records_consumed"):
            for part in event["partitions"]:
                offsets = range(part["minOffset"], part["maxOffset"] + 1)
                assert len(offsets) == part["count"], part
                found.setdefault(part["partition"], []).append(offsets)
        return found

    @property
    def assigned(self) -> set[int]:
        """Its partitions, by what it was told of assignments and revocations."""
        owned: set[int] = set()
        for line in self.lines:
            event: dict[str, Any] = json.loads(line) if line.startswith("{") else {"name": ""}
            named = {each["partition"] for each in event.get("partitions", ()) if "partition" in each}
            if event["name"] == "partitions_assigned":
                owned |= named
            elif event["name"] == "partitions_revoked":
                owned -= named
        return owned

    @property
    def commits(self) -> int:
        """How often its group's coordinator has said that offsets are committed."""
        return sum(event["success"] for event in self.events("offsets_committed"))

    @property
    def revocations(self) -> int:
        """How often it gave partitions up."""
        return sum(bool(event["partitions"]) for event in self.events("partitions_revoked"))
