"""Frames are cut out of whatever pieces come, and what is none is refused; bodies come back as they were."""

import pytest

from odradek.broker.cluster.socket_store.wire import (
    Frame,
    FrameSplitter,
    MalformedFrame,
    Packer,
    Unpacker,
    encode_frame,
)

FRAMES = [Frame(1, 7, b""), Frame(200, 0xFFFFFFFF, b"body"), Frame(2, 8, bytes(70_000))]
STREAM = b"".join(encode_frame(*frame) for frame in FRAMES)


@pytest.mark.parametrize("size", [1, 3, 10, len(STREAM)])
def test_frames_are_cut_out_of_pieces_of_any_size(size: int) -> None:
    splitter = FrameSplitter()
    stream = STREAM[:40] + STREAM[-100:] if size == 1 else STREAM
    frames = FRAMES[:2] if size == 1 else FRAMES
    found = [frame for begin in range(0, len(stream), size) for frame in splitter.feed(stream[begin : begin + size])]
    assert found[: len(frames)] == frames


def test_a_frame_that_is_not_whole_waits_for_its_rest() -> None:
    splitter = FrameSplitter()
    assert list(splitter.feed(encode_frame(*FRAMES[1])[:-1])) == []
    assert list(splitter.feed(encode_frame(*FRAMES[1])[-1:] + b"\0")) == [FRAMES[1]]


@pytest.mark.parametrize("size", [0, 4, (1 << 30) + 1, 0xFFFFFFFF])
def test_a_size_that_cannot_be_is_refused(size: int) -> None:
    with pytest.raises(MalformedFrame, match=f"{size} bytes"):
        list(FrameSplitter().feed(size.to_bytes(4, "big") + bytes(5)))


def test_a_body_comes_back_as_it_was_put_together() -> None:
    unpacker = Unpacker(Packer().u8(255).u32(1 << 31).u64(1 << 63).text("ö\udcff").blob(b"\0").body())
    assert (unpacker.u8(), unpacker.u32(), unpacker.u64()) == (255, 1 << 31, 1 << 63)
    assert (unpacker.text(), unpacker.blob()) == ("ö\udcff", b"\0")
    unpacker.end()


def test_a_body_that_is_too_short_or_too_long_is_refused() -> None:
    with pytest.raises(MalformedFrame, match="it ends after 3 bytes"):
        Unpacker(b"abc").u32()
    with pytest.raises(MalformedFrame, match="it ends after 5 bytes"):
        Unpacker(Packer().u32(2).body() + b"a").blob()
    with pytest.raises(MalformedFrame, match="1 bytes follow"):
        Unpacker(b"a").end()
