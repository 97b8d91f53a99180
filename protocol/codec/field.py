"""What a declaration says about one attribute of a message: the versions that carry it, its default, its tag."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, get_origin, overload

__all__ = ["MISSING", "Field", "default_source", "field"]

MISSING: Final = object()


class Field:
    """What a declaration says about an attribute beside its type. Versions are inclusive; `until` None: still there."""

    __slots__ = ("default", "default_factory", "is_sensitive", "nullable_since", "since", "tag", "until")

    def __init__(
        self,
        since: int = 0,
        until: int | None = None,
        default: object = MISSING,
        default_factory: Callable[[], object] | None = None,
        nullable_since: int | None = None,
        tag: int | None = None,
        is_sensitive: bool = False,
    ) -> None:
        self.since = since
        self.until = until
        self.default = default
        self.default_factory = default_factory
        self.nullable_since = nullable_since
        self.tag = tag
        self.is_sensitive = is_sensitive
        """Whether a log must not tell it; see `contents`."""

    @property
    def is_required(self) -> bool:
        """Whether the constructor insists on a value."""
        return self.default is MISSING and self.default_factory is None

    def is_carried_by(self, version: int) -> bool:
        return self.since <= version and (self.until is None or version <= self.until)


T = TypeVar("T")


@overload
def field(
    *,
    since: int = 0,
    until: int | None = None,
    nullable_since: int | None = None,
    tag: int | None = None,
    is_sensitive: bool = False,
) -> Any: ...
@overload
def field(
    *,
    default: T,
    since: int = 0,
    until: int | None = None,
    nullable_since: int | None = None,
    tag: int | None = None,
    is_sensitive: bool = False,
) -> T: ...
@overload
def field(
    *,
    default_factory: Callable[[], T],
    since: int = 0,
    until: int | None = None,
    nullable_since: int | None = None,
    tag: int | None = None,
    is_sensitive: bool = False,
) -> T: ...
def field(
    *,
    since: int = 0,
    until: int | None = None,
    default: object = MISSING,
    default_factory: Callable[[], object] | None = None,
    nullable_since: int | None = None,
    tag: int | None = None,
    is_sensitive: bool = False,
) -> Any:
    """Says which versions carry an attribute, and how; see the rules above."""
    return Field(since, until, default, default_factory, nullable_since, tag, is_sensitive)


def default_source(declared: Field) -> str | None:
    """The default as a Python expression that makes a new one each time; None where a factory has to be called."""
    if declared.default is not MISSING:
        default = declared.default
        return repr(int(default) if isinstance(default, int) and not isinstance(default, bool) else default)
    factory = declared.default_factory
    return "[]" if factory is list or get_origin(factory) is list else None
