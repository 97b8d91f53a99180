"""A cluster in a test: what a program's thread, and what a program in asyncio, can do with it."""

import asyncio
import subprocess
import sys
import threading
import unittest
from datetime import timedelta
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPartition
from kafka.structs import OffsetAndMetadata

from odradek import Consumer, Producer, TopicPartition, UnknownTopic
from odradek.testing import AsyncKafka, Kafka, WaitedInVain, cluster
from odradek.testing.broker_state import WrongBrokerState
from odradek.testing.cluster_options import OptionsRefused
from odradek.testing.kafka_cluster import WrongUse


def test_records_go_in_and_out() -> None:
    with cluster(topics={"orders": 2}) as kafka:
        acks = kafka.produce(
            "orders", [b"a", "b", ("key", "c"), {"value": b"d", "partition": 1, "headers": [("h", b"1")]}]
        )
        assert len(acks) == 4
        records = kafka.records("orders", 4)
        assert sorted(record.value for record in records) == [b"a", b"b", b"c", b"d"]
        assert [(record.partition, record.headers) for record in records if record.value == b"d"] == [
            (1, (("h", b"1"),))
        ]
        assert kafka.records("orders") == records


def test_a_client_of_another_project_connects_by_the_name_that_testcontainers_has() -> None:
    with cluster(brokers=1) as kafka:
        producer = KafkaProducer(bootstrap_servers=kafka.get_bootstrap_server())
        producer.send("orders", b"a").get(10)
        producer.close()
        assert [record.value for record in kafka.records("orders", 1)] == [b"a"]


def test_what_did_not_come_is_said() -> None:
    with cluster(brokers=1, topics=["orders"]) as kafka:
        kafka.produce("orders", [("k", "only")])
        with pytest.raises(
            WaitedInVain,
            match=r"2 record\(s\) of 'orders' .* within 0.2 s 1 came:\n  orders-0@0 key=b'k' value=b'only'",
        ):
            kafka.records("orders", 2, timeout_s=0.2)
        with pytest.raises(WaitedInVain, match="there is no such topic, but: orders"):
            kafka.records("bills", 1, timeout_s=0.2)


def test_groups_and_their_lag() -> None:
    with cluster(brokers=1, topics={"orders": 2}) as kafka:
        kafka.produce("orders", [{"value": b"v", "partition": index % 2} for index in range(10)])
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=kafka.bootstrap_servers, group_id="billing", auto_offset_reset="earliest"
        )
        seen = 0
        while seen < 10:
            seen += sum(map(len, consumer.poll(timeout_ms=1000).values()))
        [member] = kafka.group("billing").members()
        assert set(member.partitions or ()) == {TopicPartition("orders", 0), TopicPartition("orders", 1)}
        assert kafka.group("billing").lag() == 10
        with pytest.raises(WaitedInVain, match=r"group 'billing' is behind by 0 at most: .*nothing is committed"):
            kafka.wait_for_lag("billing", 0, timeout_s=0.1)
        consumer.commit()
        kafka.wait_for_lag("billing", 0)
        assert kafka.group("billing").committed() == {TopicPartition("orders", 0): 5, TopicPartition("orders", 1): 5}
        consumer.close()


def test_two_members_of_kip_848_share_partitions_within_moments() -> None:
    """By default each says heartbeats 5 s apart, and the second one gets its partitions after one of each."""

    async def share(servers: str) -> None:
        def member() -> Consumer:
            return Consumer(servers, group_id="billing", group_protocol="consumer", topics=["orders"])

        async with asyncio.timeout(4), member() as first, member() as second:
            while len(first.assignment()) != 2 or len(second.assignment()) != 2:
                await asyncio.gather(first.get_batch(timeout_ms=50), second.get_batch(timeout_ms=50))

    with cluster(brokers=1, topics={"orders": 4}) as kafka:
        asyncio.run(share(kafka.bootstrap_servers))


def test_waiting_for_a_condition_shows_what_came_last() -> None:
    with cluster(brokers=1) as kafka:
        assert kafka.wait_for(lambda: "yes") == "yes"
        with pytest.raises(WaitedInVain, match=r"the bill: not so within 0.05 s; there was: 0"):
            kafka.wait_for(lambda: 0, "the bill", timeout_s=0.05)

        def asserts() -> None:
            raise AssertionError("three of four")

        with pytest.raises(WaitedInVain, match=r"asserts: .* three of four"):
            kafka.wait_for(asserts, timeout_s=0.05)


def test_a_leader_is_killed_and_comes_back_with_what_it_had() -> None:
    with cluster(topics=["orders"]) as kafka:
        kafka.produce("orders", ["before"])
        kafka.brokers[1].kill()
        kafka.produce("orders", ["between"])
        kafka.brokers[1].start()
        kafka.brokers[2].kill()
        kafka.produce("orders", ["after"])
        assert [record.value for record in kafka.records("orders", 3)] == [b"before", b"between", b"after"]
        with pytest.raises(WrongBrokerState, match="broker 2 cannot be killed: it is down"):
            kafka.brokers[2].kill()


def test_reset_leaves_the_topics_that_it_was_made_with_and_nothing_in_them() -> None:
    with cluster(topics={"orders": 2}) as kafka:
        kafka.produce("orders", ["a"])
        kafka.produce("bills", ["b"])
        consumer = KafkaConsumer("orders", bootstrap_servers=kafka.bootstrap_servers, group_id="billing")
        consumer.poll(timeout_ms=500)
        consumer.close()
        kafka.brokers[3].kill()
        kafka.reset()
        assert kafka.records("orders") == []
        assert kafka.run(lambda contents: contents.topics()) == ["orders"]
        assert kafka.group("billing").committed() == {}
        assert repr(kafka.brokers[3]).endswith("running>")


def test_after_a_reset_the_kits_own_clients_bring_no_topic_back() -> None:
    """A producer that asks who leads a topic now asks for all that it knows, which makes those that are gone. It asks
    at the latest when the topic has another leader, so several are made: one of them has."""
    names = [f"topic-{number}" for number in range(6)]
    with cluster() as kafka:
        for name in names:
            kafka.produce(name, ["before"])
        kafka.reset()
        for name in names[:-1]:
            kafka.create_topic(name)
            kafka.produce(name, ["after"])
        assert sorted(kafka.run(lambda contents: contents.topics())) == names[:-1]


async def test_nor_do_they_in_asyncio() -> None:
    names = [f"topic-{number}" for number in range(6)]
    async with cluster() as kafka:
        for name in names:
            await kafka.produce(name, ["before"])
        await kafka.reset()
        for name in names[:-1]:
            await kafka.create_topic(name)
            await kafka.produce(name, ["after"])
        with pytest.raises(UnknownTopic):
            await kafka.records(names[-1])


def test_time_can_be_moved_for_retention_and_compaction_and_nothing_else() -> None:
    with cluster(brokers=1, topics=["orders"]) as kafka:
        compacted = {"cleanup.policy": "compact", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0"}
        kafka.create_topic("state", config=compacted)
        consumer = KafkaConsumer(
            "orders", bootstrap_servers=kafka.bootstrap_servers, group_id="billing", session_timeout_ms=6_000
        )
        kafka.wait_for(lambda: (consumer.poll(timeout_ms=500), consumer.assignment())[1], "an assignment")
        kafka.produce("orders", ["old"])
        kafka.produce("state", [("k", "1"), ("k", "2"), ("gone", None)])
        before = kafka.now
        kafka.now += timedelta(days=8)
        assert kafka.now - before >= timedelta(days=8)
        assert kafka.records("orders") == [], "retention is seven days"
        kafka.produce("state", [("later", "3")])
        kafka.now += timedelta(days=1)
        assert [record.value for record in kafka.records("state")] == [b"2", None, b"3"]
        kafka.produce("state", [("later", "4")])
        kafka.now += timedelta(days=2)
        assert [record.value for record in kafka.records("state")] == [b"2", b"3", b"4"], "tombstones stay for a day"
        assert len(kafka.group("billing").members()) == 1, "its session goes by another clock"
        consumer.close()


def test_offsets_expire_when_time_is_moved() -> None:
    with cluster(brokers=1, topics=["orders"]) as kafka:
        kafka.produce("orders", ["a"])
        consumer = KafkaConsumer("orders", bootstrap_servers=kafka.bootstrap_servers, group_id="billing")
        kafka.wait_for(lambda: (consumer.poll(timeout_ms=500), consumer.assignment())[1], "an assignment")
        consumer.commit({KafkaPartition("orders", 0): OffsetAndMetadata(1, "", -1)})
        consumer.close()
        assert kafka.group("billing").committed() == {TopicPartition("orders", 0): 1}
        kafka.now += timedelta(days=8)
        kafka.wait_for(lambda: not kafka.group("billing").committed(), "its offsets have expired")


async def test_in_the_loop_of_the_test() -> None:
    before = threading.active_count()
    async with cluster(topics={"orders": 1}) as kafka:
        assert isinstance(kafka, AsyncKafka)
        async with Producer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            await (await producer.send("orders", b"a"))
        async with Consumer(
            bootstrap_servers=kafka.bootstrap_servers,
            group_id="billing",
            topics=["orders"],
            auto_offset_reset="earliest",
        ) as consumer:
            async for record in consumer:
                assert record.value == b"a"
                break
            await consumer.commit({TopicPartition("orders", 0): 1})
        await kafka.wait_for_lag("billing", 0)
        await kafka.brokers[1].stop()
        assert len(await kafka.produce("orders", ["b"])) == 1
        await kafka.brokers[1].start()
        assert [each.value for each in await kafka.records("orders", 2)] == [b"a", b"b"]
        await kafka.create_topic("bills", 3)
        await kafka.reset()
        assert await kafka.records("orders") == []
    assert threading.active_count() <= before + 1, "asyncio's own helper"


@cluster(brokers=1)
def test_as_a_decorator(kafka: Kafka) -> None:
    assert len(kafka.produce("orders", ["a"])) == 1


class TestWithUnittest(unittest.TestCase):
    """Without anything of pytest's."""

    kafka: Kafka

    @classmethod
    def setUpClass(cls) -> None:
        cls.kafka = cluster(brokers=1).start()
        cls.addClassCleanup(cls.kafka.stop)

    def test_it_is_there(self) -> None:
        self.assertEqual(len(self.kafka.produce("orders", ["a"])), 1)


def test_what_a_cluster_cannot_be_is_refused() -> None:
    with pytest.raises(OptionsRefused, match="brokers is 0, and has to be from 1 to 100"):
        cluster(brokers=0)
    with pytest.raises(OptionsRefused, match=r"topics\['orders'\] is 0: a topic has at least 1 partition"):
        cluster(topics={"orders": 0})
    handle = cluster(brokers=1)
    with handle, pytest.raises(WrongUse, match="this cluster runs already"):
        handle.start()


def test_logs_can_be_kept(tmp_path: Path) -> None:
    with cluster(brokers=1, data_dir=tmp_path) as kafka:
        kafka.produce("orders", ["a"])
    with cluster(brokers=1, data_dir=tmp_path) as kafka:
        assert [record.value for record in kafka.records("orders", 1)] == [b"a"]


def test_a_start_imports_no_client_and_nothing_of_the_command_line() -> None:
    """A new process has its three brokers a tenth of a second sooner."""
    started = "with cluster(3):\n print(*sys.modules)"
    program = f"import sys\nfrom odradek.testing import cluster\n{started}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    modules = done.stdout.split()
    assert "odradek.broker.server" in modules
    heavy = ("click", "odradek.client.admin", "odradek.client.consumer", "odradek.client.producer")
    assert sorted(name for name in modules if name.startswith(heavy)) == []


def test_nothing_is_left() -> None:
    before = threading.active_count()
    with cluster():
        assert threading.active_count() >= before + 4
    assert threading.active_count() == before


async def test_a_thread_may_have_one_while_a_loop_runs() -> None:
    def use() -> int:
        with cluster(brokers=1) as kafka:
            return len(kafka.produce("orders", ["a"]))

    assert await asyncio.to_thread(use) == 1
