"""Generates the encoder of a message at one version, as Python source.

The pieces of a message are collected in a list and joined once. Numbers that follow one another are packed by one
`Struct`, together with the empty tag sections behind them. Records stand in the result as they are, between the joined
pieces, so nobody copies them.
"""

from struct import Struct, pack
from typing import Final

from odradek.protocol.codec.decoding import TEXT_SIZE_BYTES_MAX
from odradek.protocol.codec.field import default_source
from odradek.protocol.codec.layout import NULL_MARK, TAGGED_NULL_MARK, Array, Kind, Layout, Nested, Slot, Text
from odradek.protocol.codec.source import Source
from odradek.protocol.primitives import SMALL_UNSIGNED_VARINTS, Fixed, RecordsMark, unsigned_varint

_ZERO: Final = Fixed("x", 1)


def encoder_source(layout: Layout) -> Source:
    """`encode(message)`, which returns a list of buffers.

    For values that the layout cannot carry it raises TypeError, AttributeError, ValueError or struct.error.
    """
    source = _Encoder(layout.is_flexible)
    with source.block("def encode(message):"):
        holds_records = layout.holds_records()
        if holds_records:
            source.line("parts = []")
        source.line("out = []")
        source.line("write = out.append")
        source.struct(layout, "message")
        source.flush()
        if holds_records:
            with source.block("if out:"):
                source.line('parts.append(b"".join(out))')
            source.line("return parts")
        else:
            source.line('return [b"".join(out)]')
    return source


class _Encoder(Source):
    def __init__(self, is_flexible: bool) -> None:
        super().__init__()
        self.is_flexible = is_flexible
        self._run: list[tuple[str, Fixed]] = []  # expressions, to be packed together

    def struct(self, layout: Layout, var: str) -> None:
        for slot in layout.plain:
            self._value(slot.kind, f"{var}.{slot.name}", slot.is_nullable)
        if layout.is_flexible:
            self._tags(layout.tagged, var)

    def flush(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        formats = "".join(fixed.format for _expression, fixed in run)
        expressions = ", ".join(expression for expression, fixed in run if fixed is not _ZERO)
        if expressions:
            packer = self.bind(f"pack_{formats.replace('?', 'o')}", _packer(formats))
            self.line(f"write({packer}({expressions}))")
        else:
            self.line(f"write({bytes(len(run))!r})")

    def _value(self, kind: Kind, expression: str, is_nullable: bool, null_mark: int = NULL_MARK) -> None:
        if isinstance(kind, Fixed):
            if kind.format == "16s":  # which would cut or fill silently
                with self.block(f"if len({expression}) != 16:"):
                    self.line(f'raise ValueError("{expression} has another size than 16 bytes")')
            self._run.append((expression, kind))
            return
        if is_nullable:
            var = self.local("value")
            self.flush()
            self.line(f"{var} = {expression}")
            with self.block(f"if {var} is None:"):
                self._null(kind, null_mark)
            with self.block("else:"):
                if isinstance(kind, Nested):
                    self._run.append(("1", Fixed("b", 1)))
                self._content(kind, var)
        else:
            self._content(kind, expression)

    def _null(self, kind: Kind, mark: int) -> None:
        if isinstance(kind, Nested):
            self._run.append((str(mark), Fixed("b", 1)))
        elif self.is_flexible:
            self._run.append(("", _ZERO))
        else:
            self._run.append(("-1", Fixed("h", 2) if isinstance(kind, Text) else Fixed("i", 4)))

    def _content(self, kind: Kind, expression: str) -> None:
        match kind:
            case Nested():
                var = self.local("part")
                self.flush()
                self.line(f"{var} = {expression}")
                self.struct(kind.layout, var)
            case Array():
                self._length(f"len({expression})", False)
                self._elements(kind.element, expression)
            case Text():
                text = self.local("text")
                self.flush()
                self.line(f"{text} = {expression}.encode()")
                self._length(f"len({text})", True)
                self.flush()
                self.line(f"write({text})")
            case RecordsMark():
                self._length(f"len({expression})", False)
                with self.block(f"if len({expression}):"):
                    self.line('parts.append(b"".join(out))')
                    self.line(f"parts.append({expression})")
                    self.line("out.clear()")
            case _:
                self._length(f"len({expression})", False)
                self.flush()
                self.line(f"write({expression})")

    def _length(self, expression: str, is_text: bool) -> None:
        if not self.is_flexible:
            self._run.append((expression, Fixed("h", 2) if is_text else Fixed("i", 4)))
            return
        small = self.bind("small", SMALL_UNSIGNED_VARINTS)
        varint = self.bind(unsigned_varint.__name__, unsigned_varint)
        length = self.local("n")
        self.flush()
        self.line(f"{length} = {expression} + 1")
        if is_text:
            with self.block(f"if {length} > {TEXT_SIZE_BYTES_MAX + 1}:"):
                self.line(f'raise ValueError(f"a string of {{{length} - 1}} bytes")')
        self.line(f"write({small}[{length}] if {length} < 128 else {varint}({length}))")

    def _elements(self, element: Kind, expression: str) -> None:
        if isinstance(element, Fixed) and len(element.format) == 1:
            packer = self.bind(pack.__name__, pack)
            self.flush()
            self.line(f'write({packer}(f">{{len({expression})}}{element.format}", *{expression}))')
            return
        item = self.local(expression.rpartition(".")[2])
        with self.block(f"for {item} in {expression}:"):
            if isinstance(element, Nested):
                self.struct(element.layout, item)
            else:
                self._value(element, item, False)

    def _tags(self, known: list[Slot], var: str) -> None:
        if not known:
            self._run.append(("", _ZERO))
            return
        small = self.bind("small", SMALL_UNSIGNED_VARINTS)
        varint = self.bind(unsigned_varint.__name__, unsigned_varint)
        conditions = [self._differs(slot, f"{var}.{slot.name}") for slot in known]
        self.flush()
        self.line(f"write({small}[{' + '.join(f'({condition})' for condition in conditions)}])")
        for slot, condition in zip(known, conditions, strict=True):
            outer, content = self.local("outer"), self.local("content")
            with self.block(f"if {condition}:"):
                self.line("outer, out = out, []".replace("outer", outer))
                self.line("write = out.append")
                # Where None is the default it means absent, and does not come here.
                is_nullable = slot.is_nullable and (isinstance(slot.kind, Nested) or slot.declared.default is not None)
                self._value(slot.kind, f"{var}.{slot.name}", is_nullable, TAGGED_NULL_MARK)
                self.flush()
                self.line(f'{content} = b"".join(out)')
                self.line(f"out = {outer}")
                self.line("write = out.append")
                assert slot.tag is not None
                head = unsigned_varint(slot.tag)
                self.line(f"write({head!r})")
                self.line(f"write({varint}(len({content})))")
                self.line(f"write({content})")

    def _differs(self, slot: Slot, expression: str) -> str:
        """The condition under which a tagged field is sent. Its value is a bool, for they are counted."""
        assert not isinstance(slot.kind, RecordsMark), f"{slot.name}: tagged records are not thought of"
        if isinstance(slot.kind, Nested) and slot.is_nullable:
            return "True"  # None is null, which is sent, too
        default = default_source(slot.declared)
        match default:
            case "None":
                return f"{expression} is not None"
            case None:
                return f"{expression} != {self.default(slot.declared)}"
            case _:
                return f"{expression} != {default}"


_PACKERS: dict[str, object] = {}


def _packer(formats: str) -> object:
    """The same function for the same formats, so that a source binds it once."""
    return _PACKERS.setdefault(formats, Struct(f">{formats}").pack)
