"""Java's regular expressions, translated: what both match alike, what differs, what is refused."""

import pytest

from odradek.broker.tls.java_pattern import python_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("^CN=(.*?),OU=.*$", ["CN=a,OU=b"], ["CN=a", "cn=a,OU=b"]),
        ("a.b", ["axb"], ["a\nb", "a\rb", "a\x85b", "a\N{LINE SEPARATOR}b"]),
        (r"a\.b", ["a.b"], ["axb"]),
        (r"\d+", ["12"], ["١٢", "x"]),
        (r"\w+\s\S", ["a_1 b"], ["é b"]),
        (r"[\w.-]+", ["a.b-c"], ["a b", "é"]),
        (r"[^,\\]*", ["ab"], ["a,b", "a\\b"]),
        (r"\p{Alpha}+\p{Digit}[\p{Upper}\p{Punct}]", ["ab1X", "ab1]", "ab1\\"], ["é1X", "ab1x"]),
        (r"\P{Alpha}", ["1"], ["a"]),
        (r"a\h\x41B", ["a AB", "a\tAB"], ["a\nAB"]),
        (r"(?<name>a)\k<name>", ["aa"], ["ab"]),
        (r"(a)\1", ["aa"], ["ab"]),
        (r"(?:a|b)(?=c)c", ["ac", "bc"], ["dc"]),
        (r"a{2,3}+b*?", ["aa", "aaabb"], ["a"]),
        (r"a\/b", ["a/b"], ["ab"]),
        (r"ab\z", ["ab"], ["ab\n"]),
        ("[a&b]", ["&"], ["c"]),
        ("\u017f", ["\u017f"], ["s"]),
    ],
)
def test_what_matches(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = python_pattern(pattern)
    assert [text for text in matching if compiled.fullmatch(text) is None] == []
    assert [text for text in others if compiled.fullmatch(text) is not None] == []


@pytest.mark.parametrize(
    ("text", "found"), [("a", True), ("a\n", True), ("a\r\n", True), ("a\u2029", True), ("ab", False)]
)
def test_the_end_is_before_a_last_line_end_too(text: str, found: bool) -> None:
    assert (python_pattern("a$").match(text) is not None) is found


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("[a-z&&[^b]]", "&& within a class|& within a class"),
        ("[a[b]]", r"\[ within a class"),
        ("[]a]", r"\] within a class"),
        ("[a", "a class without an end"),
        (r"[\D]", r"\\D within a class"),
        ("(?i)a", r"flags within it"),
        ("(?i:a)", r"flags within it"),
        (r"\Qa.b\E", r"\\Q is not supported"),
        (r"\p{IsLatin}", r"\\p\{IsLatin\} is not supported"),
        (r"\pL", r"\\p is not supported"),
        (r"\G", r"\\G is not supported"),
        (r"\x{1F600}", r"\\x\{1 is not supported"),
        (r"\012", r"\\0"),
        (r"(a)\11", r"\\1"),
        (r"\k", "not followed by the name"),
        ("a\\", "ends with a backslash"),
        ("(a", "no regular expression"),
        ("*a", "no regular expression"),
        (r"\2", "no regular expression"),
        ("(?P<x>a)", "is not supported"),
    ],
)
def test_what_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        python_pattern(pattern)
