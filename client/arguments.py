"""What callers hand over, looked at where it enters, so that the error names the argument and what is wanted. Pure.

A coroutine function in the place of a callback would be called, and its coroutine thrown away: nothing of it would run.
"""

from collections.abc import Iterable
from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, iscoroutinefunction
from math import isfinite
from types import FunctionType, MethodType
from typing import Final

from odradek.client.topic_partition import TopicPartition

__all__ = ["is_coroutine_function", "is_plain_callable", "require_all", "require_callback", "require_iterable"]
__all__ += ["require_flag", "require_kind", "require_partitions", "require_timeout", "require_topic", "require_topics"]

SHOWN_MAX: Final = 80
"""Characters of a value in an error."""
AWAITED: Final = CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE


def is_coroutine_function(value: object) -> bool:
    """Whether a call of this only makes something to be awaited: also behind `partial`, as a method, or as `__call__`
    of an object. (What a plain function returns cannot be seen before it is called.)"""
    while True:
        if isinstance(value, partial):
            value = value.func
        elif isinstance(value, MethodType):
            value = value.__func__
        else:
            break
    if isinstance(value, FunctionType):
        return bool(value.__code__.co_flags & AWAITED) or iscoroutinefunction(value)
    if isinstance(value, type) or not callable(value):
        return False
    call = getattr(type(value), "__call__", None)  # noqa: B004  (not whether it can be called, but by what)
    return iscoroutinefunction(value) or (isinstance(call, FunctionType) and is_coroutine_function(call))


def is_plain_callable(value: object) -> bool:
    """Whether this can be called, and has done its work then."""
    return callable(value) and not is_coroutine_function(value)


def require_callback(name: str, value: object, takes: str) -> None:
    """Raises TypeError for an argument that must be a plain callable. `takes`: its arguments, in words."""
    if is_plain_callable(value):
        return
    if callable(value):
        hint = "it would never be awaited; start a task in a plain function instead"
        raise TypeError(f"{name} must be a callable ({takes}) and no coroutine function, as {value!r} is: {hint}")
    raise TypeError(f"{name} must be a callable ({takes}), not {value!r}")


# --------------------------------------------------------------------------------------- each raises TypeError by name
def require_kind(name: str, value: object, kind: type | tuple[type, ...], wanted: str) -> None:
    """`wanted`: the kind in words, "a whole number". True and False are no numbers."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} must be {wanted}, not {_shown(value)}")


def require_flag(name: str, value: object) -> None:
    """Raises TypeError: what counts as true elsewhere may be meant as "no"."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {_shown(value)}")


def require_topic(name: str, value: object) -> None:
    require_kind(name, value, str, "a topic's name (str)")


def require_timeout(name: str, value: object) -> None:
    """Raises also ValueError for NaN and infinities."""
    require_kind(name, value, (int, float), "a number of milliseconds")
    assert isinstance(value, int | float)
    if not isfinite(value):
        raise ValueError(f"{name} must be a finite number of milliseconds, not {value}")


def require_iterable(name: str, value: object, wanted: str) -> None:
    """A text is none here, though its characters could be iterated over; nor are bytes."""
    is_iterable = hasattr(value, "__iter__") or hasattr(value, "__getitem__")
    if not is_iterable or isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"{name} must be {wanted}, not {_shown(value)}")


def require_all(name: str, values: Iterable[object], kind: type, wanted: str) -> None:
    """Of items that were taken already. `wanted`: what all of them are, "topics' names (str)"."""
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise TypeError(f"{name} must be {wanted}, and has {_shown(value)}")


def require_topics(name: str, values: Iterable[object]) -> None:
    require_all(name, values, str, "topics' names (str)")


def require_partitions(name: str, values: Iterable[object]) -> None:
    wanted = "TopicPartition(topic, partition) of a str and a whole number"
    for value in values:
        require_all(name, (value,), TopicPartition, wanted)
        assert isinstance(value, TopicPartition)
        topic, partition = tuple[object, object](value)
        if not isinstance(topic, str) or not isinstance(partition, int):
            raise TypeError(f"{name} must be {wanted}, and has {_shown(value)}")


def _shown(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + '…'} ({type(value).__name__})"
