"""The common end of a batch's records comes once, for each record, through any splits, to all who wait for it.

By examples, and as a property over trees of splits.
"""

import asyncio
import gc
import logging
from array import array
from contextvars import copy_context
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.errors.client_errors import (
    ClientError,
    ConnectionFailed,
    RecordRefused,
    UndeliveredRecords,
    WrongLoop,
)
from odradek.client.producer.results.produce_results import (
    Ack,
    ProduceResult,
    Results,
    all_ended,
)
from odradek.protocol.errors import ErrorCode
from tests.client import batches
from tests.client.deliveries import CountedResults

NOW = 1_700_000_000_000
FAILED = -2


def new_result(count: int, owner: Results | None = None) -> ProduceResult:
    """Of a closed batch with so many records, a millisecond apart."""
    result = ProduceResult(batches.results() if owner is None else owner, "orders", 3)
    result.count = count
    result.timestamps = array("q", [NOW + n for n in range(count)])
    return result


def here() -> CountedResults:
    """Of a producer in the loop that runs."""
    return CountedResults()


def lost() -> ClientError:
    return ConnectionFailed("broker 1 (localhost:9092)")


# ---------------------------------------------------------------------------------------------------- acknowledged
def test_an_ack_counts_from_the_base_offset_and_has_the_records_own_time() -> None:
    result = new_result(3)
    result.complete(100, -1)
    assert result.is_done
    assert [result.ack(n) for n in range(3)] == [Ack("orders", 3, 100 + n, NOW + n) for n in range(3)]
    assert [result.error_of(n) for n in range(3)] == [None] * 3


def test_the_time_of_the_append_stands_for_that_of_each_record() -> None:
    result = new_result(2)
    result.complete(0, NOW + 50)
    assert [result.ack(n) for n in range(2)] == [Ack("orders", 3, 0, NOW + 50), Ack("orders", 3, 1, NOW + 50)]


def test_where_nobody_knows_the_offset_it_is_minus_one() -> None:
    result = new_result(2)
    result.complete(-1, -1)
    assert result.ack(1) == Ack("orders", 3, -1, NOW + 1)


# ------------------------------------------------------------------------------------------------------------ failed
def test_a_failure_is_raised_anew_each_time() -> None:
    """The error is kept for thousands of records: raised itself, it would collect the traceback of each."""
    result = new_result(2)
    error = lost()
    result.fail(error)
    raised: list[ClientError] = []
    for index in (0, 1, 1):
        with pytest.raises(ConnectionFailed, match="broker 1") as caught:
            result.ack(index)
        raised.append(caught.value)
    assert error.__traceback__ is None
    assert len({id(each) for each in (*raised, error)}) == 4
    assert result.error_of(0) is error


def test_single_records_have_their_own_errors() -> None:
    result = new_result(3)
    own = RecordRefused(ErrorCode.INVALID_RECORD, "no key", what="a record")
    others = lost()
    result.fail(others, {1: own})
    assert [result.peek(n) for n in range(3)] == [others, own, others]
    assert [result.error_of(n) for n in range(3)] == [others, own, others]
    with pytest.raises(RecordRefused):
        result.ack(1)


def test_it_ends_once() -> None:
    for first in ("complete", "fail", "split"):
        for second in ("complete", "fail", "split"):
            result = new_result(2)
            end(result, first)
            with pytest.raises(AssertionError):
                end(result, second)


def end(result: ProduceResult, how: str) -> None:
    match how:
        case "complete":
            result.complete(0, -1)
        case "fail":
            result.fail(lost())
        case _:
            result.split((1, result.count - 1))


# ---------------------------------------------------------------------------------------------------------- splitting
def test_a_record_is_found_in_the_part_of_the_part() -> None:
    result = new_result(10)
    left, right = result.split((4, 6))
    first, second = right.split((1, 5))
    assert not result.is_done
    assert [result.locate(n) for n in (0, 3)] == [(left, 0), (left, 3)]
    assert [result.locate(n) for n in (4, 5, 9)] == [(first, 0), (second, 0), (second, 4)]
    assert right.locate(5) == (second, 4)


def test_parts_must_have_all_the_records() -> None:
    with pytest.raises(AssertionError):
        new_result(10).split((4, 5))


@dataclass
class Tree:
    """Parts of parts: leaves end, others are split in two."""

    count: int
    parts: "tuple[Tree, Tree] | None" = None


@st.composite
def trees(draw: st.DrawFn, count: int | None = None) -> Tree:
    count = draw(st.integers(1, 12)) if count is None else count
    if count == 1 or draw(st.integers(0, 2)) == 0:
        return Tree(count)
    cut = draw(st.integers(1, count - 1))
    return Tree(count, (draw(trees(cut)), draw(trees(count - cut))))


class Play:
    """Ends the result of a tree. Some records get a callback before it ends or is split, the others at the end."""

    def __init__(self, tree: Tree, data: st.DataObject) -> None:
        self.root = new_result(tree.count)
        self.data = data
        self.expected: dict[int, int] = {}
        """The offset of each record, or FAILED."""
        self.seen: dict[int, list[int]] = {}
        self.play(self.root, tree, 0)
        for index in range(tree.count):
            self.watch(index)

    def watch(self, index: int) -> None:
        if index not in self.seen:
            self.seen[index] = []
            part, part_index = self.root.locate(index)
            if part.is_done:
                self.look(index)
            else:
                part.add_callback(part_index, self.look, index, copy_context(), True)

    def look(self, index: int) -> None:
        part, part_index = self.root.locate(index)
        self.seen[index].append(FAILED if part.error is not None else part.ack(part_index).offset)

    def play(self, result: ProduceResult, tree: Tree, start: int) -> None:
        indexes = range(start, start + tree.count)
        result.timestamps = array("q", [NOW + index for index in indexes])
        for index in self.data.draw(st.lists(st.sampled_from(indexes), max_size=3)):
            self.watch(index)
        if tree.parts is not None:
            left, right = result.split([part.count for part in tree.parts])
            order = [(left, tree.parts[0], start), (right, tree.parts[1], start + left.count)]
            for part in self.data.draw(st.permutations(order)):
                self.play(*part)
        elif self.data.draw(st.booleans()):
            self.expected.update((index, 1000 + index) for index in indexes)
            result.complete(1000 + start, -1)
        else:
            self.expected.update((index, FAILED) for index in indexes)
            result.fail(lost())


@given(trees(), st.data())
def test_every_record_ends_once_with_its_own_outcome(tree: Tree, data: st.DataObject) -> None:
    play = Play(tree, data)
    assert play.seen == {index: [outcome] for index, outcome in play.expected.items()}
    for index, offset in play.expected.items():
        if offset != FAILED:
            part, part_index = play.root.locate(index)
            assert part.ack(part_index) == Ack("orders", 3, offset, NOW + index)


# ------------------------------------------------------------------------------------------------------- waiting for
async def test_a_group_waits_for_every_result_in_whatever_order_they_end() -> None:
    owner = here()
    results = [new_result(2, owner) for _ in range(4)]
    task = asyncio.create_task(all_ended(owner, [(result, (0,)) for result in results]))
    for result in reversed(results):
        await asyncio.sleep(0)
        assert not task.done()
        result.complete(0, -1)
    await task


async def test_a_group_waits_for_the_parts_that_hold_its_records_and_for_no_other() -> None:
    """Through two splits; index 5 of 10 ends in the first half of the second half."""
    owner = here()
    result = new_result(10, owner)
    task = asyncio.create_task(all_ended(owner, [(result, (5,))]))
    everything = asyncio.create_task(result.ended())
    await asyncio.sleep(0)
    left, right = result.split((4, 6))
    first, second = right.split((3, 3))
    await asyncio.sleep(0)
    assert not task.done()
    first.complete(0, -1)
    await asyncio.sleep(0)
    assert task.done()
    left.complete(0, -1)
    await asyncio.sleep(0)
    assert not everything.done()
    second.fail(lost())
    await everything
    assert owner.lost_count == 3


async def test_what_has_ended_or_was_split_before_is_not_waited_for_in_vain() -> None:
    owner = here()
    ended, split = new_result(1, owner), new_result(4, owner)
    ended.complete(0, -1)
    parts = split.split((2, 2))
    task = asyncio.create_task(all_ended(owner, [(ended, (0,)), (split, (0, 3))]))
    await asyncio.sleep(0)
    parts[0].complete(0, -1)
    await asyncio.sleep(0)
    assert not task.done()
    parts[1].complete(0, -1)
    await task
    await all_ended(owner, [])
    await split.ended()


async def test_a_group_looks_at_its_records_even_before_its_turn() -> None:
    """The second result fails while the first is waited for: that is no failure without a witness."""
    owner = here()
    first, second = new_result(2, owner), new_result(2, owner)
    task = asyncio.create_task(all_ended(owner, [(first, (0, 1)), (second, (1,))]))
    await asyncio.sleep(0)
    second.fail(lost())
    assert owner.lost_count == 1
    part, _ = first.split((1, 1))
    part.fail(lost())
    assert owner.lost_count == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("has_waiter", [True, False])
async def test_who_gave_up_waiting_does_not_count_as_a_witness(has_waiter: bool) -> None:
    """Cancelled in the same turn of the loop in which the result fails, before its task could run again."""
    owner = here()
    result = new_result(1, owner)

    async def wait() -> None:
        if has_waiter:
            await result.waiter(0)
        else:
            await all_ended(owner, [(result, (0,))])

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    result.fail(lost())
    assert owner.lost_count == 1
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(UndeliveredRecords):
        owner.report()


def groups_alive() -> int:
    gc.collect()
    return sum(type(each).__name__ == "_Group" for each in gc.get_objects())


@pytest.mark.parametrize("splits", [False, True])
async def test_group_waits_that_are_cancelled_leave_nothing_in_results_that_have_not_ended(splits: bool) -> None:
    """A caller who looks every second while the broker is down must not take memory each time."""
    owner = here()
    before = groups_alive()
    results = [new_result(4, owner) for _ in range(3)]
    waited_for = [(results[0], (0, 1)), (results[1], ()), (results[0], (3,)), (results[2], (1, 2))]
    kept = asyncio.create_task(all_ended(owner, waited_for))
    tasks = [asyncio.create_task(all_ended(owner, waited_for)) for _ in range(20)]
    await asyncio.sleep(0)
    assert groups_alive() - before == 21
    results[1].complete(0, -1)
    ends = [*results[0].split((1, 3)), results[2]] if splits else [results[0], results[2]]
    while tasks:
        tasks[-1].cancel()
        await asyncio.wait([tasks.pop()])  # (`gather` would keep their errors, whose frames have the groups)
    assert groups_alive() - before == 1
    for result in ends:
        await asyncio.sleep(0)
        assert not kept.done()
        result.complete(0, -1)
    await kept
    assert groups_alive() == before


async def test_nobody_waits_in_another_loop() -> None:
    """Nor without one, which is how another thread or a callback of one would come."""
    other = asyncio.new_event_loop()
    try:
        result = new_result(1, Results(other, lambda: 0.0))
        with pytest.raises(WrongLoop, match="in another event loop"):
            result.waiter(0)
        with pytest.raises(WrongLoop):
            await result.ended()
    finally:
        other.close()


def test_nobody_waits_without_a_loop() -> None:
    with pytest.raises(WrongLoop, match="without an event loop"):
        batches.results().running_loop()


# ------------------------------------------------------------------------------------------------------------ callbacks
@pytest.mark.parametrize("error", [ValueError("callback"), asyncio.CancelledError("of something else")])
def test_a_callback_that_raises_is_logged_and_the_others_are_called(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    result = new_result(2)
    called: list[int] = []

    def broken(_: object) -> None:
        raise error

    result.add_callback(0, broken, None, copy_context(), True)
    result.add_callback(1, called.append, 1, copy_context(), True)
    with caplog.at_level(logging.ERROR, "odradek.client.producer.results.produce_results"):
        result.complete(0, -1)
    assert called == [1]
    assert len(caplog.records) == 1
    assert "broken" in caplog.messages[0]
    assert caplog.records[0].exc_info is not None


def test_callbacks_are_called_in_the_order_of_registration() -> None:
    result = new_result(2)
    called: list[str] = []
    for name, index in (("a", 1), ("b", 0), ("c", 1)):
        result.add_callback(index, called.append, name, copy_context(), True)
    result.complete(0, -1)
    assert called == ["a", "b", "c"]


def test_equal_callbacks_of_a_record_are_removed_and_no_others() -> None:
    result = new_result(2)
    called: list[int] = []
    for index in (0, 0, 1):
        result.add_callback(index, called.append, index, copy_context(), True)
    result.add_callback(0, len, "", copy_context(), True)
    assert result.remove_callback(0, called.append) == 2
    assert result.remove_callback(0, called.append) == 0
    result.complete(0, -1)
    assert called == [1]
