"""Shows what the decorators make of a declaration: slots, a constructor by keywords, equality, repr."""

import copy
import inspect
import pickle
from typing import Any, Generic, TypeVar

import pytest

from odradek.protocol.codec.schema import Message, Request, Response, Struct, field, i16, i32, message, struct

M = TypeVar("M", bound=Message)


class Keyed(Message, Generic[M]):
    __slots__ = ()


@struct
class Part(Struct):
    index: i32
    error_code: i16 = 0
    name: str | None = field(since=2, default=None)
    ids: list[i32] = field(since=2, default_factory=list[i32])


@message(key=7, versions=(1, 3), flexible=2)
class ThingResponse(Response):
    parts: list[Part]


@message(key=7, versions=(1, 3), flexible=None)
class ThingRequest(Request[ThingResponse]):
    part: Part | None = field(default_factory=lambda: Part(index=1))


def test_a_declaration_has_slots_and_nothing_else() -> None:
    part = Part(index=3)
    assert vars(Part)["__slots__"] == ("index", "error_code", "name", "ids")
    assert not hasattr(part, "__dict__")
    with pytest.raises(AttributeError):
        part.other = 1  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def test_a_message_says_what_it_is() -> None:
    assert (ThingRequest.api_key, ThingRequest.min_version, ThingRequest.max_version) == (7, 1, 3)
    assert ThingRequest.flexible_since is None
    assert ThingResponse.flexible_since == 2
    assert [ThingResponse.is_flexible(version) for version in (1, 2, 3)] == [False, True, True]
    assert not ThingRequest.is_flexible(3)
    assert ThingRequest.response_type is ThingResponse


def test_another_generic_message_has_no_response() -> None:
    @message(key=7, versions=(0, 0), flexible=None)
    class Key(Keyed[ThingResponse]):
        name: str

    assert not hasattr(Key, "response_type")


def test_only_declared_requests_have_a_response() -> None:
    with pytest.raises(AttributeError, match="Request is no declared request"):
        _ = Request[ThingResponse].response_type


def test_the_constructor_takes_keywords() -> None:
    part = Part(index=3, name="n", ids=[1])
    assert (part.index, part.error_code, part.name, part.ids) == (3, 0, "n", [1])
    parameters = inspect.signature(Part).parameters
    assert {name: parameter.kind for name, parameter in parameters.items()} == dict.fromkeys(
        Part.fields, inspect.Parameter.KEYWORD_ONLY
    )


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "missing 1 required keyword-only argument: 'index'"),
        ({"index": 1, "indx": 2}, "unexpected keyword argument 'indx'"),
    ],
)
def test_the_constructor_refuses_other_values(values: dict[str, Any], why: str) -> None:
    """The first time too, when it has yet to be compiled."""

    @struct
    class Fresh(Struct):
        index: i32

    for _ in range(2):
        with pytest.raises(TypeError, match=why):
            Fresh(**values)


def test_defaults_are_not_shared() -> None:
    first, second = Part(index=1), Part(index=1)
    assert first.ids == second.ids == []
    assert first.ids is not second.ids
    assert ThingRequest().part == Part(index=1)
    assert ThingRequest().part is not ThingRequest().part
    assert ThingRequest(part=None).part is None


def test_equality_is_by_value_and_class() -> None:
    assert Part(index=1, ids=[2]) == Part(index=1, ids=[2])
    assert Part(index=1) != Part(index=2)
    assert ThingResponse(parts=[Part(index=1)]) == ThingResponse(parts=[Part(index=1)])
    assert ThingResponse(parts=[Part(index=1)]) != ThingResponse(parts=[])

    @struct
    class Other(Struct):
        index: i32
        error_code: i16 = 0
        name: str | None = None
        ids: list[i32] = field(default_factory=list[i32])

    assert Part(index=1) != Other(index=1)


def test_what_can_change_has_no_hash() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Part(index=1))


def test_repr_is_the_call_that_makes_it() -> None:
    response = ThingResponse(parts=[Part(index=1, name="n")])
    assert repr(response) == "ThingResponse(parts=[Part(index=1, error_code=0, name='n', ids=[])])"


def test_copies_are_equal_and_independent() -> None:
    part = Part(index=1, ids=[1])
    for other in (copy.deepcopy(part), pickle.loads(pickle.dumps(part))):  # noqa: S301
        assert other == part
        other.ids.append(2)
        assert other != part


def test_nothing_is_compiled_before_it_is_used() -> None:
    @struct
    class Unused(Struct):
        index: i32

    assert "__init__" not in vars(Unused)
    Unused(index=1)
    assert "__init__" in vars(Unused)


def test_the_bases_declare_nothing() -> None:
    for base in (Struct, Message, Request, Response):
        assert base.fields == {}
        assert base.__slots__ == ()
