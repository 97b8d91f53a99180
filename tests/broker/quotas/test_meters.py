"""Meters come and go with who uses something, and are bounded whatever clients call themselves."""

from odradek.broker.quotas.limits import Owner
from odradek.broker.quotas.meters import SWEEP_MS, Meters

IDLE_MS = 11_000


class Stat:
    """Knows when it was made."""

    def __init__(self, now_ms: int) -> None:
        self.made_ms = now_ms


def meters(owners_max: int = 3) -> Meters[Stat]:
    return Meters(Stat, IDLE_MS, owners_max)


def owner(name: str) -> Owner:
    return Owner("", name)


def test_an_owner_has_one_meter() -> None:
    table = meters()
    first = table.of(owner("a"), 5, 0)
    assert table.of(owner("a"), 6, 10) is first
    assert (first.limit, first.last_ms, len(table)) == (6, 10, 1)
    assert table.of(owner("b"), 5, 10) is not first
    assert table.peek(owner("a")) is first
    assert table.peek(owner("c")) is None


def test_what_does_not_matter_any_more_is_forgotten() -> None:
    table = meters()
    table.of(owner("idle"), 5, 0)
    table.of(owner("silent"), 5, 0).silence(30_000, 0)
    table.of(owner("used"), 5, IDLE_MS - 1)
    table.of(owner("new"), 5, IDLE_MS + SWEEP_MS)
    assert table.peek(owner("idle")) is None
    assert table.peek(owner("silent")) is not None, "whoever is to be silent is not forgotten meanwhile"
    assert table.peek(owner("used")) is not None


def test_newcomers_beyond_the_bound_share_one_meter() -> None:
    """A client that calls itself anew each time gains nothing by that once there are too many of it."""
    table = meters()
    for number in range(3):
        table.of(owner(str(number)), 5, 0)
    shared = table.of(owner("3"), 5, 0)
    assert all(table.of(owner(str(number)), 5, 0) is shared for number in range(4, 1000))
    assert table.peek(owner("999")) is shared
    assert len(table) == 4
    assert table.of(owner("1"), 5, 0) is not shared, "who was there before keeps its own"
    table.of(owner("later"), 5, IDLE_MS + SWEEP_MS)
    assert len(table) == 1


def test_those_used_last_are_told() -> None:
    table = meters(100)
    for number in range(10):
        table.of(owner(str(number)), 5, number)
    assert [each.client_id for each, _ in table.busiest(3)] == ["9", "8", "7"]


def test_throttle_times_are_summed_up() -> None:
    meter = meters().of(owner("a"), 5, 0)
    meter.silence(100, 0)
    meter.silence(50, 10)
    assert (meter.silent_until_ms, meter.throttled_ms, meter.throttled_count) == (100, 150, 2)
