"""Bytes leave in order and a piece at a time, whatever the transport takes at once: against one that takes as it likes.

The transport is one of a few lines, because how much it takes and when has to be chosen; `test_pipeline*.py` show the
same code on memory's, asyncio's and uvloop's transports.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.client.network.outgoing import PIECE_BYTES, Outgoing
from odradek.protocol.primitives import Buffer

Step = tuple[str, int]


class Taking(asyncio.Transport):
    """Takes `takes` bytes at once and holds the others until `take` is called."""

    def __init__(self, takes: int) -> None:
        super().__init__()
        self.takes = takes
        self.taken = b""
        self.held = b""
        self.pieces: list[int] = []
        self.limits: list[int | None] = []
        self.closing = False

    def writelines(self, list_of_data: Iterable[Buffer]) -> None:
        assert not self.held, "it has not written the piece before"
        assert not self.closing
        data = b"".join(list_of_data)
        self.pieces.append(len(data))
        self.taken += data[: self.takes]
        self.held = data[self.takes :]

    def take(self, count: int) -> bool:
        """Writes some of what it holds; whether that was the last of it."""
        was_held = bool(self.held)
        self.taken += self.held[:count]
        self.held = self.held[count:]
        return was_held and not self.held

    def get_write_buffer_size(self) -> int:
        return len(self.held)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.limits.append(high)

    def is_closing(self) -> bool:
        return self.closing


class Turn:
    """The part of an event loop that is needed: `call_soon`, and a turn on demand."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def call_soon(self, function: Callable[[], None]) -> None:
        self.calls.append(function)

    def run(self) -> None:
        calls, self.calls = self.calls, []
        for call in calls:
            call()


class Scene:
    def __init__(self, takes: int = 1 << 30) -> None:
        self.turn = Turn()
        self.written = 0
        self.outgoing = Outgoing(cast(Any, self.turn), self._on_written)
        self.transport = Taking(takes)
        self.outgoing.begin(self.transport)

    def _on_written(self) -> None:
        assert self.outgoing.is_written
        self.written += 1

    def take(self, count: int) -> None:
        if self.transport.take(count) and self.transport.limits:
            self.outgoing.resume()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["write", "soon"]), st.integers(0, 3 * PIECE_BYTES)),
        st.tuples(st.just("take"), st.integers(1, 2 * PIECE_BYTES)),
        st.tuples(st.just("turn"), st.just(0)),
    ),
    max_size=20,
)


@settings(max_examples=200)
@given(STEPS, st.integers(0, 2 * PIECE_BYTES))
def test_everything_leaves_in_order_and_a_piece_at_a_time(steps: list[Step], takes: int) -> None:
    scene = Scene(takes)
    given_bytes = b""
    for number, (step, size) in enumerate(steps):
        if step in ("write", "soon"):
            # As records are: a few bytes before each buffer.
            buffers = [bytes([number]) * 7, bytes([number]) * size]
            given_bytes += b"".join(buffers)
            (scene.outgoing.write if step == "write" else scene.outgoing.write_soon)(buffers)
        elif step == "take":
            scene.take(size)
        else:
            scene.turn.run()
        assert given_bytes.startswith(scene.transport.taken)
    scene.turn.run()
    while scene.transport.held:
        scene.take(PIECE_BYTES)
    assert scene.transport.taken == given_bytes
    assert scene.outgoing.is_written
    assert not scene.outgoing.is_waiting
    assert max(scene.transport.pieces, default=0) < PIECE_BYTES + 3 * PIECE_BYTES + 7


def test_a_large_request_is_given_in_pieces_each_when_the_one_before_is_written() -> None:
    scene = Scene(takes=1000)
    scene.outgoing.write([bytes(PIECE_BYTES // 2)] * 7)
    assert scene.transport.pieces == [PIECE_BYTES]
    assert scene.transport.limits == [0], "it tells when it has written them"
    for count in (2, 3, 4):
        assert scene.written == 0
        scene.take(PIECE_BYTES)
        assert len(scene.transport.pieces) == count
    assert scene.transport.pieces == [PIECE_BYTES] * 3 + [PIECE_BYTES // 2]
    scene.take(PIECE_BYTES)
    assert scene.written == 1


def test_what_is_written_in_one_turn_is_given_together() -> None:
    scene = Scene()
    scene.outgoing.write_soon([b"a", b"b"])
    scene.outgoing.write_soon([b"c"])
    assert scene.outgoing.is_waiting
    assert not scene.outgoing.is_written
    assert scene.transport.pieces == []
    scene.turn.run()
    assert scene.transport.pieces == [3]
    assert (scene.written, scene.turn.calls) == (1, [])


def test_a_transport_that_is_closing_is_given_nothing_and_has_written_nothing() -> None:
    scene = Scene()
    scene.transport.closing = True
    scene.outgoing.write([b"a"])
    scene.outgoing.write_soon([b"b"])
    scene.turn.run()
    assert (scene.transport.pieces, scene.transport.limits) == ([], [])
    assert not scene.outgoing.is_written
    scene.outgoing.watch()
    assert scene.transport.limits == []


def test_behind_the_end_nothing_is_kept() -> None:
    scene = Scene(takes=0)
    scene.outgoing.write([bytes(PIECE_BYTES), b"rest"])
    scene.outgoing.write_soon([b"more"])
    scene.outgoing.end()
    scene.turn.run()
    assert not scene.outgoing.is_waiting
    assert not scene.outgoing.is_written
    assert (scene.transport.pieces, scene.written) == ([PIECE_BYTES], 0)
