"""Deserializers get whole columns; what one of them refuses is named, and ends the records or is left out."""

import json
from typing import Any

import pytest

from odradek.client.consumer.deserialization import Deserialization, DeserializationError
from odradek.client.fetching.positions import Taken
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.columns import Columns

P = TopicPartition("orders", 0)


def taken(*values: bytes | None) -> Taken:
    columns = Columns()
    columns.offsets = list(range(10, 10 + len(values)))
    columns.timestamps_ms = [0] * len(values)
    columns.keys = [b"k"] * len(values)
    columns.values = list(values)
    return Taken(P, columns, 10 + len(values), 2)


def number(topic: str, data: bytes | None) -> int | None:
    assert topic == "orders"
    return None if data is None else int(data)


def text(topic: str, data: bytes | None) -> str:
    assert topic == "orders"
    return (data or b"").decode()


def parsed(topic: str, data: bytes | None) -> object:
    return json.loads(data or b"null")


def reading(*, skips: bool = False, **deserializers: Any) -> Deserialization:
    key, value = deserializers.get("key"), deserializers.get("value")
    return Deserialization(key, value, skips=skips, name="consumer-1")


def test_without_any_the_bytes_are_handed_out() -> None:
    found, bad = reading().read(taken(b"1", None))
    assert found is not None
    assert (found.values, found.next_offset, found.leader_epoch, bad) == ([b"1", None], 12, 2, None)


def test_every_value_goes_through_and_null_too() -> None:
    found, _ = reading(key=text, value=number).read(taken(b"1", None, b"3"))
    assert found is not None
    assert (found.keys, found.values) == (["k"] * 3, [1, None, 3])


def test_records_before_a_refused_one_are_handed_out_and_it_is_named() -> None:
    found, bad = reading(value=number).read(taken(b"1", b"2", b"x", b"4"))
    assert found is not None
    assert (found.values, found.offsets, found.next_offset) == ([1, 2], [10, 11], 12)
    assert bad is not None
    assert (bad.partition, bad.offset, bad.setting) == (P, 12, "value_deserializer")
    assert isinstance(bad.__cause__, ValueError)
    assert "record 12 of orders-0" in str(bad)
    assert "seek to 13" in str(bad)


def test_a_key_is_named_as_such_and_nothing_comes_before_the_first() -> None:
    found, bad = reading(key=number).read(taken(b"1"))
    assert found is None
    assert bad is not None
    assert bad.setting == "key_deserializer"


def test_refused_ones_are_left_out_with_a_line_that_counts_them(caplog: pytest.LogCaptureFixture) -> None:
    found, bad = reading(value=number, skips=True).read(taken(b"x", b"2", b"y"))
    assert found is not None
    assert (found.values, found.offsets, found.next_offset, bad) == ([2], [11], 13, None)
    assert "consumer-1: 2 record(s) were left out; the first: the value of record 10 of orders-0" in caplog.text
    assert reading(value=number, skips=True).read(taken(b"x")) == (None, None)


def test_a_raised_copy_keeps_its_cause() -> None:
    _, bad = reading(value=parsed).read(taken(b"{"))
    assert bad is not None
    assert isinstance(bad.fresh(), DeserializationError)
    assert isinstance(bad.fresh().__cause__, ValueError)
