"""Load for the crash tests: processes that send until their standard input ends, and write down every answer.

    python -m tests.compat.crash_load (kafka-python | librdkafka | topics) BOOTSTRAP TOPIC

prints a line for each answer, as it comes:

    acknowledged NUMBER PARTITION OFFSET        failed NUMBER ERROR        created NAME        deleted NAME

The producers are idempotent, with acks=all. The value of record NUMBER is `value(name, NUMBER)`: values are distinct,
so a lost record and a doubled one can both be named. A process each, so that a busy client does not slow another.
"""

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError
from kafka.producer.future import RecordMetadata

PAYLOAD = b"." * 300
IN_FLIGHT_MAX = 2_000
BURST = 100
PAUSE_S = 0.02
DELIVERY_TIMEOUT_MS = 60_000


def value(name: str, number: int) -> bytes:
    return b"%s %d %s" % (name.encode(), number, PAYLOAD)


# -- in the test ----------------------------------------------------------------------------------------------------


class LoadProcess:
    """One of the loads, seen from the test."""

    def __init__(self, name: str, bootstrap: str, topic: str) -> None:
        self.name = name
        self._output = tempfile.NamedTemporaryFile(prefix=f"load-{name}-")  # noqa: SIM115 - closed by stop()
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.compat.crash_load", name, bootstrap, topic],
            stdin=subprocess.PIPE,
            stdout=self._output,
            cwd=Path(__file__).resolve().parents[2],
        )
        self._position = 0
        self._answers: dict[str, list[list[str]]] = {}

    def answers(self, kind: str) -> list[list[str]]:
        """What was answered until now, without the first word; only what is new is read."""
        with open(self._output.name, encoding="utf-8") as output:
            output.seek(self._position)
            text = output.read()
        whole = text[: text.rfind("\n") + 1]
        self._position += len(whole.encode())
        for line in whole.splitlines():
            first, *others = line.split(" ")
            self._answers.setdefault(first, []).append(others)
        return self._answers.get(kind, [])

    def acknowledged(self) -> dict[bytes, tuple[int, int]]:
        """Value -> (partition, offset)."""
        return {
            value(self.name, int(number)): (int(partition), int(offset))
            for number, partition, offset in self.answers("acknowledged")
        }

    def stop(self) -> None:
        """Ends the load; it sends nothing more, and answers for what it has sent. Raises when it failed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(DELIVERY_TIMEOUT_MS / 1000 + 30)
        self.answers("")
        assert code == 0, f"load {self.name} ended with {code}"

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._output.close()


# -- in the process -------------------------------------------------------------------------------------------------


class Sending:
    """Numbers to send until standard input ends, as long as there is room; and what becomes of them."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._room = threading.Semaphore(IN_FLIGHT_MAX)
        self._printing = threading.Lock()
        threading.Thread(target=self._wait_for_end, daemon=True).start()

    def _wait_for_end(self) -> None:
        sys.stdin.read()
        self.stop.set()

    def numbers(self) -> Iterator[int]:
        """At a pace that leaves both clients room, and keeps the log small enough to be recovered 100 times."""
        number = 0
        while not self.stop.is_set():
            if self._room.acquire(timeout=0.1):
                yield number
                number += 1
                if number % BURST == 0:
                    self.stop.wait(PAUSE_S)

    def say(self, *words: object) -> None:
        with self._printing:
            sys.stdout.write(" ".join(map(str, words)) + "\n")
            sys.stdout.flush()

    def acknowledged(self, number: int, partition: int, offset: int) -> None:
        self.say("acknowledged", number, partition, offset)
        self._room.release()

    def failed(self, number: int, error: object) -> None:
        self.say("failed", number, repr(error))
        self._room.release()


def send_with_kafka_python(sending: Sending, bootstrap: str, topic: str) -> None:
    def acknowledged(number: int, metadata: RecordMetadata) -> None:
        sending.acknowledged(number, metadata.partition, metadata.offset)

    with KafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=2, delivery_timeout_ms=DELIVERY_TIMEOUT_MS
    ) as producer:  # idempotent and acks=all by default
        for number in sending.numbers():
            future = producer.send(topic, value("kafka-python", number))
            future.add_callback(acknowledged, number)
            future.add_errback(sending.failed, number)
        producer.flush()


def send_with_librdkafka(sending: Sending, bootstrap: str, topic: str) -> None:
    def delivered(number: int, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            sending.failed(number, error)
        else:
            sending.acknowledged(number, partition, offset)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 2,
            "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
            "reconnect.backoff.max.ms": 500,
            "log_level": 2,
        }
    )

    def serve_callbacks() -> None:  # acknowledgements make room for more records
        while not sending.stop.is_set():
            producer.poll(0.05)

    polling = threading.Thread(target=serve_callbacks)
    polling.start()
    for number in sending.numbers():
        producer.produce(
            topic,
            value("librdkafka", number),
            on_delivery=partial(delivered, number),
        )
    polling.join()
    left = producer.flush(DELIVERY_TIMEOUT_MS / 1000)
    assert left == 0, f"{left} records were neither acknowledged nor failed"


def change_topics(sending: Sending, bootstrap: str, topic: str) -> None:
    """Creates topics `<topic>-<number>` one after the other and deletes every third, for as long as it goes on."""
    number = 0
    while not sending.stop.is_set():
        try:
            with KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=10_000) as admin:
                while not sending.stop.is_set():
                    change_topic(sending, admin, f"{topic}-{number}", delete=number % 3 == 0)
                    number += 1
                    sending.stop.wait(PAUSE_S * 5)
        except Exception as error:  # noqa: BLE001 - the broker is being killed: whatever the client raises then
            sending.say("interrupted", repr(error).replace("\n", " "))
            sending.stop.wait(0.05)


def change_topic(sending: Sending, admin: KafkaAdminClient, name: str, *, delete: bool) -> None:
    try:
        admin.create_topics([NewTopic(name, 2, 1)])
    except TopicAlreadyExistsError:
        sending.say("interrupted", name, "was created just before a kill, whose answer never came")
    sending.say("created", name)
    if delete:
        admin.delete_topics([name])
        sending.say("deleted", name)


LOADS = {"kafka-python": send_with_kafka_python, "librdkafka": send_with_librdkafka, "topics": change_topics}


if __name__ == "__main__":
    LOADS[sys.argv[1]](Sending(), sys.argv[2], sys.argv[3])
