"""A producer's machine and a coordinator agree on every transaction, whatever happens to requests and answers.

Hypothesis writes histories: records and offsets, commits and aborts, while requests and answers are lost, coordinators
move and load, markers take their time, deliveries fail, time-outs abort, and others fence the producer. What the
machine says was committed is then what a reader sees of it, all or nothing; what it says was aborted nobody sees; and
it is never stuck: when the coordinator answers, everything ends.
"""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.client.errors.broker_errors import broker_error
from odradek.client.errors.client_errors import ConnectionFailed
from odradek.client.producer.idempotence.idempotence import Key
from odradek.client.producer.idempotence.sequences import NOBODY
from odradek.client.producer.transactions.requests import (
    AddOffsets,
    AddPartitions,
    Answer,
    Codes,
    CommitOffsets,
    CoordinatorFound,
    End,
    FindCoordinator,
    Given,
    Init,
    NoAnswer,
    OffsetsOfGroup,
    Request,
)
from odradek.client.producer.transactions.states import State
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.client.model_coordinator import ModelCoordinator, Written
from tests.client.transaction_driver import NODE, Driver, offsets_of

KEYS: tuple[Key, ...] = (("orders", 0), ("orders", 1))
PASSING = [
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
]
USUAL = ["send 0", "send 1", "send 0", "offsets", "commit", "commit", "abort", "begin", "begin", "begin"]
RARE = ["fail", "time out", "fence"]
FATES = ["done", "request lost", "answer lost", *(code.name for code in PASSING)]


def histories(actions: list[str]) -> st.SearchStrategy[list[tuple[str, list[str], bool]]]:
    """What the program does, the fates of the requests after it, and whether the others are answered at once."""
    fates = st.one_of(st.just(list[str]()), st.lists(st.sampled_from(FATES), max_size=3))
    step = st.tuples(st.sampled_from(actions), fates, st.sampled_from([True, True, True, False]))
    return st.lists(step, min_size=5, max_size=30)


@dataclass
class World:
    """One producer, and the coordinator of all it does. `wishes`: what the open transaction wrote."""

    uses_v2: bool
    coordinator: ModelCoordinator = field(default_factory=ModelCoordinator)
    wishes: list[Written] = field(default_factory=list[Written])
    numbers: int = 0
    was_touched: bool = False
    """By a time-out or another producer."""
    has_failed: bool = False
    """A record of the transaction."""
    committed: list[Written] = field(default_factory=list[Written])
    aborted: list[Written] = field(default_factory=list[Written])
    ending: State | None = None

    def __post_init__(self) -> None:
        self.driver = Driver(uses_v2=self.uses_v2)
        self.machine = self.driver.machine

    # -------------------------------------------------------------------------------------------------- the program
    def does(self, action: str, fates: list[str], goes_on: bool = False) -> None:
        machine = self.machine
        is_open = machine.state is State.IN_TRANSACTION
        match action.split():
            case ["begin"] if machine.state is State.READY:
                self.settle()
                self.has_failed = False
                machine.begin(uses_v2=self.uses_v2)
            case ["send", number] if is_open:
                self.sends(KEYS[int(number)], fates, goes_on)
            case ["offsets"] if is_open:
                self.numbers += 1
                machine.add_offsets(offsets_of(offset=self.numbers))
            case ["commit"] if is_open and not machine.is_busy:
                machine.commit()
                self.ending = State.COMMITTING
            case ["abort"] if is_open or machine.state is State.ABORTABLE_ERROR:
                machine.abort()
                machine.landed(needs_epoch=self.numbers % 2 == 1)
                self.ending = State.ABORTING
            case ["fail"] if is_open:
                self.has_failed = True
                machine.delivery_failed(broker_error(ErrorCode.INVALID_RECORD))
            case ["time", "out"]:
                self.was_touched = self.was_touched or self.coordinator.state == "ongoing"
                self.coordinator.times_out()
            case ["fence"] if self.coordinator.identity.epoch >= 0:
                self.was_touched = True
                self.coordinator.init(NOBODY)
            case _:
                pass
        for fate in fates:
            self.answers(fate)
        if goes_on:
            self.goes_on()
        self.settle()
        assert machine.state is not State.ABORTABLE_ERROR or self.has_failed or self.was_touched

    def goes_on(self) -> None:
        """From now on everything is answered."""
        for _ in range(30):
            self.answers("done")

    def sends(self, key: Key, fates: list[str], goes_on: bool) -> None:
        if not self.machine.may_send(key):
            for fate in fates:
                self.answers(fate)
            if goes_on:
                self.goes_on()
        if not self.machine.may_send(key):
            return
        self.numbers += 1
        try:
            self.coordinator.write(self.machine.identity, key, self.numbers, uses_v2=self.uses_v2)
        except KafkaError as error:
            self.machine.delivery_failed(broker_error(error.code))
        else:
            self.wishes.append(Written(key, self.numbers))

    # ---------------------------------------------------------------------------------------------------- the driver
    def answers(self, fate: str) -> None:
        """Lets the next request, if there is one, have this fate."""
        request = self.driver.asks()
        if request is None:
            return
        answer: Answer = NoAnswer(ConnectionFailed("broker 5"))
        if fate in ("done", "answer lost"):
            real = self.real(request)
            answer = real if fate == "done" else answer
        elif fate != "request lost":
            answer = Codes({"": ErrorCode[fate]})
        self.driver.gets(request, answer)

    def real(self, request: Request) -> Answer:
        coordinator = self.coordinator
        try:
            match request:
                case FindCoordinator():
                    return CoordinatorFound(NODE)
                case Init():
                    return Given(coordinator.init(request.identity))
                case AddPartitions():
                    coordinator.add(request.identity, request.partitions)
                case AddOffsets():
                    coordinator.add(request.identity, [(request.group_id, 0)])
                case CommitOffsets():
                    self.commits_offsets(request)
                case End():
                    return Given(
                        coordinator.end(request.identity, is_commit=request.is_commit, uses_v2=request.uses_v2)
                    )
        except KafkaError as error:
            return Codes({"": error.code})
        return Codes({"": ErrorCode.NONE})

    def commits_offsets(self, request: CommitOffsets) -> None:
        where, value = (request.what.group.group_id, 0), offset_of(request.what)
        self.coordinator.write(request.identity, where, value, uses_v2=request.uses_v2)
        self.wishes.append(Written(where, value))

    def settle(self) -> None:
        """Notes how a transaction has ended."""
        if self.ending is None or self.machine.state in (State.COMMITTING, State.ABORTING, State.ABORTABLE_ERROR):
            return
        if self.machine.state is not State.FATAL_ERROR:
            (self.committed if self.machine.was_committed else self.aborted).extend(self.wishes)
            assert self.ending is State.ABORTING or self.machine.was_committed
        self.wishes.clear()
        self.ending = None


def offset_of(what: OffsetsOfGroup) -> int:
    [committed] = what.offsets.values()
    return committed.offset


History = list[tuple[str, list[str], bool]]


@given(st.one_of(histories(USUAL), histories(USUAL + RARE)), st.booleans())
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_machine_and_coordinator_agree_on_every_transaction(history: History, uses_v2: bool) -> None:
    world = World(uses_v2)
    world.goes_on()
    for step in history:
        world.does(*step)
    world.goes_on()
    world.does("abort", [], True)
    machine, coordinator = world.machine, world.coordinator
    assert machine.state in (State.READY, State.FATAL_ERROR), "it is stuck"
    world.settle()
    assert set(world.committed) <= set(coordinator.committed)
    assert not set(world.aborted) & set(coordinator.committed)
    assert world.was_touched or machine.state is not State.FATAL_ERROR
    if not world.was_touched:
        assert set(coordinator.committed) == set(world.committed)


@given(st.lists(st.sampled_from(FATES), max_size=12), st.booleans(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_an_end_that_is_asked_again_ends_once_and_as_it_was_asked(
    fates: list[str], is_commit: bool, uses_v2: bool
) -> None:
    world = World(uses_v2)
    world.goes_on()
    world.does("begin", [])
    world.does("send 0", [], True)
    world.does("commit" if is_commit else "abort", fates)
    world.goes_on()
    assert world.coordinator.decisions == [is_commit]
    assert world.machine.was_committed is is_commit
