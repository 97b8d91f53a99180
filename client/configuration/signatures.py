"""Gives a class the settings of its configuration as parameters, without repeating their rows."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast, get_args, get_origin

from odradek.client.configuration.settings import Accepting
from odradek.client.errors.client_errors import ConfigError

__all__ = ["config_of", "configured_by"]

_P = ParamSpec("_P")
_ConfigT = TypeVar("_ConfigT")
_SelfT = TypeVar("_SelfT")


def config_of(kind: Callable[_P, _ConfigT], values: Sequence[Any], settings: Mapping[str, Any]) -> _ConfigT:
    """The configuration that a call's arguments mean: a ready one (`config=`), or the settings of one.

    Raises ConfigError, also when `bootstrap_servers` is missing or settings stand beside `config`.
    """
    assert isinstance(kind, type)
    if (config := settings.get("config")) is None:
        if not values and "bootstrap_servers" not in settings:
            hint = "Name one broker or more, such as 'localhost:9092'."
            raise ConfigError("bootstrap_servers is missing", settings=("bootstrap_servers",), hint=hint)
        return cast(_ConfigT, kind(*values, **{name: value for name, value in settings.items() if name != "config"}))
    others = ["bootstrap_servers"] * bool(values) + [name for name in settings if name != "config"]
    if others or not isinstance(config, kind):
        why = f"and so are {', '.join(others)}" if others else f"to a {type(config).__name__}, not a {kind.__name__}"
        hint = "Use `dataclasses.replace(config, ...)` for another value." if others else ""
        raise ConfigError(f"config is set, {why}", settings=("config", *others), hint=hint)
    return cast(_ConfigT, config)


def configured_by(
    kind: Callable[_P, _ConfigT],
) -> Callable[[Callable[[_SelfT, _ConfigT], None]], Callable[Concatenate[_SelfT, _P], None]]:
    """Gives an `__init__(self, config)` the parameters of a configuration, for callers, type checkers and editors.

    At run time it also takes a ready `config=`. For that to be typed, too, use it in an overload:

        @overload
        @configured_by(ProducerConfig)
        def __init__(self, config: ProducerConfig) -> None: ...
        @overload
        def __init__(self, *, config: ProducerConfig) -> None: ...
        def __init__(self, *values: Any, **settings: Any) -> None:
            config = config_of(ProducerConfig, values, settings)
    """

    def decorate(function: Callable[[_SelfT, _ConfigT], None]) -> Callable[Concatenate[_SelfT, _P], None]:
        @wraps(function)
        def init(self: _SelfT, /, *values: _P.args, **settings: _P.kwargs) -> None:
            function(self, config_of(kind, values, settings))

        own = next(iter(inspect.signature(function).parameters.values()))
        offered = [own.replace(kind=own.POSITIONAL_ONLY), *map(_readable, inspect.signature(kind).parameters.values())]
        init.__signature__ = inspect.Signature(offered, return_annotation=None)  # type: ignore[attr-defined]
        return init

    return decorate


def _readable(parameter: inspect.Parameter) -> inspect.Parameter:
    """What `help` shows of a setting: what it takes, without `Accepting`."""
    annotation = parameter.annotation
    taken = get_args(annotation)[0] if get_origin(annotation) is Accepting else annotation
    return parameter.replace(annotation=taken)
