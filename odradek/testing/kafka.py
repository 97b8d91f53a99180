"""A test's cluster as a program without an event loop has it, and as one that blocks its own: each call returns when it
is done. Its clients run in a thread of their own. For programs in asyncio: async_kafka.py."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from odradek.client.topic_partition import TopicPartition
from odradek.testing.cluster_options import ClusterOptions
from odradek.testing.contents import Contents
from odradek.testing.hosting.hosted_broker import BrokerState
from odradek.testing.hosting.hosted_cluster import HostedCluster
from odradek.testing.hosting.loop_thread import LoopThread
from odradek.testing.record_shapes import RecordShape
from odradek.testing.waiting import TIMEOUT_S, wait_in_thread

if TYPE_CHECKING:
    from odradek.client.admin.groups import MemberDescription
    from odradek.client.consumer.records import ConsumerRecord
    from odradek.client.producer.results.produce_results import Ack

__all__ = ["Group", "Kafka", "KafkaBroker"]

T = TypeVar("T")


class KafkaBroker:
    """One broker of a test's cluster: `kafka.brokers[1]`."""

    def __init__(self, kafka: "Kafka", node_id: int) -> None:
        self._cluster = kafka.cluster
        self._contents = kafka.contents
        self.node_id: Final = node_id

    def __repr__(self) -> str:
        return f"<broker {self.node_id} at {self.address}, {self.state.name.lower()}>"

    @property
    def address(self) -> str:
        """HOST:PORT, the same over its stops and starts."""
        return self._cluster.brokers[self.node_id].address

    @property
    def state(self) -> BrokerState:
        return self._cluster.brokers[self.node_id].state

    def stop(self) -> None:
        """SIGTERM: others lead what it led, before it is gone. Raises WrongBrokerState unless it runs."""
        self._cluster.brokers[self.node_id].stop()
        self._contents.renew()

    def kill(self) -> None:
        """SIGKILL: it ends in the middle of what it does. Raises WrongBrokerState when it is down."""
        self._cluster.kill(self.node_id)
        self._contents.renew()

    def pause(self) -> None:
        """SIGSTOP: it does nothing, and its connections stay open. Raises WrongBrokerState unless it runs."""
        self._cluster.pause(self.node_id)
        self._contents.renew()

    def resume(self) -> None:
        """SIGCONT. Raises WrongBrokerState unless it is paused."""
        self._cluster.resume(self.node_id)
        self._contents.renew()

    def start(self) -> None:
        """Starts it again, on what it had written. Raises WrongBrokerState unless it is down."""
        self._cluster.start_again(self.node_id)
        self._contents.renew()


class Group:
    """A consumer group, whether it is there or not: `kafka.group("billing")`."""

    def __init__(self, kafka: "Kafka", group_id: str) -> None:
        self._kafka = kafka
        self.group_id: Final = group_id

    def committed(self) -> dict[TopicPartition, int]:
        """The committed offsets, by partition."""
        return self._kafka.run(lambda contents: contents.committed(self.group_id))

    def lag(self) -> int:
        """How many offsets are behind the committed ones, over all partitions that the group has committed or its
        members have; where nothing is committed, all that there are count."""
        return sum(self.lag_by_partition().values())

    def lag_by_partition(self) -> dict[TopicPartition, int]:
        return self._kafka.run(lambda contents: contents.lag(self.group_id))

    def members(self) -> "Sequence[MemberDescription]":
        """None where there is no such group."""
        return self._kafka.run(lambda contents: contents.members(self.group_id))


class Kafka:
    """See the module. Made by `odradek.testing.cluster`."""

    def __init__(self, options: ClusterOptions, cluster: HostedCluster) -> None:
        self._options = options
        self.cluster: Final = cluster
        self._thread = LoopThread("odradek test kit")
        self._is_stopped = False
        self.contents: Final = Contents(lambda: cluster.running_servers)
        self.brokers: Final[Mapping[int, KafkaBroker]] = MappingProxyType(
            {node_id: KafkaBroker(self, node_id) for node_id in cluster.brokers}
        )
        """By id, from 1."""

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT of each broker, with commas between them."""
        return self.cluster.bootstrap_servers

    def get_bootstrap_server(self) -> str:
        """As testcontainers' KafkaContainer names it."""
        return self.bootstrap_servers

    # -- topics and records -----------------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Returns when all brokers know it. By default it has as many replicas as go with the cluster, three at most.
        Raises NewTopicRefused."""
        self.cluster.create_topics({name: partitions}, -1 if replication_factor is None else replication_factor, config)

    def produce(self, topic: str, records: Iterable[RecordShape]) -> "list[Ack]":
        """Returns when all are acknowledged by all in-sync replicas, with where they are, in their order.

            kafka.produce("orders", [b"value", "text", ("key", "value"), {"value": b"v", "headers": [("h", b"1")]}])

        A topic that there is not is made. Raises TypeError, ClientError.
        """
        return self.run(lambda contents: contents.produce(topic, records, self.cluster.clock.now_ms()))

    def records(self, topic: str, count: int | None = None, timeout_s: float = TIMEOUT_S) -> "list[ConsumerRecord]":
        """All committed records that the topic has, once it has `count` of them; None: those that it has now.

        Ordered by partition and offset. Raises WaitedInVain, which shows what came instead, UnknownTopic.
        """
        return self.run(lambda contents: contents.records(topic, count, timeout_s))

    # -- groups and waiting -----------------------------------------------------------------------------------------

    def group(self, group_id: str) -> Group:
        return Group(self, group_id)

    def wait_for_lag(self, group_id: str, lag: int = 0, timeout_s: float = TIMEOUT_S) -> None:
        """Returns when the group has committed something and is behind by so much, or less. Raises WaitedInVain."""
        self.run(lambda contents: contents.wait_for_lag(group_id, lag, timeout_s))

    def wait_for(self, condition: Callable[[], T], message: str = "", timeout_s: float = TIMEOUT_S) -> T:
        """Calls it again and again until what it returns is true, and returns that. While it raises an AssertionError
        it is not true yet. Raises WaitedInVain with what came last, and what else the condition raises."""
        return wait_in_thread(condition, message or getattr(condition, "__name__", repr(condition)), timeout_s)

    # -- time -------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """The brokers' time of day. It can be set: retention, compaction and what expires go by it, and are done at
        once; sessions, leases, time-outs of requests and of transactions go by another clock.

            kafka.now += timedelta(days=8)
        """
        return datetime.fromtimestamp(self.cluster.clock.now_ns() / 1e9, UTC)

    @now.setter
    def now(self, now: datetime) -> None:
        self.cluster.shift_clock((now - self.now).total_seconds())

    # -- the whole --------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Back to how it began: all brokers run; the topics are those that it was made with, and empty; no groups."""
        for broker in self.brokers.values():
            if broker.state is BrokerState.PAUSED:
                broker.resume()
            elif broker.state is BrokerState.DOWN:
                broker.start()
        self.run(Contents.close)  # a producer that asks for a topic makes it anew
        self.cluster.empty(self._options.topics)

    def make_topics(self) -> None:
        """Those of the options. For `odradek.testing.cluster`."""
        if self._options.topics:
            self.cluster.create_topics(self._options.topics)

    def run(self, ask: Callable[[Contents], Coroutine[Any, Any, T]]) -> T:
        """Asks by the clients of this cluster, in their thread."""
        return self._thread.run(ask(self.contents))

    def stop(self) -> None:
        """Ends it, where there is no `with` to do so. No error when it has ended."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self.run(Contents.close)
        self._thread.end()
        self.cluster.stop()
