"""Drives a `TransactionMachine` in tests as the session does, with answers that the test gives."""

from collections.abc import Mapping
from math import inf
from typing import Final, NamedTuple

from odradek.client.errors.base import ClientError
from odradek.client.errors.broker_errors import broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.offset_commit import Committed
from odradek.client.producer.idempotence.idempotence import Key
from odradek.client.producer.idempotence.sequences import NOBODY, Identity
from odradek.client.producer.transactions.machine import TransactionMachine
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
    OffsetsOfGroup,
    Request,
)
from odradek.client.producer.transactions.states import State
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode

KEY: Final[Key] = ("orders", 3)
OTHER: Final[Key] = ("orders", 4)
IDENTITY: Final = Identity(7, 0)
NEXT: Final = Identity(7, 1)
NODE: Final = 5


class Offset(NamedTuple):
    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class Member(NamedTuple):
    group_id: str = "billing"
    member_id: str = "member-1"
    generation: int = 4
    group_instance_id: str | None = None


def offsets_of(group_id: str = "billing", offset: int = 10) -> OffsetsOfGroup:
    offsets: Mapping[TopicPartition, Committed] = {TopicPartition("input", 0): Offset(offset)}
    return OffsetsOfGroup(Member(group_id), offsets)


class Driver:
    """`now_ms` goes on by itself to the moment at which the machine asks."""

    def __init__(self, *, uses_v2: bool = False) -> None:
        self.machine = TransactionMachine("payments", Backoff(100, 1000, lambda: 0.5), 1000, lambda: 0.5)
        self.uses_v2 = uses_v2
        self.now_ms = 0.0

    def asks(self) -> Request | None:
        """The next request."""
        due_ms = self.machine.due_ms
        if due_ms == inf:
            return None
        self.now_ms = max(self.now_ms, due_ms)
        request = self.machine.next_request(self.now_ms)
        assert request is not None
        assert self.machine.due_ms == inf, "one at a time"
        return request

    def gets(self, request: Request, answer: Answer) -> None:
        self.machine.answered(request, answer, self.now_ms)

    def refuses(self, request: Request, code: ErrorCode, about: str = "") -> None:
        self.gets(request, Codes({about: code}))

    def good(self, request: Request) -> Answer:
        """What a coordinator answers when nothing goes wrong."""
        match request:
            case FindCoordinator():
                return CoordinatorFound(NODE)
            case Init():
                return Given(IDENTITY if request.identity == NOBODY else bumped(request.identity))
            case End():
                return Given(bumped(request.identity) if request.uses_v2 else NOBODY)
            case AddPartitions() | AddOffsets() | CommitOffsets():
                return Codes({"": ErrorCode.NONE})

    def goes_on(self) -> list[type[Request]]:
        """Answers all that is asked, and returns what that was."""
        kinds: list[type[Request]] = []
        while (request := self.asks()) is not None:
            kinds.append(type(request))
            self.gets(request, self.good(request))
        return kinds

    def asks_for(self, kind: type[Request]) -> Request:
        """Answers what comes before the request of this kind, which is returned."""
        while (request := self.asks()) is not None:
            if isinstance(request, kind):
                return request
            self.gets(request, self.good(request))
        raise AssertionError(f"{kind} is not asked for")

    def begun(self) -> "Driver":
        self.goes_on()
        self.machine.begin(uses_v2=self.uses_v2)
        return self

    def sent(self, key: Key = KEY) -> "Driver":
        """Records have gone to a partition."""
        if not self.machine.may_send(key):
            self.goes_on()
            assert self.machine.may_send(key)
        return self

    def about_to(self, kind: type[Request]) -> Request:
        """A machine of which this kind of request is asked, and has not been answered."""
        machine = self.machine
        if kind is Init:
            return self.asks_for(Init)
        if kind is FindCoordinator:
            return self.asks_for(FindCoordinator)
        self.begun()
        if kind is AddPartitions:
            assert not machine.may_send(KEY)
        elif kind is End:
            self.sent()
            machine.commit()
        else:
            machine.add_offsets(offsets_of())
        return self.asks_for(kind)


def bumped(identity: Identity) -> Identity:
    return identity._replace(epoch=identity.epoch + 1)


def in_state(state: State, *, uses_v2: bool = False) -> Driver:
    """A machine in this state, with records at the coordinator where there is a transaction."""
    driver = Driver(uses_v2=uses_v2)
    machine = driver.machine
    if state is State.UNINITIALIZED:
        return driver
    driver.goes_on()
    if state is State.READY:
        return driver
    if state is State.FATAL_ERROR:
        driver.begun()
        machine.delivery_failed(fatal())
        return driver
    driver.begun().sent()
    match state:
        case State.COMMITTING:
            machine.commit()
        case State.PREPARED:
            machine.prepare()
        case State.ABORTING:
            machine.abort()
            machine.landed(needs_epoch=False)
        case State.ABORTABLE_ERROR:
            machine.delivery_failed(passing())
        case _:
            pass
    assert machine.state is state
    return driver


def fatal() -> ClientError:
    return broker_error(ErrorCode.PRODUCER_FENCED)


def passing() -> ClientError:
    return broker_error(ErrorCode.INVALID_RECORD)
