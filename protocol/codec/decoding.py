"""Generates the decoder of a message at one version, as Python source.

The source does nothing that the version does not need. What makes it quick (the numbers are in `docs/performance.md`):
numbers that follow one another are unpacked by one `Struct`, together with the first byte of the length after them;
objects are made without their constructor; strings and records are slices.

What makes it safe, for any bytes at all:
- A length below zero is refused, so `pos` only grows.
- A slice beyond the end is silently short, but then `pos` lies beyond the end too: whatever is read next raises
  IndexError or struct.error, and where nothing is, the last line compares `pos` with the size. So no truncation passes.
- A count is refused when its elements, at their smallest, exceed the bytes left; no element is empty (`layout`).
  Nothing is allocated by an announced number alone.
- Structs nest as deeply as their declaration.
"""

from struct import Struct, unpack_from
from typing import Final

from odradek.protocol.codec.layout import (
    NULL_MARK,
    TAGGED_NULL_MARK,
    Array,
    Blob,
    Kind,
    Layout,
    Nested,
    Slot,
    Text,
    smallest_size_bytes,
)
from odradek.protocol.codec.source import Source
from odradek.protocol.errors import MalformedMessage, TrailingBytes
from odradek.protocol.primitives import Fixed, read_unsigned_varint, rest_of_unsigned_varint, skip_tags

TEXT_SIZE_BYTES_MAX: Final = 32767
"""The longest string, in compact form as well as in the one with an int16 (Kafka's MessageDataGenerator)."""


def decoder_source(layout: Layout) -> Source:
    """`decode(buf, pos, size)`, which reads from `pos` to `size`, the length of the memoryview `buf`.

    It raises MalformedMessage, IndexError, struct.error or UnicodeDecodeError for bytes that are no such message.
    """
    source = _Decoder(layout.is_flexible)
    source.bind("wrong_end", _wrong_end)
    with source.block("def decode(buf, pos, size):"):
        source.struct(layout, "message")
        with source.block("if pos != size:"):
            source.line("raise wrong_end(message, pos, size)")
        source.line("return message")
    return source


def _wrong_end(message: object, pos: int, size: int) -> MalformedMessage:
    text = f"the message ends at byte {pos} of {size}"
    return TrailingBytes(text, message) if pos < size else MalformedMessage(text)


class _Decoder(Source):
    def __init__(self, is_flexible: bool) -> None:
        super().__init__()
        self.is_flexible = is_flexible
        self._run: list[tuple[str, Fixed]] = []  # targets, to be unpacked together
        self.bind("MalformedMessage", MalformedMessage)
        self.bind("new", object.__new__)

    def struct(self, layout: Layout, var: str) -> None:
        self.line(f"{var} = new({self.bind(layout.cls.__name__, layout.cls)})")
        for slot in layout.slots:
            if slot.tag is not None or not slot.is_carried:
                self.line(f"{var}.{slot.name} = {self.default(slot.declared)}")
        for slot in layout.plain:
            self._value(slot.kind, f"{var}.{slot.name}", slot.is_nullable)
        if layout.is_flexible:
            self._tags(layout.tagged, var)

    def flush(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        formats = "".join(fixed.format for _target, fixed in run)
        targets = ", ".join(target for target, _fixed in run)
        if formats == "B":
            self.line(f"{targets} = buf[pos]")
        else:
            unpack = self.bind(f"unpack_{formats.replace('?', 'o')}", _unpacker(formats))
            self.line(f"{targets}{',' if len(run) == 1 else ''} = {unpack}(buf, pos)")
        self.line(f"pos += {sum(fixed.size_bytes for _target, fixed in run)}")

    def _value(self, kind: Kind, target: str, is_nullable: bool, null_mark: int = NULL_MARK) -> None:
        match kind:
            case Fixed():
                self._run.append((target, kind))
            case Nested():
                self._nested(kind, target, is_nullable, null_mark)
            case _:
                self._sized(kind, target, is_nullable)

    def _nested(self, kind: Nested, target: str, is_nullable: bool, null_mark: int) -> None:
        var = self.local("part")
        if not is_nullable:
            self.struct(kind.layout, var)
            self.line(f"{target} = {var}")
            return
        marker = self.local("marker")
        self._run.append((marker, Fixed("b", 1)))
        with self.block(f"if {marker} <= {null_mark}:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            self.struct(kind.layout, var)
            self.line(f"{target} = {var}")

    def _sized(self, kind: Kind, target: str, is_nullable: bool) -> None:
        """What has a length or a count in front of it, in which -1 is null."""
        length = self._length(isinstance(kind, Text))
        if is_nullable:
            with self.block(f"if {length} >= 0:"):
                self._content(kind, target, length)
            with self.block(f"elif {length} == -1:"):
                self.line(f"{target} = None")
            with self.block("else:"):
                self._refuse(f"{target} has the length {{{length}}}")
        else:
            with self.block(f"if {length} < 0:"):
                self._refuse(f"{target} has the length {{{length}}}")
            self._content(kind, target, length)

    def _length(self, is_text: bool) -> str:
        length = self.local("n")
        if not self.is_flexible:
            self._run.append((length, Fixed("h", 2) if is_text else Fixed("i", 4)))
            self.flush()
            return length
        self._varint(length, TEXT_SIZE_BYTES_MAX + 1 if is_text else None)
        self.line(f"{length} -= 1")
        return length

    def _varint(self, target: str, most: int | None = None) -> None:
        """An unsigned varint, which is nearly always one byte and is read with the numbers before it."""
        self._run.append((target, Fixed("B", 1)))
        with self.block(f"if {target} > 127:"):
            rest = self.bind(rest_of_unsigned_varint.__name__, rest_of_unsigned_varint)
            self.line(f"{target}, pos = {rest}(buf, pos, {target})")
            if most is not None:
                with self.block(f"if {target} > {most}:"):
                    self._refuse(f"a string of {{{target} - 1}} bytes")

    def _content(self, kind: Kind, target: str, length: str) -> None:
        if isinstance(kind, Array):
            self._array(kind.element, target, length)
            return
        self.line(f"end = pos + {length}")
        match kind:
            case Text():
                self.line(f'{target} = str(buf[pos:end], "utf-8")')
            case Blob():
                self.line(f"{target} = bytes(buf[pos:end])")
            case _:
                self.line(f"{target} = buf[pos:end]")
        self.line("pos = end")

    def _array(self, element: Kind, target: str, count: str) -> None:
        smallest = smallest_size_bytes(element, False, self.is_flexible)
        with self.block(f"if {count} * {smallest} > size - pos:"):
            self._refuse(f"{target} has {{{count}}} elements of at least {smallest} bytes in {{size - pos}} bytes")
        if isinstance(element, Fixed) and len(element.format) == 1:
            unpack = self.bind(unpack_from.__name__, unpack_from)
            self.line(f'{target} = list({unpack}(f">{{{count}}}{element.format}", buf, pos))')
            self.line(f"pos += {count} * {element.size_bytes}")
            return
        items, item = self.local("items"), self.local(target.rpartition(".")[2])
        self.line(f"{target} = {items} = []")
        with self.block(f"for _ in range({count}):"):
            if isinstance(element, Nested):
                self.struct(element.layout, item)
            else:
                self._value(element, item, False)
                self.flush()
            self.line(f"{items}.append({item})")

    def _tags(self, known: list[Slot], var: str) -> None:
        count = self.local("tags")
        if not known:
            self._run.append((count, Fixed("B", 1)))
            with self.block(f"if {count}:"):
                skip = self.bind(skip_tags.__name__, skip_tags)
                self.line(f"pos = {skip}(buf, pos - 1, size)")
            return
        self._varint(count)
        tag, last, read = self.local("tag"), self.local("last"), self.bind("read", read_unsigned_varint)
        with self.block(f"for _ in range({count}):"):
            self.line(f"{tag}, pos = {read}(buf, pos)")
            self.line(f"{last}, pos = {read}(buf, pos)")
            self.line(f"{last} += pos")
            with self.block(f"if {last} > size:"):
                self._refuse(f"tag {{{tag}}} of {var} ends beyond the message")
            keyword = "if"
            for slot in known:
                with self.block(f"{keyword} {tag} == {slot.tag}:"):
                    self._value(slot.kind, f"{var}.{slot.name}", slot.is_nullable, TAGGED_NULL_MARK)
                keyword = "elif"
            with self.block("else:"):
                self.line(f"pos = {last}")
            with self.block(f"if pos != {last}:"):
                self._refuse(f"tag {{{tag}}} of {var} has another size than its content")

    def _refuse(self, why: str) -> None:
        self.line(f'raise MalformedMessage(f"{why}")')


_UNPACKERS: dict[str, object] = {}


def _unpacker(formats: str) -> object:
    """The same function for the same formats, so that a source binds it once."""
    return _UNPACKERS.setdefault(formats, Struct(f">{formats}").unpack_from)
