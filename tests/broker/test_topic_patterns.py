"""Regular expressions of subscriptions are RE2's: of whole names, linear whatever they are, bounded, or refused."""

import sys
from time import process_time

import pytest

from odradek.broker.topic_patterns import LENGTH_MAX, compile_pattern
from odradek.protocol.errors import ErrorCode, KafkaError

TOPIC_NAME_MAX = 249


def refusal(text: str) -> str:
    with pytest.raises(KafkaError) as raised:
        compile_pattern(text)
    assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    return raised.value.message


@pytest.mark.parametrize(
    ("text", "name", "matches"),
    [
        ("orders", "orders", True),
        ("orders", "orders-eu", False),
        ("orders", "my-orders", False),
        ("orders.*", "orders-eu", True),
        ("a|orders", "orders", True),
        ("(?i)ORDERS", "orders", True),
        ("", "orders", False),
    ],
)
def test_an_expression_matches_whole_names(text: str, name: str, matches: bool) -> None:
    assert compile_pattern(text)(name) is matches


@pytest.mark.parametrize("text", ["(a+)+$", "(a|a)*b", "(a*)*b", "(.*a){20}b", "a?" * 100 + "a" * 100])
def test_no_expression_takes_longer_than_the_name_is_long(text: str) -> None:
    """Python's own module needs minutes for most of these."""
    matches = compile_pattern(text)
    begun_s = process_time()
    for _ in range(10):
        matches("a" * (TOPIC_NAME_MAX - 1) + "!")
    assert process_time() - begun_s < 1.0


@pytest.mark.parametrize("text", ["(", "[a", "a{1001}", "(a{1000}){1000}", r"(a)\1", "(?=a)", "(?<!a)b"])
def test_what_re2_does_not_take_is_refused_with_the_reason(text: str) -> None:
    sentence = refusal(text)
    assert repr(text) in sentence
    assert len(sentence) > len(repr(text)) + len(" is no expression of RE2: ")


def test_an_expression_has_at_most_4096_characters() -> None:
    assert compile_pattern("a" * LENGTH_MAX)("a") is False
    assert "4096" in refusal("a" * (LENGTH_MAX + 1))
    assert "4096" in refusal("(" * 1_000_000)


def test_without_re2_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    assert "odradek[re2]" in refusal("orders")
