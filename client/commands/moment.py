"""A moment as commands take it: `2026-08-01T12:00` in local time, `2026-08-01T12:00Z`, or `@` and milliseconds."""

import re
from datetime import datetime
from typing import Any, Final

import click

__all__ = ["Moment", "parse_moment"]

MILLISECONDS: Final = re.compile(r"@(\d{1,18})")


def parse_moment(text: str) -> int | None:
    """Milliseconds since 1970; None for a text that is no moment."""
    if match := MILLISECONDS.fullmatch(text):
        return int(match[1])
    try:
        return max(0, int(datetime.fromisoformat(text).timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        return None


class Moment(click.ParamType[int]):
    """The value of an option that is a moment, in milliseconds since 1970."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = value if isinstance(value, int) else parse_moment(str(value))
        if found is None:
            self.fail(f"{value!r} is none of: 2026-08-01T12:00, 2026-08-01T12:00Z, @1700000000000", param, ctx)
        return found
