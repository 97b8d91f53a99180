"""What tests may write for a record, what is refused, and how records are shown."""

import pytest

from odradek.client.consumer.records import ConsumerRecord
from odradek.testing.record_shapes import RecordShape, send_arguments, shown


@pytest.mark.parametrize(
    ("record", "arguments"),
    [
        (b"v", {"value": b"v", "timestamp_ms": 7}),
        ("é", {"value": "é".encode(), "timestamp_ms": 7}),
        (None, {"value": None, "timestamp_ms": 7}),
        (("k", b"v"), {"key": b"k", "value": b"v", "timestamp_ms": 7}),
        ({"value": "v", "partition": 1, "timestamp_ms": 8}, {"value": b"v", "partition": 1, "timestamp_ms": 8}),
    ],
)
def test_a_record_is_a_value_or_a_pair_or_fields(record: RecordShape, arguments: dict[str, object]) -> None:
    assert send_arguments(record, 7) == arguments


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (3, "keys and values of records are bytes, str or None, not int: 3"),
        ((1, 2, 3), "a tuple is a key and a value, and this one has 3 items"),
        ({"vlaue": b"v"}, "a record has no 'vlaue'; it has"),
    ],
)
def test_what_is_no_record_is_refused(record: RecordShape, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        send_arguments(record, 7)


def test_records_are_shown_by_the_last_and_long_values_by_their_beginning() -> None:
    records = [ConsumerRecord("orders", 0, offset, 0, None, b"x" * 100) for offset in range(25)]
    lines = shown(records).splitlines()
    assert lines[0] == "  … 5 before"
    assert len(lines) == 21
    assert lines[-1].startswith("  orders-0@24 value=b'xxx")
    assert lines[-1].endswith("… (100 bytes)")
    assert shown([]) == "  none"
