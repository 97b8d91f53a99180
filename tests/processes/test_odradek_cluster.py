"""The cluster in one process that the clients' tests rely on: three brokers that are there, killed, and there again."""

from pathlib import Path

import pytest

from processes.apache_kafka import answers
from processes.odradek_cluster import READY, OdradekCluster, OdradekClusterFailed


def listening(cluster: OdradekCluster) -> list[bool]:
    return [answers(host, int(port)) for host, port in (address.split(":") for address in cluster.addresses)]


def test_three_brokers_answer_and_come_back_on_the_same_ports(tmp_path: Path) -> None:
    with OdradekCluster(tmp_path / "data") as cluster:
        addresses = cluster.addresses
        assert len(addresses) == 3
        assert listening(cluster) == [True] * 3
        cluster.kill()
        assert listening(cluster) == [False] * 3
        cluster.start()
        assert listening(cluster) == [True] * 3
        assert cluster.addresses == addresses


def test_a_cluster_that_refuses_to_start_is_reported_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(OdradekClusterFailed, match=r"num\.partitions"):
        OdradekCluster(tmp_path / "data", "--set", "num.partitions=many").__enter__()


def test_the_ready_line_tells_where_they_are() -> None:
    ready = READY.match("odradek 0.1.0 cluster ready on 127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094 (data in memory)")
    assert ready is not None
    assert ready["addresses"].split(",") == ["127.0.0.1:9092", "127.0.0.1:9093", "127.0.0.1:9094"]
