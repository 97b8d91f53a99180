"""Shows how a declaration is read at a version, and that one which contradicts itself is refused."""

import re
from typing import Any

import pytest

from odradek.protocol.codec.layout import Array, Blob, Nested, Text, layout_of, layout_of_message, smallest_size_bytes
from odradek.protocol.codec.schema import Field, Records, Response, Struct, field, i16, i32, message, struct, uuid
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest
from odradek.protocol.primitives import Fixed, RecordsMark


@struct
class Inner(Struct):
    index: i32
    name: str


@message(key=1, versions=(0, 4), flexible=3)
class Everything(Response):
    number: i32
    flag: bool
    text: str
    blob: bytes
    id: uuid
    numbers: list[i32]
    texts: list[str] | None
    inner: Inner
    inners: list[Inner]
    records: Records
    maybe: Inner | None = field(default=None)
    nullable_later: str | None = field(nullable_since=2, default="")
    some_versions: i16 = field(since=1, until=2, default=5)
    tagged: str | None = field(since=3, tag=1, default=None)
    tagged_struct: Inner | None = field(since=3, tag=0, default=None)


def slots(version: int) -> dict[str, Any]:
    return {slot.name: slot for slot in layout_of_message(Everything, version).slots}


def test_kinds() -> None:
    found = {name: slot.kind for name, slot in slots(3).items()}
    assert found["number"] == Fixed("i", 4)
    assert found["flag"] == Fixed("?", 1)
    assert found["text"] == Text()
    assert found["blob"] == Blob()
    assert found["id"] == Fixed("16s", 16)
    assert found["numbers"] == Array(Fixed("i", 4))
    assert found["texts"] == Array(Text())
    assert found["records"] == RecordsMark()
    assert isinstance(found["inner"], Nested)
    assert found["inner"].layout.cls is Inner


def test_null_is_allowed_where_it_is_declared() -> None:
    nullable = {
        version: [n for n, slot in slots(version).items() if slot.is_carried and slot.is_nullable]
        for version in (1, 2, 3)
    }
    assert nullable[1] == ["texts", "records", "maybe"]
    assert nullable[2] == ["texts", "records", "maybe", "nullable_later"]
    # A tagged struct is absent, never null; a tagged string may be null as well.
    assert nullable[3] == ["texts", "records", "maybe", "nullable_later", "tagged"]


def test_versions() -> None:
    assert [version for version in range(5) if slots(version)["some_versions"].is_carried] == [1, 2]
    assert [version for version in range(5) if slots(version)["tagged"].is_carried] == [3, 4]


def test_tags_are_in_their_order() -> None:
    layout = layout_of_message(Everything, 3)
    assert [slot.name for slot in layout.tagged] == ["tagged_struct", "tagged"]
    assert "tagged" not in [slot.name for slot in layout.plain]


def test_the_smallest_size_counts_every_part() -> None:
    """It bounds counts: an element is never smaller. Inner: int32, empty string, and the empty tag section."""
    assert smallest_size_bytes(Nested(layout_of(Inner, 0, is_flexible=False)), False, False) == 4 + 2
    assert smallest_size_bytes(Nested(layout_of(Inner, 3, is_flexible=True)), False, True) == 4 + 1 + 1
    assert smallest_size_bytes(Nested(layout_of(Inner, 3, is_flexible=True)), True, True) == 1
    assert [smallest_size_bytes(kind, False, False) for kind in (Text(), Blob(), Array(Text()))] == [2, 4, 4]
    assert [smallest_size_bytes(kind, False, True) for kind in (Text(), Blob(), Array(Text()))] == [1, 1, 1]


def test_records_are_found_wherever_they_are() -> None:
    assert layout_of_message(ProduceRequest, 9).holds_records()
    assert layout_of_message(FetchResponse, 4).holds_records()
    assert not layout_of_message(FetchRequest, 4).holds_records()
    assert not layout_of_message(MetadataRequest, 0).holds_records()


def test_a_struct_that_a_version_does_not_know_is_not_looked_into() -> None:
    """DeleteTopicState is of version 6; before, it has nothing to carry."""
    before, after = (layout_of_message(DeleteTopicsRequest, version) for version in (5, 6))
    assert [slot.name for slot in before.plain] == ["topic_names", "timeout_ms"]
    assert [slot.name for slot in after.plain] == ["topics", "timeout_ms"]


def test_a_field_knows_its_versions() -> None:
    assert [Field(since=2, until=3).is_carried_by(version) for version in range(5)] == [False, False, True, True, False]
    assert Field().is_required
    assert not Field(default=None).is_required
    assert not Field(default_factory=list).is_required


@struct
class Empty(Struct):
    later: i32 = field(since=9, default=0)


@message(key=1, versions=(0, 9), flexible=5)
class NoDefault(Response):
    later: i32 = field(since=1)


@message(key=1, versions=(0, 9), flexible=5)
class TaggedTooEarly(Response):
    tagged: i32 = field(since=4, tag=0, default=0)


@message(key=1, versions=(0, 9), flexible=5)
class TaggedWithoutDefault(Response):
    tagged: i32 = field(tag=0)


@message(key=1, versions=(0, 9), flexible=5)
class NeverNull(Response):
    text: str = field(nullable_since=2)


@message(key=1, versions=(0, 9), flexible=5)
class PlainInt(Response):
    number: int


@message(key=1, versions=(0, 9), flexible=5)
class BareList(Response):
    numbers: "list[Any]"


@message(key=1, versions=(0, 9), flexible=None)
class EmptyElements(Response):
    elements: list[Empty]


@pytest.mark.parametrize(
    ("cls", "version", "why"),
    [
        (NoDefault, 0, "NoDefault.later needs a default: version 0 does not carry it"),
        (TaggedTooEarly, 4, "TaggedTooEarly.tagged is tagged, and version 4 has no tags"),
        (TaggedWithoutDefault, 5, "TaggedWithoutDefault.tagged needs a default: it is tagged"),
        (NeverNull, 0, "NeverNull.text has nullable_since and is not declared `| None`"),
        (PlainInt, 0, "PlainInt.number is declared as <class 'int'>, which has no form on the wire"),
        (BareList, 0, "BareList.numbers is declared as typing.Any"),
        (EmptyElements, 0, "elements of EmptyElements.elements have no bytes at version 0"),
    ],
)
def test_a_contradiction_is_refused(cls: type[Response], version: int, why: str) -> None:
    with pytest.raises(TypeError, match=re.escape(why)):
        layout_of_message(cls, version)


def test_elements_with_bytes_are_allowed_again() -> None:
    layout_of_message(EmptyElements, 9)
