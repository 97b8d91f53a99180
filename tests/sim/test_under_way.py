"""What stories know of transactions under way: from a history that is made by hand."""

from typing import Literal

from odradek.testing.sim.checking.history import Sent
from odradek.testing.sim.checking.transaction_history import Ended, Ending, InTransaction
from odradek.testing.sim.directed.under_way import SETTLED_MS, UnderWay
from odradek.testing.sim.world.world import World

LEADS = {0: "b1", 1: "b2", 2: "b1"}
"""Partition of `steps` -> its leader. Nobody leads partition 3."""


class Told:
    """A world in which clients have transactions, as the test says."""

    def __init__(self) -> None:
        self.world = World(1)
        self.machines = {name: self.world.machine(name) for name in ("b1", "b2")}
        self.under_way = UnderWay(self.world, lambda topic, partition: self.machines.get(LEADS.get(partition, "")))
        self._value = 0

    def sends(self, name: str, partition: int) -> None:
        self._value += 1
        now_ms = self.world.now_ms
        self.world.history.add(Sent(now_ms, "t1", "t1/1", self._value, "steps", partition, -1))
        self.world.history.add(InTransaction(now_ms, name, self._value))

    def asks(self, name: str, wanted: Literal["commit", "abort"] = "commit") -> None:
        self.world.history.add(Ending(self.world.now_ms, name, wanted))

    def passes(self, ms: float) -> None:
        self.world.run((self.world.now_ms + ms) / 1000.0)

    def leaders(self, name: str) -> list[str]:
        return [machine.name for machine in self.under_way.leaders(self.under_way.open[name].places)]


def test_a_transaction_is_open_until_its_client_is_told_of_its_end() -> None:
    told = Told()
    told.sends("t1/1.1", 0)
    told.under_way.look()
    assert told.under_way.open["t1/1.1"].producer == "t1/1"
    told.world.history.add(Ended(told.world.now_ms, "t1/1.1", "committed"))
    told.under_way.look()
    assert not told.under_way.open


def test_the_wish_to_end_is_news_once_however_often_it_is_asked_for() -> None:
    told = Told()
    told.sends("t1/1.1", 0)
    told.asks("t1/1.1")
    assert [(each.name, each.wanted) for each in told.under_way.look()] == [("t1/1.1", "commit")]
    told.asks("t1/1.1")
    assert told.under_way.look() == []


def test_leaders_of_a_transaction_are_those_of_all_its_records_each_once() -> None:
    told = Told()
    for partition in (2, 1, 0, 3):
        told.sends("t1/1.1", partition)
    told.under_way.look()
    assert told.leaders("t1/1.1") == ["b1", "b2"]


def test_a_transaction_is_settled_some_time_after_its_newest_record() -> None:
    told = Told()
    told.passes(1.0)
    told.sends("t1/1.1", 0)
    told.passes(SETTLED_MS + 1.0)
    told.sends("t1/1.1", 1)
    told.under_way.look()
    assert told.under_way.settled() == []
    told.passes(SETTLED_MS + 1.0)
    assert [each.name for each in told.under_way.settled()] == ["t1/1.1"]


def test_one_whose_end_is_asked_for_is_settled_as_it_was_then_and_does_not_stay_open() -> None:
    told = Told()
    told.sends("t1/1.1", 0)
    told.asks("t1/1.1")
    told.passes(SETTLED_MS + 1.0)
    (asked,) = told.under_way.look()
    assert not asked.is_settled(told.world.now_ms)
    told.sends("t1/1.2", 0)
    told.passes(SETTLED_MS + 1.0)
    told.asks("t1/1.2")
    (asked,) = told.under_way.look()
    assert asked.is_settled(told.world.now_ms)
    assert told.under_way.settled() == []
