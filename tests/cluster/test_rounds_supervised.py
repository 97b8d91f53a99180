"""`odradek cluster run --processes` under load while its brokers, its supervisor and its compaction workers are killed
or paused, its store has no room, and operators roll and spread it: nothing acknowledged is lost, nothing is doubled,
no send fails.

SUPERVISED_ROUNDS says how many rounds of each kind, if not PROCESS_ROUNDS does.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.compacted_topic import OPTIONS, CompactedTopic
from tests.cluster.rounds import IS_SHORT, KINDS_A_CLUSTER, ROUNDS, Fault, Story, lots, not_when_short
from tests.cluster.small_device import NoDevice, small_device
from tests.cluster.spread_faults import spread_interrupted
from tests.cluster.supervised import supervised_cluster
from tests.cluster.supervised_faults import (
    all_killed,
    all_restarted,
    broker_killed,
    broker_paused,
    rolled,
    supervised,
    supervisor_killed,
    supervisor_paused,
    without_room,
)

COUNT: Final = int(os.environ.get("SUPERVISED_ROUNDS") or ROUNDS)

pytestmark = [not_when_short, pytest.mark.slow, pytest.mark.timeout(240 + 90 * COUNT * KINDS_A_CLUSTER)]

STORE_BYTES: Final = 256 * 1024

WITH_THREE_COPIES: Final[dict[str, Fault]] = {
    "SIGKILL, leader": broker_killed("leader"),
    "SIGSTOP past the lease, leader": broker_paused("leader"),
    "SIGKILL, supervisor": supervisor_killed,
    "SIGKILL, supervisor and brokers at once": all_killed,
}
WITH_ONE_COPY: Final[dict[str, Callable[[Story], Fault]]] = {
    "SIGKILL, leader": lambda _: broker_killed("leader"),
    "SIGKILL, controller": lambda _: broker_killed("controller"),
    "SIGKILL, supervisor": lambda _: supervisor_killed,
    "SIGSTOP past the lease, controller": lambda _: broker_paused("controller"),
    "SIGSTOP past the lease, supervisor": supervisor_paused,
    "SIGKILL, supervisor and brokers at once": lambda _: all_killed,
    "stop of all, and start": lambda _: all_restarted,
    "spread, interrupted": lambda _: spread_interrupted,
}


@pytest.mark.parametrize("whats", lots(["any"] if IS_SHORT else WITH_THREE_COPIES))
def test_nothing_is_lost_or_doubled_with_three_copies(whats: Sequence[str], tmp_path: Path) -> None:
    with (
        supervised_cluster(tmp_path, copies=3) as cluster,
        Story(f"three copies: {whats[0]}", cluster, count=COUNT) as story,
    ):
        for what in whats:
            story.rounds(f"supervised: {what}, three copies", WITH_THREE_COPIES[what])


@pytest.mark.parametrize("whats", lots(["any"] if IS_SHORT else WITH_ONE_COPY))
def test_nothing_is_lost_or_doubled_with_one_copy(whats: Sequence[str], tmp_path: Path) -> None:
    with (
        supervised_cluster(tmp_path, copies=1) as cluster,
        Story(f"one copy: {whats[0]}", cluster, count=COUNT) as story,
    ):
        for what in whats:
            story.rounds(f"supervised: {what}", WITH_ONE_COPY[what](story))


def test_no_send_fails_when_the_cluster_is_rolled(tmp_path: Path) -> None:
    what = "supervised: roll"
    with supervised_cluster(tmp_path, copies=3) as cluster, Story(what, cluster, is_patient=True, count=COUNT) as story:
        story.rounds(what, rolled)


def test_the_newest_of_each_key_stays_when_workers_are_killed(tmp_path: Path) -> None:
    what = "supervised: SIGKILL, compaction worker"
    with supervised_cluster(tmp_path, *OPTIONS, copies=1) as cluster, Story(what, cluster, count=COUNT) as story:
        story.rounds(what, supervised(CompactedTopic(cluster).worker_killed))


@pytest.mark.parametrize("copies", [1, 3])
def test_nothing_is_lost_or_doubled_while_the_store_has_no_room(copies: int, tmp_path: Path) -> None:
    what = f"supervised: no room for the store, SIGKILL of a leader, copies: {copies}"
    with ExitStack() as device:
        try:
            device.enter_context(small_device(tmp_path / "cluster" / "metadata", STORE_BYTES))
        except NoDevice as error:
            pytest.skip(str(error))
        with supervised_cluster(tmp_path, copies=copies) as cluster, Story(what, cluster, count=COUNT) as story:
            story.rounds(what, without_room)
