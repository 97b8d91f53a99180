"""Records are counted in any portions, and no further than was asked for."""

import pytest

from odradek.broker.tls.record_counter import RecordCounter
from tests.broker.tls.test_client_hello import record

DATA = record(b"x") + record(b"") + record(bytes(16_000)) + record(b"yz")


@pytest.mark.parametrize("portion", [1, 2, 5, 6, 1000, len(DATA)])
def test_any_portions(portion: int) -> None:
    counter = RecordCounter()
    for start in range(0, len(DATA), portion):
        piece = memoryview(DATA[start : start + portion])
        assert counter.feed(piece, 100) == len(piece)
    assert counter.count == 4


def test_it_stops_where_it_is_told_to() -> None:
    counter, rest = RecordCounter(), memoryview(DATA)
    seen: list[bytes] = []
    while rest:
        position = counter.feed(rest, 1)
        seen.append(bytes(rest[:position]))
        rest = rest[position:]
    assert seen == [record(b"x"), record(b""), record(bytes(16_000)), record(b"yz")]
    assert counter.count == 4


def test_a_record_that_is_not_whole_is_not_counted() -> None:
    counter = RecordCounter()
    counter.feed(memoryview(DATA[:-1]), 100)
    assert counter.count == 3
    counter.feed(memoryview(DATA[-1:]), 100)
    assert counter.count == 4
