"""Small programs as child processes: paused and resumed, ended in each way, and gone when their test is killed."""

import os
import select
import signal
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from processes.child_process import ChildProcess, ProcessFailed
from tests.killed_test import outlives_its_test

ECHO = """
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
while part := connection.recv(100):
    connection.sendall(part)
"""
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
"""It lives until it is killed."""
SILENCE_S = 0.2


class Program(ChildProcess):
    """Python, ready when it has printed a number."""

    def __init__(self, source: str, *, name: str = "program", log_file: Path | None = None) -> None:
        super().__init__(name, log_file=log_file, dies_with_us=True)
        self._source = source
        self.number = 0

    def command(self) -> list[str]:
        return [sys.executable, "-c", self._source]

    def is_ready_line(self, line: str) -> bool:
        self.number = int(line) if line.isdecimal() else 0
        return self.number > 0


@contextmanager
def echoing() -> Generator[tuple[Program, socket.socket]]:
    program = Program(ECHO)
    try:
        program.start()
        with socket.create_connection(("127.0.0.1", program.number)) as connection:
            yield program, connection
    finally:
        program.close()


def answers_within(connection: socket.socket, timeout_s: float) -> bool:
    return bool(select.select([connection], [], [], timeout_s)[0])


def test_a_paused_process_keeps_its_connections_and_answers_when_it_goes_on() -> None:
    with echoing() as (program, connection):
        program.pause()
        assert program.is_running
        assert program.is_paused
        connection.sendall(b"question")
        assert not answers_within(connection, SILENCE_S)
        program.resume()
        assert connection.recv(100) == b"question"
        program.pause()
        connection.sendall(b"once more")
        assert not answers_within(connection, SILENCE_S)
        program.resume()
        assert connection.recv(100) == b"once more"
        assert not program.is_paused


def test_a_paused_process_can_be_killed_and_be_asked_to_end() -> None:
    with echoing() as (program, _):
        program.pause()
        program.kill()
        assert not program.is_running
    with echoing() as (program, _):
        program.pause()
        assert program.terminate() == -signal.SIGTERM


def test_who_has_ended_cannot_be_paused() -> None:
    with echoing() as (program, connection):
        connection.shutdown(socket.SHUT_WR)
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(ProcessFailed, match="had ended before it could be paused"):
            program.pause()
        assert program.ended() == 0


def test_how_it_ends_is_told() -> None:
    with pytest.raises(ProcessFailed, match=r"no ready line of program but ''(?s:.*)the reason"):
        Program("import sys; sys.exit('the reason')").__enter__()
    with (
        pytest.raises(ProcessFailed, match="program ended with 3"),
        Program("print(1, flush=True); exit(3)") as program,
    ):
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ProcessFailed, match="program ended with 0"), Program("print(1, flush=True)") as program:
        os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
    # A handler would not wake one that has looked for signals and does not sleep yet.
    sour = "from signal import *; pthread_sigmask(SIG_BLOCK, [15]); print(1, flush=True); sigwait([15]); exit(4)"
    with pytest.raises(ProcessFailed, match="program ended with 4"), Program(sour):
        pass
    program = Program(DEAF)
    program.start()
    try:
        with pytest.raises(ProcessFailed, match=r"still running after 0\.2 s"):
            program.terminate(0.2)
        assert not program.is_running
    finally:
        program.close()


def test_one_that_does_not_end_in_time_says_first_where_it_stands() -> None:
    with Program(f"import faulthandler, signal; faulthandler.register(signal.SIGUSR1); {DEAF}") as program:
        program.telling_signal = signal.SIGUSR1
        with pytest.raises(ProcessFailed, match=r"still running after 0\.2 s(?s:.*)most recent call first"):
            program.terminate(0.2)


def test_several_start_at_once_and_write_their_logs_into_files(tmp_path: Path) -> None:
    source = "import sys, time; print('said', file=sys.stderr); print(1, flush=True); time.sleep(600)"
    programs = [Program(source, name=f"p{index}", log_file=tmp_path / f"p{index}.log") for index in range(2)]
    try:
        for _ in range(2):
            for program in programs:
                program.launch()
            for program in programs:
                program.wait_until_ready()
                program.kill()
        assert [program.output for program in programs] == ["said\nsaid\n"] * 2
        assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["said\nsaid\n"] * 2
    finally:
        for program in programs:
            program.close()
    assert programs[0].output == "said\nsaid\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel is asked to do it, and only Linux does")
def test_it_is_gone_when_its_test_is_killed() -> None:
    """A test that starts a process and is killed by SIGKILL tidies up nothing."""
    test = (
        "from tests.processes.test_child_process import ECHO, Program\n"
        "program = Program(ECHO)\nprogram.start()\nprint(program.pid, flush=True)\ninput()\n"
    )
    assert not outlives_its_test(test), "the process is still there"
