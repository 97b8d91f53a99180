"""Members are waited for until each partition has one owner and everything is committed; who is behind is named."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.testing.sim.checking.group_history import Assigned, CommitAnswered, CommitAsked, Revoked
from odradek.testing.sim.checking.history import History, Record
from processes.cluster_processes import Processes
from tests.cluster.group_rounds import longest_commit_gap_ms
from tests.cluster.member import Member
from tests.cluster.members import Members


def members_in(processes: Processes) -> tuple[Members, list[Member]]:
    """Two, which are not started but thought to be there."""
    members = Members(processes, "127.0.0.1:1", "t", 3)
    there = [members.next_life(name) for name in members.names[:2]]
    return members, there


def told(member: Member, *records: Record) -> None:
    with Path(member.job.file).open("a") as file:
        file.write(History(list(records)).to_json())
    member.look()


@pytest.fixture(autouse=True)
def are_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Member, "is_running", True)


def test_a_group_is_settled_when_each_partition_has_one_owner_and_nobody_waits(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        members, [one, other] = members_in(processes)
        told(one, Assigned(1.0, one.name, "t", [0, 1]))
        with pytest.raises(AssertionError, match=r"not settled .*\[0, 1\].*waits"):
            members.wait_until_settled(0.01)
        told(other, Assigned(2.0, other.name, "t", [1, 2]))
        with pytest.raises(AssertionError, match="not settled"):
            members.wait_until_settled(0.01)
        told(one, Revoked(3.0, one.name, "t", [0, 1]), Assigned(4.0, one.name, "t", [0]))
        members.wait_until_settled()


def test_what_lags_is_named_with_how_much(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        members, [one, other] = members_in(processes)
        told(one, *committed(one, 1, [(0, 10), (1, 5)], at_ms=1.0))
        told(other, *committed(other, 1, [(1, 7)], at_ms=2.0, error="timed out"))
        with pytest.raises(AssertionError, match=r"lag after .*\{1: 2\}"):
            members.wait_until_committed({0: 10, 1: 7}, 0.01)
        told(other, *committed(other, 2, [(1, 7)], at_ms=3.0))
        members.wait_until_committed({0: 10, 1: 7})
        assert members.committed() == {0: 10, 1: 7}


def test_the_longest_gap_is_between_commits_that_were_acknowledged() -> None:
    records: Sequence[Record] = [
        CommitAnswered(at_ms, "m", number, error)
        for number, (at_ms, error) in enumerate([(100.0, ""), (300.0, "no"), (500.0, ""), (550.0, ""), (2_000.0, "")])
    ]
    assert longest_commit_gap_ms(records, 150.0, 600.0) == 1_450.0
    assert longest_commit_gap_ms(records, 150.0, 540.0) == 400.0
    assert longest_commit_gap_ms(records[:1], 0.0, 540.0) == 0.0


def committed(
    member: Member, number: int, offsets: list[tuple[int, int]], *, at_ms: float, error: str = ""
) -> list[Record]:
    return [
        CommitAsked(at_ms, member.name, number, "t", offsets),
        CommitAnswered(at_ms, member.name, number, error),
    ]
