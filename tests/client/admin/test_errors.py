"""The error of a call that failed in part: what it says, what it holds, and what is left without one kind of error."""

import pickle

from odradek.client.admin.errors import ItemsFailed
from odradek.client.errors.client_errors import AuthorizationError, ConnectionFailed, TopicExists


def test_it_names_what_failed_and_the_first_reasons() -> None:
    errors = {name: TopicExists(36, what=f"CreateTopics of {name}") for name in "abcd"}
    failed = ItemsFailed("CreateTopics", errors, {"e": 1})
    text = str(failed)
    assert text.startswith("CreateTopics failed for 4 of 5: a: CreateTopics of a failed with TOPIC_ALREADY_EXISTS (36)")
    assert "c: " in text
    assert "d: " not in text
    assert "and others" in text
    assert (failed.errors, failed.results, failed.retriable, failed.fatal) == (errors, {"e": 1}, False, False)


def test_it_is_retriable_if_all_are_and_fatal_if_one_is() -> None:
    lost, refused = ConnectionFailed("broker 1"), AuthorizationError(31)
    assert ItemsFailed("X", {1: lost}, {}).retriable
    both = ItemsFailed("X", {1: lost, 2: refused}, {})
    assert (both.retriable, both.fatal) == (False, True)


def test_errors_that_are_none_to_the_caller_can_be_left_out() -> None:
    failed = ItemsFailed("X", {1: TopicExists(36), 2: ConnectionFailed("broker 1")}, {3: None})
    rest = failed.without(TopicExists)
    assert rest is not None
    assert (list(rest.errors), rest.results) == ([2], {3: None})
    assert rest.without(ConnectionFailed) is None


def test_it_survives_pickling() -> None:
    failed = ItemsFailed("X", {1: TopicExists(36)}, {3: "three"})
    copy = pickle.loads(pickle.dumps(failed))  # noqa: S301
    assert (str(copy), list(copy.errors), copy.results) == (str(failed), [1], {3: "three"})
