"""What a group is told of its topics: layouts when they change, a missing topic once, and racks where they count."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from odradek.client.cluster.cluster import Cluster
from odradek.client.cluster.metadata import Heard
from odradek.client.cluster.topic_metadata import Leader, TopicMetadata
from odradek.client.consumer.assignment.assignor import TopicLayout
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.group.subscription import Subscription
from odradek.client.consumer.group.topic_watch import TopicWatch
from odradek.client.errors.client_errors import ClientError, ConnectionFailed, broker_error
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.runtime.tasks import Tasks
from tests.client.virtual_time import VirtualEnvironment

pytestmark = pytest.mark.virtual_time

ID = b"i" * 16


@dataclass
class World:
    """Metadata as the tests set it, and what the watch has told."""

    rack: str = ""
    known: dict[str, int] = field(default_factory=dict[str, int])
    codes: dict[str, ErrorCode] = field(default_factory=dict[str, ErrorCode])
    used: list[str] = field(default_factory=list[str])
    layouts: list[dict[str, TopicLayout]] = field(default_factory=list[dict[str, TopicLayout]])
    topics: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    errors: list[ClientError] = field(default_factory=list[ClientError])
    failures: list[ClientError] = field(default_factory=list[ClientError])

    def __post_init__(self) -> None:
        config = ConsumerConfig("localhost:1", group_id="g", client_rack=self.rack, metadata_max_age_ms=60_000)
        environment = VirtualEnvironment()
        self.watch = TopicWatch(
            config,
            cast(Cluster, self),
            environment,
            Tasks(environment.loop),
            on_topics=self.topics.append,
            on_layouts=self.told,
            on_error=self.errors.append,
        )

    def told(self, layouts: Mapping[str, TopicLayout]) -> None:
        self.layouts.append(dict(layouts))

    def look(self) -> None:
        self.watch.look(frozenset(), asyncio.get_running_loop().time() * 1000)

    # -- cluster and metadata
    @property
    def metadata(self) -> "World":
        return self

    def use(self, topic: str, now_ms: float) -> None:
        self.used.append(topic)

    def topic(self, name: str) -> TopicMetadata | None:
        count = self.known.get(name)
        return None if count is None else TopicMetadata(name, ID, (Leader(0, 0),) * count)

    def error_of(self, topic: str) -> ClientError | None:
        code = self.codes.get(topic)
        return broker_error(code, "", "Metadata") if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED else None

    def heard(self, topic: str) -> Heard | None:
        return Heard(self.codes[topic], 1, 0.0) if topic in self.codes else None

    async def ask(self, request: MetadataRequest) -> Any:
        await asyncio.sleep(0.1)
        if self.failures:
            raise self.failures.pop(0)
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=0, host="h", port=1, rack="r1")],
            topics=[
                MetadataResponseTopic(
                    name=name,
                    topic_id=ID,
                    partitions=[
                        MetadataResponsePartition(partition_index=index, leader_id=0, replica_nodes=[0], isr_nodes=[0])
                        for index in range(count)
                    ],
                )
                for name, count in self.known.items()
            ],
        )


async def test_layouts_are_told_when_they_change_and_stay_in_use() -> None:
    world = World(known={"a": 1})
    world.watch.subscribe(Subscription.to_names(["a", "b"]))
    assert world.topics == [frozenset({"a", "b"})]
    world.look()
    world.look()
    assert world.layouts == [{"a": TopicLayout(1, (), ID)}]
    assert sorted(world.used) == ["a", "b"]
    world.known = {"a": 2, "b": 1}
    world.look()
    assert world.layouts[-1] == {"a": TopicLayout(2, (), ID), "b": TopicLayout(1, (), ID)}
    await asyncio.sleep(2)
    world.look()
    assert sorted(world.used) == ["a", "a", "b", "b"]


async def test_what_passes_changes_no_layout_and_a_deletion_does() -> None:
    world = World(known={"a": 1})
    world.watch.subscribe(Subscription.to_names(["a"]))
    world.look()
    world.known, world.codes = {}, {"a": ErrorCode.LEADER_NOT_AVAILABLE}
    world.look()
    assert len(world.layouts) == 1
    world.codes = {"a": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    world.look()
    assert world.layouts[1:] == [{}]


async def test_a_missing_topic_is_named_once_and_a_refused_one_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    world = World(codes={"late": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "secret": ErrorCode.TOPIC_AUTHORIZATION_FAILED})
    world.watch.subscribe(Subscription.to_names(["late", "secret"]))
    world.look()
    world.look()
    assert caplog.text.count("topic late does not exist; it is read as soon as there is one") == 1
    assert [each.code for each in world.errors] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


async def test_where_racks_count_a_change_is_told_with_them() -> None:
    world = World(rack="r1", known={"a": 1})
    world.watch.subscribe(Subscription.to_names(["a"]))
    world.failures = [ConnectionFailed("broker 1")]
    world.look()
    await asyncio.sleep(3)
    world.look()
    await asyncio.sleep(1)
    assert world.layouts == [{"a": TopicLayout(1, (frozenset({"r1"}),), ID)}]


async def test_a_pattern_is_compared_again_and_again() -> None:
    world = World(known={"a-1": 1, "b": 1})
    world.failures = [ConnectionFailed("broker 1")]
    world.watch.subscribe(Subscription(pattern=re.compile("a.*")))
    await asyncio.sleep(3)
    assert world.topics == [frozenset({"a-1"})]
    world.known["a-2"] = 1
    await asyncio.sleep(61)
    assert world.topics[1:] == [frozenset({"a-1", "a-2"})]
    world.failures = [broker_error(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "", "Metadata")]
    await asyncio.sleep(61)
    assert len(world.errors) == 1
    world.watch.close()
