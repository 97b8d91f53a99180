"""`odradek partitions spread` under load: away from a broker and back, interrupted by chance, and gone on with."""

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections.abc import Collection
from typing import Final

from odradek.client.admin.admin import Admin
from odradek.client.commands.throttles import Throttle
from processes.child_process import REPOSITORY
from tests.cluster.real_cluster import NODES, TOPIC, RealCluster
from tests.cluster.rounds import lasts
from tests.signals import heeding_ctrl_c

INTERRUPTED_AFTER_S: Final = (0.2, 1.5)
"""The command needs a third of a second before it asks for anything."""
INTERRUPTIONS_MAX: Final = 3
EXECUTE: Final = ("--execute", "--lot", "2", "--throttle", "1000000")
TIMEOUT_S: Final = 60.0


def spread_interrupted(cluster: RealCluster, rng: random.Random) -> None:
    """In the end each of the brokers that are named leads as many partitions as any other, give or take one, and no
    reassignment and no throttle is left."""
    leaving = rng.choice(NODES)
    for brokers in ([node for node in NODES if node != leaving], NODES):
        for _ in range(rng.randint(1, INTERRUPTIONS_MAX)):
            _interrupt(cluster, brokers, rng)
        cluster.happened("operator", "", f"spreads over {brokers}")
        _run(cluster, brokers, *EXECUTE)
        assert json.loads(_run(cluster, brokers, "--json")) == [], "something is left to be moved"
        _wait_until_even(cluster, brokers)
        asyncio.run(_check_that_nothing_is_left(cluster))


def _wait_until_even(cluster: RealCluster, brokers: Collection[int]) -> None:
    def is_even() -> bool:
        leaders = cluster.leaders()
        counts = [leaders.count(node) for node in brokers]
        return sum(counts) == len(leaders) and max(counts) - min(counts) <= 1

    cluster.wait_until(is_even)


def _interrupt(cluster: RealCluster, brokers: Collection[int], rng: random.Random) -> None:
    """Begins, and ends it where it stands, unless it is done by then."""
    number = rng.choice([signal.SIGKILL, signal.SIGINT])
    cluster.happened("operator", "", f"spreads over {brokers}, until {number.name}")
    process = subprocess.Popen(
        heeding_ctrl_c(*_command(cluster, brokers, *EXECUTE)),
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    lasts(rng.uniform(*INTERRUPTED_AFTER_S))
    process.send_signal(number)
    process.wait(TIMEOUT_S)


def _run(cluster: RealCluster, brokers: Collection[int], *options: str) -> str:
    """What it printed."""
    done = subprocess.run(
        _command(cluster, brokers, *options),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _command(cluster: RealCluster, brokers: Collection[int], *options: str) -> list[str]:
    ids = ",".join(map(str, brokers))
    return [
        sys.executable,
        "-m",
        "odradek",
        "partitions",
        "spread",
        "--brokers",
        ids,
        *options,
        "-b",
        cluster.bootstrap,
    ]


async def _check_that_nothing_is_left(cluster: RealCluster) -> None:
    async with Admin(cluster.bootstrap.split(",")) as admin:
        assert not await admin.list_partition_reassignments()
        throttle = Throttle(admin)
        assert not await throttle.topics_limited([TOPIC])
        assert not await throttle.brokers_limited()
