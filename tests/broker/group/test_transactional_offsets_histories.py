"""Histories of transactional and plain commits, markers and deletions against a model; the log refuses any batch."""

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.group.machine import GroupMachine
from odradek.broker.group.offset_requests import DeleteOffsets, EndTransaction
from odradek.broker.group.offsets import Position
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.broker.group.kept_outbox import DAY_MS, TOPIC_IDS, Asked, World, in_transaction, seen
from tests.broker.group.turn_outbox import TurnOutbox

EVERYWHERE = FIRST, SECOND, OTHER = ("orders", 0), ("orders", 1), ("bills", 0)
WEEK_MS = 7 * DAY_MS


class Commit(NamedTuple):
    group_id: str
    position: Position
    offset: int


class InTransaction(NamedTuple):
    producer_id: int
    group_id: str
    position: Position
    offset: int


class End(NamedTuple):
    producer_id: int
    is_commit: bool


class DeleteOffset(NamedTuple):
    group_id: str
    position: Position


class Delete(NamedTuple):
    group_id: str


class TopicDeleted(NamedTuple):
    topic: str


class WeekPasses(NamedTuple):
    """And what is older than that expires."""


Request = Commit | InTransaction | End | DeleteOffset | Delete
GROUPS, PRODUCERS = st.sampled_from(("a", "b")), st.integers(1, 2)
POSITIONS, NUMBERS = st.sampled_from(EVERYWHERE), st.integers(0, 99)
COMMITS_IN_TRANSACTIONS = st.builds(InTransaction, PRODUCERS, GROUPS, POSITIONS, NUMBERS)
REQUESTS: st.SearchStrategy[Request] = st.one_of(
    st.builds(Commit, GROUPS, POSITIONS, NUMBERS),
    COMMITS_IN_TRANSACTIONS,
    COMMITS_IN_TRANSACTIONS,
    st.builds(End, PRODUCERS, st.booleans()),
    st.builds(DeleteOffset, GROUPS, POSITIONS),
    st.builds(Delete, GROUPS),
)
TURNS = st.tuples(st.lists(REQUESTS, min_size=1, max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
ALONE = st.one_of(st.builds(TopicDeleted, st.sampled_from(("orders", "bills"))), st.builds(WeekPasses))


class Kept(NamedTuple):
    """Of one offset."""

    order: int
    number: int
    since_ms: int


class Model:
    """What counts and what is pending, by what was answered without an error, in order."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, Position], Kept] = {}
        self.pending: dict[tuple[int, str, Position], Kept] = {}
        self._order = 0

    def take(self, step: Request | TopicDeleted | WeekPasses, now_ms: int) -> None:
        self._order += 1
        match step:
            case Commit(group_id, position, offset):
                self.counts[group_id, position] = Kept(self._order, offset, now_ms)
            case InTransaction(producer_id, group_id, position, offset):
                self.pending[producer_id, group_id, position] = Kept(self._order, offset, now_ms)
            case End(producer_id, is_commit):
                for key, kept in [item for item in self.pending.items() if item[0][0] == producer_id]:
                    _, group_id, position = key
                    del self.pending[key]
                    present = self.counts.get((group_id, position))
                    if is_commit and (present is None or present.order < kept.order):
                        self.counts[group_id, position] = kept
            case DeleteOffset(group_id, position):
                self._remove({(group_id, position)})
            case Delete(group_id):
                self._remove({(group_id, position) for position in EVERYWHERE})
            case TopicDeleted(topic):
                self._remove({(each, position) for each in "ab" for position in EVERYWHERE if position[0] == topic})
            case WeekPasses():
                unstable = {(group_id, position) for _, group_id, position in self.pending}
                old = {key for key, kept in self.counts.items() if now_ms - kept.since_ms >= WEEK_MS}
                self._remove(old - unstable)

    def _remove(self, gone: Set[tuple[str, Position]]) -> None:
        self.counts = {key: kept for key, kept in self.counts.items() if key not in gone}
        self.pending = {key: kept for key, kept in self.pending.items() if key[1:] not in gone}


def send(world: World, step: Request) -> Asked[Any]:
    """Raises KafkaError GROUP_ID_NOT_FOUND."""

    def operation(machine: GroupMachine, waiting: Waiting[Any], now: Now) -> None:
        match step:
            case Commit(group_id, position, offset):
                machine.commit(world.commit_request(group_id, {position: offset}), waiting, now)
            case InTransaction(producer_id, group_id, position, offset):
                machine.commit_in_transaction(in_transaction(group_id, {position: offset}, producer_id), waiting, now)
            case End(producer_id, is_commit):
                machine.end_transaction(EndTransaction(producer_id, 0, 0, is_commit, 1), waiting, now)
            case DeleteOffset(group_id, position):
                machine.delete_offsets(DeleteOffsets(group_id, [position]), waiting, now)
            case Delete(group_id):
                machine.delete(group_id, waiting, now)

    return world.send(operation)


def take_turn(world: World, outbox: TurnOutbox, steps: Sequence[Request], is_refused: Sequence[bool]) -> list[Request]:
    """Returns those that were answered without an error."""
    asked: list[tuple[Request, Asked[Any]]] = []
    for step in steps:
        try:
            asked.append((step, send(world, step)))
        except KafkaError as error:
            assert error.code is ErrorCode.GROUP_ID_NOT_FOUND
    outbox.flush(iter(is_refused))
    return [step for step, each in asked if not isinstance(each.answers[0], KafkaError)]


@settings(deadline=None)
@given(st.lists(st.one_of(TURNS, ALONE), max_size=12))
def test_what_counts_and_what_is_pending_follows_from_what_was_answered(
    history: list[tuple[list[Request], list[bool]] | TopicDeleted | WeekPasses],
) -> None:
    """Whatever batches of a turn the log refuses; and a machine that loads the log has the same."""
    outbox, model = TurnOutbox(), Model()
    world = World(outbox=outbox)
    for turn in history:
        match turn:
            case TopicDeleted(topic):
                world.machine.topics_deleted({topic: TOPIC_IDS[topic]}, world.now)
                world.settle()
                outbox.flush(iter([False] * 6))
                model.take(turn, world.now.unix_ms)
            case WeekPasses():
                world.wait(WEEK_MS)
                world.wait(20 * 60_000)
                outbox.flush(iter([False] * 100))
                model.take(turn, world.now.unix_ms)
            case (steps, is_refused):
                for step in take_turn(world, outbox, steps, is_refused):
                    model.take(step, world.now.unix_ms)
        counts = {(each, position): offset for each in "ab" for position, offset in world.offsets(each).items()}
        assert counts == {key: kept.number for key, kept in model.counts.items()}
        pending = {(key[0], each, key[1]): offset for each in "ab" for key, offset in world.pending(each).items()}
        assert pending == {key: kept.number for key, kept in model.pending.items()}
        unstable = {(each, key) for each in "ab" for key in EVERYWHERE if is_unstable(world, each, key)}
        assert unstable == {key[1:] for key in model.pending}
        assert seen(world.replayed()) == seen(world.machine)


def is_unstable(world: World, group_id: str, position: Position) -> bool:
    return world.machine.offsets.offsets.is_unstable(group_id, position)


def test_two_markers_of_a_producer_are_refused_together() -> None:
    """The second one, alone in the log, would end what is pending again here."""
    outbox = TurnOutbox()
    world = World(outbox=outbox)
    take_turn(world, outbox, [InTransaction(1, "a", FIRST, 7)], [False])
    before = seen(world.machine)
    assert take_turn(world, outbox, [End(1, is_commit=True), End(1, is_commit=True)], [True, False]) == []
    assert seen(world.machine) == before == seen(world.replayed())
