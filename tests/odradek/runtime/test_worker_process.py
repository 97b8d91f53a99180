"""A worker as a process, seen from its owner: started, asked, dead at each moment, ended and reaped.

The processes are small programs of their own, which speak the protocol, or break it.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from odradek.runtime.environment import Environment
from odradek.runtime.worker import WorkerEnded, WorkerUnavailable
from odradek.runtime.worker_process import FRAME_BYTES_MAX, LENGTH, WorkerProcess

TALK = """
import os, signal, sys, time
def tell(data):
    sys.stdout.buffer.write(len(data).to_bytes(4, "big") + data)
    sys.stdout.buffer.flush()
def hear():
    return sys.stdin.buffer.read(int.from_bytes(sys.stdin.buffer.read(4), "big"))
"""
ECHO = TALK + "tell(b'ready')\nwhile True: tell(hear()[::-1])"


def program(source: str) -> list[str]:
    return [sys.executable, "-I", "-c", source]


async def started(source: str) -> WorkerProcess:
    return await WorkerProcess.start(Environment(), program(source))


def is_there(pid: int) -> bool:
    """A process that was not reaped is there, too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_it_greets_answers_and_is_gone_when_it_is_closed() -> None:
    worker = await started(ECHO)
    assert worker.greeting == b"ready"
    for question in (b"abc", b"", bytes(range(256)) * 4096):
        assert await worker.ask(question) == question[::-1]
    await worker.close()
    assert not is_there(worker.pid)
    await worker.close()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise SystemExit(3)", "ended with exit code 3$"),
        ("import no_such_module", "exit code 1: ModuleNotFoundError: No module named 'no_such_module'$"),
        ("print('x')", "ended with exit code 0"),
        (TALK + "os.kill(os.getpid(), signal.SIGSEGV)", r"by signal 11 \(SIGSEGV\)"),
        (
            TALK + f"sys.stdout.buffer.write(({FRAME_BYTES_MAX + 1}).to_bytes(4, 'big'))",
            "an answer of 1073741825 bytes",
        ),
        (TALK + "sys.stdout.buffer.write(b'\\0\\0\\0\\5half')", "ended with exit code 0"),
    ],
)
async def test_one_that_does_not_greet_is_no_worker(source: str, message: str) -> None:
    with pytest.raises(WorkerUnavailable, match=message):
        await started(source)


async def test_a_program_that_is_not_there_is_no_worker(tmp_path: Path) -> None:
    with pytest.raises(WorkerUnavailable, match=r"no process can be started: .*No such file"):
        await WorkerProcess.start(Environment(), [str(tmp_path / "none")])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("hear(); os.kill(os.getpid(), signal.SIGKILL)", r"by signal 9 \(SIGKILL\)"),
        ("hear(); raise MemoryError('too little')", "exit code 1: MemoryError: too little"),
        ("hear(); sys.stdout.buffer.write(b'\\0\\0\\0\\5half')", "with exit code 0"),
        ("hear(); os.close(1); time.sleep(600)", r"by signal 9 \(SIGKILL\)"),
    ],
)
async def test_one_that_ends_before_it_answers_says_how(source: str, message: str) -> None:
    worker = await started(TALK + "tell(b'ready')\n" + source)
    with pytest.raises(WorkerEnded, match=message):
        await worker.ask(b"question")
    with pytest.raises(WorkerEnded):
        await worker.ask(bytes(1 << 20))
    await worker.close()
    assert not is_there(worker.pid)


async def test_one_that_stands_still_is_ended_though_its_answer_is_waited_for() -> None:
    worker = await started(ECHO)
    os.kill(worker.pid, signal.SIGSTOP)
    task = asyncio.ensure_future(worker.ask(b"question"))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    async with asyncio.timeout(1):
        await worker.close()
    assert not is_there(worker.pid)


async def test_a_start_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    source = TALK + f"open({str(told)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    task = asyncio.ensure_future(started(source))
    while not told.exists() or not told.read_text():  # noqa: ASYNC110 - another process does that
        await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert not is_there(int(told.read_text()))


async def test_it_inherits_nothing_but_its_pipes_and_stands_in_a_group_of_its_own() -> None:
    tells = TALK + "tell(' '.join([*os.listdir('/proc/self/fd'), str(os.getpgid(0) == os.getpid())]).encode())\nhear()"
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        worker = await started(tells)
    finally:
        os.close(read)
        os.close(write)
    *descriptors, leads = worker.greeting.decode().split()
    await worker.close()
    assert set(descriptors) - {"3"} == {"0", "1", "2"}, "3 is the listed directory"
    assert leads == "True"


def test_a_length_is_what_the_programs_here_take_it_for() -> None:
    assert LENGTH.pack(5) == (5).to_bytes(4, "big")
