"""What a declaration looks like on the wire at one version: the step between `schema` and the code generators.

`layout_of` reads the annotations of a class and answers, attribute by attribute, whether this version carries it, as
what, whether it may be null, and under which tag. It refuses declarations that contradict themselves, with TypeError.
"""

from types import NoneType
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from odradek.protocol.codec.field import Field
from odradek.protocol.codec.schema import Message, Struct
from odradek.protocol.primitives import BOOL, Fixed, RecordsMark


class Text(NamedTuple):
    """A string: its size in UTF-8, then as many bytes. Size as int16, or as unsigned varint plus one."""


class Blob(NamedTuple):
    """Bytes: size as int32, or as unsigned varint plus one."""


class Array(NamedTuple):
    """Elements of one kind, after their count: int32, or unsigned varint plus one."""

    element: "Kind"


NULL_MARK: Final = -1
TAGGED_NULL_MARK: Final = 0


class Nested(NamedTuple):
    """The fields of a struct. Where it may be null, a byte stands before it: 1, or for null -1 and in a tagged field 0.

    Kafka writes an int8 in the one case and an unsigned varint in the other (MessageDataGenerator).
    """

    layout: "Layout"


Kind = Fixed | Text | Blob | RecordsMark | Array | Nested


class Slot(NamedTuple):
    """One attribute at one version."""

    name: str
    kind: Kind
    is_carried: bool
    is_nullable: bool
    tag: int | None
    declared: Field


class Layout(NamedTuple):
    """A class at one version."""

    cls: type[Struct]
    slots: tuple[Slot, ...]
    is_flexible: bool

    @property
    def plain(self) -> list[Slot]:
        """What the version carries outside of the tag section, in order."""
        return [slot for slot in self.slots if slot.is_carried and slot.tag is None]

    @property
    def tagged(self) -> list[Slot]:
        """What the version carries in the tag section, by tag."""
        carried = [(slot.tag, slot) for slot in self.slots if slot.is_carried and slot.tag is not None]
        return [slot for _tag, slot in sorted(carried, key=lambda pair: pair[0])]

    @property
    def smallest_size_bytes(self) -> int:
        """No value of this layout is shorter."""
        return sum(smallest_size_bytes(slot.kind, slot.is_nullable, self.is_flexible) for slot in self.plain) + (
            1 if self.is_flexible else 0
        )

    def holds_records(self) -> bool:
        return any(slot.is_carried and _holds_records(slot.kind) for slot in self.slots)


def layout_of_message(cls: type[Message], version: int) -> Layout:
    """The layout of a message. Raises ValueError for a version that is not declared."""
    if not cls.min_version <= version <= cls.max_version:
        declared = f"{cls.min_version} to {cls.max_version}"
        raise ValueError(f"{cls.__name__} is declared for versions {declared}, not for {version}")
    return layout_of(cls, version, cls.is_flexible(version))


def layout_of(cls: type[Struct], version: int, is_flexible: bool) -> Layout:
    """The layout of a struct. Raises TypeError for a declaration that contradicts itself."""
    hints = get_type_hints(cls, include_extras=True)
    slots = (_slot(cls, name, hints[name], declared, version, is_flexible) for name, declared in cls.fields.items())
    return Layout(cls, tuple(slots), is_flexible)


def smallest_size_bytes(kind: Kind, is_nullable: bool, is_flexible: bool) -> int:
    """No value of this kind is shorter: it bounds how many elements the bytes that are left can hold."""
    match kind:
        case Fixed():
            return kind.size_bytes
        case Nested():
            return 1 if is_nullable else kind.layout.smallest_size_bytes
        case Text():
            return 1 if is_flexible else 2
        case _:
            return 1 if is_flexible else 4


_PLAIN: Final[dict[object, Kind]] = {bool: BOOL, str: Text(), bytes: Blob()}


def _slot(cls: type[Struct], name: str, hint: Any, declared: Field, version: int, is_flexible: bool) -> Slot:
    where = f"{cls.__name__}.{name}"
    hint, is_optional = _without_none(hint)
    is_carried = declared.is_carried_by(version)
    if declared.is_required and not is_carried:
        raise TypeError(f"{where} needs a default: version {version} does not carry it")
    if declared.tag is not None:
        if is_carried and not is_flexible:
            raise TypeError(f"{where} is tagged, and version {version} has no tags")
        if declared.is_required:
            raise TypeError(f"{where} needs a default: it is tagged")
    if declared.nullable_since is not None and not is_optional:
        raise TypeError(f"{where} has nullable_since and is not declared `| None`")
    # A field that this version leaves out is not looked into: its struct may have nothing to carry at this version.
    kind = _kind(where, hint, version, is_flexible) if is_carried else Blob()
    is_nullable = isinstance(kind, RecordsMark) or (
        is_optional and (declared.nullable_since is None or version >= declared.nullable_since)
    )
    if isinstance(kind, Nested) and declared.tag is not None:
        is_nullable = is_nullable and declared.nullable_since is not None  # absent when None, never null
    return Slot(name, kind, is_carried, is_nullable, declared.tag, declared)


def _without_none(hint: Any) -> tuple[Any, bool]:
    arguments = get_args(hint)
    if get_origin(hint) is Annotated or NoneType not in arguments:
        return hint, False
    (other,) = (argument for argument in arguments if argument is not NoneType)
    return other, True


def _kind(where: str, hint: Any, version: int, is_flexible: bool) -> Kind:
    if get_origin(hint) is Annotated:
        mark = get_args(hint)[1]
        if isinstance(mark, Fixed | RecordsMark):
            return mark
    elif get_origin(hint) is list:
        (of,) = get_args(hint)
        element = _kind(where, of, version, is_flexible)
        if smallest_size_bytes(element, False, is_flexible) == 0:
            raise TypeError(f"the elements of {where} have no bytes at version {version}: any count would be believed")
        return Array(element)
    elif hint in _PLAIN:
        return _PLAIN[hint]
    elif isinstance(hint, type) and issubclass(hint, Struct):
        return Nested(layout_of(hint, version, is_flexible))
    raise TypeError(f"{where} is declared as {hint}, which has no form on the wire")


def _holds_records(kind: Kind) -> bool:
    match kind:
        case RecordsMark():
            return True
        case Array():
            return _holds_records(kind.element)
        case Nested():
            return kind.layout.holds_records()
        case _:
            return False
