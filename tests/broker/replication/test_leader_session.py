"""The follower's side of a session: each request names what has changed, against the broker's own session store."""

from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.fetching.consumer_sessions import EPOCH_MAX, FetchSessions, PartitionKey
from odradek.broker.replication.follower_state import FetchPosition
from odradek.broker.replication.leader_session import LeaderSession, PartitionId, SessionChanges, by_topic
from odradek.protocol.messages.fetch import FetchPartition

TOPIC = b"o" * 16


def at(offset: int, epoch: int = 1) -> FetchPosition:
    return FetchPosition(epoch, offset, 0, 0)


def key(index: int) -> PartitionId:
    return TOPIC, index


def test_a_new_session_names_everything_and_later_requests_what_changed() -> None:
    session = LeaderSession()
    assert (session.is_new, session.session_id, session.epoch) == (True, 0, 0)
    first = session.ask({key(0): at(0), key(1): at(5), key(2): None})
    assert first == SessionChanges({key(0): at(0), key(1): at(5)}, [])
    session.answered(77)
    assert (session.is_new, session.session_id, session.epoch) == (False, 77, 1)
    assert session.ask({key(0): at(3), key(1): at(5)}) == SessionChanges({key(0): at(3)}, [])
    session.answered(77)
    assert session.epoch == 2
    assert session.ask({key(1): None, key(9): None}) == SessionChanges({}, [key(1)])
    session.answered(77)
    assert session.ask({}) == SessionChanges({}, [])
    assert session.known == {key(0): at(3)}


def test_a_leader_without_room_is_told_everything_each_time() -> None:
    session = LeaderSession()
    session.ask({key(0): at(0)})
    asked = session.known
    session.answered(0)
    assert session.is_new
    assert asked == {key(0): at(0)}, "what the answer is for is still known"
    assert session.ask({key(0): at(0)}) == SessionChanges({key(0): at(0)}, [])


def test_a_session_that_is_begun_anew_closes_the_old_one_unless_there_is_none() -> None:
    session = LeaderSession()
    session.ask({key(0): at(0)})
    session.answered(77)
    session.restart()
    assert (session.session_id, session.epoch, session.known) == (77, 0, {})
    session.answered(78)
    session.restart(is_closed=True)
    assert session.session_id == 0


def test_epochs_of_requests_begin_again_after_the_last() -> None:
    session = LeaderSession()
    session.answered(5)
    session.epoch = EPOCH_MAX
    session.answered(5)
    assert session.epoch == 1


changes = st.lists(
    st.dictionaries(st.integers(0, 3).map(key), st.one_of(st.none(), st.integers(0, 3).map(at)), max_size=4), max_size=8
)


@given(changes)
def test_leader_and_follower_know_the_same(requests: list[dict[PartitionId, FetchPosition | None]]) -> None:
    """The leader's side is `FetchSessions`, as a broker has it."""
    ours, theirs = LeaderSession(), FetchSessions(5, iter(range(1, 100)).__next__)
    for positions in requests:
        told = ours.ask(positions)
        session = theirs.resolve(ours.session_id, ours.epoch, True, 0.0) or theirs.create(True, 0.0)
        assert session is not None
        wanted: dict[PartitionKey, FetchPartition] = {
            ("", *one): FetchPartition(partition=one[1], fetch_offset=position.fetch_offset, partition_max_bytes=1)
            for one, position in told.wanted.items()
        }
        session.update(wanted, [("", *one) for one in told.forgotten])
        ours.answered(session.session_id)
        known = {one: position.fetch_offset for one, position in ours.known.items()}
        assert {one[1:]: cached.request.fetch_offset for one, cached in session.partitions.items()} == known


def test_by_topic() -> None:
    assert by_topic([(b"a", 2), (b"b", 0), (b"a", 1)]) == {b"a": [2, 1], b"b": [0]}
