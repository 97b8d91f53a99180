"""Several brokers in one process: their settings, and a cluster in memory that starts, replicates, and stops."""

import asyncio
from pathlib import Path

import pytest

from odradek.broker.cluster.memory import MemoryStore
from odradek.broker.config.broker_config import ConfigError
from odradek.broker.config.listeners import parse_listener
from odradek.broker.disk.memory_disk import MemoryDisk
from odradek.broker.launch.cluster_settings import cluster_settings
from odradek.broker.launch.stopping import stop_all
from odradek.broker.server import Broker
from odradek.runtime.environment import Environment

LISTENER = parse_listener("PLAINTEXT://127.0.0.1:9092")
FREE = parse_listener("PLAINTEXT://127.0.0.1:0")


def test_brokers_have_consecutive_ports_their_own_directories_and_racks() -> None:
    first, second, third = cluster_settings(3, LISTENER, "dir", {})
    assert [each.node_id for each in (first, second, third)] == [1, 2, 3]
    assert [each.listeners[0].port for each in (first, second, third)] == [9092, 9093, 9094]
    assert [each.data_dirs for each in (first, second, third)] == [["dir/broker-1"], ["dir/broker-2"], ["dir/broker-3"]]
    assert second.config.broker_rack == "rack-2"
    assert second.config.node_id == 2
    assert [each.listeners[0].port for each in cluster_settings(2, FREE, None, {})] == [0, 0]


def test_ids_begin_with_the_first_that_has_a_directory(tmp_path: Path) -> None:
    """As that of a broker of `odradek serve` which was taken into the cluster."""
    (tmp_path / "broker-0").mkdir()
    settings = cluster_settings(2, LISTENER, str(tmp_path), {})
    assert [each.node_id for each in settings] == [0, 1]
    assert [each.data_dirs for each in settings] == [[f"{tmp_path}/broker-0"], [f"{tmp_path}/broker-1"]]
    assert [each.listeners[0].port for each in settings] == [9092, 9093]


@pytest.mark.parametrize(("count", "factor", "minimum"), [(1, 1, 1), (2, 2, 1), (3, 3, 2), (5, 3, 2)])
def test_topics_are_replicated_as_far_as_there_are_brokers(count: int, factor: int, minimum: int) -> None:
    config = cluster_settings(count, LISTENER, None, {})[-1].config
    assert config.default_replication_factor == factor
    assert config.topic({}).min_insync_replicas == minimum


def test_what_is_set_counts_for_all_of_them() -> None:
    settings = cluster_settings(3, LISTENER, None, {"min.insync.replicas": "1", "num.partitions": "7"})
    assert {each.config.num_partitions for each in settings} == {7}
    assert {each.config.topic({}).min_insync_replicas for each in settings} == {1}
    with pytest.raises(ConfigError):
        cluster_settings(3, LISTENER, None, {"num.partitions": "none"})


async def test_an_in_memory_cluster_elects_one_controller_and_stops_without_removing_nodes() -> None:
    environment, store = Environment(), MemoryStore()
    brokers = [Broker(each, environment, MemoryDisk(), store=store) for each in cluster_settings(3, FREE, None, {})]
    for broker in brokers:
        await broker.start()
    contexts = [broker.context for broker in brokers]
    assert sum(context.member.controller.is_active for context in contexts) == 1
    for context in contexts:
        await asyncio.wait_for(context.metadata.applied((await store.read("/")).revision), 5)
        assert sorted(context.metadata.image.brokers) == [1, 2, 3]
    await stop_all(brokers)
    assert len((await store.read("/nodes/")).entries) == 3
    await store.close()
