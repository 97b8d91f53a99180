"""Who is told of which error of a topic and for how long, and when a topic is forgotten, with made-up time."""

import logging

import pytest

from odradek.client.errors.client_errors import AuthorizationError, InvalidTopic
from odradek.protocol.errors import ErrorCode
from tests.client.metadata_answers import answer, failing, topic
from tests.client.metadata_client import MAX_AGE_MS, MAX_IDLE_MS, Client


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.mark.parametrize(
    ("code", "expected"),
    [(ErrorCode.INVALID_TOPIC_EXCEPTION, InvalidTopic), (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError)],
)
def test_what_a_wait_cannot_cure_is_told_to_all_and_asked_again_after_a_while(
    client: Client, code: ErrorCode, expected: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    client.use("a", "good")
    client.refresh(topic("good", 1), failing("a", code))
    assert caplog.record_tuples[-1][:2] == ("odradek.client.cluster.metadata", logging.WARNING)
    for _ in range(3):
        client.use("a")
        error = client.metadata.error_of("a")
        assert type(error) is expected
        assert error is not client.metadata.error_of("a"), "each caller may raise its own"
    assert client.due_in_ms() > 1000, "it is in use no more"
    client.now_ms += 999
    client.use("a")
    assert client.metadata.error_of("a") is not None
    client.now_ms += 1
    client.use("a")
    assert client.metadata.error_of("a") is None
    assert client.due_in_ms() == 0
    client.refresh(topic("a", 1))
    assert client.metadata.topic("a") is not None


@pytest.mark.parametrize("retry_backoff_max_ms", [0, 1, 50])
def test_an_error_is_told_for_a_second_however_short_the_backoff_is(retry_backoff_max_ms: int) -> None:
    client = Client(retry_backoff_ms=0, retry_backoff_max_ms=retry_backoff_max_ms)
    client.use("a", "good")
    client.refresh(failing("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED), topic("good", 1))
    client.now_ms += 999
    client.use("a")
    assert isinstance(client.metadata.error_of("a"), AuthorizationError)
    client.now_ms += 1
    client.use("a")
    assert client.metadata.error_of("a") is None


def test_without_a_backoff_metadata_is_asked_for_at_a_bearable_pace() -> None:
    client = Client(retry_backoff_ms=0, retry_backoff_max_ms=0)
    client.use("a")
    began_ms = client.now_ms
    for _ in range(100):
        client.refresh(failing("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert client.now_ms - began_ms >= 99 * 10
    client.metadata.request_update()
    for _ in range(100):
        client.now_ms += client.due_in_ms()
        client.ask()
        client.metadata.fail(client.now_ms)
    assert client.now_ms - began_ms >= 199 * 10


def test_a_topic_whose_rights_were_taken_away_is_unusable(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", 1))
    client.metadata.request_update()
    client.refresh(failing("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    assert client.metadata.topic("a") is None
    assert isinstance(client.metadata.error_of("a"), AuthorizationError)


@pytest.mark.parametrize(
    "code", [code for code in ErrorCode if code not in (ErrorCode.NONE, *range(17, 18), *range(29, 30))]
)
def test_every_other_error_is_waited_out(client: Client, code: ErrorCode) -> None:
    client.use("a")
    client.refresh(failing("a", code))
    assert client.metadata.error_of("a") is None
    assert client.ask().topics == ("a",)


def test_an_unknown_error_code_is_waited_out_too(client: Client) -> None:
    client.use("a")
    client.refresh(failing("a", 12345))
    heard = client.metadata.heard("a")
    assert heard is not None
    assert heard.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert client.ask().topics == ("a",)


@pytest.mark.parametrize("name", ["lone surrogate \ud800", "x" * 32768, "ü" * 16384])
def test_a_name_that_no_request_can_carry_is_refused_and_harms_no_other(client: Client, name: str) -> None:
    client.use("a", name)
    assert isinstance(client.metadata.error_of(name), InvalidTopic)
    assert len(str(client.metadata.error_of(name))) < 2000
    assert client.ask().topics == ("a",)
    client.now_ms += 5000
    client.use(name)
    assert isinstance(client.metadata.error_of(name), InvalidTopic)
    client.refresh(topic("a", 1))
    client.use("x" * 32767)
    assert client.ask().topics == ("x" * 32767,)


def test_errors_of_topics_that_nobody_uses_are_not_kept(client: Client) -> None:
    for number in range(50):
        client.use(f"t{number}")
    client.refresh(*(failing(f"t{number}", ErrorCode.INVALID_TOPIC_EXCEPTION) for number in range(50)))
    client.now_ms += 1000
    client.metadata.request_update()
    client.refresh()
    assert all(client.metadata.heard(f"t{number}") is None for number in range(50))


# ------------------------------------------------------------------------------------------------------------ expiry
def test_a_topic_out_of_use_is_forgotten_with_the_next_answer(client: Client) -> None:
    client.use("a", "b")
    client.refresh(topic("a", (1, 9)), topic("b", 1))
    client.now_ms += MAX_IDLE_MS - 1
    client.use("b")
    client.now_ms += 1
    client.metadata.request_update()
    client.refresh(topic("a", (1, 9)), topic("b", 1))
    assert client.metadata.topic("a") is None
    assert client.metadata.heard("a") is None
    assert list(client.metadata.topics_in_use) == ["b"]
    client.use("a")
    client.refresh(topic("a", (1, 3)))
    assert client.metadata.leader_of("a", 0) == (1, 3), "nothing is left of what was known"


def test_a_topic_with_an_error_is_not_asked_for_for_ever(client: Client) -> None:
    client.use("a")
    began_ms = client.now_ms
    while client.due_in_ms() < MAX_AGE_MS / 2:
        client.refresh(failing("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        assert client.now_ms < began_ms + 2 * MAX_IDLE_MS
    assert client.metadata.topics_in_use == set()


def test_a_topic_that_was_not_asked_for_yet_is_never_forgotten(client: Client) -> None:
    question = client.ask()
    client.use("a")
    client.now_ms += 2 * MAX_IDLE_MS
    client.apply(question, answer())
    assert client.ask().topics == ("a",)
    client.refresh()
    assert client.metadata.topics_in_use == set(), "the broker had its chance"
