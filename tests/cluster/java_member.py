"""A member of a group under test: the consumer of Apache Kafka, by VerifiableConsumer of its system tests, in a JVM of
its own. It prints an event a line, and the test makes a member's records of them.

    partitions_assigned, partitions_revoked     within the callbacks
    record_data, records_consumed               what a poll has returned; it commits that next, and waits
    offsets_committed                           how that ended
    shutdown_requested, shutdown_complete       SIGTERM has come, and its consumer is closed

What it prints goes to a file, so that all of it is there when it is killed. It stamps events with whole milliseconds of
the wall clock, which become those of the machine's monotonic clock by the difference of both when the member was made.
"""

import json
import subprocess
import time
from pathlib import Path
from typing import Any, Final

from odradek.testing.sim.checking.group_history import MemberGone
from odradek.testing.sim.checking.history import Record
from odradek.testing.sim.checking.member_notes import MemberNotes
from odradek.testing.sim.checking.numbered import decoded
from tests.cluster.client_session import RECONNECT_MS, REQUEST_TIMEOUT_MS, Job, now_ms
from tests.cluster.clients import LOOK_S
from tests.cluster.member import Member
from tests.cluster.membership import COMMIT_S, HEARTBEAT_MS, MAX_POLL_INTERVAL_MS, SESSION_TIMEOUT_MS
from tests.compat.verifiable import verifiable_command

RANGE: Final = "org.apache.kafka.clients.consumer.RangeAssignor"
START_TIMEOUT_S: Final = 60.0
SIGTERM_CODE: Final = 143
"""How a JVM ends after SIGTERM, when its hooks have run."""
CONFIG: Final = {
    "heartbeat.interval.ms": HEARTBEAT_MS,
    "max.poll.interval.ms": MAX_POLL_INTERVAL_MS,
    "request.timeout.ms": REQUEST_TIMEOUT_MS,
    "reconnect.backoff.max.ms": RECONNECT_MS,
    "default.api.timeout.ms": int(COMMIT_S * 1000),
}


class JavaMember(Member):
    """One life of it. Its job's `file` holds what it prints."""

    clean_codes = (SIGTERM_CODE,)
    telling_signal = None

    def __init__(self, job: Job, log_file: Path) -> None:
        super().__init__(job, log_file)
        self._config = Path(job.file).with_suffix(".properties")
        self._events = Events(job.name, job.topic, time.time() * 1000 - now_ms())

    def command(self) -> list[str]:
        job = self.job
        self._config.write_text("".join(f"{name}={value}\n" for name, value in CONFIG.items()))
        words = (
            *("--group-id", job.group, "--session-timeout", str(SESSION_TIMEOUT_MS), "--verbose"),
            *("--reset-policy", "earliest", "--assignment-strategy", RANGE, "--command-config", str(self._config)),
        )
        java = verifiable_command("VerifiableConsumer", job.bootstrap, job.topic, *words)
        return ["sh", "-c", 'exec "$@" > "$0"', job.file, *java]

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._events.has_started:
            self.look()
            if process.poll() is not None or time.monotonic() > deadline:
                raise self.failure(f"{self.name} is not ready; {self._tail()}")
            time.sleep(LOOK_S)  # between two looks

    def _records_of(self, lines: bytes) -> list[Record]:
        return self._events.records_of(lines)


class Events:
    """The events of one life, as records. `ahead_ms`: of the wall clock, before the monotonic one."""

    def __init__(self, name: str, topic: str, ahead_ms: float) -> None:
        self.has_started = False
        self._ahead_ms = ahead_ms
        self._at_ms = 0.0
        self._asked_ms = 0.0
        self._records: list[Record] = []
        self._polled: dict[int, list[tuple[int, int]]] = {}
        """By partition: offsets and numbers of what it is printing."""
        self._name = name
        self._notes = MemberNotes(name, topic, self._records.append, lambda: self._at_ms)

    def records_of(self, lines: bytes) -> list[Record]:
        """Of whole lines, each an event. Raises ValueError for one that is none, or not known here."""
        for line in lines.splitlines():
            event = json.loads(line)
            self._at_ms = event["timestamp"] - self._ahead_ms
            self._take(event)
        records = [*self._records]
        self._records.clear()
        return records

    def _take(self, event: dict[str, Any]) -> None:
        match event["name"]:
            case "startup_complete":
                self.has_started = True
                self._asked_ms = self._at_ms
            case "partitions_assigned":
                self._notes.assigned(each["partition"] for each in event["partitions"])
            case "partitions_revoked":
                self._notes.revoked(each["partition"] for each in event["partitions"])
            case "record_data":
                record = event["offset"], decoded(event["value"].encode())
                self._polled.setdefault(event["partition"], []).append(record)
            case "records_consumed":
                self._consumed()
            case "offsets_committed":
                self._asked_ms = self._at_ms
                if self._notes.is_committing:  # one is told of polls that have brought nothing, too
                    self._notes.commit_answered("" if event["success"] else str(event.get("error")))
            case "shutdown_requested":
                pass
            case "shutdown_complete":
                self._records.append(MemberGone(self._at_ms, self._name, "left"))
            case unknown:
                raise ValueError(f"VerifiableConsumer prints an event that is not known here: {unknown}")

    def _consumed(self) -> None:
        polled, self._polled = self._polled, {}
        for partition, records in polled.items():
            self._notes.processed(self._asked_ms, partition, records)
        if polled:
            self._notes.commit_asked({partition: records[-1][0] + 1 for partition, records in polled.items()})
