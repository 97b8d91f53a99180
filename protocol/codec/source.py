"""Writes Python source and compiles it: lines, blocks, and the objects that the source refers to by name.

What generates decoders, encoders and constructors builds on it. A name that the source uses is bound to an object in
`bindings`, which become the globals of the compiled function. `linecache` knows the source, so that a traceback and a
debugger show the generated lines.
"""

import linecache
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from odradek.protocol.codec.field import Field, default_source


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

    def compiled(self, name: str, filename: str) -> Any:
        """The function `name` that the source defines. `filename` is what a traceback says."""
        text = self.text()
        # Without a modification time, linecache never looks for such a file.
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self.bindings)
        return self.bindings[name]

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
