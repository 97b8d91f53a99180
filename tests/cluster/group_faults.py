"""What happens to the coordinator of a group in rounds, or to all brokers. A fault is a `with` block, in which members
come and go; all is repaired behind it.

    with killed(cluster, rng):                  # the broker that leads the group's partition is dead
        members.kill("aiokafka")
"""

import random
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from tests.cluster.coordinators import coordinator_of
from tests.cluster.members import GROUP
from tests.cluster.network_faults import RelayedCluster, Side
from tests.cluster.process_faults import all_back, back, kill_all
from tests.cluster.real_cluster import RealCluster
from tests.cluster.rounds import lasts

GroupFault = Callable[[RealCluster, random.Random], AbstractContextManager[None]]
ROLE: Final = "coordinator"
DURATION_S: Final = (4.0, 12.0)
"""Longer than the lease (2 s). Beyond 8 s the next coordinator has given up the members that still wait for this one:
their session is 6 s."""


@contextmanager
def killed(cluster: RealCluster, rng: random.Random) -> Generator[None]:
    """SIGKILL of the coordinator."""
    broker = coordinator_of(cluster, GROUP)
    cluster.happened("process crash", broker.name, ROLE)
    broker.kill()
    yield
    back(cluster, broker, rng)


@contextmanager
def paused(cluster: RealCluster, rng: random.Random) -> Generator[None]:
    """SIGSTOP of the coordinator past its lease: another one coordinates when it goes on."""
    broker = coordinator_of(cluster, GROUP)
    cluster.happened("pause", broker.name, ROLE)
    broker.pause()
    yield
    lasts(rng.uniform(*DURATION_S))
    cluster.happened("continue", broker.name)
    broker.resume()


@contextmanager
def restarted(cluster: RealCluster, rng: random.Random) -> Generator[None]:
    """A clean stop of the coordinator, and a start."""
    broker = coordinator_of(cluster, GROUP)
    cluster.happened("clean stop", broker.name, ROLE)
    broker.stop()
    yield
    back(cluster, broker, rng)


@contextmanager
def rolled(cluster: RealCluster, rng: random.Random) -> Generator[None]:
    """All brokers are restarted, the next one when all replicas are in sync again; members move while the first is
    away."""
    first, *others = rng.sample(cluster.brokers, len(cluster.brokers))
    cluster.happened("clean stop", first.name)
    first.stop()
    yield
    cluster.happened("start", first.name)
    first.start()
    cluster.wait_until_whole()
    for broker in others:
        cluster.happened("clean stop", broker.name)
        broker.stop()
        cluster.happened("start", broker.name)
        broker.start()
        cluster.wait_until_whole()


@contextmanager
def all_killed(cluster: RealCluster, rng: random.Random) -> Generator[None]:
    """SIGKILL of all brokers, in one moment."""
    processes = kill_all(cluster)
    yield
    all_back(cluster, processes, rng)


def cut_from(side: Side) -> GroupFault:
    """The coordinator hears nothing of them, and is not heard by them."""

    @contextmanager
    def fault(cluster: RealCluster, rng: random.Random) -> Generator[None]:
        assert isinstance(cluster, RelayedCluster)
        broker = coordinator_of(cluster, GROUP)
        cluster.happened("network fault", broker.name, f"{ROLE}, cut from {side}")
        cluster.cut(broker, side, "both")
        yield
        lasts(rng.uniform(*DURATION_S))
        cluster.heal()

    return fault
