"""What happens to an exactly-once chain in rounds: to a copier in the middle of its transaction, and to a broker that
coordinates it or its group, at about the same time. Each fault returns when all is repaired.

    strike = Strike(cluster, copiers, rng, turn=1)
    killed(strike)
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from processes.odradek_broker import OdradekBroker
from tests.cluster.clients import Client
from tests.cluster.coordinators import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, coordinator_of
from tests.cluster.copiers import Copiers
from tests.cluster.network_faults import SIDES, RelayedCluster
from tests.cluster.process_faults import all_back, back, kill_all
from tests.cluster.real_cluster import RealCluster
from tests.cluster.relay_process import OTHER
from tests.cluster.rounds import lasts

BETWEEN_S: Final = (0.0, 0.6)
BROKER_S: Final = (3.0, 6.0)
"""Longer than the lease (2 s): another broker leads what this one has led."""
COPIER_S: Final = (5.2, 7.5)
"""Longer than the time-out of its transaction (5 s), and mostly than its session (6 s; Java's: 10 s)."""


@dataclass(frozen=True, slots=True)
class Strike:
    """Whom it strikes: copiers in turn, and with each another broker."""

    cluster: RealCluster
    copiers: Copiers
    rng: random.Random
    turn: int

    @property
    def name(self) -> str:
        """Of the copier."""
        names = self.copiers.names
        return names[self.turn % len(names)]

    def copier(self) -> Client:
        """Who has come again if it has ended by itself."""
        self.copiers.look()
        copier = self.copiers.copier(self.name)
        assert copier is not None
        return copier

    def coordinator(self) -> OdradekBroker:
        """Of its transactions, or of its group."""
        if self.turn % 2:
            return coordinator_of(self.cluster, self.copiers.group(self.name), OFFSETS_TOPIC)
        return coordinator_of(self.cluster, self.copiers.transactional_id(self.name), TRANSACTIONS_TOPIC)

    @property
    def role(self) -> str:
        return "group coordinator" if self.turn % 2 else "transaction coordinator"

    def in_any_order(self, *steps: Callable[[], None]) -> None:
        for step in self.rng.sample(steps, len(steps)):
            step()
            lasts(self.rng.uniform(*BETWEEN_S))


ChainFault = Callable[[Strike], None]


def killed(strike: Strike) -> None:
    """SIGKILL of a copier, and of its coordinator, or, each third time, of all brokers."""
    cluster, rng = strike.cluster, strike.rng

    def kill_copier() -> None:
        cluster.happened("process crash", strike.name, "copier")
        strike.copiers.kill(strike.name)

    if strike.turn % 3 == 2:
        all_back(cluster, kill_all(cluster), rng)
        kill_copier()
    else:
        broker = strike.coordinator()

        def kill_broker() -> None:
            cluster.happened("process crash", broker.name, strike.role)
            broker.kill()

        strike.in_any_order(kill_copier, kill_broker)
        back(cluster, broker, rng)
    strike.copiers.come(strike.name)


def paused(strike: Strike) -> None:
    """SIGSTOP of a copier past the time-out of its transaction, and of its coordinator past the lease."""
    cluster, rng = strike.cluster, strike.rng
    broker, copier = strike.coordinator(), strike.copier()

    def pause_copier() -> None:
        cluster.happened("pause", copier.name, "copier")
        copier.pause()

    def pause_broker() -> None:
        cluster.happened("pause", broker.name, strike.role)
        broker.pause()

    strike.in_any_order(pause_copier, pause_broker)
    of_broker_s, of_copier_s = rng.uniform(*BROKER_S), rng.uniform(*COPIER_S)
    lasts(of_broker_s)
    cluster.happened("continue", broker.name)
    broker.resume()
    lasts(max(0.0, of_copier_s - of_broker_s))
    cluster.happened("continue", copier.name)
    copier.resume()


def cut_off(strike: Strike) -> None:
    """A copier hears no broker any more, and its coordinator is cut off from the other brokers, from etcd or from all
    clients. What was on its way comes when that is over."""
    cluster, rng = strike.cluster, strike.rng
    assert isinstance(cluster, RelayedCluster)
    broker, copier, side = strike.coordinator(), strike.copier(), SIDES[strike.turn % len(SIDES)]

    def cut_copier() -> None:
        cluster.happened("network fault", copier.name, "cut from all brokers")
        cluster.relay.cut(copier.name)

    def cut_broker() -> None:
        cluster.happened("network fault", broker.name, f"{strike.role}, cut from {side}")
        cluster.cut(broker, side, "both")
        if side == "clients":
            for each in _clients(strike.copiers):
                cluster.relay.cut(each, broker.name)

    strike.in_any_order(cut_copier, cut_broker)
    lasts(rng.uniform(*COPIER_S))
    cluster.heal()


def _clients(copiers: Copiers) -> Sequence[str]:
    """As the relay knows them."""
    found = [copiers.copier(name) for name in copiers.names]
    return [OTHER, *(copier.name for copier in found if copier is not None)]
