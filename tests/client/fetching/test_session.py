"""A reader's fetch session beside the broker's own: what is said in parts is what would have been said in full."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.fetching.consumer_sessions import FetchSessions, PartitionKey
from odradek.client.fetching.fetch_settings import FetchSettings
from odradek.client.fetching.request import WantedPartition, fetch_request
from odradek.client.fetching.session import FetchSession
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
IDS = {"a": b"a" * 16, "b": b"b" * 16}


def full(wanted: Mapping[TopicPartition, int], ids: Mapping[str, bytes] = IDS) -> FetchRequest:
    offsets = {partition: WantedPartition(offset, 3, 2) for partition, offset in wanted.items()}
    return fetch_request(offsets, ids, FetchSettings(), 1_000)


def offsets(request: FetchRequest) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.topic, each.partition): each.fetch_offset
        for topic in request.topics
        for each in topic.partitions
    }


def forgotten(request: FetchRequest) -> list[tuple[str, bytes, list[int]]]:
    return [(each.topic, each.topic_id, each.partitions) for each in request.forgotten_topics_data]


def answer(session_id: int = 7, error_code: int = 0) -> FetchResponse:
    return FetchResponse(session_id=session_id, error_code=error_code, responses=[])


def begun(wanted: Mapping[TopicPartition, int], ids: Mapping[str, bytes] = IDS) -> FetchSession:
    session = FetchSession()
    session.next_request(full(wanted, ids), 17)
    session.answered(answer())
    return session


def test_the_first_request_is_full_and_later_ones_name_what_changed() -> None:
    session = FetchSession()
    first = session.next_request(full({A0: 1, A1: 1}), 17)
    assert (first.session_id, first.session_epoch, offsets(first)) == (0, 0, {A0: 1, A1: 1})
    session.answered(answer())
    second = session.next_request(full({A0: 1, A1: 5, B0: 0}), 17)
    assert (second.session_id, second.session_epoch, offsets(second)) == (7, 1, {A1: 5, B0: 0})
    assert not session.is_full
    session.answered(answer())
    third = session.next_request(full({B0: 0}), 17)
    assert (third.session_epoch, offsets(third)) == (2, {})
    assert forgotten(third) == [("a", IDS["a"], [0, 1])]


def test_the_rest_of_a_request_stays_as_it_was() -> None:
    session = begun({A0: 1})
    asked = full({A0: 2})
    asked.rack_id = "r1"
    sent = session.next_request(asked, 17)
    same = ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "rack_id", "replica_id")
    assert [getattr(sent, name) for name in same] == [getattr(asked, name) for name in same]


def test_a_broker_that_keeps_no_session_is_asked_in_full_each_time() -> None:
    session = FetchSession()
    for _ in range(2):
        sent = session.next_request(full({A0: 1}), 17)
        assert (sent.session_id, sent.session_epoch, offsets(sent)) == (0, 0, {A0: 1})
        session.answered(answer(session_id=0))


def test_before_sessions_requests_stand_for_themselves() -> None:
    session = FetchSession()
    sent = session.next_request(full({A0: 1}), 6)
    assert (sent.session_id, sent.session_epoch, session.is_full) == (0, -1, True)


def test_after_a_lost_answer_a_full_request_replaces_the_session() -> None:
    session = begun({A0: 1})
    session.next_request(full({A0: 2}), 17)
    session.lost()
    again = session.next_request(full({A0: 2}), 17)
    assert (again.session_id, again.session_epoch, offsets(again)) == (7, 0, {A0: 2})
    assert session.is_full


def test_a_session_that_is_gone_is_not_named_again_and_one_out_of_step_is() -> None:
    for code, session_id in ((ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7)):
        session = begun({A0: 1})
        session.next_request(full({A0: 2}), 17)
        session.answered(answer(session_id=0, error_code=code))
        again = session.next_request(full({A0: 2}), 17)
        assert (again.session_id, again.session_epoch, offsets(again)) == (session_id, 0, {A0: 2})


def test_a_topic_that_was_created_again_is_forgotten_under_its_old_id() -> None:
    session = begun({A0: 1})
    sent = session.next_request(full({A0: 1}, {"a": b"n" * 16}), 17)
    assert (offsets(sent), forgotten(sent)) == ({A0: 1}, [("a", IDS["a"], [0])])


def test_where_names_take_the_place_of_ids_the_session_begins_again() -> None:
    session = begun({A0: 1})
    sent = session.next_request(full({A0: 1}, {}), 12)
    assert (sent.session_id, sent.session_epoch, offsets(sent)) == (7, 0, {A0: 1})


STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from([A0, A1, B0]), st.integers(0, 3), min_size=1),
        st.sampled_from(["answered", "answered", "answer lost", "request lost", "evicted", "new topic", "by name"]),
    ),
    max_size=20,
)


@given(STEPS)
def test_a_broker_that_remembers_knows_what_is_wanted_after_every_request(
    steps: list[tuple[dict[TopicPartition, int], str]],
) -> None:
    broker = FetchSessions(10, iter(range(1, 10_000)).__next__)
    session = FetchSession()
    ids = dict(IDS)
    for number, (wanted, happens) in enumerate(steps):
        if happens == "new topic":
            ids["a"] = number.to_bytes(16)
        names = {} if happens == "by name" else ids
        request = full(wanted, names)
        sent = session.next_request(request, 12 if happens == "by name" else 17)
        if happens == "request lost":
            session.lost()
            continue
        try:
            known = broker.resolve(sent.session_id, sent.session_epoch, happens != "by name", 0.0)
        except KafkaError as error:
            assert happens != "answered" or number == 0 or error.code is not ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
            session.answered(answer(0, error.code))
            continue
        if known is None:
            known = broker.create(happens != "by name", 0.0)
            assert known is not None
        known.update(_by_key(sent), [(topic, each, part) for topic, each, parts in forgotten(sent) for part in parts])
        assert {key: each.request for key, each in known.partitions.items()} == _by_key(request)
        if happens == "answer lost":
            session.lost()
        else:
            session.answered(answer(known.session_id))
        if happens == "evicted":
            broker.close(known.session_id)


def _by_key(request: FetchRequest) -> dict[PartitionKey, FetchPartition]:
    return {
        (topic.topic, topic.topic_id, each.partition): each for topic in request.topics for each in topic.partitions
    }
