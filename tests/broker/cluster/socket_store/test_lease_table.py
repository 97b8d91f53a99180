"""A lease ends when nobody has renewed it for its time, of which what the server stood still is no part."""

from odradek.broker.cluster.socket_store.lease_table import BEAT_MS, STANDSTILL_MS, LeaseTable


def run(table: LeaseTable, from_ms: float, to_ms: float) -> list[int]:
    """The server runs; what has ended by then."""
    ended: list[int] = []
    now_ms = from_ms
    while now_ms < to_ms:
        now_ms = min(now_ms + BEAT_MS, to_ms)
        assert not table.look(now_ms)
        ended += table.take_ended(now_ms)
    return ended


def test_a_lease_ends_after_its_time_and_not_before() -> None:
    table = LeaseTable(0.0)
    table.grant(1, 2_000, 0.0)
    assert run(table, 0.0, 1_999.0) == []
    assert run(table, 1_999.0, 2_000.0) == [1]
    assert not table.renew(1, 2_000.0)
    assert run(table, 2_000.0, 9_000.0) == []


def test_a_renewal_begins_its_time_again() -> None:
    table = LeaseTable(0.0)
    table.grant(1, 2_000, 0.0)
    table.grant(2, 2_000, 0.0)
    assert run(table, 0.0, 1_500.0) == []
    assert table.renew(1, 1_500.0)
    assert run(table, 1_500.0, 3_400.0) == [2]
    assert run(table, 3_400.0, 3_500.0) == [1]


def test_what_was_ended_does_not_end_again() -> None:
    table = LeaseTable(0.0)
    table.grant(1, 1_000, 0.0)
    assert table.end(1)
    assert not table.end(1)
    assert run(table, 0.0, 5_000.0) == []


def test_after_a_standstill_every_lease_has_its_full_time() -> None:
    table = LeaseTable(0.0)
    table.grant(1, 1_000, 0.0)
    table.grant(2, 2_000, 0.0)
    assert table.look(60_000.0)
    assert table.take_ended(60_000.0) == []
    assert run(table, 60_000.0, 60_999.0) == []
    assert run(table, 60_999.0, 61_500.0) == [1]
    assert run(table, 61_500.0, 62_000.0) == [2]


def test_a_late_beat_is_no_standstill() -> None:
    table = LeaseTable(0.0)
    table.grant(1, 1_000, 0.0)
    assert not table.look(STANDSTILL_MS)
    assert not table.look(2 * STANDSTILL_MS)
    assert table.take_ended(2 * STANDSTILL_MS) == [1]
