"""What happens to processes in rounds: they are killed, paused and restarted, by role, and come back.

Each fault returns when everything runs again; whether the cluster is well then is for the round to find out. Who is
struck is chosen when it happens: the role may have moved in the round before.
"""

import os
import random
import signal
from collections.abc import Sequence
from typing import Final

from processes.child_process import ChildProcess
from tests.cluster.real_cluster import PlainCluster, RealCluster, Role
from tests.cluster.rounds import Fault, lasts

SHORT_PAUSE_S: Final = (0.2, 1.2)
"""Shorter than `broker.session.timeout.ms`: nobody has lost patience yet, or barely."""
LONG_PAUSE_S: Final = (3.5, 6.0)
"""Longer than that, than the lease (2 s) and than what clients wait for an answer: they ask the next leader, while what
they had asked lies in the sockets of this one."""
AWAY_S: Final = (0.0, 0.3, 2.5)
"""How long what was killed stays away: not at all, not long enough to be missed, or until others have taken over."""


def killed(role: Role) -> Fault:
    def fault(cluster: RealCluster, rng: random.Random) -> None:
        broker = cluster.who(role)
        cluster.happened("process crash", broker.name, role)
        broker.kill()
        back(cluster, broker, rng)

    return fault


def killed_alone(cluster: RealCluster, rng: random.Random) -> None:
    """A leader is killed when its followers have stood still for a moment: whatever it has acknowledged since is gone
    with it."""
    broker = cluster.who("leader")
    followers = [each for each in cluster.brokers if each is not broker]
    for each in followers:
        cluster.happened("pause", each.name)
        each.pause()
    lasts(rng.uniform(*SHORT_PAUSE_S) / 2)
    cluster.happened("process crash", broker.name, "leader")
    broker.kill()
    for each in followers:
        cluster.happened("continue", each.name)
        each.resume()
    back(cluster, broker, rng)


def paused(role: Role, duration_s: tuple[float, float]) -> Fault:
    def fault(cluster: RealCluster, rng: random.Random) -> None:
        broker = cluster.who(role)
        cluster.happened("pause", broker.name, role)
        broker.pause()
        lasts(rng.uniform(*duration_s))
        cluster.happened("continue", broker.name)
        broker.resume()

    return fault


def restarted(role: Role) -> Fault:
    """A clean stop, and a start."""

    def fault(cluster: RealCluster, rng: random.Random) -> None:
        broker = cluster.who(role)
        cluster.happened("clean stop", broker.name, role)
        broker.stop()
        back(cluster, broker, rng)

    return fault


def all_killed(cluster: RealCluster, rng: random.Random) -> None:
    """SIGKILL of all brokers, in one moment."""
    all_back(cluster, kill_all(cluster), rng)


def etcd_killed(cluster: RealCluster, rng: random.Random) -> None:
    etcd = _etcd(cluster)
    cluster.happened("store fault", etcd.name, "SIGKILL")
    etcd.kill()
    back(cluster, etcd, rng)


def etcd_restarted(cluster: RealCluster, rng: random.Random) -> None:
    etcd = _etcd(cluster)
    cluster.happened("store fault", etcd.name, "SIGTERM")
    etcd.stop()
    back(cluster, etcd, rng)


def etcd_paused(duration_s: tuple[float, float]) -> Fault:
    def fault(cluster: RealCluster, rng: random.Random) -> None:
        etcd = _etcd(cluster)
        cluster.happened("store fault", etcd.name, "SIGSTOP")
        etcd.pause()
        lasts(rng.uniform(*duration_s))
        cluster.happened("heal", etcd.name)
        etcd.resume()

    return fault


def gone_without_etcd(*, is_clean: bool) -> Fault:
    """A leader is killed, or stopped, while nobody can be elected, and comes back with etcd."""

    def fault(cluster: RealCluster, rng: random.Random) -> None:
        etcd, broker = _etcd(cluster), cluster.who("leader")
        cluster.happened("store fault", etcd.name, "SIGSTOP")
        etcd.pause()
        lasts(rng.choice(AWAY_S))
        if is_clean:
            cluster.happened("clean stop", broker.name, "leader")
            broker.stop()
        else:
            cluster.happened("process crash", broker.name, "leader")
            broker.kill()
        lasts(rng.choice(AWAY_S))
        cluster.happened("heal", etcd.name)
        etcd.resume()
        back(cluster, broker, rng)

    return fault


def kill_all(cluster: RealCluster) -> list[ChildProcess]:
    """The brokers' processes, each of which got SIGKILL before the end of any was waited for."""
    processes = cluster.broker_processes()
    for process in processes:
        cluster.happened("process crash", process.name, "all at once")
        os.kill(process.pid, signal.SIGKILL)
    for process in processes:
        process.kill()
    return processes


def back(cluster: RealCluster, process: ChildProcess, rng: random.Random) -> None:
    """Starts it, now or when it has been away for a while."""
    lasts(rng.choice(AWAY_S))
    cluster.happened("start", process.name)
    process.start()


def all_back(cluster: RealCluster, processes: Sequence[ChildProcess], rng: random.Random) -> None:
    """The same for all of them together."""
    lasts(rng.choice(AWAY_S))
    for process in processes:
        cluster.happened("start", process.name)
    cluster.processes.start(*processes)


def _etcd(cluster: RealCluster) -> ChildProcess:
    assert isinstance(cluster, PlainCluster)
    return cluster.etcd
