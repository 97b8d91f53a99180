"""Makes messages of any declared class at any version: for Hypothesis, and by a seeded `random.Random` where 100,000 of
them are wanted.

Both follow the layout that the codec follows: what the version carries gets any value that it can carry, what it does
not carry keeps its default. So what is decoded must equal what was encoded, without exceptions.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import strategies as st

from odradek.protocol.codec.layout import Array, Kind, Layout, Nested, Slot, Text, layout_of_message
from odradek.protocol.codec.schema import Message
from odradek.protocol.declared import declared_messages
from odradek.protocol.primitives import Fixed, RecordsMark

INTEGERS = {"b": 8, "h": 16, "i": 32, "q": 64}
LONG = st.integers(127, 200)
"""So many characters take a length of two bytes, in compact form as well. They repeat: to draw each takes its time."""


def _repeated(part: str, size: int) -> str:
    return (part * size)[:size]


TEXTS = st.text(max_size=5) | st.builds(_repeated, st.text(min_size=1, max_size=5), LONG)
BYTES = st.binary(max_size=5) | st.binary(min_size=127, max_size=200)


def declared_versions() -> Iterator[tuple[type[Message], int]]:
    """Every declared message at every version."""
    for cls in declared_messages().values():
        for version in range(cls.min_version, cls.max_version + 1):
            yield cls, version


def declared_layouts() -> Iterator[tuple[type[Message], int]]:
    """Every declared message at the first version of each layout: the codec is compiled from nothing else."""
    for cls in declared_messages().values():
        before: Layout | None = None
        for version in range(cls.min_version, cls.max_version + 1):
            if (layout := layout_of_message(cls, version)) != before:
                yield cls, version
            before = layout


def case_name(case: object) -> str:
    """How a test case is called: `ProduceRequest` or `9`."""
    return case.__name__ if isinstance(case, type) else str(case)


# ------------------------------------------------------------------------------------------------- for Hypothesis
_MADE: dict[tuple[type[Message], int], st.SearchStrategy[Any]] = {}
"""Hypothesis looks at a strategy when it first draws from it, which takes longer than to draw."""


def messages(cls: type[Message], version: int) -> st.SearchStrategy[Any]:
    """Any value of the message that this version carries."""
    if (cls, version) not in _MADE:
        _MADE[cls, version] = _structs(layout_of_message(cls, version))
    return _MADE[cls, version]


def _structs(layout: Layout) -> st.SearchStrategy[Any]:
    values = {slot.name: _slots(slot) for slot in layout.slots if slot.is_carried}
    return st.fixed_dictionaries(values).map(lambda chosen: layout.cls(**chosen))


def _slots(slot: Slot) -> st.SearchStrategy[Any]:
    values = _kinds(slot.kind)
    absent = slot.tag is not None and slot.declared.default is None
    return st.none() | values if slot.is_nullable or absent else values


def _kinds(kind: Kind) -> st.SearchStrategy[Any]:
    match kind:
        case Fixed("?"):
            return st.booleans()
        case Fixed("16s"):
            return st.binary(min_size=16, max_size=16)
        case Fixed("d"):
            return st.floats(allow_nan=False)
        case Fixed():
            unsigned = kind.format.isupper()
            bits = INTEGERS[kind.format.lower()]
            return st.integers(0, (1 << bits) - 1) if unsigned else st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
        case Text():
            return TEXTS
        case Array():
            return st.lists(_kinds(kind.element), max_size=3)
        case Nested():
            return _structs(kind.layout)
        case _:
            return BYTES


# ------------------------------------------------------------------------------------------------- by a seed
def random_message(rng: Random, cls: type[Message], version: int) -> Any:
    """A message with several elements a list, most of them small."""
    return _random_struct(rng, layout_of_message(cls, version))


def _random_struct(rng: Random, layout: Layout) -> Any:
    return layout.cls(**{slot.name: _random_slot(rng, slot) for slot in layout.slots if slot.is_carried})


def _random_slot(rng: Random, slot: Slot) -> Any:
    absent = slot.tag is not None and slot.declared.default is None
    if (slot.is_nullable or absent) and rng.random() < 0.3:
        return None
    return _random_kind(rng, slot.kind)


def _random_kind(rng: Random, kind: Kind) -> Any:
    match kind:
        case Fixed("?"):
            return rng.random() < 0.5
        case Fixed("16s"):
            return rng.randbytes(16)
        case Fixed("d"):
            return rng.random()
        case Fixed():
            bits = INTEGERS[kind.format.lower()]
            value = rng.choice((0, 1, rng.getrandbits(bits - 1)))
            return value if kind.format.isupper() or rng.random() < 0.5 else -value
        case Text():
            return "".join(rng.choices("abcxyz-_.äß€😀", k=rng.choice((0, 3, 7, 130))))
        case Array():
            return [_random_kind(rng, kind.element) for _ in range(rng.choice((0, 1, 2, 3)))]
        case Nested():
            return _random_struct(rng, kind.layout)
        case RecordsMark():
            return rng.randbytes(rng.choice((0, 61, 300)))
        case _:
            return rng.randbytes(rng.choice((0, 5, 200)))
