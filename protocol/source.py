"""Writes Python source: lines, blocks, and the objects that the source refers to by name.

The generators of `codec` (decoders, encoders, constructors) build on it. A name that the source uses is bound to an
object in `bindings`, which become the globals of the compiled function.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from protocol.layout import default_source
from protocol.schema import Field


class Source:
    """The source of one function while it grows."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.bindings: dict[str, Any] = {}
        self._depth = 0
        self._locals = 0

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def flush(self) -> None:
        """Writes what was held back to be merged; a block neither begins nor ends before that."""

    @contextmanager
    def block(self, head: str) -> Generator[None, None, None]:
        self.flush()
        self.line(head)
        self._depth += 1
        yield
        self.flush()
        self._depth -= 1

    def local(self, prefix: str) -> str:
        """A variable of its own."""
        self._locals += 1
        return f"{prefix}{self._locals}"

    def bind(self, name: str, value: object) -> str:
        """Lets the source refer to an object by this name, or by one like it where that is taken."""
        while self.bindings.setdefault(name, value) is not value:
            name += "_"
        return name

    def default(self, declared: Field) -> str:
        """An expression for the default of an attribute."""
        expression = default_source(declared)
        if expression is None:
            factory = declared.default_factory
            assert factory is not None
            expression = f"{self.bind(_name_of(factory), factory)}()"
        return expression


def _name_of(factory: Callable[[], object]) -> str:
    name = getattr(factory, "__name__", "")
    return name if name.isidentifier() else "make"
