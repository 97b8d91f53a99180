"""Who may not know a revision yet: brokers that have not said that they applied it, and those that are gone for less
than the time for which they may go by what they knew."""

from odradek.broker.cluster.image import ClusterImage
from odradek.broker.cluster.keys import CONTROLLER_KEY, BrokerState, NodeState, broker_key, encode_controller, node_key
from odradek.broker.cluster.store import Change, Event
from odradek.broker.controller.applied_revisions import AppliedRevisions, Behind

TERM_MS = 2000
HERE, ONE, TWO = 0, 1, 2


class World:
    """Broker 0 as the controller of three, elected at 0 ms."""

    def __init__(self, *, nodes: bool = True) -> None:
        self.now_ms = 0.0
        self.image = ClusterImage()
        self.applied = AppliedRevisions(HERE, TERM_MS, self.now_ms)
        for broker_id in (HERE, ONE, TWO):
            if nodes:
                self.change(Event(node_key(broker_id), NodeState((bytes(16),)).encode()))
            self.come(broker_id)
        self.elect()

    def change(self, *events: Event) -> None:
        self.image, delta = self.image.apply(Change(self.image.revision + 1, events))
        self.applied.follow(self.image, delta, self.now_ms)

    def come(self, broker_id: int) -> None:
        self.change(Event(broker_key(broker_id), BrokerState(broker_id, {}).encode()))

    def go(self, broker_id: int) -> None:
        self.change(Event(broker_key(broker_id), None))

    def elect(self) -> None:
        self.change(Event(CONTROLLER_KEY, encode_controller(HERE)))

    def epoch(self, broker_id: int) -> int:
        return self.image.brokers[broker_id].epoch

    def says(self, broker_id: int, revision: int | None = None) -> None:
        self.applied.heard(broker_id, self.epoch(broker_id), self.image.revision if revision is None else revision)

    def behind(self, revision: int | None = None, *, may_be_others: bool = True) -> Behind:
        wanted = self.image.revision if revision is None else revision
        return self.applied.behind(wanted, self.image, may_be_others=may_be_others)


def test_brokers_that_have_not_said_so_are_waited_for() -> None:
    world = World()
    assert world.behind().brokers == (ONE, TWO)
    world.says(ONE)
    assert world.behind().brokers == (TWO,)
    world.says(TWO, world.image.revision - 1)
    assert world.behind().brokers == (TWO,)
    assert world.behind(world.image.revision - 1).brokers == ()
    world.says(TWO)
    assert world.behind().brokers == ()


def test_what_was_said_with_another_epoch_does_not_count() -> None:
    world = World()
    world.says(ONE, 1000)
    world.come(ONE)
    assert ONE in world.behind().brokers
    world.applied.heard(TWO, world.epoch(TWO) - 1, 1000)
    assert TWO in world.behind().brokers


def test_what_a_former_controller_was_told_does_not_count() -> None:
    world = World()
    world.says(ONE, 1000)
    world.says(TWO, 1000)
    world.now_ms = 5000
    world.elect()
    assert world.behind() == Behind((ONE, TWO), 5000 + TERM_MS)


def test_one_that_is_gone_is_waited_for_a_while() -> None:
    world = World()
    world.says(ONE)
    world.now_ms = 10_000
    world.go(TWO)
    assert world.behind(1) == Behind((), 12_000)
    world.now_ms = 11_000
    world.go(ONE)
    assert world.behind() == Behind((), 13_000)
    world.now_ms = 14_000
    world.come(ONE)
    assert world.behind().until_ms == TERM_MS, "those that are gone for long are forgotten"


def test_one_that_is_gone_and_forgotten_is_waited_for_nevertheless() -> None:
    """It may still run, whoever unregistered it."""
    world = World()
    world.now_ms = 10_000
    world.go(TWO)
    world.change(Event(node_key(TWO), None))
    assert TWO not in world.image.registered
    assert world.behind().until_ms == 12_000


def test_one_that_comes_back_has_to_say_so_itself() -> None:
    world = World()
    world.now_ms = 10_000
    world.go(TWO)
    world.come(TWO)
    world.says(ONE)
    assert world.behind() == Behind((TWO,), TERM_MS)


def test_after_an_election_nobody_knows_who_was_gone_before() -> None:
    world = World()
    assert world.behind().until_ms == TERM_MS
    assert world.behind(may_be_others=False).until_ms == TERM_MS, "others are registered"


def test_a_broker_alone_waits_for_nobody() -> None:
    world = World(nodes=False)
    world.go(ONE)
    world.go(TWO)
    world.now_ms = 10_000
    world.change(Event(broker_key(HERE), BrokerState(HERE, {"X": ("h", 1)}).encode()))
    world.elect()
    assert world.behind(may_be_others=False) == Behind((), 0.0)
    assert world.behind() == Behind((), 10_000 + TERM_MS)
