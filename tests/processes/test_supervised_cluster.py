"""What tests see of a supervisor's processes: who they are, and when they are gone."""

import subprocess
import sys
from pathlib import Path

import pytest

from processes.odradek_cluster import OdradekClusterFailed
from processes.supervised_cluster import SupervisedCluster, children_of, is_alive, until_gone


def test_children_are_found_by_the_last_word_of_their_command_line() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()', 'the last'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        found: list[tuple[int, str]] = []
        while [name for _, name in found] != ["the last"]:  # before its exec it has its parent's words
            found = children_of(process.pid)
        ((pid, _),) = found
        assert is_alive(pid)
        with pytest.raises(TimeoutError, match=f"{pid}"):
            until_gone([pid], 0.05)
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        until_gone([pid])


def test_a_cluster_that_refuses_to_start_is_reported_with_its_reason(tmp_path: Path) -> None:
    cluster = SupervisedCluster(tmp_path / "data", "--set", "num.partitions=many")
    with pytest.raises(OdradekClusterFailed, match=r"num\.partitions"):
        cluster.start()
    cluster.close()
