"""Shows the error codes by what clients rely on: numbers, names, and which of them they may retry."""

import pytest

from protocol.errors import ErrorCode, KafkaError, MalformedMessage


def test_codes_are_complete() -> None:
    """-1 to 133 without a gap: Kafka 4.3 has no other."""
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (-1, "UNKNOWN_SERVER_ERROR"),
        (0, "NONE"),
        (6, "NOT_LEADER_OR_FOLLOWER"),
        (17, "INVALID_TOPIC_EXCEPTION"),
        (45, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (100, "UNKNOWN_TOPIC_ID"),
        (120, "TRANSACTION_ABORTABLE"),
        (129, "REBOOTSTRAP_REQUIRED"),
        (133, "SHARE_SESSION_LIMIT_REACHED"),
    ],
)
def test_known_codes(number: int, name: str) -> None:
    assert ErrorCode(number).name == name
    assert ErrorCode[name] == number


def test_retriable_codes() -> None:
    """Those whose exception extends RetriableException in Kafka (129 to 133: franz-go's kerr)."""
    assert [int(code) for code in ErrorCode if code.retriable] == [
        *(2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89),
        *(100, 103, 106, 122, 123, 133),
    ]


def test_every_code_has_a_sentence() -> None:
    for code in ErrorCode:
        assert code.text.endswith(".")
        assert code.text[0].isupper()
    assert len({code.text for code in ErrorCode}) == len(ErrorCode)


def test_an_error_carries_its_code_and_says_why() -> None:
    error = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "1048589 bytes, where 1048588 are allowed")
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert error.message == "1048589 bytes, where 1048588 are allowed"
    assert str(error) == "MESSAGE_TOO_LARGE: 1048589 bytes, where 1048588 are allowed"


def test_an_error_without_a_message_has_the_sentence_of_its_code() -> None:
    assert KafkaError(ErrorCode.NOT_CONTROLLER).message == ErrorCode.NOT_CONTROLLER.text


def test_malformed_bytes_are_no_answer_to_a_peer() -> None:
    """A handler that turns KafkaError into an error code must not catch it."""
    assert not issubclass(MalformedMessage, KafkaError)
