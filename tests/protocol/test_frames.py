"""Shows that frames come out whole however their bytes arrive, that nobody's frame is overwritten, and that the buffer
grows with what has come and not with what is announced."""

import struct
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import (
    CAPACITY_KEPT_MAX,
    CAPACITY_MIN,
    FrameReader,
    RequestHeader,
    peek_request,
    read_request_header,
    read_response_header,
    request_frame,
    response_frame,
)
from odradek.protocol.primitives import Buffer

MIB = 1 << 20
SIZE_BYTES_MAX = 100 * MIB


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def taken(reader: FrameReader) -> list[bytes]:
    """Copies of all frames that are whole."""
    out: list[bytes] = []
    while (frame := reader.next_frame()) is not None:
        out.append(bytes(frame))
    return out


def receive(reader: FrameReader, data: bytes, size_bytes: int) -> int:
    """Receives up to so many bytes in one go, as a transport does; returns how many there was room for."""
    room = reader.get_buffer(-1)
    count = min(len(room), size_bytes, len(data))
    room[:count] = data[:count]
    reader.buffer_updated(count)
    return count


def unread_bytes(reader: FrameReader) -> int:
    """How many bytes it has received and not given out as frames."""
    return reader._end - reader._start  # pyright: ignore[reportPrivateUsage]


def test_a_whole_frame_and_the_next() -> None:
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(framed(b"first"))
    assert taken(reader) == [b"first"]
    reader.feed(framed(b"second"))
    assert taken(reader) == [b"second"]
    assert unread_bytes(reader) == 0


def test_two_frames_in_one_and_trailing_bytes() -> None:
    """The beginning of a third frame stays until the rest of it has come."""
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(framed(b"one") + framed(b"") + framed(b"three")[:6])
    assert taken(reader) == [b"one", b""]
    assert unread_bytes(reader) == 6
    reader.feed(framed(b"three")[6:])
    assert taken(reader) == [b"three"]


def test_byte_by_byte() -> None:
    """There is no frame before its last byte, and exactly one then."""
    reader = FrameReader(SIZE_BYTES_MAX)
    payloads = [b"one", b"", b"x" * 300]
    for payload in payloads:
        *others, last = framed(payload)
        for byte in others:
            reader.feed(bytes([byte]))
            assert reader.next_frame() is None
        reader.feed(bytes([last]))
        assert taken(reader) == [payload]


@given(
    sizes=st.lists(st.sampled_from((0, 1, 9, 100, 2000, CAPACITY_MIN - 4, CAPACITY_MIN, 50_000, 300_000)), max_size=30),
    seed=st.integers(0, 2**32),
)
def test_no_frame_changes_while_it_is_held(sizes: list[int], seed: int) -> None:
    """Frames of all sizes arrive in random pieces; some are held, some as slices, some let go at random times. Each is
    equal to what was sent when it comes out, and still equal when it is let go. The connection falls quiet now and
    then, and shares where it receives first with others, which write there."""
    rng = Random(seed)
    payloads = [rng.randbytes(size_bytes) for size_bytes in sizes]
    stream = b"".join(map(framed, payloads))
    landing = rng.choice((None, memoryview(bytearray(CAPACITY_MIN))))
    reader = FrameReader(SIZE_BYTES_MAX, landing)
    held: list[tuple[memoryview, bytes]] = []
    piece = rng.choice((1000, 5000, 20_000, 300_000))
    position = count = 0
    while position < len(stream):
        position += receive(reader, stream[position : position + piece], rng.randint(1, piece))
        if landing is not None:
            landing[:100] = bytes(100)
        if rng.random() < 0.3:
            reader.shrink()
        while rng.random() < 0.9 and (frame := reader.next_frame()) is not None:
            payload = payloads[count]
            assert frame == payload
            count += 1
            begin = rng.randint(0, len(payload))
            held.append(rng.choice(((frame, payload), (frame[begin:], payload[begin:]))))
            del frame
            while held and rng.random() < 0.4:
                view, expected = held.pop(rng.randrange(len(held)))
                assert view == expected
                del view
    assert [*payloads[:count], *taken(reader)] == payloads
    for view, expected in held:
        assert view == expected


def test_a_buffer_that_nobody_holds_is_used_again() -> None:
    """A thousand small requests, each let go before the next is received: one buffer, and never another."""
    reader = FrameReader(SIZE_BYTES_MAX)
    buffer = reader.get_buffer().obj
    for _ in range(1000):
        reader.feed(framed(b"x" * 100))
        assert taken(reader) == [b"x" * 100]
        assert reader.get_buffer().obj is buffer


def test_a_buffer_that_somebody_holds_is_not_begun_again() -> None:
    """A slice of one frame is held while far more than a buffer arrives."""
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(framed(b"held" + bytes(100)))
    frame = reader.next_frame()
    assert frame is not None
    held = frame[:4]
    del frame
    for _ in range(1000):
        reader.feed(framed(b"x" * 100))
        assert taken(reader) == [b"x" * 100]
    assert bytes(held) == b"held"
    assert reader.get_buffer().obj is not held.obj


def test_an_announced_size_allocates_nothing() -> None:
    """99 MiB announced, 4 KiB sent: the first buffer is large enough."""
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(struct.pack(">i", 99 * MIB) + bytes(4096))
    assert reader.next_frame() is None
    assert len(reader.get_buffer()) > 0
    assert reader.capacity_bytes == CAPACITY_MIN


def test_the_buffer_at_most_doubles_what_has_come() -> None:
    """Of an announced frame of 64 MiB, 20 MiB arrive, in pieces of 4 KiB."""
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(struct.pack(">i", 64 * MIB))
    while unread_bytes(reader) < 20 * MIB:
        assert reader.next_frame() is None
        assert len(reader.get_buffer()) > 0
        assert reader.capacity_bytes <= max(2 * unread_bytes(reader), CAPACITY_MIN)
        reader.feed(bytes(4096))


def test_a_reader_of_larger_growth_moves_a_large_frame_less_often() -> None:
    """Of 12 MiB in pieces of 64 KiB: the buffers that it moves out of, and never more room than eight times as much."""
    left: dict[int, list[int]] = {}
    for growth in (2, 8):
        reader = FrameReader(SIZE_BYTES_MAX, growth=growth)
        data = framed(bytes(12 * MIB))
        capacities: dict[int, None] = {}
        position = 0
        while position < len(data):
            capacities[reader.capacity_bytes] = None
            position += receive(reader, data[position : position + 65_536], 65_536)
            assert reader.capacity_bytes <= max(growth * unread_bytes(reader), CAPACITY_MIN)
        assert reader.capacity_bytes == len(data)
        assert taken(reader) == [bytes(12 * MIB)]
        left[growth] = list(capacities)
    assert len(left[8]) <= len(left[2]) / 2


def test_the_buffer_is_not_larger_than_the_frame_it_is_for() -> None:
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(framed(bytes(5 * MIB)))
    assert reader.capacity_bytes == 4 + 5 * MIB
    assert taken(reader) == [bytes(5 * MIB)]


def test_there_is_always_room() -> None:
    """A frame that fills the buffer to its last byte is held: a transport refuses an empty buffer."""
    for reader in (FrameReader(SIZE_BYTES_MAX), grown()):
        reader.feed(framed(bytes(max(reader.capacity_bytes, CAPACITY_MIN) - 4)))
        held = reader.next_frame()
        assert held is not None
        assert len(reader.get_buffer()) > 0
        assert reader.get_buffer().obj is not held.obj


def test_nothing_is_received_by_the_last_few_bytes() -> None:
    """A frame begins 100 bytes before the end of the buffer, where it has no room: it moves before more is received."""
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(framed(bytes(CAPACITY_MIN - 104)) + framed(bytes(1000))[:50])
    assert taken(reader) == [bytes(CAPACITY_MIN - 104)]
    assert len(reader.get_buffer()) == CAPACITY_MIN - 50
    reader.feed(framed(bytes(1000))[50:])
    assert taken(reader) == [bytes(1000)]


def test_room_behind_a_held_frame_is_used() -> None:
    """While one small frame is held, others come into the same buffer, behind it."""
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(framed(b"held"))
    held = reader.next_frame()
    assert held is not None
    for _ in range(100):
        reader.feed(framed(b"x" * 100))
        assert taken(reader) == [b"x" * 100]
        assert reader.get_buffer().obj is held.obj
    assert bytes(held) == b"held"


def test_what_a_large_frame_took_is_given_back() -> None:
    """Once it is taken, the reader holds no more than it keeps for a busy connection."""
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(framed(bytes(8 * MIB)))
    assert reader.capacity_bytes > 8 * MIB
    assert taken(reader) == [bytes(8 * MIB)]
    assert reader.capacity_bytes <= CAPACITY_KEPT_MAX


@pytest.mark.parametrize("piece", [1000, 4096, 65_536])
@pytest.mark.parametrize("size_bytes", [8 * MIB - 4, 8 * MIB, 12 * MIB])
def test_a_frame_of_any_size_is_copied_twice_at_most(size_bytes: int, piece: int) -> None:
    """All buffers that it moves out of are together at most twice as large; quadratic would be hundreds of times."""
    reader = FrameReader(SIZE_BYTES_MAX)
    data = framed(bytes(size_bytes))
    capacities: list[int] = []
    buffer: object = None
    position = 0
    while position < len(data):
        if reader.get_buffer().obj is not buffer:
            buffer = reader.get_buffer().obj
            capacities.append(reader.capacity_bytes)
        position += receive(reader, data[position : position + piece], piece)
        assert (reader.next_frame() is not None) == (position == len(data))
    assert capacities == sorted(capacities)
    assert sum(capacities[:-1]) <= 2 * len(data)


def test_small_frames_behind_one_another_are_not_moved_over_and_over() -> None:
    """10,000 frames of 1,000 bytes in pieces of 1,300: a buffer is begun again, or left for another one, rarely."""
    reader = FrameReader(SIZE_BYTES_MAX)
    data = framed(bytes(996)) * 10_000
    moves = 0
    room_before = len(reader.get_buffer())
    for position in range(0, len(data), 1300):
        reader.feed(data[position : position + 1300])
        taken(reader)
        room = len(reader.get_buffer())
        moves += room > room_before
        room_before = room
    assert moves <= len(data) // (CAPACITY_MIN // 4)


def test_a_connection_that_fills_its_buffer_gets_a_larger_one() -> None:
    reader = FrameReader(SIZE_BYTES_MAX)
    data = framed(bytes(1000)) * 10_000
    position = 0
    while position < len(data):
        position += receive(reader, data[position : position + MIB], MIB)
        taken(reader)
        assert reader.capacity_bytes <= CAPACITY_KEPT_MAX
    assert reader.capacity_bytes == CAPACITY_KEPT_MAX


def grown() -> FrameReader:
    """A reader that has seen a frame of 1 MiB, and keeps a buffer for the next."""
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(framed(bytes(MIB)))
    assert taken(reader) == [bytes(MIB)]
    reader.get_buffer()
    assert reader.capacity_bytes == CAPACITY_KEPT_MAX
    return reader


def test_large_frames_behind_one_another_share_a_buffer() -> None:
    reader = grown()
    buffer = reader.get_buffer().obj
    for _ in range(10):
        reader.feed(framed(bytes(MIB)))
        assert taken(reader) == [bytes(MIB)]
        assert reader.get_buffer().obj is buffer


def test_the_buffer_shrinks_with_what_comes() -> None:
    """Ten small requests after a large one."""
    reader = grown()
    for _ in range(10):
        reader.feed(framed(b"small"))
        assert taken(reader) == [b"small"]
    assert reader.capacity_bytes == CAPACITY_MIN


def test_a_quiet_connection_gives_its_buffer_back() -> None:
    """At once, unless something waits in it; a frame that somebody holds stays."""
    reader = grown()
    reader.feed(framed(b"held")[:5])
    reader.shrink()
    assert (reader.capacity_bytes, unread_bytes(reader)) == (CAPACITY_KEPT_MAX, 5)
    reader.feed(framed(b"held")[5:])
    frame = reader.next_frame()
    reader.shrink()
    assert reader.capacity_bytes == 0
    for size_bytes in (10, 10, CAPACITY_MIN):
        reader.feed(framed(b"x" * size_bytes))
        assert reader.capacity_bytes <= 2 * CAPACITY_MIN
        assert taken(reader) == [b"x" * size_bytes]
    assert bytes(frame or b"") == b"held"


def test_a_reader_that_has_received_nothing_has_no_buffer() -> None:
    """Readers that share a landing receive there first; what they give out is their own."""
    landing = memoryview(bytearray(CAPACITY_MIN))
    first, second = FrameReader(SIZE_BYTES_MAX, landing), FrameReader(SIZE_BYTES_MAX, landing)
    assert first.get_buffer().obj is second.get_buffer().obj is landing.obj
    assert (first.capacity_bytes, second.capacity_bytes) == (0, 0)
    first.feed(framed(b"first") + framed(b"more")[:5])
    second.feed(framed(b"second"))
    frame = first.next_frame()
    assert frame is not None
    assert first.get_buffer().obj is not landing.obj
    assert taken(second) == [b"second"]
    second.shrink()
    second.feed(framed(b"x" * (CAPACITY_MIN - 4)))
    assert taken(second) == [b"x" * (CAPACITY_MIN - 4)]
    first.feed(framed(b"more")[5:])
    assert (bytes(frame), taken(first)) == (b"first", [b"more"])


def test_a_lost_connection_gives_back_what_waits_too() -> None:
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(framed(bytes(1000))[:500])
    reader.drop()
    assert (reader.capacity_bytes, unread_bytes(reader)) == (0, 0)
    assert reader.next_frame() is None


def test_frames_that_are_not_taken_wait() -> None:
    """Reading may pause with whole frames in the buffer: nothing is lost, and there is always room."""
    reader = FrameReader(SIZE_BYTES_MAX)
    payloads = [bytes([i]) * 1000 for i in range(200)]
    for payload in payloads:
        reader.feed(framed(payload))
    assert unread_bytes(reader) == 200 * 1004
    assert taken(reader) == payloads


@pytest.mark.parametrize("size_bytes", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_negative_size_and_one_over_the_bound_are_malformed(size_bytes: int) -> None:
    reader = FrameReader(1000)
    reader.feed(framed(b"good") + struct.pack(">i", size_bytes) + b"rest")
    assert bytes(reader.next_frame() or b"") == b"good"
    with pytest.raises(MalformedMessage, match=f"a frame of {size_bytes} bytes, where 0 to 1000 are allowed"):
        reader.next_frame()
    assert len(reader.get_buffer()) > 0
    assert reader.capacity_bytes == CAPACITY_MIN


def test_a_frame_as_large_as_the_bound_is_allowed() -> None:
    reader = FrameReader(1000)
    reader.feed(framed(bytes(1000)))
    assert taken(reader) == [bytes(1000)]


# ------------------------------------------------------------------------------------------------- headers
# api key 18, version 3, correlation id 7, client id "ab", and what flexible versions add
HEADER = b"\x00\x12\x00\x03\x00\x00\x00\x07\x00\x02ab"


def joined(parts: list[Buffer]) -> bytes:
    return b"".join(parts)


def test_a_request_header() -> None:
    expected = RequestHeader(18, 3, 7, "ab")
    assert peek_request(HEADER) == (18, 3, 7)
    assert read_request_header(HEADER + b"body", flexible=False) == (expected, 12)
    assert read_request_header(HEADER + b"\0body", flexible=True) == (expected, 13)
    assert read_request_header(HEADER + b"\x01\x05\x02xxbody", flexible=True) == (expected, 17)
    assert read_request_header(memoryview(HEADER + b"\0body"), flexible=True) == (expected, 13)


def test_a_request_header_without_client_id() -> None:
    assert read_request_header(HEADER[:8] + b"\xff\xff", flexible=False) == (RequestHeader(18, 3, 7, None), 10)
    assert read_request_header(HEADER[:8] + b"\x00\x00", flexible=False) == (RequestHeader(18, 3, 7, ""), 10)


@pytest.mark.parametrize("flexible", [False, True])
def test_a_cut_request_header_is_malformed(flexible: bool) -> None:
    header = HEADER + (b"\x01\x05\x02xx" if flexible else b"")
    for size_bytes in range(len(header)):
        with pytest.raises(MalformedMessage):
            read_request_header(header[:size_bytes], flexible)
        if size_bytes < 8:
            with pytest.raises(MalformedMessage, match=f"a request of {size_bytes} bytes has no header"):
                peek_request(header[:size_bytes])


@pytest.mark.parametrize(
    ("client_id", "why"),
    [
        (b"\xff\xfe", "a client id of -2 bytes"),
        (b"\x80\x00", "a client id of -32768 bytes"),
        (b"\x00\x02\xc3\x28", "utf-8"),
        (b"\x7f\xffab", "ends beyond"),
    ],
)
def test_a_bad_client_id_is_malformed(client_id: bytes, why: str) -> None:
    with pytest.raises(MalformedMessage, match=why):
        read_request_header(HEADER[:8] + client_id, flexible=False)


def test_a_response_header() -> None:
    assert read_response_header(b"\x00\x00\x00\x07body", flexible_header=False) == (7, 4)
    assert read_response_header(b"\x00\x00\x00\x07\x00body", flexible_header=True) == (7, 5)
    assert read_response_header(b"\x00\x00\x00\x07\x01\x05\x02xxbody", flexible_header=True) == (7, 9)


def test_a_cut_response_header_is_malformed() -> None:
    for header, flexible in ((b"\x00\x00\x00\x07", False), (b"\x00\x00\x00\x07\x01\x05\x02xx", True)):
        for size_bytes in range(len(header)):
            with pytest.raises(MalformedMessage):
                read_response_header(header[:size_bytes], flexible)


@given(
    header=st.builds(
        RequestHeader,
        st.integers(-(2**15), 2**15 - 1),
        st.integers(-(2**15), 2**15 - 1),
        st.integers(-(2**31), 2**31 - 1),
        st.none() | st.text(max_size=300),
    ),
    flexible=st.booleans(),
    body=st.lists(st.binary(max_size=50), max_size=3),
)
def test_a_request_frame_is_read_back(header: RequestHeader, flexible: bool, body: list[bytes]) -> None:
    """Property: what `request_frame` makes of a header, the reader and `read_request_header` give back."""
    reader = FrameReader(SIZE_BYTES_MAX)
    reader.feed(joined(request_frame(header, flexible, body)))
    frame = reader.next_frame()
    assert frame is not None
    assert peek_request(frame) == header[:3]
    read, position = read_request_header(frame, flexible)
    assert read == header
    assert frame[position:] == b"".join(body)


@pytest.mark.parametrize("flexible", [False, True])
def test_a_response_frame_is_read_back(flexible: bool) -> None:
    for body in ([], [b"body"], [b"head", b"records", b"tail"]):
        reader = FrameReader(SIZE_BYTES_MAX)
        reader.feed(joined(response_frame(-7, flexible, body)))
        frame = reader.next_frame()
        assert frame is not None
        correlation_id, position = read_response_header(frame, flexible)
        assert correlation_id == -7
        assert frame[position:] == b"".join(body)


FRAMERS: list[Callable[[list[Buffer]], list[Buffer]]] = [
    lambda parts: request_frame(RequestHeader(0, 9, 1, "c"), True, parts),
    lambda parts: response_frame(1, True, parts),
]


@pytest.mark.parametrize("framer", FRAMERS)
def test_records_are_put_into_a_frame_by_reference(framer: Callable[[list[Buffer]], list[Buffer]]) -> None:
    records = bytes(1000)
    parts = framer([b"head", records, b"tail"])
    assert parts[1] is records
    assert len(parts) == 3
