"""A worker's main function, as a process: what it leaves to others, which signals it obeys, and when it ends."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from odradek.runtime.own_program import own_program
from odradek.runtime.worker_process import LENGTH

SERVE = """
import os, signal, sys, time
from odradek.runtime.worker import Stopped
from odradek.runtime.worker_main import run_worker
def serve(give_way):
    try:
        question = yield b"ready"
        while True:
            if question == b"long":
                while True: give_way()
            if question == b"nice":
                question = yield str(os.nice(0)).encode() + open("/proc/self/oom_score_adj").read().encode()
            else:
                question = yield question
    except Stopped:
        open(sys.argv[1], "w").write("stopped")
        raise
def main():
    sys.exit(run_worker(serve))
"""
STARTS = (
    "import subprocess, sys; worker = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE);"
)


def program(tmp_path: Path) -> list[str]:
    (tmp_path / "serves_it.py").write_text(SERVE)
    started = own_program("serves_it")
    started[-1] += os.pathsep + str(tmp_path)
    return [*started, str(tmp_path / "end")]


def tell(process: "subprocess.Popen[bytes]", question: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(LENGTH.pack(len(question)) + question)
    process.stdin.flush()


def hear(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    return process.stdout.read(LENGTH.unpack(process.stdout.read(LENGTH.size))[0])


def started(tmp_path: Path) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(program(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert hear(process) == b"ready"
    return process


def test_it_leaves_processors_and_memory_to_others(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        tell(process, b"nice")
        assert hear(process) == b"191000\n"
        process.communicate()


def test_it_ends_with_its_input_and_not_by_signals_that_are_meant_for_others(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process.send_signal(number)
        tell(process, b"still there")
        assert hear(process) == b"still there"
        process.communicate(timeout=30)
        assert process.returncode == 0
    assert (tmp_path / "end").read_text() == "stopped"


def test_half_a_question_is_none(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        process.communicate(LENGTH.pack(5) + b"half", timeout=30)
        assert process.returncode == 0
    assert (tmp_path / "end").read_text() == "stopped"


def test_it_notices_within_its_work_that_its_owner_is_gone(tmp_path: Path) -> None:
    """The owner is a process of its own, which is killed. Its pipe is held open by another one, as a fork may do."""
    source = STARTS + (
        "worker.stdout.read(9); worker.stdin.write(b'\\0\\0\\0\\4long'); worker.stdin.flush();"
        "print(worker.pid, flush=True); input()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", source, *program(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    with owner:
        pid = int(owner.stdout.readline())
        held = os.open(f"/proc/{owner.pid}/fd/{pipe_of(owner.pid, pid)}", os.O_WRONLY)
        end = os.pidfd_open(pid)
        try:
            owner.kill()
            assert select.select([end], [], [], 30)[0], "the worker ends"
        finally:
            os.close(end)
            os.close(held)
    assert (tmp_path / "end").read_text() == "stopped"


def pipe_of(owner: int, worker: int) -> str:
    """The descriptor by which the owner writes to the worker's standard input."""
    pipe = os.readlink(f"/proc/{worker}/fd/0")
    (found,) = [
        name
        for name in os.listdir(f"/proc/{owner}/fd")
        if os.readlink(f"/proc/{owner}/fd/{name}") == pipe and name != "0"
    ]
    return found
