"""Moments as commands take them."""

import click
import pytest

from odradek.client.commands.moment import Moment, parse_moment


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("@1700000000000", 1_700_000_000_000),
        ("@0", 0),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.5+00:00", 1_700_000_000_500),
        ("1900-01-01T00:00Z", 0),
    ],
)
def test_a_moment_is_milliseconds_since_1970(text: str, milliseconds: int) -> None:
    assert parse_moment(text) == Moment().convert(text, None, None) == milliseconds


@pytest.mark.parametrize("text", ["", "yesterday", "@", "@-1", "@1.5", "12:00", f"@{'9' * 19}"])
def test_what_is_none_is_refused_with_the_forms_that_there_are(text: str) -> None:
    assert parse_moment(text) is None
    with pytest.raises(click.BadParameter, match="2026-08-01T12:00"):
        Moment().convert(text, None, None)
