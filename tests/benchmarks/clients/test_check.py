"""What was read back is accepted only when it is what was sent: one thing is made wrong after the other."""

import dataclasses
from collections.abc import Callable

import pytest

from benchmarks.clients.check import Expected, Reckoning
from benchmarks.contenders.client_load import PARTITION_COUNT, ClientLoad
from benchmarks.produce import LogDiffers
from odradek.protocol.batches.records import Record

LOAD = ClientLoad("t", count=200, warm_count=20, value_bytes_min=50, value_bytes_max=150, key_bytes=16)
EXPECTED = Expected(LOAD.records())
Partitions = list[list[Record]]


def as_sent() -> Partitions:
    """What a topic holds when all went well."""
    partitions: Partitions = [[] for _ in range(PARTITION_COUNT)]
    for (value, key), partition in zip(EXPECTED.records, EXPECTED.partitions, strict=True):
        partitions[partition].append(Record(len(partitions[partition]), 1500, key, value))
    return partitions


def check(partitions: Partitions, *, in_order: bool = True, expected: Expected = EXPECTED) -> None:
    reckoning = Reckoning(expected, since_ms=1000, until_ms=2000, in_order=in_order)
    for partition, records in enumerate(partitions):
        reckoning.take(partition, records)
    reckoning.close()


def test_what_was_sent_is_accepted() -> None:
    check(as_sent())


def test_keys_lie_where_javas_murmur2_puts_them() -> None:
    """The hashes are those of Kafka's UtilsTest (testMurmur2), made positive."""
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}
    expected = Expected([(b"", key) for key in hashes])
    assert expected.partitions == [(code & 0x7FFFFFFF) % PARTITION_COUNT for code in hashes.values()]


def lose_one(partitions: Partitions) -> None:
    del partitions[3][2]


def lose_the_last(partitions: Partitions) -> None:
    partitions[EXPECTED.partitions[-1]].pop()


def double_one(partitions: Partitions) -> None:
    partitions[3].insert(3, partitions[3][2])


def change_a_byte(partitions: Partitions) -> None:
    value = partitions[3][2].value
    assert value is not None
    partitions[3][2] = partitions[3][2]._replace(value=value[:-1] + bytes((value[-1] ^ 1,)))


def cut_a_value(partitions: Partitions) -> None:
    partitions[3][2] = partitions[3][2]._replace(value=(partitions[3][2].value or b"")[:-1])


def take_another_key(partitions: Partitions) -> None:
    partitions[3][2] = partitions[3][2]._replace(key=partitions[3][3].key)


def take_the_key_away(partitions: Partitions) -> None:
    partitions[3][2] = partitions[3][2]._replace(key=None)


def take_the_value_away(partitions: Partitions) -> None:
    partitions[3][2] = partitions[3][2]._replace(value=None)


def add_a_stranger(partitions: Partitions) -> None:
    partitions[3].append(Record(99, 1500, None, b"\xff" * 60))


def add_a_header(partitions: Partitions) -> None:
    partitions[3][2] = partitions[3][2]._replace(headers=(("h", b""),))


def move_to_another_partition(partitions: Partitions) -> None:
    partitions[4].append(partitions[3].pop())


def swap(partitions: Partitions) -> None:
    partitions[3][2], partitions[3][3] = partitions[3][3], partitions[3][2]


def be_early(partitions: Partitions) -> None:
    partitions[3][2] = partitions[3][2]._replace(timestamp_ms=999)


def be_late(partitions: Partitions) -> None:
    partitions[3][2] = partitions[3][2]._replace(timestamp_ms=2001)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lose_one, "1 of 220 records are missing"),
        (lose_the_last, "1 of 220 records are missing, record 219 first"),
        (double_one, "is there twice"),
        (change_a_byte, "was not sent"),
        (cut_a_value, "was not sent"),
        (take_another_key, "was not sent"),
        (take_the_key_away, "was not sent"),
        (take_the_value_away, "was not sent"),
        (add_a_stranger, "was not sent"),
        (add_a_header, "was not sent"),
        (move_to_another_partition, "is in partition 4, its key belongs in 3"),
        (swap, "comes after"),
        (be_early, "has the timestamp 999, not 1000 to 2000"),
        (be_late, "has the timestamp 2001"),
    ],
)
def test_what_differs_is_found(spoil: Callable[[Partitions], None], said: str) -> None:
    partitions = as_sent()
    spoil(partitions)
    with pytest.raises(LogDiffers, match=said):
        check(partitions)


def test_the_same_record_in_two_partitions_is_there_twice() -> None:
    keyless = Expected(dataclasses.replace(LOAD, key_bytes=0).records())
    records = [Record(offset, 1500, None, value) for offset, (value, _key) in enumerate(keyless.records)]
    check([records], expected=keyless)
    with pytest.raises(LogDiffers, match="record 0 is there twice"):
        check([records, records[:1]], expected=keyless)


def test_many_tasks_may_send_in_any_order() -> None:
    partitions = as_sent()
    swap(partitions)
    check(partitions, in_order=False)
