"""What a client names begins no line of the log, and fills none."""

import pytest

from odradek.broker.handling.log_text import LENGTH_MAX, shown


@pytest.mark.parametrize("text", ["orders", "", "Grüße, Welt", "a" * LENGTH_MAX])
def test_usual_names_are_shown_as_they_are(text: str) -> None:
    assert shown(text) == text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [("a\nWARNING b", r"a\nWARNING b"), ("\x1b[2J", r"\x1b[2J"), ("\u202ea", r"\u202ea"), ("a\0", r"a\x00")],
)
def test_what_cannot_be_printed_is_escaped(text: str, escaped: str) -> None:
    assert shown(text) == escaped


def test_what_is_long_is_cut_and_none_is_said() -> None:
    assert shown("a" * 10_000) == "a" * LENGTH_MAX + "…"
    assert shown(None) == "None"
