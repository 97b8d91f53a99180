"""Members of a consumer group in a world: what they do is told, and the group has everything in the end."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest

from odradek.testing.sim.checking.group_history import (
    NO_GENERATION,
    Assigned,
    CommitAnswered,
    MemberGone,
    OffsetsRead,
    Revoked,
)
from odradek.testing.sim.checking.history import Acknowledged, Happened, Polled
from odradek.testing.sim.cluster.group_member import Protocol, Seat
from odradek.testing.sim.cluster.group_members import GroupMembers
from odradek.testing.sim.scenario import Scenario
from odradek.testing.sim.simulation import Result, simulate

QUIET = Scenario(safety_s=4.0, faults=0, partitions=2)
PAIR = (Seat("classic", "range"), Seat("classic", "range"))


def of_members(result: Result) -> list[Polled]:
    return [each for each in result.history.of(Polled) if each.client.startswith("m")]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_processes_and_commits_everything(protocol: Protocol) -> None:
    result = simulate(1, replace(QUIET, seats=(Seat(protocol), Seat(protocol))))
    assert result.violations == []
    processed = {(each.partition, offset) for each in of_members(result) for offset, _ in each.records}
    assert processed == {(each.partition, each.offset) for each in result.history.of(Acknowledged)}
    assert {each.member for each in result.history.of(Assigned)} == {"m1.1", "m2.1"}
    assert any(not each.error for each in result.history.of(CommitAnswered))
    told = result.history.of(OffsetsRead)[-1]
    assert dict(told.offsets) == {index: 1 + max(o for p, o in processed if p == index) for index in (0, 1)}


@pytest.mark.parametrize(
    ("seats", "has_generations"),
    [(PAIR, True), ((Seat("classic"), Seat("consumer")), False), ((Seat("consumer"),), False)],
)
def test_only_a_group_of_the_classic_protocol_alone_has_generations(
    seats: tuple[Seat, ...], has_generations: bool
) -> None:
    result = simulate(1, replace(QUIET, seats=seats))
    assert result.violations == []
    told = {each.generation for each in result.history.of(Assigned)}
    assert min(told) > 0 if has_generations else told == {NO_GENERATION}


def test_who_is_killed_comes_back_as_another_member() -> None:
    result = simulate(1, replace(QUIET, safety_s=10.0, seats=PAIR, member_moves=6))
    assert result.violations == []
    gone = result.history.of(MemberGone)
    assert {each.why for each in gone} == {"left", "killed"}
    assert len({each.member for each in gone}) == len(gone) > 2
    assert any(each.partitions for each in result.history.of(Revoked))


def test_who_is_cut_off_for_longer_than_its_session_loses_what_it_had() -> None:
    result = simulate(1, replace(QUIET, safety_s=14.0, seats=PAIR, member_cuts=3))
    assert result.violations == []
    cuts = [each.detail for each in result.history.of(Happened) if each.kind == "network fault"]
    assert [cut for cut in cuts if cut.endswith("is cut off")]
    assert any(each.is_lost and each.partitions for each in result.history.of(Revoked))


def test_a_group_that_does_not_get_on_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> None: ...

    monkeypatch.setattr("odradek.testing.sim.cluster.group_member.Member._process", nothing)
    result = simulate(1, replace(QUIET, seats=PAIR))
    assert result.violations == ["with all repaired, the group had not committed everything after 20 s"]


def test_who_was_asked_to_leave_while_it_stood_still_comes_again_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def moves(members: GroupMembers, *_: object) -> Iterator[tuple[float, Callable[[], None]]]:
        yield 2.0, members.machines[0].pause
        yield 2.1, partial(members.leave, members.machines[0])

    monkeypatch.setattr(GroupMembers, "by_chance", moves)
    result = simulate(1, replace(QUIET, seats=PAIR))
    assert result.violations == []
    gone = [each.member for each in result.history.of(MemberGone)]
    assert gone[0] == "m1.1"
    assert set(gone) == {"m1.1", "m1.2", "m2.1"}, "who comes may find nothing left to read"
