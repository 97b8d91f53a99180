"""How what a client names is shown in a log: escaped, so that it makes no lines of its own, and cut. Pure."""

from typing import Final

LENGTH_MAX: Final = 64


def shown(text: str) -> str:
    """The text in quotes, at most `LENGTH_MAX` of its characters."""
    cut = text[:LENGTH_MAX]
    return ascii(cut) if cut == text else f"{cut!a}... ({len(text)} characters)"
