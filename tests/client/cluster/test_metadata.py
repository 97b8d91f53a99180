"""What is asked for and when, and what an answer or a leader's hint changes: rule by rule, with made-up time.

`test_metadata_errors.py` is about errors and topics out of use; `test_metadata_model.py` shows all rules together, in
any order of answers.
"""

import pytest

from odradek.client.cluster.metadata import Question
from odradek.protocol.codec.schema import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import NodeEndpoint
from tests.client.metadata_answers import ID_B, answer, broker, failing, partition, topic
from tests.client.metadata_client import MAX_AGE_MS, Client


@pytest.fixture
def client() -> Client:
    return Client()


# --------------------------------------------------------------------------------------------------- what is asked
def test_the_first_question_is_a_full_one_and_due_at_once(client: Client) -> None:
    assert client.due_in_ms() == 0
    assert client.ask() == Question((), False, client.metadata.request_version)


def test_a_new_topic_is_asked_for_at_once_and_alone(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", 1))
    assert client.due_in_ms() == MAX_AGE_MS
    requests = client.requests
    client.use("b")
    client.use("b")
    assert client.requests == requests + 1
    assert client.due_in_ms() == 0
    question = client.ask()
    assert (question.topics, question.is_partial) == (("b",), True)
    client.apply(question, answer(topic("b", 2)))
    assert client.metadata.leader_of("a", 0) == (1, 0)
    assert client.metadata.leader_of("b", 0) == (2, 0)


def test_a_topic_that_became_new_after_a_request_is_asked_for_after_its_response(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", 1))
    client.use("b")
    question = client.ask()
    client.use("c")
    client.apply(question, answer(topic("b", 1)))
    later = client.ask()
    assert (later.topics, later.is_partial) == (("c",), True)


def test_an_update_requested_during_a_request_is_not_satisfied_by_its_response(client: Client) -> None:
    client.use("a")
    question = client.ask()
    client.metadata.request_update()
    client.apply(question, answer(topic("a", 1)))
    assert client.due_in_ms() == 100
    client.refresh(topic("a", 1))
    assert client.due_in_ms() > MAX_AGE_MS / 2


def test_so_it_is_for_the_update_of_one_topic(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", 1))
    client.metadata.request_update("a")
    question = client.ask()
    client.metadata.request_update("a")
    client.apply(question, answer(topic("a", 1)))
    assert client.ask().is_partial
    client.apply(client.ask(), answer(topic("a", 1)))
    first, second = client.ask(), client.ask()
    client.metadata.request_update("a")
    client.apply(first, answer(topic("a", -1)))
    client.apply(second, answer(topic("a", (1, 1))))
    assert client.due_in_ms() == 100, "the wish came after both questions"


def test_any_answer_is_news_of_a_topic_of_which_nothing_was_heard(client: Client) -> None:
    client.use("a")
    question = client.ask()
    client.metadata.request_update("a")
    client.apply(question, answer(topic("a", 1)))
    assert client.metadata.leader_of("a", 0) == (1, 0)
    assert client.due_in_ms() == MAX_AGE_MS


def test_an_answer_may_be_applied_with_the_version_of_the_last_wish(client: Client) -> None:
    client.use("a")
    for leader in (1, 2):
        client.metadata.apply(
            answer(topic("a", leader), brokers=[leader]), client.metadata.request_version, client.now_ms
        )
        assert client.metadata.leader_of("a", 0) == (leader, 0)
        assert client.due_in_ms() == MAX_AGE_MS


def test_a_later_question_that_was_under_way_satisfies_a_wish_that_an_answer_brought(client: Client) -> None:
    client.use("a")
    first, second = client.ask(), client.ask()
    client.apply(first, answer(topic("a", -1)))
    assert client.due_in_ms() == 100
    client.apply(second, answer(topic("a", (1, 1))))
    assert client.due_in_ms() == MAX_AGE_MS


def test_an_update_of_one_topic_asks_for_it_alone(client: Client) -> None:
    client.use("a", "b")
    client.refresh(topic("a", 1), topic("b", 1))
    requests = client.requests
    client.metadata.request_update("b")
    assert client.requests == requests + 1
    assert client.ask().topics == ("b",)
    client.metadata.request_update("nobody uses this")
    question = client.ask()
    assert (question.topics, question.is_partial) == (("a", "b"), False)


def test_a_partial_answer_does_not_make_the_rest_young(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", 1))
    client.now_ms += MAX_AGE_MS - 1000
    client.use("a")
    client.use("b")
    client.refresh(topic("b", 1))
    assert client.due_in_ms() == 1000
    client.now_ms += 1000
    assert client.ask().topics == ("a", "b")


def test_age_makes_the_next_question_a_full_one_even_if_a_topic_is_new(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", 1))
    client.now_ms += MAX_AGE_MS
    client.use("a", "b")
    assert client.ask().is_partial is False


def test_a_topic_left_out_of_the_answer_is_asked_for_again(client: Client) -> None:
    client.use("a", "b")
    client.refresh(topic("a", 1))
    assert client.due_in_ms() == 100
    assert client.ask().topics == ("b",)


# ---------------------------------------------------------------------------------------------------------- pace
def test_failures_double_the_backoff_and_an_answer_resets_it(client: Client) -> None:
    waits: list[float] = []
    for _ in range(6):
        client.ask()
        client.metadata.fail(client.now_ms)
        waits.append(client.due_in_ms())
        client.now_ms += waits[-1]
    assert waits == pytest.approx([100, 200, 400, 800, 1000, 1000])
    client.refresh()
    client.metadata.request_update()
    assert client.due_in_ms() == 100
    client.metadata.fail(client.now_ms)
    assert client.due_in_ms() == 100


def test_an_answer_without_brokers_is_a_failure(client: Client) -> None:
    client.use("a")
    question = client.ask()
    version = client.metadata.version
    assert not client.apply(question, answer(topic("a", 1), brokers=()))
    assert client.metadata.topic("a") is None
    assert client.metadata.version == version
    assert client.due_in_ms() == 100


def test_answers_without_news_double_the_backoff_too(client: Client) -> None:
    client.use("a")
    client.refresh(failing("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    waits: list[float] = []
    for _ in range(6):
        waits.append(client.due_in_ms())
        client.refresh(failing("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    # The first of these answers is the first without news: the very first one brought the brokers.
    assert waits == pytest.approx([100, 100, 200, 400, 800, 1000])
    client.refresh(topic("a", -1))
    assert client.due_in_ms() == 100


def test_a_new_topic_and_a_refresh_by_age_reset_the_pace(client: Client) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    client.use("a")
    for _ in range(5):
        client.refresh(failing("a", unknown))
    assert client.due_in_ms() == 800
    client.use("b")
    client.refresh(failing("b", unknown))
    assert client.due_in_ms() == 100
    for _ in range(5):
        client.refresh(failing("a", unknown), failing("b", unknown))
    assert client.due_in_ms() == 1000
    client.now_ms += MAX_AGE_MS
    client.use("a")
    client.refresh(failing("a", unknown))
    assert client.due_in_ms() == 100


def test_a_new_topic_need_not_wait_for_the_pace_but_for_the_backoff_of_a_failure(client: Client) -> None:
    client.use("a")
    for _ in range(4):
        client.refresh(failing("a", ErrorCode.LEADER_NOT_AVAILABLE))
    assert client.due_in_ms() > 100
    client.use("b")
    assert client.due_in_ms() == 0
    client.ask()
    client.metadata.fail(client.now_ms)
    client.use("c")
    assert client.due_in_ms() == 100


def test_chance_varies_the_backoff() -> None:
    assert [_backoff_with(chance) for chance in (0.0, 0.25, 0.75)] == pytest.approx([80, 90, 110])


def _backoff_with(chance: float) -> float:
    client = Client(lambda: chance)
    client.metadata.fail(client.now_ms)
    return client.due_in_ms()


def test_the_time_of_trying_runs_from_the_first_try_after_an_answer(client: Client) -> None:
    metadata = client.metadata
    assert metadata.overdue_at_ms(300_000) == float("inf")
    metadata.begin_try(1000)
    metadata.begin_try(2000)
    metadata.fail(3000)
    assert metadata.overdue_at_ms(300_000) == 301_000
    client.refresh()
    assert metadata.overdue_at_ms(300_000) == float("inf")


# ------------------------------------------------------------------------------------------------- what is learned
def test_brokers_controller_and_cluster(client: Client) -> None:
    client.refresh()
    metadata = client.metadata
    assert [each.node_id for each in metadata.nodes()] == [1, 2, 3]
    assert (metadata.controller_id, metadata.cluster_id) == (1, "cluster")
    node = metadata.node(2)
    assert node is not None
    assert (node.host, node.port) == ("broker-2", 9092)
    client.metadata.request_update()
    client.apply(client.ask(), answer(brokers=[broker(2, "moved", 1)], controller_id=1))
    assert [(each.node_id, each.host) for each in metadata.nodes()] == [(2, "moved")]
    assert metadata.controller_id == -1


def test_a_partial_answer_names_all_brokers_and_takes_leaders_away_that_are_gone(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", (1, 4), (2, 4)))
    client.use("b")
    client.apply(client.ask(), answer(topic("b", 2), brokers=[2]))
    assert client.metadata.leader_of("a", 0) == (-1, 4)
    assert client.metadata.leader_of("a", 1) == (2, 4)
    assert client.ask().topics == ("a",), "its partition without a leader is asked for"


def test_a_topic_that_is_gone_is_unusable_and_asked_for_again(client: Client) -> None:
    client.use("a", "b")
    client.refresh(topic("a", (1, 4)), topic("b", 1))
    client.metadata.request_update()
    client.refresh(failing("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), topic("b", 1))
    assert client.metadata.topic("a") is None
    assert client.metadata.leader_of("a", 0) == (-1, -1)
    heard = client.metadata.heard("a")
    assert heard is not None
    assert (heard.code, heard.at_ms) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, client.now_ms)
    assert client.ask().topics == ("a",)
    assert client.metadata.error_of("a") is None


def test_a_topic_back_under_its_id_keeps_its_leader_epochs_and_a_new_id_starts_anew(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", (1, 4)))
    client.metadata.request_update("a")
    client.refresh(failing("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    client.refresh(topic("a", (2, 3)))
    assert client.metadata.leader_of("a", 0) == (1, 4)
    client.metadata.request_update("a")
    client.refresh(topic("a", (2, 0), topic_id=ID_B))
    assert client.metadata.leader_of("a", 0) == (2, 0)


def test_nonsense_about_a_topic_is_no_leader_available(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", partitions=[partition(5, 1)]))
    heard = client.metadata.heard("a")
    assert heard is not None
    assert heard.code is ErrorCode.LEADER_NOT_AVAILABLE
    assert client.ask().topics == ("a",)


def test_topics_that_are_not_in_use_or_have_no_name_are_not_kept(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", 1), topic("other", 1), topic(None, 1))
    assert [each.name for each in client.metadata.topics] == ["a"]
    assert client.metadata.heard("other") is None


@pytest.mark.parametrize(("index", "expected"), [(0, (1, 7)), (1, (2, 8)), (2, (-1, -1)), (-1, (-1, -1))])
def test_leaders_of_partitions_that_are_not_there(client: Client, index: int, expected: tuple[int, int]) -> None:
    client.use("a")
    client.refresh(topic("a", (1, 7), (2, 8)))
    assert client.metadata.leader_of("a", index) == expected
    assert client.metadata.leader_of("b", index) == (-1, -1)


def test_epochs_of_old_brokers_do_not_count(client: Client) -> None:
    client.use("a")
    client.apply(client.ask(), answer(topic("a", (1, 7), topic_id=ZERO_UUID)), api_version=8)
    assert client.metadata.leader_of("a", 0) == (1, -1)


# ----------------------------------------------------------------------------------------------------- late answers
def test_an_answer_to_an_earlier_question_changes_nothing_that_a_later_one_told(client: Client) -> None:
    client.use("a", "b")
    early = client.ask()
    client.metadata.request_update()
    late = client.ask()
    client.apply(late, answer(topic("a", (2, -1)), brokers=[1, 2], controller_id=2))
    client.apply(early, answer(topic("a", (1, -1)), topic("b", 1), brokers=[1], controller_id=1))
    assert client.metadata.leader_of("a", 0) == (2, -1)
    assert client.metadata.leader_of("b", 0) == (1, 0), "nothing newer is known of this one"
    assert {each.node_id for each in client.metadata.nodes()} == {1, 2}
    assert client.metadata.controller_id == 2


def test_of_three_answers_the_one_to_the_last_question_names_the_brokers(client: Client) -> None:
    first, second, third = client.ask(), client.ask(), client.ask()
    for question, nodes in ((third, [3]), (first, [1]), (second, [2])):
        client.apply(question, answer(brokers=nodes))
    assert [each.node_id for each in client.metadata.nodes()] == [3]


def test_an_answer_from_before_a_topic_was_used_again_does_not_count(client: Client) -> None:
    client.use("a")
    early = client.ask()
    client.metadata.request_update()
    client.refresh(failing("a", ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    client.now_ms += 2000
    client.use("a")
    client.apply(early, answer(topic("a", 1)))
    assert client.metadata.topic("a") is None
    assert client.ask().topics == ("a",)


# ------------------------------------------------------------------------------------- hints of leaders, rebootstrap
ENDPOINT = NodeEndpoint(node_id=7, host="new", port=1)


def test_a_newer_leader_is_taken_over_with_its_address(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", (1, 4), (-1, 4)))
    version = client.metadata.version
    assert client.metadata.update_leader("a", 1, 7, 5, [ENDPOINT])
    assert client.metadata.leader_of("a", 1) == (7, 5)
    assert client.metadata.leader_of("a", 0) == (1, 4)
    found = client.metadata.topic("a")
    assert found is not None
    assert found.available == (0, 1)
    node = client.metadata.node(7)
    assert node is not None
    assert node.host == "new"
    assert client.metadata.version > version
    client.refresh(topic("a", (1, 4), (1, 4)))
    assert client.metadata.leader_of("a", 1) == (-1, 5), "the broker that answers was not told yet, nor knows 7"


@pytest.mark.parametrize(
    ("name", "index", "leader", "epoch"),
    [
        ("a", 0, 2, 4),  # not newer
        ("a", 0, 2, 3),
        ("a", 0, 9, 5),  # no such broker
        ("a", 0, -1, 5),
        ("a", 0, 2, -1),
        ("a", 1, 2, 5),  # no such partition
        ("a", -1, 2, 5),
        ("b", 0, 2, 5),  # no such topic
    ],
)
def test_a_hint_that_is_not_newer_or_not_usable_changes_nothing(
    client: Client, name: str, index: int, leader: int, epoch: int
) -> None:
    client.use("a")
    client.refresh(topic("a", (1, 4)))
    version = client.metadata.version
    assert not client.metadata.update_leader(name, index, leader, epoch, [ENDPOINT])
    assert client.metadata.leader_of("a", 0) == (1, 4)
    assert client.metadata.node(7) is None
    assert client.metadata.version == version


def test_a_hint_survives_a_late_answer(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", (1, 4)))
    client.metadata.request_update()
    question = client.ask()
    client.metadata.update_leader("a", 0, 2, 5)
    client.apply(question, answer(topic("a", (1, 4))))
    assert client.metadata.leader_of("a", 0) == (2, 5)


def test_rebootstrap_forgets_brokers_leaders_and_epochs_but_no_topic(client: Client) -> None:
    client.use("a")
    client.refresh(topic("a", (1, 9), (2, 9)))
    version, requests = client.metadata.version, client.requests
    client.metadata.rebootstrap(client.now_ms)
    assert client.requests == requests + 1
    found = client.metadata.topic("a")
    assert found is not None
    assert (found.partition_count, found.available) == (2, ())
    assert list(client.metadata.nodes()) == []
    assert client.metadata.controller_id == -1
    assert client.metadata.version > version
    assert client.metadata.overdue_at_ms(1000) == client.now_ms + 1000
    question = client.refresh(topic("a", (2, 0), (1, 0)))
    assert not question.is_partial
    assert client.metadata.leader_of("a", 0) == (2, 0)
