"""Where two answers, or two states, differ."""

from collections.abc import Iterator
from typing import Any, NamedTuple

Shape = Any
"""Of lists, dicts and plain values."""


class Leaf(NamedTuple):
    """A difference: where, by the names of the fields, and what stands there."""

    path: tuple[str, ...]
    theirs: Shape
    ours: Shape


def leaves_of(theirs: Shape, ours: Shape, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """All differences, as far down as both have the same form."""
    if theirs == ours:
        return
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in theirs | ours:
            yield from leaves_of(theirs.get(key), ours.get(key), (*path, str(key)))
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for value, other in zip(theirs, ours, strict=True):
            yield from leaves_of(value, other, path)
    else:
        yield Leaf(path, theirs, ours)
