"""Shows that no bytes can hurt the codec: damaged messages decode to a message or raise MalformedMessage.

Never another exception, never a hang (the test's timeout), and never an allocation by an announced number: what a
decoder allocates is bounded by the bytes that it was given. The seed is printed; ODRADEK_FUZZ_SEED repeats a run.
"""

import os
import random
import tracemalloc
from collections.abc import Callable
from random import Random
from typing import NamedTuple

import pytest

from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Message
from odradek.protocol.errors import MalformedMessage
from odradek.protocol.frames import (
    RequestHeader,
    read_request_header,
    read_response_header,
    request_frame,
    response_frame,
)
from tests.protocol.strategies import case_name, declared_layouts, declared_versions, random_message

MUTATIONS = 60_000

# What a decoded message takes, by byte of its frame. The worst is a topic without a name and without partitions: three
# bytes become an object with two slots (48 bytes), an empty list (56) and a place in a growing list (9).
ALLOCATED_BYTES_A_BYTE = 40
ALLOCATED_BYTES_ANYWAY = 16 * 1024


class Sample(NamedTuple):
    cls: type[Message]
    version: int
    encoded: bytes


def samples(rng: Random, count: int) -> list[Sample]:
    """So many messages of every class and version, encoded."""
    return [
        Sample(cls, version, encode(random_message(rng, cls, version), version))
        for cls, version in declared_versions()
        for _ in range(count)
    ]


# Numbers that a careless decoder would trust, as they stand in a frame.
HOSTILE = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x3f\xff\xff\xff",
    b"\x00\x7f\xff\xff",
    b"\x7f\xff",
    b"\xff\xfe",
    b"\x80\x80\x80\x80\x08",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xff\xff\x7f",
    b"\xff\x7f",
    b"\x00",
)


def overwritten(rng: Random, data: bytearray) -> None:
    hostile = rng.choice(HOSTILE)
    at = rng.randrange(len(data))
    data[at : at + len(hostile)] = hostile


def flipped(rng: Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def changed(rng: Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] = rng.randrange(256)


def cut(rng: Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def shortened(rng: Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.randint(1, 8)]


def lengthened(rng: Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.randint(1, 8))


def repeated(rng: Random, data: bytearray) -> None:
    at, size_bytes = rng.randrange(len(data)), rng.randint(1, 40)
    data[at:at] = data[at : at + size_bytes] * rng.randint(1, 3)


def inserted(rng: Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(HOSTILE)


MUTATORS: tuple[Callable[[Random, bytearray], None], ...] = (
    overwritten,
    flipped,
    changed,
    cut,
    shortened,
    lengthened,
    repeated,
    inserted,
)


def mutated(rng: Random, encoded: bytes) -> bytes:
    data = bytearray(encoded)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if data:
            rng.choice(MUTATORS)(rng, data)
    return bytes(data)


def outcome(cls: type[Message], version: int, data: bytes) -> Message | None:
    """The message that `data` holds, or None when it is malformed. Anything else is for the test to show."""
    try:
        return decode(cls, version, data)
    except MalformedMessage:
        return None


@pytest.fixture
def rng(capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Random:
    seed = int(os.environ.get("ODRADEK_FUZZ_SEED") or random.randrange(1 << 32))
    with capsys.disabled():
        print(f"\n{request.node.name}: ODRADEK_FUZZ_SEED={seed}", flush=True)  # noqa: T201
    return Random(seed)


@pytest.mark.slow
def test_a_mutated_message_is_a_message_or_malformed(rng: Random) -> None:
    """Over all messages and versions. Whatever was decoded can be encoded, and comes back the same."""
    originals = samples(rng, 4)
    decoded = malformed = 0
    while decoded + malformed < MUTATIONS:
        cls, version, encoded = rng.choice(originals)
        data = mutated(rng, encoded)
        try:
            message = outcome(cls, version, data)
            if message is None:
                malformed += 1
            else:
                decoded += 1
                assert decode(cls, version, encode(message, version)) == message
        except Exception as why:
            why.add_note(f"{cls.__name__} v{version}: {data.hex()}")
            raise
    # Both happen often, or the mutations are too tame or too wild to show anything.
    assert decoded > MUTATIONS // 20
    assert malformed > MUTATIONS // 5


@pytest.mark.parametrize("flexible", [False, True])
def test_a_mutated_header_is_a_header_or_malformed(rng: Random, flexible: bool) -> None:
    """Of requests and responses, in the same way; the position of the body lies within the frame."""
    header = RequestHeader(18, 3, 7, "kafka-python-producer-1")
    request = b"".join(request_frame(header, flexible, [b"body"]))[4:]
    response = b"".join(response_frame(7, flexible, [b"body"]))[4:]
    read = 0
    for _ in range(20_000):
        data = mutated(rng, request)
        try:
            read += read_request_header(data, flexible)[1] <= len(data)
        except MalformedMessage:
            read += 1
        data = mutated(rng, response)
        try:
            read += read_response_header(data, flexible)[1] <= len(data)
        except MalformedMessage:
            read += 1
    assert read == 40_000


def test_what_is_allocated_is_bounded_by_the_bytes_given(rng: Random) -> None:
    """The same with tracemalloc's peak around each decoding, which costs more time."""
    originals = samples(rng, 1)
    for cls, version, encoded in originals:  # compiled before it is measured
        decode(cls, version, encoded)
    tracemalloc.start()
    try:
        for _ in range(6000):
            cls, version, encoded = rng.choice(originals)
            check_allocation(cls, version, mutated(rng, encoded))
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("cls", "version"), list(declared_layouts()), ids=case_name)
def test_no_announced_number_is_believed_wherever_it_stands(cls: type[Message], version: int) -> None:
    """A hostile number over a message's bytes, half of them in a run, and cut off behind it; allocations measured."""
    encoded = encode(random_message(Random(f"{cls.__name__} {version}"), cls, version), version)[:250]
    outcome(cls, version, encoded)
    tracemalloc.start()
    try:
        for at in range(random.randrange(2), len(encoded), 2):
            for hostile in HOSTILE[:2] + HOSTILE[7:9]:
                check_allocation(cls, version, encoded[:at] + hostile + encoded[at + len(hostile) :])
                check_allocation(cls, version, encoded[:at] + hostile)
    finally:
        tracemalloc.stop()


def check_allocation(cls: type[Message], version: int, data: bytes) -> None:
    """What decoding allocates, it allocates each time; what another thread allocates meanwhile is not there again."""
    allowed = ALLOCATED_BYTES_A_BYTE * len(data) + ALLOCATED_BYTES_ANYWAY
    attempts = 3
    while (taken := allocated_bytes(cls, version, data)) > allowed:
        attempts -= 1
        assert attempts, f"{cls.__name__} v{version} takes {taken} bytes, not {allowed}: {data.hex()}"


def allocated_bytes(cls: type[Message], version: int, data: bytes) -> int:
    before, _peak = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    outcome(cls, version, data)
    _now, peak = tracemalloc.get_traced_memory()
    return peak - before
