"""The demo's second story: with a few records on three real brokers, and what it makes of what it sees."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from odradek.spark_jobs.demo import failover
from odradek.spark_jobs.demo.failover import Failover, Loss, Stream, longest_pause_s, lose_leaders, print_failover
from odradek.spark_jobs.demo.steps import DemoFailed, Steps
from odradek.spark_jobs.demo.three_brokers import NODE_IDS, ThreeBrokers

RECORDS = [(b"key %d" % (number % 50), b"value %d" % number) for number in range(6_000)]


def loss(*led: int, at_s: float = 10.0) -> Loss:
    return Loss(1, was_controller=False, acknowledged=0, at_s=at_s, led=dict.fromkeys(led, 0))


@pytest.mark.compat
@pytest.mark.slow
def test_leaders_are_lost_and_nothing_else_is(tmp_path: Path) -> None:
    """A broker and then the controller are killed; others lead what they led, and every record is there once."""
    shown = io.StringIO()
    console = Console(file=shown, width=120)
    with Steps(console) as steps, ThreeBrokers(tmp_path) as cluster:
        outcome = lose_leaders(cluster, RECORDS, steps)
    assert [each.was_controller for each in outcome.losses] == [False, True]
    for each in outcome.losses:
        assert each.led
        assert each.leaders_after.keys() == each.led.keys()
        assert set(each.leaders_after.values()) <= {*NODE_IDS} - {each.node_id}
        assert each.pause_s > 0
    assert (outcome.sent, outcome.read_along, outcome.read_again) == (len(RECORDS),) * 3
    print_failover(outcome, console)
    assert "6,000 records sent and acknowledged" in shown.getvalue()


def test_the_longest_pause_is_that_of_a_partition_that_the_broker_led() -> None:
    times_s = [(1.0, 0), (1.0, 1), (9.9, 0), (10.1, 1), (10.2, 2), (10.6, 0), (10.7, 0), (13.0, 1)]
    assert longest_pause_s(times_s, loss(0)) == pytest.approx(0.6), "from the kill on, not from the last one before it"
    assert longest_pause_s(times_s, loss(0, 1)) == pytest.approx(2.9)
    assert longest_pause_s(times_s, loss(7)) == 0.0


@pytest.mark.parametrize(
    ("found", "what"),
    [
        ({(0, 0): b"a"}, "1 are not where they were, and 0 are there more than once"),
        ({(0, 0): b"b", (0, 1): b"a"}, "2 are not where they were, and 0 are"),
        ({(0, 0): b"a", (0, 1): b"b", (0, 2): b"b"}, "0 are not where they were, and 1 are there more than once"),
    ],
)
def test_what_is_lost_or_doubled_is_told(found: dict[tuple[int, int], bytes], what: str) -> None:
    stream = Stream(sent=2, places={0: (0, 0), 1: (0, 1)})
    records = [(b"", b"a"), (b"", b"b")]
    failover.compare(records, stream, {(0, 0): b"a", (0, 1): b"b"}, "a reader")
    with pytest.raises(DemoFailed, match=what):
        failover.compare(records, stream, found, "a reader")


def test_the_table_says_who_was_killed_and_who_led_then() -> None:
    shown = io.StringIO()
    lost = Loss(2, was_controller=True, acknowledged=1_234, at_s=0.0, led={0: 3, 4: 3}, leaders_after={0: 3, 4: 1})
    lost.pause_s = 0.1234
    print_failover(Failover([lost], 5_000, 5_000, 5_000), Console(file=shown, width=80))
    assert "broker 2, the controller" in shown.getvalue()
    assert " ".join(shown.getvalue().split()).count("broker 2, the controller 1,234 2 of 6 1, 3 123 ms") == 1
    assert "0 lost, 0 doubled" in shown.getvalue()
