"""How many processors there are, by affinity and by quotas of both kinds of control groups, and what that makes."""

import os
from collections.abc import Mapping

import pytest

from odradek.broker.launch.supervisor.processors import Read, brokers_for, quotas, read_file, usable_processors


def files(texts: Mapping[str, str]) -> Read:
    return texts.get


@pytest.mark.parametrize(("processors", "brokers"), [(1, 1), (2, 2), (3, 2), (4, 3), (8, 7), (32, 31), (128, 50)])
def test_one_for_each_and_one_less_where_that_leaves_two(processors: int, brokers: int) -> None:
    assert brokers_for(processors) == brokers


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({}, []),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n"}, []),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "250000 100000\n"}, [2.5]),
        (
            {
                "/proc/self/cgroup": "0::/a/b\n",
                "/sys/fs/cgroup/a/b/cpu.max": "400000 100000",
                "/sys/fs/cgroup/a/cpu.max": "150000 50000",
            },
            [4.0, 3.0],
        ),
        (
            {
                "/proc/self/cgroup": "5:memory:/x\n3:cpu,cpuacct:/x\n",
                "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us": "200000\n",
                "/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            [2.0],
        ),
        ({"/proc/self/cgroup": "nonsense\n0::/", "/sys/fs/cgroup/cpu.max": "1 0"}, []),
    ],
)
def test_quotas_of_the_group_and_of_those_above_it_are_found(texts: Mapping[str, str], found: list[float]) -> None:
    assert list(quotas(files(texts))) == found


def test_the_smallest_counts_and_there_is_always_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def bound_to(pid: int) -> set[int]:
        return set(range(4 + pid))

    monkeypatch.setattr(os, "sched_getaffinity", bound_to)
    assert usable_processors(files({})) == 4
    assert usable_processors(files({"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/cpu.max": "290000 100000"})) == 2
    assert usable_processors(files({"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/cpu.max": "10000 100000"})) == 1
    assert usable_processors(files({"/proc/self/cgroup": "0::/", "/sys/fs/cgroup/cpu.max": "9900000 100000"})) == 4


def test_this_machine_is_asked_by_default() -> None:
    assert 1 <= usable_processors() <= (os.cpu_count() or 1)
    assert read_file("/no/such/file") is None
