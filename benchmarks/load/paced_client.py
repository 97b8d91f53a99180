"""librdkafka by the clock, a process of its own: records one by one, whatever becomes of those before.

    python -m benchmarks.load.paced_client JOB FILE        JOB is a `ClientPace` in JSON

confluent-kafka's producer with `linger.ms` 0 and acks=all, and everything else as it comes. One thread sends each
record when it is due, to the partitions in turn, another one serves the delivery reports. The latency of a record
counts from the moment at which it was due until its report arrives, by the monotonic clock in nanoseconds. FILE gets
them, one int64 for each record in the order in which they were due, and after them as many that say how late the
process itself was: from due until librdkafka had taken the record.
"""

import json
import sys
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from confluent_kafka import KafkaError, Message, Producer

from benchmarks.load.generator import run_generator
from benchmarks.load.pace import NS_PER_S, Schedule
from benchmarks.load.paced import LEAD_NS, be_punctual
from benchmarks.load.replies import LoadFailed

FLUSH_TIMEOUT_S = 30.0
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class ClientPace:
    """`count` records of `value_bytes`, one every `1 / rate_per_s`, to `partitions` in turn."""

    bootstrap: str
    topic: str
    rate_per_s: float
    count: int
    value_bytes: int
    partitions: int

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class ClientPaced:
    """What the records took, and how late the process was with each, in nanoseconds."""

    latencies_ns: "array[int]"
    lateness_ns: "array[int]"


def run_client(job: ClientPace) -> ClientPaced:
    """Runs the process and waits for it. Raises LoadFailed."""
    with TemporaryDirectory(prefix="paced-client-") as directory:
        file = Path(directory, "latencies")
        run_generator("benchmarks.load.paced_client", job.to_json(), str(file))
        both = array("q", file.read_bytes())
    if len(both) != 2 * job.count:
        raise LoadFailed(f"{len(both) // 2} latencies of {job.count} records")
    return ClientPaced(both[: job.count], both[job.count :])


class Sending:
    """One run of the client."""

    def __init__(self, job: ClientPace) -> None:
        self._job = job
        self._producer = Producer(settings(job))
        self._latencies = array("q", bytes(8 * job.count))
        self._lateness = array("q", bytes(8 * job.count))
        self._delivered = 0
        self._errors: list[str] = []
        self._is_over = threading.Event()

    def run(self) -> ClientPaced:
        """Raises LoadFailed."""
        self._warm()
        job = self._job
        schedule = Schedule(time.perf_counter_ns() + LEAD_NS, job.rate_per_s, job.count)
        value = bytes(job.value_bytes)
        polling = threading.Thread(target=self._poll)
        polling.start()
        try:
            for number in range(job.count):
                due_ns = schedule.due_ns(number)
                if (wait_ns := due_ns - time.perf_counter_ns()) > 0:
                    time.sleep(wait_ns / NS_PER_S)  # until it is due
                self._producer.produce(
                    job.topic, value, partition=number % job.partitions, on_delivery=self._reported(number, due_ns)
                )
                self._lateness[number] = time.perf_counter_ns() - due_ns
            left = self._producer.flush(FLUSH_TIMEOUT_S)
        finally:
            self._is_over.set()
            polling.join()
        if self._errors or left or self._delivered != job.count:
            raise LoadFailed(f"delivered {self._delivered} of {job.count}, {left} left, errors: {self._errors[:3]}")
        return ClientPaced(self._latencies, self._lateness)

    def _warm(self) -> None:
        """A record to each partition: then leaders are known and connections open. Raises LoadFailed."""
        errors: list[str] = []

        def on_delivery(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                errors.append(str(error))

        for partition in range(self._job.partitions):
            self._producer.produce(self._job.topic, b"", partition=partition, on_delivery=on_delivery)
        if self._producer.flush(FLUSH_TIMEOUT_S) or errors:
            raise LoadFailed(f"the first records were not delivered: {errors[:3]}")

    def _poll(self) -> None:
        while not self._is_over.is_set():
            self._producer.poll(POLL_S)

    def _reported(self, number: int, due_ns: int) -> Callable[[KafkaError | None, Message], None]:
        def on_delivery(error: KafkaError | None, _message: Message) -> None:
            self._latencies[number] = time.perf_counter_ns() - due_ns
            if error is None:
                self._delivered += 1
            else:
                self._errors.append(str(error))

        return on_delivery


def settings(job: ClientPace) -> dict[str, Any]:
    return {"bootstrap.servers": job.bootstrap, "acks": "all", "linger.ms": 0, "socket.nagle.disable": True}


def main(text: str, file: str) -> int:
    be_punctual()
    try:
        paced = Sending(ClientPace.from_json(text)).run()
    except LoadFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    Path(file).write_bytes(paced.latencies_ns.tobytes() + paced.lateness_ns.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
