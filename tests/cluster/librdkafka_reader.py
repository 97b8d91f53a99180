"""librdkafka's reader under test, which is replaced where the library stands still for good.

Two of librdkafka's threads may wait for each other for ever (confluentinc/librdkafka#5476, in 2.16.0 still): the main
one holds a partition's lock and wants the handle's, as a question by OffsetForLeaderEpoch has failed; the one of the
broker that was asked holds the handle's and wants the partition's, as that broker has left the cluster. That is
what a rolling restart does now and then, and no answer of any broker ends it. So such a consumer is left where it is,
the history tells of it, and another one goes on at its positions.

What tells it from a reader that is given nothing: the main thread wakes each second by itself (rd_kafka_thread_main),
so the kernel counts that it did.
"""

import os
import threading
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as LibrdkafkaPartition

from tests.cluster.client_session import POLL_S, RECONNECT_MS, REQUEST_TIMEOUT_MS, Reading, Session, now_ms

RECORDS_MAX: Final = 500
MAIN_THREAD: Final = "rdk:main"
STILL_S: Final = 15.0
LOOK_S: Final = 0.5
LEAVE_S: Final = 2.0
"""One that is in no call of the library ends in this time. Who is in one does not come back."""
STOOD_STILL: Final = "librdkafka's main thread stands still; another consumer goes on"


def read_with_librdkafka(session: Session) -> None:
    reading = Reading(session)
    left: list[Consumer] = []
    while not session.stop.is_set():
        asked_ms, wakes = now_ms(), Wakes()
        consumer, is_left, is_closed = _consumer(session), threading.Event(), Future[bool]()
        threading.Thread(target=_tell, args=(is_closed, consumer, reading, is_left), daemon=True).start()
        while wait([is_closed], LOOK_S).not_done and not wakes.stand_still():
            pass
        is_left.set()
        if not (wait([is_closed], LEAVE_S).done and is_closed.result()):
            left.append(consumer)
            reading.failed(asked_ms, STOOD_STILL)
    if left:
        session.close()
        os._exit(0)  # else they would be closed, which takes for ever


class Wakes:
    """How often the main threads of those consumers have woken that are made from now on. To be looked at each
    LOOK_S: looks are counted, not seconds, so a machine that stops as a whole is nobody's fault."""

    def __init__(self, looks: int = round(STILL_S / LOOK_S)) -> None:
        self._looks = looks
        self._known = set(main_thread_wakes())
        self._counts: dict[int, int] = {}
        self._same = 0

    def stand_still(self) -> bool:
        """Whether they are there, and none has woken for so many looks."""
        counts = {thread: count for thread, count in main_thread_wakes().items() if thread not in self._known}
        self._same = self._same + 1 if counts and counts == self._counts else 0
        self._counts = counts
        return self._same >= self._looks


def main_thread_wakes() -> dict[int, int]:
    """Of each main thread of librdkafka's in this process, how often it has waited (proc_pid_status(5))."""
    found: dict[int, int] = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            fields = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        if fields["Name"] == MAIN_THREAD:
            found[int(task.name)] = int(fields["voluntary_ctxt_switches"])
    return found


def _consumer(session: Session) -> Consumer:
    impatient: dict[str, Any] = {"socket.timeout.ms": REQUEST_TIMEOUT_MS, "reconnect.backoff.max.ms": RECONNECT_MS}
    return Consumer(
        {
            "bootstrap.servers": session.job.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "log_level": 3,
            **({} if session.job.is_patient else impatient),
        }
    )


def _tell(is_closed: Future[bool], consumer: Consumer, reading: Reading, is_left: threading.Event) -> None:
    try:
        is_closed.set_result(_read(consumer, reading, is_left))
    except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
        is_closed.set_exception(error)


def _read(consumer: Consumer, reading: Reading, is_left: threading.Event) -> bool:
    """Until the session stops, or another one is to go on; whether the consumer is closed."""
    topic, stop = reading.job.topic, reading.session.stop
    consumer.assign([LibrdkafkaPartition(topic, partition, offset) for partition, offset in reading.positions.items()])
    while not stop.is_set():
        asked_ms = now_ms()
        messages = consumer.consume(RECORDS_MAX, POLL_S)
        if is_left.is_set():
            return False
        found: dict[int, list[tuple[int, bytes | None]]] = {}
        for message in messages:
            partition, offset, error = message.partition(), message.offset(), message.error()
            if error is not None:
                reading.failed(asked_ms, error)
                if error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:
                    reading.lost(partition)
                    consumer.seek(LibrdkafkaPartition(topic, partition, 0))
                continue
            assert partition is not None
            assert offset is not None
            found.setdefault(partition, []).append((offset, message.value()))
        for partition, records in found.items():
            reading.polled(asked_ms, partition, records)
    try:
        consumer.close()
    except KafkaException as error:
        reading.failed(now_ms(), error)
    return True
