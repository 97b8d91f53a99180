"""Where two answers, or two states, differ."""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeGuard

Shape = Any
"""Of lists, dicts and plain values."""


class Leaf(NamedTuple):
    """A difference: where, by the names of the fields, and what stands there. None: nothing."""

    path: tuple[str, ...]
    theirs: Shape
    ours: Shape


def is_dict(shape: object) -> TypeGuard[dict[str, Shape]]:
    return isinstance(shape, dict)


def is_list(shape: object) -> TypeGuard[list[Shape]]:
    return isinstance(shape, list)


def as_dict(shape: object) -> dict[str, Shape] | None:
    return shape if is_dict(shape) else None


def as_list(shape: object) -> list[Shape] | None:
    return shape if is_list(shape) else None


def leaves_of(theirs: Shape, ours: Shape, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """All differences, as far down as both have the same form."""
    if theirs == ours:
        return
    named, items = (as_dict(theirs), as_dict(ours)), (as_list(theirs), as_list(ours))
    if named[0] is not None and named[1] is not None:
        for key in named[0] | named[1]:
            yield from leaves_of(named[0].get(key), named[1].get(key), (*path, key))
    elif items[0] is not None and items[1] is not None and len(items[0]) == len(items[1]):
        for value, other in zip(items[0], items[1], strict=True):
            yield from leaves_of(value, other, path)
    else:
        yield Leaf(path, theirs, ours)
