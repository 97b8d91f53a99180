"""Values and errors as JSON, between the process of a test and that of its cluster. Pure.

What JSON has is itself; everything else is an object with one key, which says what it is:

    {"bytes": "…"}              base64
    {"tuple": […]}  {"set": […]}
    {"map": [[key, value], …]}  a dictionary
    {"enum": ["MODULE:NAME", "MEMBER"]}
    {"made": ["MODULE:NAME", […]]}          a named tuple, by its fields
    {"made": ["MODULE:NAME", {…}]}          a dataclass, by its fields
    {"error": ["MODULE:NAME", text, arguments, attributes]}

Both ends are of one installation, and one has started the other, so classes go by their names; only Odradek's own do,
and errors of Python itself.
"""

import base64
import builtins
import importlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final, cast

OURS: Final = "odradek."
PLAIN: Final = (bool, int, float, str, type(None))


class NotSendable(TypeError):
    """A value has no form in which it could go to the process of the cluster, or come from there."""


def to_json(value: Any) -> Any:
    """Raises NotSendable."""
    kind: type[Any] = value.__class__  # it is looked at in place of the value, whose type stays open so
    if kind in PLAIN:
        return value
    if kind is list:
        return [to_json(each) for each in value]
    if kind is bytes or kind is bytearray:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is tuple:
        return {"tuple": [to_json(each) for each in value]}
    if kind is set or kind is frozenset:
        return {"set": [to_json(each) for each in value]}
    if issubclass(kind, BaseException):
        return error_to_json(value)
    if (name := _name_of(kind)).startswith(OURS):
        if issubclass(kind, Enum):
            return {"enum": [name, value.name]}
        if issubclass(kind, tuple):
            return {"made": [name, [to_json(each) for each in value]]}
        if is_dataclass(kind):
            made = {each.name: to_json(getattr(value, each.name)) for each in fields(value) if each.init}
            return {"made": [name, made]}
    if issubclass(kind, Mapping):
        return {"map": [[to_json(key), to_json(each)] for key, each in value.items()]}
    raise NotSendable(f"{kind.__module__}.{kind.__qualname__} stays in the process that has it: {value!r}")


def from_json(value: Any) -> Any:
    """What `to_json` was given. Mappings are dictionaries, and bytearrays bytes."""
    kind: type[Any] = value.__class__
    if kind is list:
        return [from_json(each) for each in value]
    if kind is not dict:
        return value
    [(what, held)] = value.items()
    match what:
        case "bytes":
            return base64.b64decode(held)
        case "tuple":
            return tuple(from_json(each) for each in held)
        case "set":
            return {from_json(each) for each in held}
        case "map":
            return {from_json(key): from_json(each) for key, each in held}
        case "enum":
            return _found(held[0])[held[1]]
        case "made":
            return _made(*held)
        case _:
            assert what == "error", what
            return _error(*held)


def error_to_json(error: BaseException) -> Any:
    """Its class, its words and what it knows; of what cannot be sent, how it is shown. One of another package is a
    RuntimeError there."""
    text, kind = str(error), type(error)
    if not (kind.__module__.startswith(OURS) or kind.__module__ == builtins.__name__):
        return error_to_json(RuntimeError(f"{kind.__module__}.{kind.__qualname__}: {text}"))
    # (The name of a file is not among the arguments of an OSError that are to be seen.)
    arguments = OSError.__reduce__(error)[1] if isinstance(error, OSError) else error.args
    attributes = {name: _or_shown(each) for name, each in vars(error).items()}
    return {"error": [_name_of(kind), text, [_or_shown(each) for each in arguments], attributes]}


def _made(name: str, parts: list[Any] | dict[str, Any]) -> Any:
    if isinstance(parts, list):
        return _found(name)(*[from_json(each) for each in parts])
    return _found(name)(**{field: from_json(each) for field, each in parts.items()})


def _error(name: str, text: str, arguments: list[Any], attributes: dict[str, Any]) -> BaseException:
    """An error's own `__init__` has made its words of other arguments, so it is not called again."""
    kind = cast(type[BaseException], _found(name))
    for known in ([from_json(each) for each in arguments], [text]):
        error = kind.__new__(kind, *known)
        error.__dict__.update({key: from_json(each) for key, each in attributes.items()})
        if str(error) == text:
            return error
    return RuntimeError(text)


def _or_shown(value: Any) -> Any:
    try:
        return to_json(value)
    except NotSendable:
        return repr(value)


def _name_of(kind: type[Any]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _found(name: str) -> Any:
    """The class that `_name_of` has named."""
    module, _, path = name.partition(":")
    assert module.startswith(OURS) or module == builtins.__name__, name
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found
