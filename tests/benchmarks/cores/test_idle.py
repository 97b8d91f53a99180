"""Partitions are created on both processes; what these use while nobody asks is taken apart from the supervisor's."""

import pytest

from benchmarks.cores.idle import create_idle, idle_percent
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.load.wire import delete_topic


def test_partitions_are_led_by_both_and_their_cost_is_told(processes: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.cores.idle.REST_S", 0.0)
    monkeypatch.setattr("benchmarks.cores.idle.PARTITIONS_PER_TOPIC", 4)
    create_idle(processes, 6)
    held = [len(list(member.data_dir.glob("idle-*"))) for member in processes.members.values()]
    assert held == [3, 3]
    brokers, supervisor = idle_percent(processes, 0.3)
    assert 0 < brokers < 100
    assert 0 <= supervisor < 50
    with processes.members[1].wire() as wire:
        for number in range(2):
            delete_topic(wire, f"idle-{number}")
