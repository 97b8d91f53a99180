"""The transactions of one producer: every state with every answer, and what is asked when."""

from collections.abc import Callable
from math import inf

import pytest

from odradek.client.errors.broker_errors import ProducerFenced, broker_error
from odradek.client.errors.client_errors import ConnectionFailed, UnsupportedVersion
from odradek.client.errors.transaction_errors import TransactionFailed
from odradek.client.producer.idempotence.sequences import NOBODY, Identity
from odradek.client.producer.transactions.machine import TransactionMachine
from odradek.client.producer.transactions.requests import (
    AddOffsets,
    AddPartitions,
    Codes,
    CommitOffsets,
    End,
    FindCoordinator,
    Given,
    Init,
    NoAnswer,
    Request,
)
from odradek.client.producer.transactions.states import State
from odradek.protocol.errors import ErrorCode
from tests.client.transaction_driver import IDENTITY, KEY, NEXT, OTHER, Driver, in_state, offsets_of, passing

KINDS: list[type[Request]] = [FindCoordinator, Init, AddPartitions, AddOffsets, CommitOffsets, End]
FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
FATAL = {
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
}
ABORTABLE = {
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
}
BEFORE: dict[type[Request], State] = {
    Init: State.UNINITIALIZED,
    FindCoordinator: State.UNINITIALIZED,
    End: State.COMMITTING,
}

both_versions = pytest.mark.parametrize("uses_v2", [False, True], ids=["v1", "v2"])


def expected(kind: type[Request], code: ErrorCode) -> State:
    """The state after an answer with this code."""
    before = BEFORE.get(kind, State.IN_TRANSACTION)
    if code.retriable and code not in FATAL | FENCED:
        return before
    if code in FENCED | FATAL or kind in (Init, FindCoordinator):
        return State.FATAL_ERROR
    if code in ABORTABLE or kind in (AddPartitions, CommitOffsets):
        return State.ABORTABLE_ERROR
    return State.FATAL_ERROR


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE], ids=lambda code: code.name)
def test_every_error_of_every_request_leads_where_it_should(kind: type[Request], code: ErrorCode) -> None:
    driver = Driver()
    driver.refuses(driver.about_to(kind), code)
    machine = driver.machine
    state = expected(kind, code)
    assert machine.state is state
    assert (machine.fatal_error is not None) is (state is State.FATAL_ERROR)
    assert (machine.refusal is not None) is (state is State.ABORTABLE_ERROR)
    if state is BEFORE.get(kind, State.IN_TRANSACTION):
        assert driver.now_ms < machine.due_ms < inf, "it is asked again, later"
        driver.asks_for(kind)
    else:
        assert machine.due_ms == inf


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_lost_answer_has_the_coordinator_looked_for_and_asked_again(kind: type[Request]) -> None:
    driver = Driver()
    driver.gets(driver.about_to(kind), NoAnswer(ConnectionFailed("broker 5")))
    found = driver.asks()
    assert isinstance(found, FindCoordinator)
    driver.gets(found, driver.good(found))
    if kind is not FindCoordinator:
        driver.asks_for(kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_no_broker_can_answer_is_fatal(kind: type[Request]) -> None:
    driver = Driver()
    driver.gets(driver.about_to(kind), NoAnswer(UnsupportedVersion("EndTxn", "broker 5", (5, 5), (0, 4))))
    assert isinstance(driver.machine.fatal_error, UnsupportedVersion)


def calls() -> dict[str, Callable[[TransactionMachine], object]]:
    return {
        "begin": lambda machine: machine.begin(uses_v2=False),
        "commit": lambda machine: machine.commit(),
        "prepare": lambda machine: machine.prepare(),
        "abort": lambda machine: machine.abort(),
        "landed": lambda machine: machine.landed(needs_epoch=False),
    }


ALLOWED = {
    "begin": {State.READY},
    "commit": {State.IN_TRANSACTION},
    "prepare": {State.IN_TRANSACTION},
    "abort": {State.IN_TRANSACTION, State.ABORTABLE_ERROR},
    "landed": {State.ABORTING},
}


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
@pytest.mark.parametrize("call", list(ALLOWED))
def test_a_call_in_a_state_that_does_not_know_it_is_a_mistake(call: str, state: State) -> None:
    machine = in_state(state).machine
    if state in ALLOWED[call]:
        calls()[call](machine)
    else:
        with pytest.raises(AssertionError):
            calls()[call](machine)


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
@both_versions
def test_records_are_let_go_in_an_open_transaction_alone(state: State, uses_v2: bool) -> None:
    machine = in_state(state, uses_v2=uses_v2).machine
    assert machine.may_send(KEY) is (state is State.IN_TRANSACTION)


@pytest.mark.parametrize("state", list(State), ids=lambda state: state.name)
def test_a_record_that_fails_makes_an_open_transaction_abortable(state: State) -> None:
    machine = in_state(state).machine
    before = machine.error
    machine.delivery_failed(error := passing())
    if state in (State.IN_TRANSACTION, State.COMMITTING):
        assert (machine.state, machine.error) == (State.ABORTABLE_ERROR, error)
    else:
        assert (machine.state, machine.error) == (state, before)


@pytest.mark.parametrize("state", [state for state in State if state is not State.FATAL_ERROR], ids=lambda s: s.name)
def test_a_record_that_fails_for_good_ends_the_producer(state: State) -> None:
    machine = in_state(state).machine
    machine.delivery_failed(broker_error(ErrorCode.PRODUCER_FENCED))
    assert isinstance(machine.fatal_error, ProducerFenced)
    assert machine.due_ms == inf


# -------------------------------------------------------------------------------------------------- what is asked when
def test_with_version_one_partitions_and_groups_are_named_before() -> None:
    driver = Driver().begun()
    machine = driver.machine
    told: list[bool] = []
    machine.on_news = lambda: told.append(True)
    assert not machine.may_send(KEY)
    assert not machine.may_send(OTHER)
    assert len(told) == 2, "the driver is told once for each"
    add = driver.asks()
    assert isinstance(add, AddPartitions)
    assert add.partitions == {KEY, OTHER}
    driver.gets(add, driver.good(add))
    assert machine.may_send(KEY)
    assert machine.may_send(OTHER)
    machine.add_offsets(offsets_of())
    machine.add_offsets(offsets_of(offset=20))
    assert driver.goes_on() == [AddOffsets, FindCoordinator, CommitOffsets, CommitOffsets]
    machine.commit()
    assert driver.goes_on() == [End]
    assert (machine.state, machine.identity, machine.was_committed) == (State.READY, IDENTITY, True)


def test_with_version_two_nothing_is_named_and_the_end_brings_an_epoch() -> None:
    driver = Driver(uses_v2=True).begun()
    machine = driver.machine
    assert machine.may_send(KEY)
    machine.add_offsets(offsets_of())
    assert driver.goes_on() == [FindCoordinator, CommitOffsets]
    machine.commit()
    assert driver.goes_on() == [End]
    assert (machine.state, machine.identity) == (State.READY, NEXT)


def test_partitions_are_named_again_in_the_next_transaction() -> None:
    driver = Driver().begun().sent()
    driver.machine.commit()
    driver.goes_on()
    driver.machine.begin(uses_v2=False)
    assert not driver.machine.may_send(KEY)


@both_versions
def test_a_transaction_without_anything_ends_without_a_question(uses_v2: bool) -> None:
    for ends_by in ("commit", "abort"):
        driver = Driver(uses_v2=uses_v2).begun()
        machine = driver.machine
        if ends_by == "commit":
            machine.commit()
        else:
            machine.abort()
            machine.landed(needs_epoch=False)
        assert (machine.state, machine.due_ms) == (State.READY, inf)
        assert machine.was_committed is (ends_by == "commit")


def test_an_abort_waits_until_nothing_is_on_the_wire() -> None:
    driver = Driver().begun().sent()
    driver.machine.abort()
    assert driver.asks() is None
    assert isinstance(driver.machine.refusal, TransactionFailed)
    driver.machine.landed(needs_epoch=False)
    end = driver.asks()
    assert isinstance(end, End)
    assert not end.is_commit


def test_after_an_abort_with_a_gap_version_one_asks_for_an_epoch_as_what_it_is() -> None:
    driver = Driver().begun().sent()
    machine = driver.machine
    machine.abort()
    machine.landed(needs_epoch=True)
    end = driver.asks_for(End)
    driver.gets(end, Given(NOBODY))
    assert machine.state is State.UNINITIALIZED
    init = driver.asks()
    assert isinstance(init, Init)
    assert init.identity == IDENTITY
    driver.gets(init, Given(NEXT))
    assert (machine.state, machine.identity) == (State.READY, NEXT)


def test_after_an_abort_with_a_gap_version_two_has_its_epoch_already() -> None:
    driver = Driver(uses_v2=True).begun().sent()
    driver.machine.abort()
    driver.machine.landed(needs_epoch=True)
    assert driver.goes_on() == [End]
    assert (driver.machine.state, driver.machine.identity) == (State.READY, NEXT)


def test_an_answer_that_comes_after_the_abort_began_is_only_taken_note_of() -> None:
    driver = Driver()
    add = driver.about_to(AddPartitions)
    driver.machine.abort()
    driver.machine.landed(needs_epoch=False)
    assert driver.machine.state is State.ABORTING, "the coordinator may have a transaction of ours by now"
    driver.gets(add, driver.good(add))
    assert driver.goes_on() == [End]


def test_an_abort_of_nothing_waits_for_what_was_asked_and_is_over_then() -> None:
    driver = Driver(uses_v2=True).begun()
    driver.machine.add_offsets(offsets_of())
    find = driver.asks()
    assert isinstance(find, FindCoordinator)
    driver.machine.abort()
    driver.machine.landed(needs_epoch=False)
    states = [driver.machine.state]
    driver.gets(find, driver.good(find))
    states.append(driver.machine.state)
    assert states == [State.ABORTING, State.READY]


def test_an_abort_of_what_never_began_at_the_coordinator_is_over_when_it_says_so() -> None:
    driver = Driver()
    add = driver.about_to(AddPartitions)
    driver.gets(add, NoAnswer(ConnectionFailed("broker 5")))
    driver.machine.abort()
    driver.machine.landed(needs_epoch=False)
    driver.refuses(driver.asks_for(End), ErrorCode.INVALID_TXN_STATE)
    assert driver.machine.state is State.READY


def test_an_abort_that_is_refused_though_there_was_a_transaction_is_fatal() -> None:
    driver = in_state(State.ABORTING)
    driver.refuses(driver.asks_for(End), ErrorCode.INVALID_TXN_STATE)
    assert driver.machine.fatal_error is not None


def test_an_abort_that_is_to_be_aborted_is_fatal() -> None:
    driver = in_state(State.ABORTING)
    driver.refuses(driver.asks_for(End), ErrorCode.TRANSACTION_ABORTABLE)
    assert isinstance(driver.machine.fatal_error, TransactionFailed)


def test_offsets_that_are_refused_are_not_asked_for_again_and_say_which() -> None:
    driver = Driver()
    driver.refuses(driver.about_to(CommitOffsets), ErrorCode.ILLEGAL_GENERATION, "input-0")
    machine = driver.machine
    assert not machine.is_busy
    assert "TxnOffsetCommit of input-0 for payments" in str(machine.error)


def test_the_first_error_of_a_transaction_is_its_cause() -> None:
    machine = in_state(State.ABORTABLE_ERROR).machine
    first = machine.error
    machine.delivery_failed(ConnectionFailed("broker 1"))
    assert machine.error is first


def test_an_error_is_forgotten_with_the_next_transaction() -> None:
    driver = in_state(State.ABORTABLE_ERROR)
    driver.machine.abort()
    driver.machine.landed(needs_epoch=False)
    driver.goes_on()
    driver.machine.begin(uses_v2=False)
    assert driver.machine.error is None
    assert driver.machine.refusal is None


def test_waits_become_longer_and_begin_again_after_an_answer() -> None:
    driver = Driver()
    request = driver.about_to(End)
    waits: list[float] = []
    for _ in range(3):
        driver.refuses(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        waits.append(driver.machine.due_ms - driver.now_ms)
        request = driver.asks_for(End)
    assert waits == [100, 200, 400]
    driver.gets(request, driver.good(request))
    driver.machine.begin(uses_v2=False)
    driver.machine.may_send(KEY)
    driver.refuses(driver.asks_for(AddPartitions), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert driver.machine.due_ms - driver.now_ms == 100


def test_while_markers_are_written_the_first_wait_is_short() -> None:
    driver = Driver()
    driver.refuses(driver.about_to(AddPartitions), ErrorCode.CONCURRENT_TRANSACTIONS)
    assert driver.machine.due_ms - driver.now_ms == 20


def test_who_is_fenced_is_told_so_by_one_code_whatever_was_answered() -> None:
    driver = Driver()
    driver.refuses(driver.about_to(End), ErrorCode.INVALID_PRODUCER_EPOCH)
    assert isinstance(driver.machine.fatal_error, ProducerFenced)


def test_a_new_producer_id_of_an_end_is_taken() -> None:
    driver = Driver(uses_v2=True).begun().sent()
    driver.machine.commit()
    driver.gets(driver.asks_for(End), Given(Identity(8, 0)))
    assert driver.machine.identity == Identity(8, 0)


def test_whether_the_coordinator_may_have_decided_is_known() -> None:
    driver = in_state(State.COMMITTING)
    assert not driver.machine.end_was_asked
    driver.gets(driver.asks_for(End), NoAnswer(ConnectionFailed("broker 5")))
    assert driver.machine.end_was_asked
    assert isinstance(driver.machine.last_error, ConnectionFailed)
    driver.gets(driver.asks_for(End), NoAnswer(ConnectionFailed("broker 5"), was_sent=False))
    assert driver.machine.end_was_asked, "the one before was sent"


def test_a_coordinator_that_could_not_be_reached_has_decided_nothing() -> None:
    driver = in_state(State.COMMITTING)
    end = driver.asks_for(End)
    assert driver.machine.end_was_asked, "it is on its way, for all that is known"
    driver.gets(end, NoAnswer(ConnectionFailed("broker 5"), was_sent=False))
    assert not driver.machine.end_was_asked


def test_answers_after_a_fatal_error_change_nothing() -> None:
    driver = Driver()
    add = driver.about_to(AddPartitions)
    driver.machine.delivery_failed(broker_error(ErrorCode.PRODUCER_FENCED))
    driver.gets(add, Codes({"": ErrorCode.TOPIC_AUTHORIZATION_FAILED}))
    assert isinstance(driver.machine.fatal_error, ProducerFenced)


@both_versions
def test_of_what_is_prepared_nothing_is_asked(uses_v2: bool) -> None:
    machine = in_state(State.PREPARED, uses_v2=uses_v2).machine
    assert machine.due_ms == inf
    assert not machine.was_committed


def test_a_transaction_without_records_has_nothing_to_prepare() -> None:
    machine = Driver(uses_v2=True).begun().machine
    machine.prepare()
    assert (machine.state, machine.was_committed) == (State.READY, True)
