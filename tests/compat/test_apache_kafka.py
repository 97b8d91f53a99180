"""That the oracle is there when it says so: ready when entered, the same after a restart, gone afterwards."""

import os
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from benchmarks.harness.cluster_servers import running_kafka_cluster
from benchmarks.harness.replicated_topics import controller_of, replicated_topic, restore_leaders
from processes.apache_kafka import ApacheKafka, ApacheKafkaFailed, answers, quick_jvm, run_tool
from processes.kafka_nodes import NODE_IDS

pytestmark = [pytest.mark.compat, pytest.mark.only_in_compat, pytest.mark.java]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def topics(kafka: ApacheKafka) -> list[str]:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
        return admin.list_topics()


def test_a_node_answers_keeps_its_topics_over_sigkill_and_leaves_nothing_behind() -> None:
    with ApacheKafka(properties={"num.partitions": "3"}) as kafka:
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap) as admin:
            admin.create_topics(["kept"], wait_for_metadata=True)
            broker = ConfigResource(ConfigResourceType.BROKER, "1")
            assert "num.partitions" in str(admin.describe_configs([broker], config_filter="all"))
            assert len(admin.describe_topics(["kept"])[0]["partitions"]) == 3
        first_pid, first_port, directory = kafka.pid, kafka.port, kafka.directory
        kafka.kill()
        assert not is_alive(first_pid)
        assert not answers(kafka.host, kafka.port)
        kafka.start()
        assert (kafka.port, topics(kafka)) == (first_port, ["kept"])
        last_pid = kafka.pid
    assert not is_alive(last_pid)
    assert not directory.exists()


def test_a_node_that_cannot_start_tells_why() -> None:
    with (
        pytest.raises(ApacheKafkaFailed, match=r"log\.segment\.bytes"),
        ApacheKafka(properties={"log.segment.bytes": "no"}),
    ):
        pytest.fail("it started")


def test_a_tool_that_fails_is_told(tmp_path: Path) -> None:
    settings = str(tmp_path / "missing.properties")
    with pytest.raises(ApacheKafkaFailed, match=r"missing\.properties"):
        run_tool("kafka.tools.StorageTool", "info", "--config", settings)
    assert "missing.properties" in run_tool("kafka.tools.StorageTool", "info", "--config", settings, check=False)


def test_three_nodes_replicate_for_the_benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.harness.cluster_servers.OWN_JVM", quick_jvm())
    # Else its first look for what is to be deleted comes half a minute after the start.
    with running_kafka_cluster(tmp_path, {"log.initial.task.delay.ms": "500"}) as kafka:
        assert kafka.etcd_pids == []
        assert len(set(kafka.pids)) == len(NODE_IDS)
        with replicated_topic(kafka, "t", 3) as leaders:
            assert sorted(leaders) == [1, 2, 3]
            restore_leaders(kafka, "t", 3)
        assert controller_of(kafka).node_id in NODE_IDS
