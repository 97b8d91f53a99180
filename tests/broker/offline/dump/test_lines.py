"""Lines as text and as JSON: what can be seen is printed as it is, what cannot in digits, and JSON can be read back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.offline.dump.lines import Line, Value, json_of, text_of

TEXTS: list[tuple[Value, str]] = [
    (7, "7"),
    (True, "true"),
    (False, "false"),
    (None, "null"),
    ("none", "none"),
    ("", '""'),
    ("two words", '"two words"'),
    ('a"b', '"a\\"b"'),
    (b"key", '"key"'),
    (b"", '""'),
    ("Käse".encode(), '"Käse"'),
    (b"one\ntwo\t\r", '"one\\ntwo\\t\\r"'),
    (b"\x00\x07", "0x0007"),
    (b"\xff", "0xff"),
    (b"\x1b[31m", "0x1b5b33316d"),
    ((), "[]"),
    ((("name", b"value"), ("none", None), ("bytes", b"\xfe")), '["name": "value", "none": null, "bytes": 0xfe]'),
]


@pytest.mark.parametrize(("value", "text"), TEXTS)
def test_a_value_as_text(value: Value, text: str) -> None:
    assert text_of(Line("thing", {"field": value})) == f"thing field={text}"


def test_a_line_as_json() -> None:
    headers = (("name", b"value"), ("none", None), ("bytes", b"\xfe"))
    line = Line(
        "record", {"offset": 3, "key": b"k", "value": b"\xff\x00", "none": None, "flag": True, "headers": headers}
    )
    assert json_of(line, "a/b.log") == (
        '{"file": "a/b.log", "kind": "record", "offset": 3, "key": "k", "value_base64": "/wA=", "none": null, '
        '"flag": true, "headers": [{"name": "name", "value": "value"}, {"name": "none", "value": null}, '
        '{"name": "bytes", "value_base64": "/g=="}]}'
    )


names = st.text().filter(lambda name: name not in ("file", "kind"))


@given(st.dictionaries(names, st.one_of(st.none(), st.integers(), st.booleans(), st.text(), st.binary())))
def test_any_line_can_be_printed(fields: dict[str, Value]) -> None:
    line = Line("thing", fields)
    assert text_of(line).startswith("thing")
    read = json.loads(json_of(line, "path"))
    assert (read["kind"], read["file"]) == ("thing", "path")


def test_a_path_that_is_no_text_is_printed() -> None:
    assert json.loads(json_of(Line("thing", {}), "a\udcff"))["file"] == "a\ufffd"
