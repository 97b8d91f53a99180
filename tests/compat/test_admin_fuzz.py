"""The parts of the fuzz of admin requests that need no broker: what is drawn, what differs, how a history shrinks."""

from typing import Any

import pytest

from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.compat.admin_differences import RULES, reason_for
from tests.compat.admin_fuzz import smaller
from tests.compat.admin_leaves import Leaf, leaves_of
from tests.compat.admin_requests import Step, history, topic_id
from tests.compat.admin_worlds import Brokers, World, by_name


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_seed_is_a_history_of_requests_that_can_be_sent(brokers: int) -> None:
    apis: set[str] = set()
    for seed in range(300):
        steps = history(seed, brokers)
        assert history(seed, brokers) == steps
        assert 2 <= len(steps) <= 3
        for step in steps:
            encode(step.request, step.version)
            assert 1 <= step.node <= brokers
            apis.add(step.api)
    assert len(apis) == 17


def test_a_request_names_topics_of_its_history_and_an_answer_is_read_in_its_words() -> None:
    world = World(Brokers({}), "f7-0-")
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name="a"), DeleteTopicState(name="a/b"), DeleteTopicState(topic_id=topic_id("n"))],
        timeout_ms=1,
    )
    sent = world.sent(request)
    assert [topic.name for topic in sent.topics] == ["f7-0-a", "a/b", None]
    assert world.seen(sent.topics) == {
        "a/no id": {"name": "a", "topic_id": "no id"},
        "a/b/no id": {"name": "a/b", "topic_id": "no id"},
        "None/asked n": {"name": None, "topic_id": "asked n"},
    }


@pytest.mark.parametrize(
    ("theirs", "ours", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [Leaf(("a", "c"), 2, 3)]),
        ({"a": 1}, {"b": 1}, [Leaf(("a",), 1, None), Leaf(("b",), None, 1)]),
        ([1, 2], [1, 3], [Leaf((), 2, 3)]),
        ({"a": [1]}, {"a": [1, 2]}, [Leaf(("a",), [1], [1, 2])]),
    ],
)
def test_differences_are_named_as_far_down_as_they_lie(theirs: Any, ours: Any, found: list[Leaf]) -> None:
    assert list(leaves_of(theirs, ours)) == found


def test_lists_are_compared_by_what_their_items_are_called() -> None:
    items = [{"name": "b", "x": 1}, {"name": "a", "x": 2}]
    assert by_name(items) == {"a": items[1], "b": items[0]}
    assert by_name([items[0], items[0]]) == [items[0], items[0]], "not where two are called the same"
    assert by_name([3, 1]) == [1, 3]


def test_a_history_shrinks_to_what_it_needs() -> None:
    topics = [MetadataRequestTopic(name=name) for name in ("n", "a", "m")]
    steps = [Step(1, 12, MetadataRequest(topics=list(topics))) for _ in range(3)]

    def fails(candidate: list[Step]) -> bool:
        return any(topic.name == "a" for step in candidate for topic in step.request.topics)

    [step] = smaller(steps, fails)
    assert [topic.name for topic in step.request.topics] == ["a"]
    assert steps[0].request.topics == topics, "what is made smaller is a copy"


def test_a_difference_is_known_by_a_rule_of_its_api_only() -> None:
    twice = Step(1, 12, MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=ZERO_UUID)]))
    leaf = Leaf(("topics", "error_code"), "UNKNOWN_SERVER_ERROR", "INVALID_REQUEST")
    assert reason_for(twice, leaf)
    assert reason_for(twice, leaf._replace(ours="NONE")) is None
    assert reason_for(Step(1, 6, DeleteTopicsRequest(timeout_ms=1)), leaf._replace(ours="NONE")) is None
    assert [rule for rule in RULES if not rule.reason or not rule.apis] == []
