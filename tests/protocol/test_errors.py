"""Shows the error codes by what clients rely on: numbers, names, which may be retried, and how a producer reacts.

Names, numbers and reactions are compared with what Apache Kafka's own classes say (tests/client/golden/java_facts.py).
"""

from typing import Any

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError, MalformedMessage, Reaction, code_of, produce_reaction
from tests.client.golden import java_facts


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


# ------------------------------------------------------------------------------------------- the producer's reactions
KAFKA_ERRORS: dict[str, dict[str, Any]] = java_facts.read()["errors"]

SEQUENCES = {"OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "UNKNOWN_PRODUCER_ID"}
"""What the state of idempotence decides about, though two of them have exceptions that are not retriable in Kafka."""
FATAL_EXCEPTIONS = {
    "ClusterAuthorizationException",
    "TransactionalIdAuthorizationException",
    "ProducerFencedException",
    "UnsupportedVersionException",
    "InvalidPidMappingException",
    "AuthenticationException",
}
"""After which Kafka's TransactionManager (`maybeTransitionToErrorState`) and Sender send nothing more."""


def kafkas_reaction(name: str) -> Reaction:
    """What follows from the exception class of a code, by the rules of Sender.java."""
    exceptions: set[str] = set(KAFKA_ERRORS[name]["exceptions"])
    special = {"NONE": Reaction.SUCCESS, "DUPLICATE_SEQUENCE_NUMBER": Reaction.SUCCESS}
    special["MESSAGE_TOO_LARGE"] = Reaction.SPLIT
    if name in special:
        return special[name]
    if name in SEQUENCES:
        return Reaction.SEQUENCE
    if "InvalidMetadataException" in exceptions:
        return Reaction.RETRY_REFRESH
    if "RetriableException" in exceptions:
        return Reaction.RETRY
    return Reaction.FATAL if exceptions & FATAL_EXCEPTIONS else Reaction.FAIL


def test_codes_and_numbers_are_those_of_apache_kafka() -> None:
    assert {name: row["code"] for name, row in KAFKA_ERRORS.items()} == {code.name: int(code) for code in ErrorCode}


@pytest.mark.parametrize("code", list(ErrorCode), ids=lambda code: code.name)
def test_every_code_has_the_reaction_of_kafkas_producer(code: ErrorCode) -> None:
    assert code.reaction is kafkas_reaction(code.name)
    assert produce_reaction(int(code)) is code.reaction


def test_retriable_is_what_kafka_calls_retriable() -> None:
    expected = {name for name, row in KAFKA_ERRORS.items() if "RetriableException" in row["exceptions"]}
    assert {code.name for code in ErrorCode if code.retriable} == expected


@pytest.mark.parametrize("code", [-2, -32768, 134, 9999, 32767])
def test_an_unknown_code_fails_the_batch(code: int) -> None:
    assert produce_reaction(code) is Reaction.FAIL
    assert code_of(code) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_every_number_of_kafka_has_its_code() -> None:
    assert [code_of(int(code)) for code in ErrorCode] == list(ErrorCode)


def test_every_reaction_occurs() -> None:
    assert {code.reaction for code in ErrorCode} == set(Reaction)
    assert [reaction for reaction in Reaction if reaction.retriable] == [Reaction.RETRY, Reaction.RETRY_REFRESH]
