"""Topics by id: which one a name means, and at which moment."""

from odradek.testing.sim.checking.history import Acknowledged, Answered, Asked, History, Sent
from odradek.testing.sim.checking.topics import Topics, name_of

FIRST, SECOND = b"1" * 16, b"2" * 16


class Clock:
    now_ms = 0.0


def two_topics() -> Topics:
    """The first from 10 to 20 in the store, and until 30 with a broker; the second from 25 on."""
    clock = Clock()
    topics = Topics(lambda: clock.now_ms)
    for at_ms, topic_id, is_stored in ((10.0, FIRST, True), (20.0, FIRST, False), (25.0, SECOND, True)):
        clock.now_ms = at_ms
        topics.topic("t", topic_id).is_stored = is_stored
    for at_ms, held in ((26.0, {FIRST, SECOND}), (30.0, {SECOND}), (40.0, {SECOND})):
        clock.now_ms = at_ms
        topics.looked(held)
    return topics


def test_a_topic_has_its_name_and_the_next_of_that_name_a_number() -> None:
    topics = two_topics()
    assert topics.identity("t", FIRST) == "t"
    assert topics.identity("t", SECOND) == "t#2"
    assert topics.identity("u", b"3" * 16) == "u"
    assert name_of("t#2") == name_of("t") == "t"


def test_the_current_one_is_in_the_store() -> None:
    topics = two_topics()
    found = topics.current("t")
    assert found is not None
    assert found.identity == "t#2"
    assert topics.current("u") is None
    assert topics.stored_names() == ["t"]


def test_a_name_may_mean_each_topic_that_a_broker_had() -> None:
    topics = two_topics()
    for from_ms, to_ms, expected in (
        (11, 24, ["t"]),
        (11, 25, ["t", "t#2"]),
        (29, 31, ["t", "t#2"]),
        (31, 32, ["t#2"]),
    ):
        assert [topic.identity for topic in topics.candidates("t", from_ms, to_ms)] == expected


def test_without_being_told_a_topic_is_as_old_as_the_last_look() -> None:
    clock = Clock()
    topics = Topics(lambda: clock.now_ms, is_told=False)
    clock.now_ms = 50.0
    topics.looked(set())
    clock.now_ms = 99.0
    assert topics.topic("t", FIRST).created_ms == 50.0


def test_answers_say_which_topic_they_are_about_and_have_no_offset_if_uncertain() -> None:
    history = History()
    for at_ms, value, acked_ms in ((11.0, 1, 12.0), (22.0, 2, 26.0), (31.0, 3, 32.0)):
        history.add(Sent(at_ms, "c", "p", value, "t", 0, -1))
        history.add(Acknowledged(acked_ms, value, "t", 0, 7))
    history.add(Asked(33.0, "o", "add partitions", "t", numbers=[2]))
    history.add(Answered(34.0, "o", True))
    resolved = History(two_topics().resolved(history))
    found = [(each.topic, each.offset) for each in resolved.of(Acknowledged)]
    assert found == [("t", 7), ("t", -1), ("t#2", 7)]
    assert [each.topic for each in resolved.of(Answered)] == ["t#2"]
