"""The budget of `buffer_memory` is fair, exact, and ends full: by examples, and by a model for any order of calls."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.client.producer.batching.memory import BufferMemory, Claim

LIMIT = 100


def nothing() -> None:
    """Who waits and does not care."""


class Waiters:
    """Claims by name, and in which order they were granted."""

    def __init__(self, memory: BufferMemory) -> None:
        self.memory = memory
        self.granted: list[str] = []

    def queue(self, name: str, size_bytes: int) -> Claim:
        return self.memory.queue(size_bytes, lambda: self.granted.append(name))


def full() -> tuple[BufferMemory, Waiters]:
    """A budget of which everything is taken."""
    memory = BufferMemory(LIMIT)
    assert memory.try_claim(LIMIT)
    return memory, Waiters(memory)


# ------------------------------------------------------------------------------------------------------ at once
def test_everything_can_be_taken_and_no_byte_more() -> None:
    memory = BufferMemory(LIMIT)
    assert not memory.try_claim(LIMIT + 1)
    assert memory.try_claim(LIMIT)
    assert memory.free_bytes == 0
    assert not memory.try_claim(1)
    memory.release(LIMIT)
    assert memory.free_bytes == memory.limit_bytes == LIMIT


def test_a_refusal_makes_it_exhausted_until_bytes_are_released() -> None:
    """`send_nowait` does not queue: its refusal has to be enough for what lingers to be sent."""
    memory, _ = full()
    assert not memory.is_exhausted
    assert not memory.try_claim(1)
    assert memory.was_refused
    assert memory.is_exhausted
    memory.release(1)
    assert not memory.was_refused
    assert not memory.is_exhausted


def test_more_than_was_taken_cannot_be_released() -> None:
    memory = BufferMemory(LIMIT)
    assert memory.try_claim(10)
    with pytest.raises(AssertionError):
        memory.release(11)


def test_what_was_accepted_may_exceed_the_limit_and_comes_back() -> None:
    memory, waiters = full()
    memory.take(20)
    assert memory.free_bytes == -20
    waiters.queue("a", 10)
    memory.release(25)
    assert waiters.granted == []
    memory.release(5)
    assert waiters.granted == ["a"]
    assert memory.free_bytes == 0


# ----------------------------------------------------------------------------------------------------- in a queue
def test_claims_are_granted_in_the_order_of_asking_however_small_later_ones_are() -> None:
    memory, waiters = full()
    for name, size_bytes in (("large", 50), ("small", 1), ("middle", 20)):
        waiters.queue(name, size_bytes)
    assert memory.is_exhausted
    memory.release(49)
    assert waiters.granted == []
    memory.release(1)
    assert waiters.granted == ["large"]
    memory.release(21)
    assert waiters.granted == ["large", "small", "middle"]
    assert memory.free_bytes == 0


def test_a_claim_for_which_there_is_room_is_granted_at_once() -> None:
    memory = BufferMemory(LIMIT)
    waiters = Waiters(memory)
    claim = waiters.queue("a", LIMIT)
    assert claim.is_granted
    assert waiters.granted == ["a"]
    assert memory.free_bytes == 0


def test_nobody_overtakes_a_claim_that_waits() -> None:
    """There would be room for one byte, and for the next claim."""
    memory, waiters = full()
    memory.release(30)
    waiters.queue("first", 40)
    assert not memory.try_claim(1)
    waiters.queue("second", 1)
    assert waiters.granted == []
    assert memory.waiting == 2


def test_nobody_overtakes_a_claim_that_was_granted_until_its_owner_has_used_it() -> None:
    """Its owner, a task, runs a turn of the loop later: a callback in between must not get before it."""
    memory, waiters = full()
    waiters.queue("a", 10)
    memory.release(50)
    assert waiters.granted == ["a"]
    assert memory.waiting == 1
    assert not memory.is_exhausted
    assert not memory.try_claim(1)
    memory.use(10, 10)
    assert memory.waiting == 0
    assert memory.try_claim(1)


def test_a_claim_is_used_in_part_and_the_rest_goes_to_the_next() -> None:
    memory, waiters = full()
    waiters.queue("a", 10)
    waiters.queue("b", 4)
    memory.release(10)
    assert waiters.granted == ["a"]
    memory.use(10, 6)
    assert waiters.granted == ["a", "b"]
    memory.give_back(4)
    assert memory.waiting == 0
    assert memory.free_bytes == 4


@pytest.mark.parametrize("size_bytes", [-1, 11])
def test_a_claim_cannot_be_used_for_more_than_it_is(size_bytes: int) -> None:
    memory = BufferMemory(LIMIT)
    memory.queue(10, nothing)
    with pytest.raises(AssertionError):
        memory.use(10, size_bytes)


def test_a_claim_that_waits_cannot_be_used() -> None:
    memory, waiters = full()
    waiters.queue("a", 10)
    with pytest.raises(AssertionError, match="no claim was granted"):
        memory.use(10, 10)


@pytest.mark.parametrize("size_bytes", [0, -1, LIMIT + 1])
def test_a_claim_that_could_never_be_granted_is_our_mistake(size_bytes: int) -> None:
    with pytest.raises(AssertionError):
        BufferMemory(LIMIT).queue(size_bytes, nothing)


# ------------------------------------------------------------------------------------------------------ giving up
def test_who_gives_up_waiting_lets_the_next_one_in() -> None:
    memory, waiters = full()
    large = waiters.queue("large", 50)
    waiters.queue("small", 5)
    memory.release(5)
    assert waiters.granted == []
    memory.cancel(large)
    assert waiters.granted == ["small"]
    assert memory.waiting == 1
    memory.give_back(5)
    assert memory.free_bytes == 5


def test_who_gives_up_in_the_middle_of_the_queue_changes_nothing_for_the_others() -> None:
    memory, waiters = full()
    waiters.queue("a", 10)
    middle = waiters.queue("b", 10)
    waiters.queue("c", 10)
    memory.cancel(middle)
    memory.release(LIMIT)
    assert waiters.granted == ["a", "c"]
    assert memory.free_bytes == 80


def test_who_gives_up_after_the_grant_returns_the_bytes_to_the_next_one() -> None:
    memory, waiters = full()
    first = waiters.queue("a", 10)
    waiters.queue("b", 10)
    memory.release(10)
    assert first.is_granted
    memory.cancel(first)
    assert waiters.granted == ["a", "b"]
    memory.give_back(10)
    assert memory.free_bytes == 10
    assert memory.waiting == 0


# ------------------------------------------------------------------------------------------------------ any order
@dataclass(eq=False)
class Asker:
    """What the model knows of a claim."""

    number: int
    claim: Claim | None = None
    woken: int = 0

    def wake(self) -> None:
        self.woken += 1


@dataclass
class Model:
    queued: list[Asker] = field(default_factory=list[Asker])
    granted: list[Asker] = field(default_factory=list[Asker])
    held: list[int] = field(default_factory=list[int])
    over: int = 0
    """What was taken beyond asking."""


class Budget(RuleBasedStateMachine):
    """Calls in any order. What is free is always the limit without what is held, claimed and granted."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = BufferMemory(LIMIT)
        self.model = Model()
        self.asked = 0

    @rule(size_bytes=st.integers(1, LIMIT))
    def try_claim(self, size_bytes: int) -> None:
        has_room = size_bytes <= self.memory.free_bytes and not self.model.queued and not self.model.granted
        assert self.memory.try_claim(size_bytes) is has_room
        if has_room:
            self.model.held.append(size_bytes)
        else:
            assert self.memory.is_exhausted

    @rule(size_bytes=st.integers(1, LIMIT))
    def queue(self, size_bytes: int) -> None:
        self.asked += 1
        asker = Asker(self.asked)
        self.model.queued.append(asker)
        asker.claim = self.memory.queue(size_bytes, asker.wake)

    @precondition(lambda self: self.model.queued or self.model.granted)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        everybody = self.model.queued + self.model.granted
        asker = data.draw(st.sampled_from(everybody))
        (self.model.queued if asker in self.model.queued else self.model.granted).remove(asker)
        assert asker.claim is not None
        self.memory.cancel(asker.claim)

    @precondition(lambda self: self.model.granted)
    @rule(data=st.data())
    def use(self, data: st.DataObject) -> None:
        asker = data.draw(st.sampled_from(self.model.granted))
        assert asker.claim is not None
        size_bytes = data.draw(st.integers(0, asker.claim.size_bytes))
        self.model.granted.remove(asker)
        self.model.held.append(size_bytes)
        self.memory.use(asker.claim.size_bytes, size_bytes)

    @precondition(lambda self: self.model.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.model.held) - 1))
        size_bytes = data.draw(st.integers(0, self.model.held[index]))
        self.model.held[index] -= size_bytes
        self.memory.release(size_bytes)
        assert not self.memory.was_refused

    @rule(size_bytes=st.integers(1, LIMIT // 2))
    def take(self, size_bytes: int) -> None:
        self.model.held.append(size_bytes)
        self.model.over += size_bytes
        self.memory.take(size_bytes)

    @invariant()
    def grants_follow_the_order_of_asking(self) -> None:
        model, memory = self.model, self.memory
        for asker in list(model.queued):
            if not asker.woken:
                break
            model.queued.remove(asker)
            model.granted.append(asker)
        for asker in model.queued:
            assert not asker.woken
            assert asker.claim is not None
            assert not asker.claim.is_granted
        for asker in model.granted:
            assert asker.woken == 1
            assert asker.claim is not None
            assert asker.claim.is_granted
        # Nobody waits for what is there.
        if model.queued:
            first = model.queued[0].claim
            assert first is not None
            assert first.size_bytes > memory.free_bytes
            assert memory.is_exhausted
        assert memory.waiting == len(model.queued) + len(model.granted)

    @invariant()
    def no_byte_is_lost_or_made(self) -> None:
        granted = sum(asker.claim.size_bytes for asker in self.model.granted if asker.claim is not None)
        assert self.memory.free_bytes == LIMIT - sum(self.model.held) - granted
        assert self.memory.free_bytes >= -self.model.over

    def teardown(self) -> None:
        self.grants_follow_the_order_of_asking()
        for asker in self.model.queued + self.model.granted:
            assert asker.claim is not None
            self.memory.cancel(asker.claim)
        for size_bytes in self.model.held:
            self.memory.release(size_bytes)
        assert self.memory.free_bytes == LIMIT
        assert self.memory.waiting == 0
        assert not self.memory.is_exhausted


TestBudget = Budget.TestCase
TestBudget.settings = settings(max_examples=75, stateful_step_count=30)
