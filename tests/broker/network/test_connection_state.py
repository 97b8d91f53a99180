"""`ConnectionCondition`: each state admits what its row says, and nobody gets past authentication but by it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.network.connection_state import (
    ADMISSIONS,
    MOVES,
    Admission,
    ConnectionCondition,
    ConnectionState,
    established,
    initial,
)

STATES = list(ConnectionState)


@pytest.mark.parametrize(
    ("protocol", "first", "then"),
    [
        (SecurityProtocol.PLAINTEXT, ConnectionState.READY, ConnectionState.READY),
        (SecurityProtocol.SSL, ConnectionState.TLS_HANDSHAKE, ConnectionState.READY),
        (SecurityProtocol.SASL_PLAINTEXT, ConnectionState.UNAUTHENTICATED, ConnectionState.UNAUTHENTICATED),
        (SecurityProtocol.SASL_SSL, ConnectionState.TLS_HANDSHAKE, ConnectionState.UNAUTHENTICATED),
    ],
)
def test_a_protocol_says_where_a_connection_begins(
    protocol: SecurityProtocol, first: ConnectionState, then: ConnectionState
) -> None:
    assert (initial(protocol), established(protocol)) == (first, then)
    assert first is then or then in MOVES[first]


def test_every_state_has_its_rows_and_can_be_reached_and_fail() -> None:
    assert set(MOVES) == set(ADMISSIONS) == set(STATES)
    assert all(ConnectionState.FAILED in MOVES[state] for state in STATES)
    reached = {initial(protocol) for protocol in SecurityProtocol}
    for _ in STATES:
        reached |= {after for state in reached for after in MOVES[state]}
    assert reached == set(STATES)


@pytest.mark.parametrize("state", STATES)
def test_a_state_admits_what_its_row_says(state: ConnectionState) -> None:
    condition = ConnectionCondition(state)
    admitted = [condition.admits(is_before_authentication=each) for each in (True, False)]
    expected = {
        Admission.ALL: [True, True],
        Admission.BEFORE_AUTHENTICATION: [True, False],
        Admission.NONE: [False, False],
    }
    assert admitted == expected[ADMISSIONS[state]]
    assert condition.admits_all == all(admitted)


@pytest.mark.parametrize(("before", "after"), list(itertools.product(STATES, STATES)))
def test_a_move_that_is_not_in_the_table_is_a_mistake(before: ConnectionState, after: ConnectionState) -> None:
    condition = ConnectionCondition(before)
    if after in MOVES[before]:
        condition.move(after)
        assert condition.state is after
        assert condition.admits_all == ConnectionCondition(after).admits_all
    else:
        with pytest.raises(AssertionError):
            condition.move(after)
        assert condition.state is before


@given(st.sampled_from(SecurityProtocol), st.lists(st.sampled_from(STATES), max_size=20))
def test_everything_is_admitted_only_after_authentication(
    protocol: SecurityProtocol, moves: list[ConnectionState]
) -> None:
    """Of a connection whose TLS stands; and never again after it has failed."""
    condition = ConnectionCondition(established(protocol))
    seen = [condition.state]
    for state in moves:
        if state in MOVES[condition.state]:
            condition.move(state)
            seen.append(state)
        if condition.admits_all:
            assert ConnectionState.FAILED not in seen
            assert not protocol.needs_authentication or ConnectionState.AUTHENTICATING in seen


def test_in_a_session_with_an_end_each_request_is_looked_at() -> None:
    condition = ConnectionCondition(ConnectionState.AUTHENTICATING)
    condition.move(ConnectionState.READY, has_end=True)
    assert not condition.admits_all
    assert condition.admits(is_before_authentication=False)
    condition.move(ConnectionState.REAUTHENTICATING)
    assert not condition.admits(is_before_authentication=False)
    condition.move(ConnectionState.READY)
    assert condition.admits_all
