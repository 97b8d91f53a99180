"""Faults as data: each survives JSON, says in words what it does, and refuses what cannot be with the nearest name."""

import json

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.testing.faults.fault import Fault, FaultRefused, Kind, Match, Where, error_code, match_of

ORDERS = match_of(api="Produce", topic="orders", partition=0)


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (
            Fault(kind=Kind.FAIL, match=ORDERS, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3),
            "fail Produce of orders-0 with NOT_LEADER_OR_FOLLOWER, 2 of 3 time(s)",
        ),
        (Fault(kind=Kind.DELAY, match=match_of(broker=1), delay_ms=50), "delay every request at broker 1 by 50 ms"),
        (
            Fault(kind=Kind.DROP, match=match_of(api="OffsetCommit", group="g"), where=Where.ANSWER),
            "drop the answer to OffsetCommit of group g",
        ),
        (Fault(kind=Kind.DISCONNECT, match=ORDERS, where=Where.ANSWER), "disconnect behind Produce of orders-0"),
        (Fault(kind=Kind.HALF_OPEN, match=match_of(api="Fetch")), "half-open connections from Fetch on"),
        (
            Fault(kind=Kind.HOLD, match=match_of(api="EndTxn", transactional_id="t", brokers_too=True)),
            "hold EndTxn of transactional id t (brokers' too)",
        ),
        (Fault(kind=Kind.CORRUPT, match=match_of(api="Fetch")), "corrupt records of Fetch"),
        (Fault(kind=Kind.CORRUPT, match=match_of(api="Metadata")), "corrupt the answer of Metadata"),
        (Fault(kind=Kind.THROTTLE, match=match_of(client_id="b*"), delay_ms=9), "throttle every request of client b*"),
        (Fault(kind=Kind.STALL_FOLLOWER, match=match_of(topic="orders")), "stall followers of orders"),
        (
            Fault(kind=Kind.STALL_FOLLOWER, match=match_of(topic="orders", partition=1), follower=2),
            "stall broker 2 as a follower of orders-1",
        ),
        (Fault(kind=Kind.INTERCEPT, match=Match()), "intercept every request"),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
def test_each_kind_survives_json_and_says_what_it_does(fault: Fault, text: str) -> None:
    assert Fault.from_json(json.loads(json.dumps(fault.to_json()))) == fault
    assert fault.text(2).startswith(text)


def test_an_error_is_named_or_numbered() -> None:
    wanted = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [error_code(each) for each in (wanted, "not_leader_or_follower", 6)] == [wanted] * 3
    with pytest.raises(FaultRefused, match="no error 'NOT_LEADER'; the nearest is NOT_LEADER_OR_FOLLOWER"):
        error_code("NOT_LEADER")
    with pytest.raises(FaultRefused, match="no error with the number 9999"):
        error_code(9999)
    with pytest.raises(FaultRefused, match=r"NONE is no error: .* use intercept"):
        error_code(0)


def test_an_api_is_named_or_numbered() -> None:
    assert match_of(api="produce") == match_of(api=0) == match_of(api="Produce")
    with pytest.raises(FaultRefused, match="no API 'ProduceRequest' is served; the nearest is Produce"):
        match_of(api="ProduceRequest")
    with pytest.raises(FaultRefused, match=r"no API with the key 7000 is served; served are \[0, 1,"):
        match_of(api=7000)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(FaultRefused, match="partition 0 is named without its topic"):
        match_of(partition=0)
    with pytest.raises(FaultRefused, match="times is 0, and has to be 1 or more"):
        Fault(kind=Kind.DROP, match=ORDERS, times=0)
    with pytest.raises(FaultRefused, match="ms is -1, and has to be from 0"):
        Fault(kind=Kind.DELAY, match=ORDERS, delay_ms=-1)
    with pytest.raises(FaultRefused, match="add topic="):
        Fault(kind=Kind.STALL_FOLLOWER, match=Match())
