"""A consumer bound to transactions, driven by Hypothesis over a fetch loop of its own.

Whatever is read, committed, aborted, lost, given up and assigned again, in whatever order: what committed transactions
have of a partition is every record of it, once and in order, up to what the group has committed.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.deserialization import Deserialization
from odradek.client.consumer.group.group_session import GroupSession
from odradek.client.consumer.group.offsets import OffsetAndMetadata
from odradek.client.consumer.group.transaction_offsets import offsets_to_commit
from odradek.client.consumer.membership.membership import Identity
from odradek.client.consumer.transaction_binding import MOVES, State, TransactionBinding
from odradek.client.errors.broker_errors import broker_error
from odradek.client.errors.client_errors import ClientError, RequestTimedOut
from odradek.client.errors.transaction_errors import CommitOutcomeUnknown
from odradek.client.fetching.fetch_settings import Start
from odradek.client.fetching.fetcher import Fetcher
from odradek.client.offset_commit import OffsetsToCommit
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from tests.client.consumer.test_core import END, PARTITIONS, FakeFetcher

ALL = [offset for offset in range(END) if offset % 7]
UNKNOWN = CommitOutcomeUnknown("payments", 5_000)


class Owner:
    transactional_id = "payments"
    is_closed = False


class World:
    """A consumer's core, its group session by a few words, and a program that writes down what it reads."""

    def __init__(self) -> None:
        self.core = ConsumerCore(
            cast(Fetcher, FakeFetcher()), Deserialization(None, None, skips=False, name="c"), manual_done=False
        )
        self.stored: dict[TopicPartition, int] = {}
        """What the group has committed."""
        self.committed: dict[TopicPartition, int] = {}
        self.has_place = True
        self.told: list[ErrorCode] = []
        self.failures: list[str] = []
        self.ends_own_commits = True
        self.look: Any = None
        self.binding = TransactionBinding(Owner(), cast(GroupSession, self), self.core, lambda: None)
        self.written: dict[TopicPartition, list[int]] = {}
        """By the open transaction."""
        self.pending: dict[TopicPartition, OffsetAndMetadata] = {}
        """Offsets of a commit that nobody has answered."""
        self.output: dict[TopicPartition, list[int]] = {partition: [] for partition in PARTITIONS}

    # -- the session
    is_member = True
    has_epoch = False

    @property
    def identity(self) -> Identity:
        return Identity("billing", "member-1", 4 if self.has_place else -1, None)

    def bind(self, on_taken_away: Any) -> None:
        self.look = on_taken_away

    async def own_commits_ended(self, timeout_ms: float) -> bool:
        return self.ends_own_commits

    def offsets_to_commit(self, wanted: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> OffsetsToCommit:
        behind = self.is_behind
        return offsets_to_commit(self.core, self.identity, self.committed, wanted, behind, is_member=True)

    def is_behind(self, partition: TopicPartition, offset: int) -> bool:
        return offset < self.stored.get(partition, -1)

    def committed_elsewhere(self, offsets: Mapping[TopicPartition, int]) -> None:
        for partition, offset in offsets.items():
            if self.core.token(partition) is not None:
                self.committed[partition] = offset
                self.core.done.done_below(partition, offset)

    def go_back(self) -> None:
        self.place(self.core.unplace())

    def refused(self, identity: Identity, code: ErrorCode) -> None:
        self.told.append(code)

    # -- the group
    def assign(self, partition: TopicPartition) -> None:
        if self.core.token(partition) is None:
            self.core.assigned_unplaced([partition])
            if not self.is_unsettled:
                self.place({})

    def place(self, starts: Mapping[TopicPartition, Start]) -> None:
        """As the broker answers once no offset is pending."""
        for partition in self.core.partitions:
            if not self.core.is_unplaced(partition):
                continue
            self.committed.pop(partition, None)
            if (offset := self.stored.get(partition)) is not None:
                self.committed[partition] = offset
                self.core.place(partition, Start.at_offset(offset))
            else:
                self.core.place(partition, starts.get(partition, Start.at_offset(0)))

    def take_away(self, partition: TopicPartition) -> None:
        self.core.revoked([partition])
        self.committed.pop(partition, None)
        self.look()

    # -- the program
    @property
    def is_unsettled(self) -> bool:
        return self.binding.state is State.UNSETTLED

    def begin(self) -> None:
        if self.binding.state is State.RESTING:
            self.failures = []
            self.binding.opened(lambda error: self.failures.append(str(error)))

    def read(self, count: int) -> None:
        """Asks for more, which marks nothing done, in whatever way."""
        self.core.settle()
        if self.is_unsettled:
            with pytest.raises(CommitOutcomeUnknown):
                self.core.take(count)
            return
        parts = self.core.gather(count)
        self.core.hand_batch(parts)
        for part in parts:
            self.written.setdefault(part.partition, []).extend(part.offsets)

    def step(self) -> None:
        """The same, of one record and with others at hand."""
        self.core.settle()
        if self.is_unsettled:
            return
        part = self.core.take(10)
        if part is not None:
            record = next(self.core.hand_records(part))
            self.written.setdefault(part.partition, []).append(record.offset)

    def commit(self, *, is_answered: bool) -> None:
        """Takes the offsets, and is answered, or not."""
        if self.binding.state is not State.OPEN:
            return
        try:
            self.pending = dict(self.binding.offsets_for_transaction().offsets)  # type: ignore[arg-type]
        except ClientError:
            assert self.failures, "it was said at once"
            self.end(is_commit=False)
            return
        if is_answered:
            self.end(is_commit=True)
        else:
            self.binding.unsettled(UNKNOWN)

    def end(self, *, is_commit: bool) -> None:
        written, self.written = self.written, {}
        pending, self.pending = self.pending, {}
        if not is_commit:
            self.binding.aborted(None)
            return
        for partition, offsets in written.items():
            self.output[partition] += offsets
        self.stored |= {partition: each.offset for partition, each in pending.items()}
        self.binding.committed_by_transaction(pending)
        self.binding.committed()
        self.place({})

    def check(self) -> None:
        for partition, found in self.output.items():
            assert found == [offset for offset in ALL if offset < self.stored.get(partition, 0)]


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["begin", "begin", "step", "commit", "commit", "unanswered", "abort"]), st.just(0)),
        st.tuples(st.just("settle"), st.integers(0, 1)),
        st.tuples(st.just("read"), st.integers(1, 12)),
        st.tuples(st.sampled_from(["assign", "take away", "hold", "let go", "pause", "resume"]), st.integers(0, 2)),
    ),
    max_size=60,
)


@given(ACTIONS)
def test_committed_output_has_each_record_once_up_to_the_committed_offset(actions: list[tuple[str, int]]) -> None:
    world = World()
    for action, number in [("assign", 0), ("assign", 1), *actions]:
        happen(world, action, number)
        world.check()
    finish(world)


def happen(world: World, action: str, number: int) -> None:
    partition, core = PARTITIONS[number % 3], world.core
    is_assigned = core.token(partition) is not None
    always: dict[str, Callable[[], object]] = {
        "begin": world.begin,
        "read": lambda: world.read(number),
        "step": world.step,
        "commit": lambda: world.commit(is_answered=True),
        "unanswered": lambda: world.commit(is_answered=False),
        "assign": lambda: world.assign(partition),
        "take away": lambda: world.take_away(partition),
        "hold": lambda: core.hold([partition]),
        "let go": lambda: core.let_go([partition]),
    }
    match action:
        case "abort" if world.binding.state is State.OPEN:
            world.end(is_commit=False)
        case "settle" if world.is_unsettled:
            world.end(is_commit=bool(number))
        case "pause" if is_assigned:
            core.pause(partition)
        case "resume" if is_assigned:
            core.resume(partition)
        case _ if action in always:
            always[action]()
        case _:
            pass


def finish(world: World) -> None:
    """Reads and commits the rest of everything."""
    if world.is_unsettled:
        world.end(is_commit=False)
    for partition in PARTITIONS:
        world.assign(partition)
        world.core.let_go([partition])
        world.core.resume(partition)
    for _ in range(2):  # the first one may have lost something, and can only be aborted
        world.begin()
        for _ in range(100):
            world.read(50)
        world.commit(is_answered=True)
    assert world.output == dict.fromkeys(PARTITIONS, ALL)


# ----------------------------------------------------------------------------------------------------------- in detail
def reading() -> World:
    """In a transaction, with the first records of a partition in work."""
    world = World()
    world.assign(PARTITIONS[0])
    world.begin()
    world.read(5)
    return world


def test_what_was_read_is_in_work_until_it_is_committed_whatever_is_asked() -> None:
    world = reading()
    world.read(5)
    assert world.core.in_work_count(PARTITIONS[0]) == len(world.written[PARTITIONS[0]]) > 5
    world.commit(is_answered=True)
    assert world.core.in_work_count(PARTITIONS[0]) == 0


def test_an_abort_reads_again_what_is_not_committed_and_keeps_a_pause() -> None:
    world = reading()
    first = world.written[PARTITIONS[0]]
    world.core.pause(PARTITIONS[0])
    world.end(is_commit=False)
    assert world.core.paused == {PARTITIONS[0]}
    assert world.core.in_work_count(PARTITIONS[0]) == 0
    world.core.resume(PARTITIONS[0])
    world.begin()
    world.read(5)
    assert world.written[PARTITIONS[0]] == first


def test_without_a_committed_offset_it_goes_back_to_where_reading_began() -> None:
    """With `auto_offset_reset=latest`, the setting would lead behind the records of the aborted transaction."""
    world = World()
    world.core.assigned(PARTITIONS[:1], {PARTITIONS[0]: Start.at_offset(30, 2)})
    world.begin()
    world.read(5)
    assert world.core.unplace() == {PARTITIONS[0]: Start.at_offset(30, 2)}


def test_while_a_commit_has_no_answer_even_what_is_being_walked_ends() -> None:
    world = World()
    world.assign(PARTITIONS[0])
    world.begin()
    part = world.core.take(10)
    assert part is not None
    walk = world.core.hand_records(part)
    first = next(walk)
    world.binding.unsettled(UNKNOWN)
    assert list(walk) == []
    with pytest.raises(CommitOutcomeUnknown):
        world.core.take(10)
    world.binding.committed_by_transaction({PARTITIONS[0]: OffsetAndMetadata(first.offset + 1)})
    world.binding.committed()
    found = world.core.take(1)
    assert found is not None and found.offsets[0] == part.offsets[1]


def test_partitions_taken_away_with_records_in_work_fail_the_transaction_at_once() -> None:
    world = reading()
    world.assign(PARTITIONS[1])
    world.take_away(PARTITIONS[1])
    assert world.failures == [], "nothing was read of it"
    world.take_away(PARTITIONS[0])
    [said] = world.failures
    assert "t-0 was taken away while its records were in work" in said
    world.assign(PARTITIONS[0])
    with pytest.raises(ClientError, match="t-0 was taken away"):
        world.binding.offsets_for_transaction()
    world.end(is_commit=False)
    world.begin()
    assert world.binding.offsets_for_transaction().offsets[PARTITIONS[0]].offset == 0


def test_a_member_without_a_place_has_no_offsets_to_commit() -> None:
    world = reading()
    world.has_place = False
    with pytest.raises(ClientError, match="no place in the group billing"):
        world.binding.offsets_for_transaction()


@pytest.mark.parametrize(
    ("has_epoch", "code", "told"),
    [
        (False, ErrorCode.ILLEGAL_GENERATION, [ErrorCode.ILLEGAL_GENERATION]),
        (True, ErrorCode.ILLEGAL_GENERATION, [ErrorCode.STALE_MEMBER_EPOCH]),
        (True, ErrorCode.UNKNOWN_MEMBER_ID, [ErrorCode.UNKNOWN_MEMBER_ID]),
        (False, ErrorCode.INVALID_RECORD, []),
    ],
)
def test_the_membership_hears_that_its_offsets_were_refused(
    has_epoch: bool, code: ErrorCode, told: list[ErrorCode]
) -> None:
    world = reading()
    world.has_epoch = has_epoch
    world.binding.aborted(broker_error(code))
    assert world.told == [], "they were not sent"
    world.begin()
    world.binding.offsets_for_transaction()
    world.binding.aborted(broker_error(code))
    assert world.told == told


def test_records_that_were_sought_away_from_are_in_work_still() -> None:
    world = reading()
    place = PARTITIONS[0]
    world.core.seek(place, Start.at_offset(40))
    assert world.core.in_work_count(place) == 1
    world.take_away(place)
    assert "t-0 was taken away" in world.failures[0]
    world.end(is_commit=False)
    world.assign(place)
    world.begin()
    world.read(5)
    world.core.seek(place, Start.at_offset(40))
    world.binding.committed_by_transaction(world.binding.offsets_for_transaction().offsets)
    world.binding.committed()
    assert (world.committed[place], world.core.in_work_count(place)) == (40, 0)


@pytest.mark.virtual_time
async def test_it_is_not_ready_while_an_own_commit_is_under_way() -> None:
    world = World()
    world.ends_own_commits = False
    with pytest.raises(RequestTimedOut, match="OffsetCommit"):
        await world.binding.ready(5_000)
    world.ends_own_commits = True
    await asyncio.wait_for(world.binding.ready(5_000), 1)


def test_one_that_was_released_goes_back_and_has_no_effect_any_more() -> None:
    world = reading()
    world.binding.release()
    assert world.core.in_work_count(PARTITIONS[0]) == 0
    world.binding.committed_by_transaction({PARTITIONS[0]: OffsetAndMetadata(50)})
    world.binding.unsettled(UNKNOWN)
    world.binding.committed()
    assert world.committed == {}
    assert world.core.take(1) is not None


def test_every_state_but_the_last_can_be_left() -> None:
    assert [state for state, moves in MOVES.items() if not moves] == [State.RELEASED]
    assert set(MOVES) == set(State)
