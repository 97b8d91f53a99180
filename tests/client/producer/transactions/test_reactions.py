"""What error codes of coordinators mean, as the handlers of Java's TransactionManager have it."""

import pytest

from odradek.client.producer.idempotence.sequences import NOBODY
from odradek.client.producer.transactions.reactions import Meaning, meaning_of, meaning_of_all
from odradek.client.producer.transactions.requests import (
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    Coordinated,
    End,
    FindCoordinator,
    Init,
    KeyType,
    Request,
)
from odradek.protocol.errors import ErrorCode
from tests.client.transaction_driver import IDENTITY, KEY, NODE, offsets_of

FIND_GROUP = FindCoordinator(Coordinated(KeyType.GROUP, "billing"))
FIND = FindCoordinator(Coordinated(KeyType.TRANSACTION, "payments"))
INIT = Init(NODE, NOBODY)
PARTITIONS = AddPartitions(NODE, IDENTITY, frozenset([KEY]))
OFFSETS = AddOffsets(NODE, IDENTITY, "billing")
COMMIT = CommitOffsets(NODE, IDENTITY, offsets_of(), uses_v2=False)
END = End(NODE, IDENTITY, is_commit=True, uses_v2=False)
ALL: list[Request] = [FIND_GROUP, FIND, INIT, PARTITIONS, OFFSETS, COMMIT, END]

every_request = pytest.mark.parametrize("request_", ALL, ids=lambda each: type(each).__name__)


@every_request
def test_who_is_fenced_is_so_whatever_was_asked(request_: Request) -> None:
    for code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH):
        assert meaning_of(request_, code) is Meaning.FENCED


@every_request
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
    ],
)
def test_what_no_abort_can_cure_is_fatal(request_: Request, code: ErrorCode) -> None:
    assert meaning_of(request_, code) is Meaning.FATAL


@every_request
def test_what_passes_is_asked_again(request_: Request) -> None:
    for code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS):
        assert meaning_of(request_, code) is Meaning.AGAIN


@every_request
def test_a_coordinator_that_is_none_is_looked_for(request_: Request) -> None:
    for code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
        is_search = isinstance(request_, FindCoordinator)
        assert meaning_of(request_, code) is (Meaning.AGAIN if is_search else Meaning.ELSEWHERE)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ],
)
def test_what_is_wrong_with_offsets_aborts_the_transaction(code: ErrorCode) -> None:
    assert meaning_of(COMMIT, code) is Meaning.ABORT


def test_an_unknown_error_of_an_end_is_fatal_and_one_of_partitions_aborts() -> None:
    assert meaning_of(END, ErrorCode.UNKNOWN_SERVER_ERROR) is Meaning.FATAL
    assert meaning_of(PARTITIONS, ErrorCode.UNKNOWN_SERVER_ERROR) is Meaning.ABORT
    assert meaning_of(FIND_GROUP, ErrorCode.INVALID_GROUP_ID) is Meaning.ABORT


def test_a_time_out_of_the_group_looks_for_its_coordinator_and_others_ask_again() -> None:
    assert meaning_of(COMMIT, ErrorCode.REQUEST_TIMED_OUT) is Meaning.ELSEWHERE
    assert meaning_of(END, ErrorCode.REQUEST_TIMED_OUT) is Meaning.AGAIN


def test_of_several_codes_the_gravest_counts() -> None:
    codes = [ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert meaning_of_all(PARTITIONS, codes) == (Meaning.ABORT, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert meaning_of_all(PARTITIONS, [ErrorCode.NONE]) == (Meaning.DONE, ErrorCode.NONE)


def test_what_was_not_attempted_counts_only_where_nothing_says_why() -> None:
    both = [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert meaning_of_all(PARTITIONS, both) == (Meaning.AGAIN, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert meaning_of_all(PARTITIONS, both[:1]) == (Meaning.ABORT, ErrorCode.OPERATION_NOT_ATTEMPTED)
