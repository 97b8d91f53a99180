"""What a client names, as the log has it: in one line, whatever it is, and not longer than anybody reads."""

from typing import Final

LENGTH_MAX: Final = 200


def shown(text: str | None) -> str:
    """The text itself, where it is short and can be printed; else escaped and cut. It cannot begin a line of its own,
    nor give orders to a terminal."""
    if text is None:
        return "None"
    cut = text if len(text) <= LENGTH_MAX else f"{text[:LENGTH_MAX]}…"
    return cut if cut.isprintable() else repr(cut)[1:-1]
