"""What a member writes down: ownerships, records before their commits, and one commit at a time."""

from collections.abc import Generator
from pathlib import Path

import pytest

from odradek.testing.sim.checking.group_history import Assigned, CommitAnswered, CommitAsked, MemberGone, Revoked
from odradek.testing.sim.checking.history import History, Placed, Polled
from odradek.testing.sim.checking.numbered import encoded
from tests.cluster.client_session import Job, Session
from tests.cluster.membership import Membership


@pytest.fixture
def member(tmp_path: Path) -> Generator[Membership]:
    file = str(tmp_path / "history")
    job = Job("aiokafka-member", "m.1", "127.0.0.1:1", "t", 3, file, group="g", instance_id="i")
    assert Job.from_json(job.to_json()) == job
    session = Session(job)
    yield Membership(session)
    session.close()


def written(member: Membership) -> History:
    return History.from_json(Path(member.job.file).read_text())


def test_the_first_record_of_each_ownership_says_where_it_began(member: Membership) -> None:
    member.assigned([1, 0], 3)
    member.processed(5.0, 1, [(40, encoded(7)), (41, encoded(8))])
    member.processed(6.0, 1, [(42, encoded(9))])
    member.revoked([0, 1])
    member.revoked([])
    member.assigned([1], 4)
    member.processed(7.0, 1, [(41, encoded(8))])
    member.left()
    history = written(member)
    assert [(each.partitions, each.generation, each.instance_id) for each in history.of(Assigned)] == [
        ([0, 1], 3, "i"),
        ([1], 4, "i"),
    ]
    assert [(each.partition, each.offset) for each in history.of(Placed)] == [(1, 40), (1, 41)]
    assert [(each.position, each.records) for each in history.of(Polled)] == [
        (40, [(40, 7), (41, 8)]),
        (42, [(42, 9)]),
        (41, [(41, 8)]),
    ]
    assert [each.partitions for each in history.of(Revoked)] == [[0, 1]]
    assert [each.why for each in history.of(MemberGone)] == ["left"]


def test_only_what_is_processed_and_not_committed_yet_is_committed(member: Membership) -> None:
    member.assigned([0, 1])
    assert member.to_commit(is_now=True) == {}
    member.processed(5.0, 0, [(9, encoded(1))])
    assert member.to_commit() == {0: 10}
    member.commit_asked({0: 10}, 3)
    member.processed(5.0, 1, [(0, encoded(2))])
    assert member.to_commit(is_now=True) == {}, "a commit is under way"
    member.commit_answered(None, 3)
    assert member.to_commit() == {}, "one has just been"
    assert member.to_commit(is_now=True) == {1: 1}
    [asked], [answered] = written(member).of(CommitAsked), written(member).of(CommitAnswered)
    assert (asked.commit, asked.offsets, asked.generation) == (1, [(0, 10)], 3)
    assert (answered.commit, answered.error, answered.generation) == (1, "", 3)


def test_what_was_not_committed_is_asked_for_again_unless_it_is_given_up(member: Membership) -> None:
    member.assigned([0, 1])
    member.processed(5.0, 0, [(9, encoded(1))])
    member.processed(5.0, 1, [(3, encoded(2))])
    member.commit_asked({0: 10, 1: 4})
    member.revoked([1])
    member.commit_answered(TimeoutError("too late"))
    assert member.to_commit(is_now=True) == {0: 10}
    [answered] = written(member).of(CommitAnswered)
    assert "too late" in answered.error
