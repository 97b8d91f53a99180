"""Which broker is asked something that any can answer: the fittest by a table of standings, of equal ones the first."""

import pytest

from odradek.client.cluster.broker_ranking import Standing, least_loaded, standing_changes_ms, standing_of
from odradek.client.cluster.link import Link
from tests.client.cluster.links import NOW_MS, Open, link

PATIENCE_MS = 1_000.0


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (link(connection=Open()), Standing.IDLE),
        (link(connection=Open(in_flight=1)), Standing.BUSY),
        (link(connection=Open(throttled_until_ms=NOW_MS)), Standing.IDLE),
        (link(connection=Open(throttled_until_ms=NOW_MS + 1)), Standing.SILENT),
        (link(connection=Open(is_open=False)), Standing.SILENT),
        (link(is_connecting=True), Standing.CONNECTING),
        (link(is_connecting=True, tried_ms=NOW_MS - 999), Standing.CONNECTING),
        (link(is_connecting=True, tried_ms=NOW_MS - 1000), Standing.STUCK),
        (link(), Standing.FREE),
        (link(retry_at_ms=NOW_MS), Standing.FREE),
        (link(retry_at_ms=NOW_MS + 1), Standing.OUT),
        (link(is_listed=False), Standing.OUT),
    ],
)
def test_standing(found: Link, expected: Standing) -> None:
    assert standing_of(found, NOW_MS, PATIENCE_MS) is expected


EXAMPLES = {
    Standing.IDLE: link(connection=Open()),
    Standing.BUSY: link(connection=Open(in_flight=3)),
    Standing.CONNECTING: link(is_connecting=True),
    Standing.FREE: link(),
    Standing.SILENT: link(connection=Open(throttled_until_ms=NOW_MS + 1)),
    Standing.STUCK: link(is_connecting=True, tried_ms=0),
    Standing.OUT: link(retry_at_ms=NOW_MS + 1),
}


@pytest.mark.parametrize("first", list(Standing))
@pytest.mark.parametrize("second", list(Standing))
def test_the_fitter_of_two_is_chosen_in_whatever_order_they_come(first: Standing, second: Standing) -> None:
    chosen = least_loaded([EXAMPLES[first], EXAMPLES[second]], NOW_MS, PATIENCE_MS)
    order = list(Standing)
    best = min(first, second, key=order.index)
    assert chosen is (None if best in (Standing.STUCK, Standing.OUT) else EXAMPLES[best])


def test_a_broker_is_chosen_by_least_load_then_by_longest_untried_then_by_order() -> None:
    busy = [link(each, connection=Open(in_flight=load)) for each, load in enumerate((4, 2, 3, 2))]
    assert least_loaded(busy, NOW_MS, PATIENCE_MS) is busy[1]
    free = [link(each, tried_ms=tried_ms) for each, tried_ms in enumerate((500, 300, 300, 400))]
    assert least_loaded(free, NOW_MS, PATIENCE_MS) is free[1]
    idle = [link(each, connection=Open()) for each in range(3)]
    assert least_loaded(idle, NOW_MS, PATIENCE_MS) is idle[0]
    assert least_loaded([], NOW_MS, PATIENCE_MS) is None


def test_when_the_standing_changes_by_time_alone() -> None:
    assert standing_changes_ms(link(connection=Open(throttled_until_ms=77)), PATIENCE_MS) == 77
    assert standing_changes_ms(link(is_connecting=True, tried_ms=50), PATIENCE_MS) == 1050
    assert standing_changes_ms(link(retry_at_ms=123), PATIENCE_MS) == 123
