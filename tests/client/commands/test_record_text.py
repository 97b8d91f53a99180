"""Records as text: what `consume` prints is what `produce` reads, for any bytes, and odd lines are refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.commands.record_text import RecordToSend, json_of, line_of, record_of_json, record_of_line
from odradek.protocol.batches.records import Record

BYTES = st.one_of(st.none(), st.binary(max_size=12), st.text(max_size=8).map(str.encode))
HEADERS = st.lists(st.tuples(st.text(max_size=4), BYTES), max_size=3).map(tuple)
RECORDS = st.builds(
    Record, st.integers(0, 1 << 40), st.one_of(st.just(-1), st.integers(0, 1 << 50)), BYTES, BYTES, HEADERS
)


@given(RECORDS)
def test_what_is_printed_as_json_is_read_back(record: Record) -> None:
    line = json_of("orders", 3, record)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    found = json.loads(line)
    assert (found["topic"], found["partition"], found["offset"]) == ("orders", 3, record.offset)
    timestamp_ms = record.timestamp_ms if record.timestamp_ms >= 0 else None
    assert record_of_json(line) == RecordToSend(record.key, record.value, record.headers, timestamp_ms)


def test_json_is_what_the_documentation_shows() -> None:
    record = Record(7, 1_700_000_000_000, b"k", "zwei Größen".encode(), (("h", b"1"),))
    assert (
        json_of("orders", 0, record)
        == (
            '{"topic": "orders", "partition": 0, "offset": 7, "timestamp_ms": 1700000000000, "key": "k", '
            '"value": "zwei Größen", "headers": [{"name": "h", "value": "1"}]}\n'
        ).encode()
    )
    bare = json.loads(json_of("orders", 0, Record(8, -1, b"\xff\x00", None)))
    assert (bare["key_base64"], bare["value"], bare["timestamp_ms"], bare["headers"]) == ("/wA=", None, None, [])
    assert "key" not in bare


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "Expecting value"),
        (b"[1]", "no JSON object"),
        (b'{"valu": "x"}', "'valu' is none of"),
        (b'{"value": 1}', "value is no text"),
        (b'{"key": "a", "key_base64": "YQ=="}', "exclude each other"),
        (b'{"value_base64": "not base64!"}', "base64"),
        (b'{"value_base64": "YQ=!="}', "base64"),
        (b'{"timestamp_ms": "now"}', "timestamp_ms is 'now'"),
        (b'{"timestamp_ms": true}', "timestamp_ms is True"),
        (b'{"timestamp_ms": -1}', "timestamp_ms is -1"),
        (b'{"headers": {}}', "headers is no list"),
        (b'{"headers": [1]}', "a header is an object"),
        (b'{"headers": [{"value": "x"}]}', "a header is an object"),
        (b'{"value": "\xff"}', "decode"),
        (b'{"value": "\\ud800"}', "surrogates not allowed"),
        (b'{"timestamp_ms": NaN}', "timestamp_ms is nan"),
        (b'{"timestamp_ms": 1e999}', "timestamp_ms is inf"),
        (b'{"timestamp_ms": 123456789012345678901234567890}', "timestamp_ms is 12345678901234567"),
        (b'{"timestamp_ms": %s}' % (b"9" * 5_000), "4300 digits"),
        (b'{"timestamp_ms": %s}' % (b"9" * 4_000), r"timestamp_ms is 9{10,30}\.\.\.9{10,30}, not"),
        (b'{"%s": 1}' % (b"x" * 100_000), r"'x{5,20}\.\.\.x{5,20}' is none of"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' * 200_000, "nested too deeply"),
        (b'{"timestamp_ms": %s}' % (b"[" * 800 + b"]" * 800), r"timestamp_ms is \[\[\[\[\[\[\[\.\.\.\]"),
    ],
)
def test_an_odd_line_of_json_is_refused(line: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        record_of_json(line)


def test_a_line_of_json_needs_nothing() -> None:
    assert record_of_json(b"{}") == RecordToSend(None, None, (), None)


@given(st.one_of(st.binary(max_size=40), st.text(max_size=20).map(lambda text: b'{"key": "%s"}' % text.encode())))
def test_a_line_of_json_is_a_record_or_a_value_error(line: bytes) -> None:
    try:
        record_of_json(line)
    except ValueError as error:
        assert len(str(error)) < 500


@pytest.mark.parametrize(
    ("line", "separator", "marker", "expected"),
    [
        (b"a:b", None, None, RecordToSend(None, b"a:b")),
        (b"", None, None, RecordToSend(None, b"")),
        (b"a:b:c", b":", None, RecordToSend(b"a", b"b:c")),
        (b":", b":", None, RecordToSend(b"", b"")),
        (b"a=>b", b"=>", None, RecordToSend(b"a", b"b")),
        (b"NULL:NULL", b":", b"NULL", RecordToSend(None, None)),
        (b"a:", b":", b"", RecordToSend(b"a", None)),
        (b"NULL", None, b"NULL", RecordToSend(None, None)),
        (b"a", None, b"NULL", RecordToSend(None, b"a")),
    ],
)
def test_a_line_is_divided_at_its_first_separator(
    line: bytes, separator: bytes | None, marker: bytes | None, expected: RecordToSend
) -> None:
    assert record_of_line(line, separator, marker) == expected


def test_a_line_without_its_separator_is_refused() -> None:
    with pytest.raises(ValueError, match="no key separator ':'"):
        record_of_line(b"a", b":", None)


def test_a_record_is_printed_as_its_value_or_behind_its_key() -> None:
    assert line_of(Record(0, 0, b"k", b"v\xff"), None) == b"v\xff\n"
    assert line_of(Record(0, 0, b"k", b"v"), b"\t") == b"k\tv\n"
    assert line_of(Record(0, 0, None, None), b":") == b":\n"
