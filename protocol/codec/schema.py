"""Declarations of messages: one class a struct, for all its versions at once.

    @struct
    class JoinGroupProtocol(Struct):
        name: str
        metadata: bytes

    @message(key=11, versions=(0, 9), flexible=6)
    class JoinGroupRequest(Request[JoinGroupResponse]):
        group_id: str
        rebalance_timeout_ms: i32 = field(since=1, default=-1)
        group_instance_id: str | None = field(since=5, default=None)
        protocols: list[JoinGroupProtocol]

Rules:
- Attributes stand in the order of Kafka's JSON, which is their order on the wire, under Kafka's names in snake_case.
- Types: the annotations of `odradek.protocol.primitives`, `bool`, `str`, `bytes`, `Records`, a `@struct` class, and
  `list` of these. With `| None` a field is nullable, from its first version on or from `nullable_since`.
- A field that some version does not carry has a default: it is left out when such a version is encoded, and takes the
  default when it is decoded.
- A field whose value belongs into no log is declared `is_sensitive`.
- A tagged field (KIP-482) is sent when it differs from its default. A tagged struct is declared `X | None` with the
  default None, meaning absent: Kafka's own default is a struct full of defaults, which it does not send either. With
  `nullable_since` None means null, and that is sent, for to Kafka an absent one is that struct. So is a list that may
  be null and has the default [].

The decorators write `__slots__`; `Struct` brings equality and repr. Nothing is compiled at import: `constructor` and
`codec` compile what builds, encodes and decodes a class when it is first used. That is why these are no dataclasses: a
slotted one costs 0.5 ms at import.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar, cast, dataclass_transform, get_args, get_origin

from odradek.protocol.codec.constructor import compile_constructor
from odradek.protocol.codec.field import MISSING, Field, field
from odradek.protocol.primitives import (
    ZERO_UUID,
    Buffer,
    Fixed,
    Records,
    f64,
    i8,
    i16,
    i32,
    i64,
    u16,
    u32,
    uuid,
    uuid_from_text,
    uuid_text,
)

__all__ = [
    "ZERO_UUID",
    "Buffer",
    "Field",
    "Fixed",
    "Message",
    "Records",
    "Request",
    "Response",
    "Struct",
    "f64",
    "field",
    "i8",
    "i16",
    "i32",
    "i64",
    "message",
    "struct",
    "u16",
    "u32",
    "uuid",
    "uuid_from_text",
    "uuid_text",
]


class Struct:
    """A group of fields that a message consists of. Compares by value; unhashable, as it can be changed."""

    __slots__ = ()
    fields: ClassVar[dict[str, Field]] = {}

    def __init__(self, **values: Any) -> None:
        # The first instance of a class compiles its constructor, which then stands in for this one.
        cls = type(self)
        constructor = compile_constructor(cls.__qualname__, cls.fields)
        type.__setattr__(cls, "__init__", constructor)
        constructor(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.fields)})"


class Message(Struct):
    """A request or a response: what follows the header in a frame."""

    __slots__ = ()
    api_key: ClassVar[int]
    min_version: ClassVar[int]
    max_version: ClassVar[int]
    flexible_since: ClassVar[int | None]
    """The first version with compact lengths and tag sections (KIP-482); None: there is none yet."""

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        return cls.flexible_since is not None and version >= cls.flexible_since


class Response(Message):
    """The base of all responses."""

    __slots__ = ()


R = TypeVar("R", bound=Response)


class ResponseType:
    """Gives `XRequest.response_type` its type; `message` puts the class itself in its place."""

    def __get__(self, instance: object, owner: "type[Request[R]]") -> type[R]:
        raise AttributeError(f"{owner.__name__} is no declared request")


class Request(Message, Generic[R]):
    """The base of all requests. `response_type` is the class of the response."""

    __slots__ = ()
    response_type = ResponseType()


S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def struct(cls: type[S]) -> type[S]:
    """Makes a declaration of the decorated class."""
    return _declared(cls, {})


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def message(*, key: int, versions: tuple[int, int], flexible: int | None) -> Callable[[type[M]], type[M]]:
    """Makes a declaration of the decorated request or response.

    `versions`: the first and the last one declared. `flexible`: the first with tag sections, None where there is none.
    """

    def declare(cls: type[M]) -> type[M]:
        first, last = versions
        members: dict[str, object] = {
            "api_key": key,
            "min_version": first,
            "max_version": last,
            "flexible_since": flexible,
        }
        for base in vars(cls).get("__orig_bases__", ()):
            if get_origin(base) is Request:  # Request[XResponse]
                (members["response_type"],) = get_args(base)
        return _declared(cls, members)

    return declare


def _declared(cls: type[S], extra: dict[str, object]) -> type[S]:
    members: dict[str, Any] = dict(vars(cls)) | extra
    fields: dict[str, Field] = {}
    for name in members.get("__annotations__", ()):
        given = members.pop(name, MISSING)
        fields[name] = given if isinstance(given, Field) else Field(default=given)
    for unwanted in ("__dict__", "__weakref__"):
        members.pop(unwanted, None)
    members["fields"] = fields
    members["__slots__"] = tuple(fields)
    # A class gets its slots when it is created, so it is created a second time.
    return cast("type[S]", type(cls.__name__, cls.__bases__, members))
