"""What happens to a supervisor and its brokers in rounds. Each fault returns when everything runs again, as those of
process_faults.py do."""

import errno
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from odradek.client.admin.configs import ConfigChange, ConfigResource
from odradek.client.admin.errors import ItemsFailed
from processes.supervised_cluster import children_of, is_alive, until_gone
from tests.cluster.operator_faults import asked
from tests.cluster.process_faults import AWAY_S, LONG_PAUSE_S
from tests.cluster.real_cluster import TOPIC, RealCluster, Role
from tests.cluster.rounds import Fault, Story, lasts
from tests.cluster.supervised import Supervised

SUPERVISOR: Final = "supervisor"
FULL_S: Final = (0.3, 2.5, 8.0)
"""How long the store has no room: the longest is more than five restarts take with their delays."""
CHANGES_MAX: Final = 500
"""So many small commits do not fit into a page."""


def supervised(fault: Callable[[Supervised, random.Random], None]) -> Fault:
    """What happens to no other cluster."""

    def checked(cluster: RealCluster, rng: random.Random) -> None:
        assert isinstance(cluster, Supervised)
        fault(cluster, rng)

    return checked


def broker_killed(role: Role) -> Fault:
    """The supervisor starts the broker again."""

    @supervised
    def fault(cluster: Supervised, rng: random.Random) -> None:
        del rng
        node = cluster.victim(role)
        cluster.happened("process crash", f"broker-{node}", role)
        pid = cluster.whole.kill_broker(node)
        cluster.whole.broker_pid(node, other_than=pid)

    return fault


def broker_paused(role: Role) -> Fault:
    """Past the lease. It is the same process afterwards."""

    @supervised
    def fault(cluster: Supervised, rng: random.Random) -> None:
        node = cluster.node_of(role)
        cluster.happened("pause", f"broker-{node}", role)
        pid = cluster.whole.kill_broker(node, signal.SIGSTOP)
        cluster.paused.add(node)
        lasts(rng.uniform(*LONG_PAUSE_S))
        cluster.happened("continue", f"broker-{node}")
        os.kill(pid, signal.SIGCONT)
        cluster.paused.remove(node)
        assert cluster.whole.broker_pid(node) == pid, "a broker that stands still was restarted"

    return fault


@supervised
def supervisor_killed(cluster: Supervised, rng: random.Random) -> None:
    """Its brokers stop by themselves, and the next supervisor starts them again, after a while or while they stop."""
    brokers = cluster.whole.pids()
    cluster.happened("store fault", SUPERVISOR, "SIGKILL")
    cluster.whole.kill()
    for name in brokers:
        cluster.happened("clean stop", name.replace(" ", "-"), "the supervisor is gone")
    _start_again(cluster, rng)
    until_gone(list(brokers.values()))


def supervisor_paused(story: Story) -> Fault:
    """Past the lease, while acks=all goes on. No broker loses its registration by that."""

    @supervised
    def fault(cluster: Supervised, rng: random.Random) -> None:
        before, said = cluster.whole.pids(), len(cluster.whole.output)
        cluster.happened("store fault", SUPERVISOR, "SIGSTOP")
        cluster.whole.pause()
        lasts(rng.uniform(*LONG_PAUSE_S))
        story.clients.wait_for_progress(20)
        cluster.happened("heal", SUPERVISOR)
        cluster.whole.resume()
        cluster.wait_until(lambda: "this process has stood still" in cluster.said_since(said))
        story.clients.wait_for_progress(20)
        assert cluster.whole.pids() == before, "somebody was restarted"
        for lost in ("has not renewed its lease in time", "was not heard of in time"):
            assert lost not in cluster.said_since(said)

    return fault


@supervised
def all_killed(cluster: Supervised, rng: random.Random) -> None:
    """The supervisor and its brokers, before one of them could notice the end of another."""
    cluster.happened("store fault", SUPERVISOR, "SIGKILL")
    cluster.whole.pause()
    processes = children_of(cluster.whole.pid)
    for pid, name in processes:
        cluster.happened("process crash", name.replace(" ", "-"), "all at once")
        os.kill(pid, signal.SIGKILL)
    cluster.whole.kill()
    until_gone([pid for pid, _ in processes])
    _start_again(cluster, rng)


@supervised
def all_restarted(cluster: Supervised, rng: random.Random) -> None:
    """A clean stop, for which no broker has to be killed, and a start."""
    brokers = cluster.whole.pids()
    for name in brokers:
        cluster.happened("clean stop", name.replace(" ", "-"), "all together")
    cluster.whole.stop()
    assert not any(is_alive(pid) for pid in brokers.values()), "a broker outlives its supervisor's clean stop"
    _start_again(cluster, rng)


@supervised
def rolled(cluster: Supervised, rng: random.Random) -> None:
    """`odradek cluster roll`: each broker is another process afterwards, and none was taken for dead."""
    del rng
    before, said = cluster.whole.pids(), len(cluster.whole.output)
    for name in before:
        cluster.happened("clean stop", name.replace(" ", "-"), "roll")
    done = cluster.whole.roll()
    assert done.returncode == 0, done.stderr
    *restarted, last = done.stdout.splitlines()
    assert [line.rpartition(" in ")[0] for line in restarted] == [f"{name} was restarted" for name in sorted(before)]
    assert last == f"all {len(before)} brokers were restarted, and all replicas are in sync"
    assert not set(before.values()) & set(cluster.whole.pids().values())
    assert "is started again" not in cluster.said_since(said)


@supervised
def without_room(cluster: Supervised, rng: random.Random) -> None:
    """The device of the store is full. A leader is killed meanwhile: its partitions get no other leader, and its next
    process no registration, before there is room."""
    filler = cluster.directory / "metadata" / "filler"
    _fill(filler)
    cluster.happened("store fault", SUPERVISOR, "no room")
    _change_until_refused(cluster)
    node = cluster.victim("leader")
    cluster.happened("process crash", f"broker-{node}", "leader")
    pid = cluster.whole.kill_broker(node)
    lasts(rng.choice(FULL_S))
    filler.unlink()
    cluster.happened("heal", SUPERVISOR)
    cluster.whole.broker_pid(node, other_than=pid)


def _start_again(cluster: Supervised, rng: random.Random) -> None:
    lasts(rng.choice(AWAY_S))
    cluster.happened("heal", SUPERVISOR)
    cluster.whole.start()


def _fill(path: Path) -> None:
    """Leaves no page of the device free."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC, error


def _change_until_refused(cluster: Supervised) -> None:
    """What is left of the file's last page takes some commits yet."""
    for number in range(CHANGES_MAX):
        try:
            _set_retention(cluster, 10**9 + number)
        except ItemsFailed:
            return
    raise AssertionError(f"{CHANGES_MAX} changes were made without any room")


def _set_retention(cluster: Supervised, duration_ms: int) -> None:
    """Raises ItemsFailed."""
    change = {ConfigResource.topic(TOPIC): [ConfigChange.set("retention.ms", str(duration_ms))]}
    asked(cluster, lambda admin: admin.alter_configs(change))
