"""The start time runs until the first answer, and only an answer counts: servers of a few lines stand in for ours."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.harness.servers import Server
from benchmarks.start import answers, start
from processes.free_ports import free_ports

GOOD = struct.pack(">iihi", 10, 1, 0, 0)


class SlowProcess:
    """Listens `delay_s` after `start` has been called, and answers `reply` to everything."""

    def __init__(self, delay_s: float, reply: bytes = GOOD) -> None:
        self.host = "127.0.0.1"
        (self.port,) = free_ports(1)
        self.pid = 0
        self._delay_s = delay_s
        self._reply = reply
        self._listening: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve)

    def start(self) -> None:
        time.sleep(self._delay_s)  # what is measured
        self._listening = socket.create_server((self.host, self.port))
        self._thread.start()

    def kill(self) -> None:
        self.stop()

    def stop(self) -> None:
        assert self._listening is not None
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        assert self._listening is not None
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                connection.recv(100)
                connection.sendall(self._reply)


@pytest.fixture
def slow_process() -> Iterator[Callable[..., SlowProcess]]:
    made: list[SlowProcess] = []

    def make(delay_s: float, reply: bytes = GOOD) -> SlowProcess:
        made.append(SlowProcess(delay_s, reply))
        return made[-1]

    yield make
    for process in made:
        process.stop()


def test_the_time_until_the_first_answer_is_measured(slow_process: Callable[..., SlowProcess]) -> None:
    process = slow_process(0.3)
    took = start(Server("Slow", "1", process, process.stop, Path()))
    assert 0.3 <= took < 3.0


def test_a_server_that_cannot_start_is_reported_and_not_waited_for() -> None:
    class Broken:
        host, pid = "127.0.0.1", 0
        port = free_ports(1)[0]

        def start(self) -> None:
            raise RuntimeError("no")

        def kill(self) -> None:
            raise AssertionError("it never ran")

    before = set(threading.enumerate())
    with pytest.raises(RuntimeError, match="no"):
        start(Server("Broken", "1", Broken(), lambda: None, Path()))
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(
    "reply", [b"", GOOD[:5], struct.pack(">iihi", 10, 1, 35, 0), struct.pack(">iihi", 10, 2, 0, 0)]
)
def test_what_is_no_good_answer_does_not_count(slow_process: Callable[..., SlowProcess], reply: bytes) -> None:
    process = slow_process(0.0, reply)
    assert not answers(process.host, process.port), "nobody listens"
    process.start()
    assert not answers(process.host, process.port)
