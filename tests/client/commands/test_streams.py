"""Lines read from pipes, terminals and files, and bytes written to them, without ever stopping the loop."""

import asyncio
import io
import os
import threading
import tty
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.commands.failures import CommandFailed, OutputClosed
from odradek.client.commands.streams import LineReader, Writer

pytestmark = pytest.mark.both_loops
PATIENCE_S = 20.0


@pytest.fixture
def pipe() -> Generator[tuple[int, int]]:
    """Both ends, which a test may close."""
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        with suppress(OSError):
            os.close(descriptor)


async def lines_of(reader: LineReader) -> list[bytes]:
    found: list[bytes] = []
    while lines := await reader.read():
        found += lines
    return found


async def test_lines_are_read_as_they_come_while_the_loop_goes_on(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    loop = asyncio.get_running_loop()
    reader = LineReader(reading, loop)
    first = asyncio.ensure_future(reader.read())
    ticks = 0
    while not first.done():  # the loop turns though nothing is to be read yet
        ticks += 1
        await asyncio.sleep(0)
        if ticks == 50:
            os.write(writing, b"one\ntw")
    assert await first == [b"one"]
    os.write(writing, b"o\n\nthree")
    assert await reader.read() == [b"two", b""]
    os.close(writing)
    assert await reader.read() == [b"three"]
    assert await reader.read() == []


async def test_waiting_for_a_line_can_be_cancelled_and_goes_on_later(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    reader = LineReader(reading, asyncio.get_running_loop())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(), 0.01)
    os.write(writing, b"late\n")
    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == [b"late"]


async def test_who_waits_for_a_line_is_freed_by_stop_and_nothing_is_read_any_more(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    loop = asyncio.get_running_loop()
    reader = LineReader(reading, loop)
    os.write(writing, b"begun")
    loop.call_later(0.01, reader.stop)
    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == []
    os.write(writing, b" and ended\n")
    assert await asyncio.wait_for(reader.read(), PATIENCE_S) == []


async def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    content = [b"%d" % number for number in range(100_000)]
    file.write_bytes(b"\n".join(content) + b"\n")
    with file.open("rb") as opened:
        assert await lines_of(LineReader(opened.fileno(), asyncio.get_running_loop())) == content


async def test_dev_null_is_at_its_end() -> None:
    with Path(os.devnull).open("rb") as opened:
        assert await LineReader(opened.fileno(), asyncio.get_running_loop()).read() == []


async def test_a_terminal_is_read_line_by_line() -> None:
    controller, terminal = os.openpty()
    try:
        tty.setcbreak(terminal)
        reader = LineReader(terminal, asyncio.get_running_loop())
        os.write(controller, b"typed\n")
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == [b"typed"]
    finally:
        os.close(controller)
        os.close(terminal)


async def test_an_endless_line_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "line"
    file.write_bytes(b"x" * 1_000_000)
    with file.open("rb") as opened:
        reader = LineReader(opened.fileno(), asyncio.get_running_loop(), line_bytes_max=700_000)
        with pytest.raises(CommandFailed, match="longer than 700,000 bytes"):
            await reader.read()


@given(st.lists(st.binary(max_size=5), max_size=6), st.booleans())
@settings(max_examples=50)
def test_lines_are_what_split_makes_of_all_parts(parts: list[bytes], ends_with_newline: bool) -> None:
    """However the input is divided among reads."""
    parts = [part.replace(b"\r", b"\n") for part in parts]
    whole = b"".join(parts) + (b"\n" if ends_with_newline else b"")
    expected = whole.split(b"\n")
    if not expected[-1]:
        expected.pop()

    async def read() -> list[bytes]:
        reading, writing = os.pipe()
        try:
            reader = LineReader(reading, asyncio.get_running_loop())
            found: list[bytes] = []
            for part in (*parts, b"\n" if ends_with_newline else b""):
                os.write(writing, part)
                if b"\n" in part:
                    found += await reader.read()
            os.close(writing)
            return found + await lines_of(reader)
        finally:
            os.close(reading)

    assert asyncio.run(read()) == expected


async def test_a_slow_reader_gets_everything_and_the_loop_goes_on(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    data = os.urandom(1 << 20)  # sixteen times what a pipe holds
    writer = Writer(writing, asyncio.get_running_loop())
    task = asyncio.ensure_future(writer.write(data))
    ticks = 0
    while ticks < 50:  # nobody reads: it waits, and the loop turns
        ticks += 1
        await asyncio.sleep(0)
    assert not task.done()
    received = bytearray()

    def read_all() -> None:
        while len(received) < len(data):
            received.extend(os.read(reading, 65_536))

    thread = threading.Thread(target=read_all)
    thread.start()
    await asyncio.wait_for(task, PATIENCE_S)
    thread.join(PATIENCE_S)
    assert received == data


async def test_writing_can_be_cancelled_while_nobody_reads(pipe: tuple[int, int]) -> None:
    writer = Writer(pipe[1], asyncio.get_running_loop())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(writer.write(bytes(1 << 20)), 0.01)


async def test_who_writes_is_told_that_nobody_reads_any_more(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    writer = Writer(writing, asyncio.get_running_loop())
    task = asyncio.ensure_future(writer.write(bytes(1 << 20)))
    await asyncio.sleep(0)  # its first turn fills the pipe
    assert not task.done()
    os.close(reading)
    with pytest.raises(OutputClosed):
        await asyncio.wait_for(task, PATIENCE_S)


async def test_a_file_is_written_whole(tmp_path: Path) -> None:
    file = tmp_path / "out"
    data = os.urandom(300_000)
    with file.open("wb") as opened:
        await Writer(opened.fileno(), asyncio.get_running_loop()).write(data)
    assert file.read_bytes() == data


async def test_a_full_disk_is_an_os_error() -> None:
    with io.FileIO("/dev/full", "wb") as full, pytest.raises(OSError, match="No space left"):
        await Writer(full.fileno(), asyncio.get_running_loop()).write(b"x")
