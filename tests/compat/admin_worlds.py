"""A cluster as one history sees it: its topics under their short names, answers and states without what differs anyway.

What no two clusters can have in common is left out (addresses, sizes, texts, where the cluster itself has placed
replicas), and topics and ids are named as the history names them. What is left must be equal.
"""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from odradek.broker.config.kafka_options import NOT_HERE
from odradek.protocol.codec.schema import ZERO_UUID, Struct
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from odradek.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsPartition, DescribeLogDirsTopic
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.compat.admin_leaves import Shape, as_dict, as_list
from tests.compat.admin_requests import BROKER, BROKER_VALUES, NAMES, PLACED, TOPIC, A, Step, fields_of, topic_id
from tests.compat.peer import Peer
from tests.compat.questions import CLOSED, produced
from tests.compat.questions import batch as batch_of

Address = tuple[str, int]
PATIENCE_S = 5.0
PATIENCE_TO_BEGIN_S = 30.0
PAUSE_S = 0.02
DYNAMIC_BROKER, DYNAMIC_DEFAULT_BROKER, DYNAMIC_TOPIC = 2, 3, 1
RECORDS = 3
EARLIEST, LATEST = -2, -1
LEFT_OUT = frozenset(
    (
        "throttle_time_ms", "error_message", "host", "port", "cluster_id", "controller_id", "rack", "leader_epoch",
        "log_dir", "total_bytes", "usable_bytes", "partition_size", "offset_lag", "documentation",
    )
)  # fmt: skip
PLACES = frozenset(("replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr", "offline_replicas"))
SILENT = "no answer"
NAMED_BY = (
    "resource_type", "resource_name", "name", "topic", "topic_name", "topic_id", "partition_index", "partition_id",
    "partition", "broker_id", "node_id", "source",
)  # fmt: skip
"""The fields by which an item of a list is told from the others."""
OURS_ALONE = "record.validation"
OF_A_HISTORY = re.compile("f[0-9]+-[0-9]+-")


class Brokers:
    """The brokers of a cluster, each with a connection that is opened when it is needed."""

    def __init__(self, addresses: Mapping[int, Address]) -> None:
        self._addresses = addresses
        self._peers: dict[int, Peer] = {}

    @property
    def nodes(self) -> Sequence[int]:
        return sorted(self._addresses)

    def close(self) -> None:
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()

    def peer(self, node: int) -> Peer:
        if node not in self._peers:
            self._peers[node] = Peer(*self._addresses[node])
        return self._peers[node]

    def ask(self, node: int, request: Any, version: int) -> Any:
        """The answer, CLOSED, or SILENT."""
        try:
            return self.peer(node).ask(request, version)
        except ConnectionError:
            self._peers.pop(node).close()
            return CLOSED
        except TimeoutError:
            self._peers.pop(node).close()
            return SILENT


class World:
    """One history's topics in a cluster."""

    def __init__(self, brokers: Brokers, prefix: str) -> None:
        self.brokers = brokers
        self._prefix = prefix
        self._ids: dict[str, bytes] = {}
        """The id that each topic has, or had last."""
        self._placed_by_hand = b""

    # -- in the words of the history ----------------------------------------------------------------------------
    def full(self, name: str) -> str:
        return f"{self._prefix}{name}"

    def short(self, name: str) -> str:
        return name.removeprefix(self._prefix)

    def sent(self, value: Any) -> Any:
        """A request with the topics of this cluster in place of the short names."""
        match value:
            case str():
                return self.full(value) if value in NAMES else value
            case bytes():
                return next((self._ids.get(name, value) for name in NAMES if topic_id(name) == value), value)
            case Struct():
                fields = {name: self.sent(getattr(value, name)) for name in fields_of(value)}
                return type(value)(**fields)
            case _:
                items = as_list(value)
                return value if items is None else [self.sent(each) for each in items]

    def seen(self, value: Any, topic: str = "", index: int = -1) -> Shape:
        """An answer in the words of the history."""
        match value:
            case str():
                return self.short(value)
            case bytes():
                return self._id_seen(value)
            case Struct():
                return self._struct_seen(value, topic, index)
            case _:
                if (items := as_list(value)) is None:
                    return value
                return by_name([self.seen(each, topic, index) for each in items if not self._is_left_out(each, topic)])

    def _struct_seen(self, value: Any, topic: str, index: int) -> Shape:
        for name in ("name", "topic", "topic_name"):
            topic = self.short(getattr(value, name, None) or topic)
        for name in ("partition_index", "partition_id", "partition"):
            index = getattr(value, name, index)
        shape: dict[str, Shape] = {}
        for name in fields_of(value):
            field = getattr(value, name)
            if name in LEFT_OUT:
                continue
            if name.endswith("error_code"):
                shape[name] = ErrorCode(field).name
            elif name in PLACES and not self.is_placed_by_hand(topic, index):
                shape[name] = len(field)
            elif name == "leader_id" and not self.is_placed_by_hand(topic, index):
                shape[name] = "some" if field >= 0 else field
            else:
                shape[name] = self.seen(field, topic, index)
        return shape

    def _is_left_out(self, each: object, topic: str) -> bool:
        """Whether it is an option that only one of the clusters has, a topic of another history or of the cluster, or
        the directory of a partition that the cluster has placed."""
        if isinstance(each, DescribeLogDirsTopic):
            return self.short(each.name) != A
        if isinstance(each, DescribeLogDirsPartition):
            return not self.is_placed_by_hand(topic, each.partition_index)
        name = getattr(each, "name", getattr(each, "topic", None))
        if name == OURS_ALONE or (isinstance(each, DescribeConfigsResourceResult) and name in NOT_HERE):
            return True
        if not isinstance(name, str) or not hasattr(each, "partitions"):
            return False
        return name == "__cluster_metadata" or (
            OF_A_HISTORY.match(name) is not None and not name.startswith(self._prefix)
        )

    def _id_seen(self, value: bytes) -> str:
        if value == ZERO_UUID:
            return "no id"
        known = {identity: name for name, identity in self._ids.items()}
        asked = {topic_id(name): name for name in NAMES}
        return (
            f"id of {known[value]}" if value in known else f"asked {asked[value]}" if value in asked else "another id"
        )

    def is_placed_by_hand(self, topic: str, index: int) -> bool:
        """Whether both clusters have its replicas on the same brokers: the first partitions of `a`, as it was made."""
        return topic == A and index in (0, 1) and self._ids.get(A) == self._placed_by_hand

    # -- doing --------------------------------------------------------------------------------------------------
    def do(self, step: Step) -> Shape:
        answer = self.brokers.ask(step.node, self.sent(step.request), step.version)
        return answer if isinstance(answer, str) else self.seen(answer)

    def take_ids(self) -> None:
        answer = self.brokers.ask(1, _about([self.full(name) for name in NAMES]), 12)
        for topic in answer.topics:
            if topic.error_code == 0:
                self._ids[self.short(topic.name)] = topic.topic_id

    def fill(self) -> None:
        """Takes note of the topics as they were made, and writes the records."""
        deadline = time.monotonic() + PATIENCE_TO_BEGIN_S
        while A not in self._ids:
            assert time.monotonic() < deadline, f"there is no topic {self.full(A)}"
            self.take_ids()
        self._placed_by_hand = self._ids[A]
        for index in (0, 1):
            leader = min(index + 1, len(self.brokers.nodes))
            records = [batch_of(timestamp_ms=1_700_000_000_000 + each) for each in range(RECORDS)]
            for each in records:
                while True:
                    [(error, _)] = produced(self.brokers.peer(leader), self.full(A), each, index=index)
                    if error == "NONE":
                        break
                    assert error in ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_ENOUGH_REPLICAS"), (
                        error
                    )
                    time.sleep(PAUSE_S)

    # -- looking ------------------------------------------------------------------------------------------------
    def state(self) -> Shape:
        """Topics as each broker sees them, what they and the brokers have set, and what is under way."""
        self.take_ids()
        nodes, asked = self.brokers.nodes, _about([self.full(name) for name in NAMES])
        seen = {f"broker {node}": self.seen(self.brokers.ask(node, asked, 12))["topics"] for node in nodes}
        moving = self.brokers.ask(1, ListPartitionReassignmentsRequest(timeout_ms=5_000, topics=None), 0)
        return {
            **seen,
            "options": self._options([(TOPIC, name) for name in self.there()], DYNAMIC_TOPIC, 1),
            "of all brokers": self._options([(BROKER, "")], DYNAMIC_DEFAULT_BROKER, 1),
            **{f"of broker {node}": self._options([(BROKER, str(node))], DYNAMIC_BROKER, node) for node in nodes},
            "moving": self.seen(moving)["topics"],
            "offsets": [self._offsets(node) for node in nodes],
        }

    def _offsets(self, node: int) -> Shape:
        """First and next offset of what the history wrote to, where this broker leads it."""
        if not self.is_placed_by_hand(A, 0):
            return None
        asked = [
            ListOffsetsTopic(
                name=self.full(A),
                partitions=[ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in (0, 1)],
            )
            for timestamp in (EARLIEST, LATEST)
        ]
        answers = (self.brokers.ask(node, ListOffsetsRequest(replica_id=-1, topics=[topic]), 9) for topic in asked)
        return [self.seen(answer)["topics"] for answer in answers]

    def there(self) -> list[str]:
        """The full names of the topics that there are."""
        answer = self.brokers.ask(1, _about([self.full(name) for name in NAMES]), 12)
        return [topic.name for topic in answer.topics if topic.error_code == 0]

    def _options(self, resources: Iterable[tuple[int, str]], source: int, node: int) -> Shape:
        asked = [
            DescribeConfigsResource(
                resource_type=kind,
                resource_name=name,
                configuration_keys=None if kind == TOPIC else list(BROKER_VALUES),
            )
            for kind, name in resources
        ]
        answer = self.brokers.ask(node, DescribeConfigsRequest(resources=asked), 4) if asked else None
        return sorted(
            (self.short(result.resource_name), entry.name, entry.value or "", entry.is_sensitive)
            for result in (answer.results if answer else ())
            for entry in result.configs
            if entry.config_source == source
        )


def by_name(shapes: list[Shape]) -> Shape:
    """What a list holds, by what each is called, for the order of most lists is anybody's; in order, where that is not
    unique."""
    called: dict[tuple[str, ...], Shape] = {}
    for shape in shapes:
        if (named := as_dict(shape)) is not None:
            called[tuple(str(named[name]) for name in NAMED_BY if name in named)] = shape
    if len(called) == len(shapes) and () not in called:
        return {"/".join(name): shape for name, shape in called.items()}
    return sorted(shapes, key=repr)


def _about(names: Iterable[str]) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False)


def make_topics(worlds: Sequence[World], *, replicas: Sequence[Sequence[int]]) -> None:
    """Makes what every history finds, for several of one cluster."""
    configs = [CreatableTopicConfig(name="retention.ms", value="-1")]
    topics = [
        topic
        for world in worlds
        for topic in (
            CreatableTopic(
                name=world.full(A),
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
                    for index, ids in enumerate(replicas)
                ],
                configs=configs,
            ),
            CreatableTopic(
                name=world.full(PLACED),
                num_partitions=1,
                replication_factor=len(replicas[0]),
                assignments=[],
                configs=[],
            ),
        )
    ]
    answer = worlds[0].brokers.ask(1, CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert {topic.error_code for topic in answer.topics} == {0}, answer


def delete_topics(worlds: Sequence[World]) -> None:
    states = [DeleteTopicState(name=name) for world in worlds for name in world.there()]
    worlds[0].brokers.ask(1, DeleteTopicsRequest(topics=states, timeout_ms=30_000), 6)


def set_of_brokers(brokers: Brokers) -> None:
    """Puts the options of the brokers back: nothing, but for what Kafka's format command sets."""
    for node in brokers.nodes:
        for name, configs in (("", [AlterableConfig(name="min.insync.replicas", value="1")]), (str(node), [])):
            resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=list(configs))
            answer = brokers.ask(node, AlterConfigsRequest(resources=[resource], validate_only=False), 2)
            assert answer.responses[0].error_code == 0, answer
