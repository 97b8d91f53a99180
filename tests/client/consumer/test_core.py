"""The consumer's core driven by Hypothesis over a fetch loop of its own: whatever the program asks for, in whatever
order, it gets every record of a partition in order from where it is, and what may be committed never passes one that
it is not done with."""

from collections.abc import Iterator
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from odradek.client.consumer.core import ConsumerCore
from odradek.client.consumer.deserialization import Deserialization
from odradek.client.consumer.done_offsets import Committable
from odradek.client.consumer.records import ConsumerRecord
from odradek.client.fetching.fetch_settings import FetchSettings, Start
from odradek.client.fetching.fetcher import Fetcher
from odradek.client.fetching.positions import Taken
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.batches.columns import Columns

PARTITIONS = [TopicPartition("t", index) for index in range(3)]
END = 60
"""Each partition has the records 0 to 59, but for every seventh offset."""


class FakeFetcher:
    """Has the records of all its partitions at hand, a few in each answer."""

    settings = FetchSettings(auto_offset_reset="earliest")

    def __init__(self) -> None:
        self.positions: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.turn = 0

    def assign(self, partition: TopicPartition, start: Start) -> None:
        self.positions[partition] = start.offset or 0
        self.paused.discard(partition)

    def release(self, partition: TopicPartition) -> None:
        self.positions.pop(partition, None)
        self.paused.discard(partition)

    def pause(self, partition: TopicPartition) -> None:
        assert partition in self.positions
        self.paused.add(partition)

    def resume(self, partition: TopicPartition) -> None:
        self.paused.discard(partition)

    def position(self, partition: TopicPartition) -> int:
        return self.positions[partition]

    def wake(self) -> None: ...

    def is_packed(self, partition: TopicPartition | None) -> bool:
        return False

    def take_columns(self, partition: TopicPartition | None, count_min: int) -> Taken | None:
        self.turn += 1
        ready = [
            each
            for each, position in self.positions.items()
            if each not in self.paused and partition in (None, each) and position < END
        ]
        if not ready:
            return None
        chosen = ready[self.turn % len(ready)]
        first = self.positions[chosen]
        stop = min(END, first + 3 + self.turn % 5)
        columns = Columns()
        columns.offsets = [offset for offset in range(first, stop) if offset % 7]
        columns.timestamps_ms = [0] * len(columns.offsets)
        columns.keys = columns.values = cast(Any, [None] * len(columns.offsets))
        self.positions[chosen] = stop
        return Taken(chosen, columns, stop, 1)


class Program:
    """What a program knows: what it has got, what it has in hand, and what it was done with."""

    def __init__(self) -> None:
        self.fetcher = FakeFetcher()
        self.core = ConsumerCore(
            cast(Fetcher, self.fetcher), Deserialization(None, None, skips=False, name="c"), manual_done=False
        )
        self.next: dict[TopicPartition, int] = {}
        self.in_hand: dict[TopicPartition, int] = {}
        """The first offset that is not done, where something is in hand."""
        self.walk: Iterator[ConsumerRecord] | None = None

    def ask(self) -> None:
        self.core.settle()
        self.in_hand.clear()

    def got(self, partition: TopicPartition, offset: int) -> None:
        expected = self.next[partition]
        assert offset == expected + (0 if expected % 7 else 1)
        self.next[partition] = offset + 1
        self.in_hand.setdefault(partition, offset)

    def step(self) -> None:
        """The next record by `async for`."""
        record = next(self.walk, None) if self.walk is not None else None
        if record is None:
            self.ask()
            part = self.core.take(10)
            if part is None:
                return
            self.walk = self.core.hand_records(part)
            record = next(self.walk)
        self.in_hand.clear()
        self.got(TopicPartition(record.topic, record.partition), record.offset)

    def batch(self, count: int) -> None:
        self.ask()
        parts = self.core.gather(count)
        assert sum(map(len, parts)) <= count
        self.core.hand_batch(parts)
        for part in parts:
            for offset in part.offsets:
                self.got(part.partition, offset)

    def check(self) -> None:
        found = self.core.committable()
        assert set(found) == set(self.next)
        for partition, position in self.next.items():
            offset = found[partition].offset
            limit = self.in_hand.get(partition, position)
            assert offset <= limit + (0 if limit % 7 else 1) or offset == self.fetcher.positions[partition] >= END
            assert not any(each % 7 for each in range(offset, limit)), "all before what is in hand is done"
            known = self.core.position(partition)
            assert position <= known
            assert not any(each % 7 for each in range(position, known))
            handed_out = self.core.handed_out()[partition].offset
            assert handed_out == known, "all that the program has got, what is in hand included"


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["step", "step", "step"]), st.just(0), st.just(0)),
        st.tuples(st.just("batch"), st.integers(1, 12), st.just(0)),
        st.tuples(st.sampled_from(["assign", "seek"]), st.integers(0, 2), st.integers(1, END - 1)),
        st.tuples(st.sampled_from(["revoke", "pause", "resume"]), st.integers(0, 2), st.just(0)),
    ),
    max_size=60,
)


@given(ACTIONS)
def test_nothing_is_lost_doubled_or_done_too_early(actions: list[tuple[str, int, int]]) -> None:
    program = Program()
    core = program.core
    for action, number, offset in [("assign", 0, 1), ("assign", 1, 1), *actions]:
        partition = PARTITIONS[number % 3]
        is_read = partition in core.partitions
        match action:
            case "step":
                program.step()
            case "batch":
                program.batch(number)
            case "assign":
                core.assigned([partition], {partition: Start.at_offset(offset)})
                program.next[partition] = offset
                program.in_hand.pop(partition, None)
            case "seek" if is_read:
                core.seek(partition, Start.at_offset(offset))
                program.next[partition] = offset
                program.in_hand.pop(partition, None)
            case "revoke":
                core.revoked([partition])
                program.next.pop(partition, None)
                program.in_hand.pop(partition, None)
            case "pause" if is_read:
                core.pause(partition)
            case "resume" if is_read:
                core.resume(partition)
            case _:
                pass
        program.check()


def walking() -> tuple[ConsumerCore, FakeFetcher, Iterator[ConsumerRecord]]:
    """The first record of the only partition is in hand, and others with it."""
    program = Program()
    core, fetcher = program.core, program.fetcher
    core.assigned_unplaced([PARTITIONS[0]])
    assert core.take(10) is None
    assert core.position(PARTITIONS[0]) == -1
    core.place(PARTITIONS[0], Start.at_offset(1))
    part = core.take(10)
    assert part is not None and len(part) > 1
    walk = core.hand_records(part)
    next(walk)
    return core, fetcher, walk


def test_what_is_held_is_handed_out_no_more_and_in_work_until_the_program_asks() -> None:
    core, fetcher, walk = walking()
    core.hold(PARTITIONS)
    core.resume(PARTITIONS[0])  # the program's own word does not end it
    assert list(walk) == []
    assert core.take(10) is None
    assert core.in_work_count(PARTITIONS[0]) == 1
    core.settle()
    assert core.in_work_count(PARTITIONS[0]) == 0
    assert core.committable()[PARTITIONS[0]].offset == 2
    core.let_go(PARTITIONS)
    found = core.take(10)
    assert found is not None and found.offsets[0] == 2
    assert fetcher.paused == set()


def test_what_was_handed_out_ends_behind_the_record_or_batch_in_hand() -> None:
    core, _, walk = walking()
    assert core.handed_out()[PARTITIONS[0]].offset == 2
    assert next(walk).offset == 2
    assert core.handed_out()[PARTITIONS[0]].offset == 3
    assert core.committable()[PARTITIONS[0]].offset == 2, "which is not done"
    core.settle()
    core.hand_batch(parts := core.gather(4))
    last = parts[-1]
    assert core.handed_out() == {PARTITIONS[0]: Committable(last.next_offset, last.leader_epoch)}


def test_progress_is_what_the_program_does_and_not_what_is_done_to_it() -> None:
    core, _, walk = walking()
    before = core.progress
    core.hold(PARTITIONS)
    core.revoked(PARTITIONS)
    assert core.progress == before
    assert list(walk) == []
    core, _, walk = walking()
    before = core.progress
    next(walk)
    assert core.progress != before


def test_a_partition_that_waits_for_its_place_takes_the_first_that_is_said() -> None:
    core = Program().core
    core.assigned_unplaced(PARTITIONS[:2])
    core.pause(PARTITIONS[1])
    core.seek(PARTITIONS[0], Start.at_offset(8))
    assert not core.is_unplaced(PARTITIONS[0])
    assert core.is_unplaced(PARTITIONS[1])
    core.place(PARTITIONS[1], Start.at_offset(15))
    assert core.position(PARTITIONS[0]) == 8
    assert core.position(PARTITIONS[1]) == 15
    found = core.take(10)
    assert found is not None and found.partition == PARTITIONS[0]
    core.revoked(PARTITIONS[:2])
    assert not core.partitions


def test_what_is_taken_away_in_hand_is_known_until_the_program_asks_for_more() -> None:
    core, _, _ = walking()
    core.revoked(PARTITIONS)
    assert core.taken_away == {PARTITIONS[0]}
    assert core.handed_out() == {}
    core.settle()
    assert core.taken_away == set()
    core, _, _ = walking()
    core.settle()
    core.revoked(PARTITIONS)
    assert core.taken_away == set(), "the program was done with it"
