"""Regular expressions by which members of consumer groups subscribe (KIP-848): RE2's, as in Kafka, matched against the
whole name of a topic.

RE2 takes a time that is linear in the name, whatever the expression is; Python's own module can be made to take for
ever. The wheel `google-re2` is an extra of the package (`pip install odradek[re2]`).
"""

from importlib import import_module
from typing import Any, Final

from odradek.broker.group.consumer.subscriptions import Matcher
from odradek.protocol.errors import ErrorCode, KafkaError

LENGTH_MAX: Final = 4096


def compile_pattern(text: str) -> Matcher:
    """Whether a name matches as a whole. Raises KafkaError INVALID_REGULAR_EXPRESSION."""
    if len(text) > LENGTH_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"the expression has {len(text)} characters, more than {LENGTH_MAX}"
        )
    try:
        re2: Any = import_module("re2")
    except ImportError:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            "this broker has no RE2: install odradek[re2] there, or subscribe by names",
        ) from None
    try:
        pattern = re2.compile(text)
    except re2.error as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{text!r} is no expression of RE2: {error}") from None
    return lambda name: pattern.fullmatch(name) is not None
