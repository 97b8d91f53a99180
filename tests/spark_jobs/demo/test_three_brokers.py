"""The demo's cluster: what it starts, in which order, and that nothing is left of it."""

import socket
import sys
from pathlib import Path

import pytest

from odradek.spark_jobs.demo.three_brokers import ThreeBrokers, odradek_cluster


def answers(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    with socket.socket() as client:
        return client.connect_ex((host, int(port))) == 0


@pytest.mark.slow
def test_one_is_killed_and_back_and_all_are_gone_in_the_end(tmp_path: Path) -> None:
    with ThreeBrokers(tmp_path) as cluster:
        cluster.start()
        addresses = cluster.bootstrap.split(",")
        assert list(map(answers, addresses)) == [True, True, True]
        before = cluster.pid
        cluster.kill_one(2)
        cluster.wait_until_back(2)
        assert cluster.pid == before, "the supervisor has started it again"
        assert cluster.bootstrap.split(",") == addresses
        assert list(map(answers, addresses)) == [True, True, True]
    assert list(map(answers, addresses)) == [False, False, False]


def test_the_command_is_a_cluster_of_processes() -> None:
    assert odradek_cluster("127.0.0.1:0", Path("d")) == [
        sys.executable, "-m", "odradek", "cluster", "run", "--processes", "--brokers", "3",
        "--listen", "127.0.0.1:0", "--data-dir", "d",
    ]  # fmt: skip
