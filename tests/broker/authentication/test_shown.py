"""What a client names, in a log: on one line, and not longer than a line."""

import pytest

from odradek.broker.authentication.shown import LENGTH_MAX, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alice", "'alice'"),
        ("a'b", '"a\'b"'),
        ("a\nERROR all is lost\x1b[2J\u2028", "'a\\nERROR all is lost\\x1b[2J\\u2028'"),
        ("é\u202e", "'\\xe9\\u202e'"),
        ("x" * LENGTH_MAX, f"'{'x' * LENGTH_MAX}'"),
        ("x" * 100_000, f"'{'x' * LENGTH_MAX}'... (100000 characters)"),
    ],
)
def test_it_is_escaped_and_cut(text: str, expected: str) -> None:
    assert shown(text) == expected
