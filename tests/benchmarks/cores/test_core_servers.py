"""The contenders as clusters: whose processes count, where partitions are led, and a broker that is started again."""

from pathlib import Path

from benchmarks.cores.core_servers import ALONE_ID, addresses_of, running_alone
from benchmarks.harness.cluster_servers import Cluster
from benchmarks.harness.replicated_topics import replicated_topic


def test_the_supervisor_counts_beside_its_brokers(processes: Cluster) -> None:
    assert processes.supervisor is not None
    assert processes.store_pids == [processes.supervisor.pid]
    assert set(processes.pids) == {processes.supervisor.pid, *processes.supervisor.pids().values()}
    assert len(set(processes.pids)) == 3
    assert str(processes).startswith("Odradek in 2 processes")
    assert processes.bootstrap == processes.supervisor.bootstrap


def test_connections_go_to_the_leaders_of_their_partitions(processes: Cluster) -> None:
    with replicated_topic(processes, "led", 4, replicas=1) as leaders:
        assert sorted(leaders) == [1, 1, 2, 2]
        addresses = addresses_of(processes, leaders)
        assert [processes.members[leader].address for leader in leaders] == addresses
        for node_id, member in processes.members.items():
            assert len(list(member.data_dir.glob("led-*"))) == leaders.count(node_id)
    assert [path for member in processes.members.values() for path in member.data_dir.glob("led-*")] == []


def test_a_broker_that_was_killed_is_back_when_its_start_returns(processes: Cluster) -> None:
    member = processes.members[2]
    before = member.process.pid
    member.process.kill()
    member.process.start()
    assert member.process.pid != before
    processes.wait_acquainted()


def test_one_process_has_no_supervisor(tmp_path: Path) -> None:
    with running_alone(tmp_path / "alone") as alone:
        assert alone.pids == [alone.members[ALONE_ID].process.pid]
        with replicated_topic(alone, "led", 3, replicas=1) as leaders:
            assert leaders == [ALONE_ID] * 3
