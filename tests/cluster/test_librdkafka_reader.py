"""Who takes the place of a consumer whose library stands still, and that nobody does else."""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

import pytest
from confluent_kafka import TopicPartition

from odradek.testing.sim.checking.history import History, Polled, PollFailed
from odradek.testing.sim.checking.numbered import encoded
from tests.cluster import librdkafka_reader
from tests.cluster.client_session import Job, Session
from tests.cluster.librdkafka_reader import MAIN_THREAD, STOOD_STILL, Wakes, main_thread_wakes, read_with_librdkafka

LOOKS: Final = 3


class MainThread:
    """Has the name of librdkafka's, and wakes when it is told to."""

    def __init__(self) -> None:
        self._wake, self._has_woken = threading.Semaphore(0), threading.Semaphore(0)
        self._is_over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.wake()

    def wake(self) -> None:
        """Returns when it waits again."""
        before = main_thread_wakes().get(self._thread.native_id or 0)
        self._wake.release()
        self._has_woken.acquire()
        while main_thread_wakes().get(self._thread.native_id or 0) == before:
            os.sched_yield()

    def end(self) -> None:
        self._is_over = True
        self._wake.release()
        self._thread.join()
        while self._thread.native_id in main_thread_wakes():  # Python's thread ends a moment before the kernel's
            os.sched_yield()

    def _run(self) -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(MAIN_THREAD)
        while not self._is_over:
            self._wake.acquire()
            self._has_woken.release()


@contextmanager
def main_thread() -> Generator[MainThread]:
    thread = MainThread()
    try:
        yield thread
    finally:
        thread.end()


def test_a_thread_that_wakes_does_not_stand_still_and_one_that_does_not_does() -> None:
    with main_thread() as old:
        wakes = Wakes(LOOKS)
        assert not any(wakes.stand_still() for _ in range(2 * LOOKS)), "one of before is another's"
        with main_thread() as thread:
            for _ in range(2 * LOOKS):
                thread.wake()
                old.wake()
                assert not wakes.stand_still()
            looks = [wakes.stand_still() for _ in range(LOOKS + 1)]
            assert looks[-1]
        assert not any(wakes.stand_still() for _ in range(2 * LOOKS)), "it has ended"


class SomeConsumer:
    """Gives each partition a record, then what `then` says."""

    def __init__(self, session: Session, *, stands_still: bool) -> None:
        self.session = session
        self.main = MainThread()
        self.assigned: list[tuple[int, int]] = []
        self.is_closed = False
        self._stands_still = stands_still

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = [(each.partition, each.offset) for each in partitions]

    def consume(self, _count: int, _timeout_s: float) -> "list[SomeMessage]":
        if not self.assigned:
            assert self._stands_still
            threading.Event().wait()
        given, self.assigned = [SomeMessage(*each) for each in self.assigned], []
        if not self._stands_still:
            self.session.stop.set()
        return given

    def close(self) -> Self:
        self.is_closed = True
        self.main.end()
        return self


class SomeMessage:
    def __init__(self, partition: int, offset: int) -> None:
        self._partition, self._offset = partition, offset

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def error(self) -> None:
        return None

    def value(self) -> bytes:
        return encoded(self._offset)


def test_another_consumer_goes_on_where_the_library_stood_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[SomeConsumer] = []
    codes: list[int] = []

    def consumer(session: Session) -> SomeConsumer:
        made.append(SomeConsumer(session, stands_still=not made))
        return made[-1]

    monkeypatch.setattr(librdkafka_reader, "_consumer", consumer)
    monkeypatch.setattr(librdkafka_reader, "LOOK_S", 0.001)
    monkeypatch.setattr(librdkafka_reader, "LEAVE_S", 0.01)
    monkeypatch.setattr("os._exit", codes.append)
    job = Job("librdkafka-reader", "r", "127.0.0.1:1", "t", 2, str(tmp_path / "history"))
    read_with_librdkafka(Session(job))
    records = History.from_json(Path(job.file).read_text()).records
    polled = [(each.partition, each.position, each.records) for each in records if isinstance(each, Polled)]
    assert polled == [(0, 0, [(0, 0)]), (1, 0, [(0, 0)]), (0, 1, [(1, 1)]), (1, 1, [(1, 1)])]
    [failed] = [each for each in records if isinstance(each, PollFailed)]
    assert STOOD_STILL in failed.error
    assert [each.is_closed for each in made] == [False, True]
    assert codes == [0], "the one that was left is not closed"
