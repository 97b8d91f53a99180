"""What callers hand over, looked at where it enters: functions that are called, and never awaited. Pure.

A coroutine function in such a place would be called, and its coroutine thrown away: nothing of it would ever run.
"""

from functools import partial
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE, iscoroutinefunction
from types import FunctionType, MethodType
from typing import Final

__all__ = ["is_coroutine_function", "is_plain_callable", "require_callback"]

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
