"""`ClientError`, the root of the client's errors: what every one of them has and can do.

One error often ends thousands of records, and whoever raises an exception object adds to its traceback. So an error
that is kept is never raised itself but by `raise error.fresh()`. Errors survive pickling and copying.
"""

from typing import Any, Final, Self

from odradek.protocol.errors import ErrorCode

__all__ = ["ClientError", "printable"]

BROKER_TEXT_LENGTH_MAX: Final = 1000
"""Of what a broker says, so much is kept."""


class ClientError(Exception):
    """The root. `code` is UNKNOWN_SERVER_ERROR for a number that this client does not know, as in Kafka."""

    retriable: bool = False
    fatal: bool = False
    code: ErrorCode | None = None
    broker_message: str = ""
    hint: str = ""

    def __init__(self, message: str, *, broker_message: str | None = "", hint: str | None = None) -> None:
        super().__init__(message)
        if broker_message:
            self.broker_message = printable(broker_message)
        if hint is not None:
            self.hint = hint

    @property
    def message(self) -> str:
        """What happened, without the broker's words and the hint."""
        return str(self.args[0])

    def __str__(self) -> str:
        said = f"The broker says: {self.broker_message}" if self.broker_message else ""
        return " ".join(_sentence(part) for part in (self.message, said, self.hint) if part)

    def fresh(self) -> Self:
        """A copy to raise, without traceback: so the one that is kept for many records does not grow."""
        copy = self.__class__.__new__(self.__class__, *self.args)
        copy.__dict__.update(self._state())
        if self.__cause__ is not None:
            copy.__cause__ = self.__cause__
        return copy

    def _state(self) -> dict[str, Any]:
        state = self.__dict__
        return {**state, "__notes__": list(self.__notes__)} if "__notes__" in state else state

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.__class__, self.args, self._state())


def _restored(kind: type[ClientError], arguments: tuple[object, ...], state: dict[str, Any]) -> ClientError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def printable(text: str) -> str:
    """A peer's text, bounded and without control characters, which could forge lines of a log."""
    shown = "".join(char if char.isprintable() else " " for char in text[: BROKER_TEXT_LENGTH_MAX + 1]).strip()
    return shown if len(shown) <= BROKER_TEXT_LENGTH_MAX else f"{shown[: BROKER_TEXT_LENGTH_MAX - 1]}…"
