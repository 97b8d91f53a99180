"""A moment as commands take it: `2026-08-01T12:00` in local time, `2026-08-01T12:00Z`, or `@` and milliseconds. They
print it in UTC."""

import re
from datetime import UTC, datetime
from typing import Any, Final

import click

__all__ = ["Moment", "moment_text", "parse_moment"]

MS_PER_S: Final = 1000
MILLISECONDS: Final = re.compile(r"@(\d{1,18})")


def parse_moment(text: str) -> int | None:
    """Milliseconds since 1970; None for a text that is no moment."""
    if match := MILLISECONDS.fullmatch(text):
        return int(match[1])
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        return None


def moment_text(unix_ms: int) -> str:
    """In UTC, to the second; `@` and milliseconds where that is no time that Python knows."""
    try:
        return datetime.fromtimestamp(unix_ms // MS_PER_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"@{unix_ms}"


class Moment(click.ParamType[int]):
    """The value of an option that is a moment, in milliseconds since 1970."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = value if isinstance(value, int) else parse_moment(str(value))
        if found is None:
            self.fail(f"{value!r} is none of: 2026-08-01T12:00, 2026-08-01T12:00Z, @1700000000000", param, ctx)
        return found
