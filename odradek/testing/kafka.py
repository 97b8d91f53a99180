"""A test's cluster as a program without an event loop has it, and as one that blocks its own: each call returns when it
is done. Its brokers and its clients run elsewhere: in threads of this process, or in others (running_cluster.py). For
programs in asyncio: async_kafka.py.

Neither the broker nor the client is imported here: where they run in another process, this one does without them.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

from odradek.runtime.environment import tell_when_forked
from odradek.testing.broker_state import BrokerState
from odradek.testing.cluster_options import ClusterOptions
from odradek.testing.running_cluster import NotInThisMode, RunningCluster, RunningContents, UnknownCall, UsedInFork
from odradek.testing.waiting import TIMEOUT_S, wait_in_thread

if TYPE_CHECKING:
    from odradek.client.admin.groups import MemberDescription
    from odradek.client.consumer.records import ConsumerRecord
    from odradek.client.producer.results.produce_results import Ack
    from odradek.client.topic_partition import TopicPartition
    from odradek.testing.contents import Contents
    from odradek.testing.faults.fault_handle import FaultHandle
    from odradek.testing.faults.faults import Faults, Meant
    from odradek.testing.faults.recorded_requests import RecordedRequest, Requests
    from odradek.testing.record_shapes import RecordShape
    from odradek.testing.remote.log_lines import LogLine

__all__ = ["Group", "Kafka", "KafkaBroker"]

T = TypeVar("T")


class KafkaBroker:
    """One broker of a test's cluster: `kafka.brokers[1]`."""

    def __init__(self, kafka: "Kafka", node_id: int) -> None:
        self._kafka = kafka
        self.node_id: Final = node_id

    def __repr__(self) -> str:
        return f"<broker {self.node_id} at {self.address}, {self.state.name.lower()}>"

    @property
    def address(self) -> str:
        """HOST:PORT, the same over its stops and starts."""
        return self._kafka.running.brokers[self.node_id].address

    @property
    def state(self) -> BrokerState:
        return self._kafka.cluster.brokers[self.node_id].state

    def stop(self) -> None:
        """SIGTERM: others lead what it led, before it is gone. Raises WrongBrokerState unless it runs."""
        self._kafka.cluster.stop_broker(self.node_id)
        self._kafka.contents.renew()

    def kill(self) -> None:
        """SIGKILL: it ends in the middle of what it does, and is down until `start`. Raises WrongBrokerState when it is
        down."""
        self._kafka.cluster.kill(self.node_id)
        self._kafka.contents.renew()

    def pause(self) -> None:
        """SIGSTOP: it does nothing, and its connections stay open. Raises WrongBrokerState unless it runs."""
        self._kafka.cluster.pause(self.node_id)
        self._kafka.contents.renew()

    def resume(self) -> None:
        """SIGCONT. Raises WrongBrokerState unless it is paused."""
        self._kafka.cluster.resume(self.node_id)
        self._kafka.contents.renew()

    def start(self) -> None:
        """Starts it again, on what it had written. Raises WrongBrokerState unless it is down."""
        self._kafka.cluster.start_again(self.node_id)
        self._kafka.contents.renew()


class Group:
    """A consumer group, whether it is there or not: `kafka.group("billing")`."""

    def __init__(self, kafka: "Kafka", group_id: str) -> None:
        self._kafka = kafka
        self.group_id: Final = group_id

    def committed(self) -> "dict[TopicPartition, int]":
        """The committed offsets, by partition."""
        return self._kafka.run(lambda contents: contents.committed(self.group_id))

    def lag(self) -> int:
        """How many offsets are behind the committed ones, over all partitions that the group has committed or its
        members have; where nothing is committed, all that there are count."""
        return sum(self.lag_by_partition().values())

    def lag_by_partition(self) -> "dict[TopicPartition, int]":
        return self._kafka.run(lambda contents: contents.lag(self.group_id))

    def members(self) -> "Sequence[MemberDescription]":
        """None where there is no such group."""
        return self._kafka.run(lambda contents: contents.members(self.group_id))


class Kafka:
    """See the module. Made by `odradek.testing.cluster`."""

    def __init__(self, options: ClusterOptions, cluster: RunningCluster, contents: RunningContents) -> None:
        self._options = options
        self.running: Final = cluster
        """For its addresses, which a forked child may use, too."""
        self._running_contents = contents
        self._is_stopped = False
        self._is_forked = False
        tell_when_forked(self)
        self.brokers: Final[Mapping[int, KafkaBroker]] = MappingProxyType(
            {node_id: KafkaBroker(self, node_id) for node_id in cluster.brokers}
        )
        """By id, from 1."""

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT of each broker, with commas between them."""
        return self.running.bootstrap_servers

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

    def produce(self, topic: str, records: "Iterable[RecordShape]") -> "list[Ack]":
        """Returns when all are acknowledged by all in-sync replicas, with where they are, in their order.

            kafka.produce("orders", [b"value", "text", ("key", "value"), {"value": b"v", "headers": [("h", b"1")]}])

        A topic that there is not is made. Raises TypeError, ClientError.
        """
        all_of_them, now_ms = list(records), self.cluster.now_ms()
        return self.run(lambda contents: contents.produce(topic, all_of_them, now_ms))

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
        return datetime.fromtimestamp(self.cluster.now_ms() / 1000, UTC)

    @now.setter
    def now(self, now: datetime) -> None:
        self.cluster.shift_clock((now - self.now).total_seconds())

    # -- what happens in real clusters ------------------------------------------------------------------------------

    def move_leader(self, topic: str, partition: int, to: int, timeout_s: float = TIMEOUT_S) -> None:
        """Broker `to` leads the partition. One that is no replica becomes one, in the place of the last. Raises
        UnknownTopic; ItemsFailed for a broker that there is not; WaitedInVain for one that does not catch up."""
        self.run(lambda contents: contents.move_leader(topic, partition, to, timeout_s))
        self.cluster.settle()

    def move_coordinator(self, *, to: int, group: str | None = None, transactional_id: str | None = None) -> None:
        """Broker `to` coordinates the group, or the transactional id, and others beside it. Raises as `move_leader`."""
        self.run(lambda contents: contents.move_coordinator(group, transactional_id, to))
        self.cluster.settle()

    def fence(self, transactional_id: str) -> None:
        """Fences its producer, and aborts an open transaction. Raises ItemsFailed."""
        self.run(lambda contents: contents.fence(transactional_id))

    def expire_group_member(self, group: str, member: str | None = None) -> list[str]:
        """As if a member's session had ended (None: those of all); it joins again when it hears of that. `member`: a
        member id, group instance id or client id. Returns member ids. Raises NoSuchMember, BrokerError."""
        return self.run(lambda contents: contents.expire_group_member(group, member))

    # -- requests ---------------------------------------------------------------------------------------------------

    @property
    def faults(self) -> "Faults[FaultHandle]":
        """What is done to the requests of clients (faults/faults.py). Raises NotInThisMode where each broker has a
        process of its own."""
        from odradek.testing.faults.fault_handle import FaultHandle
        from odradek.testing.faults.faults import Faults

        return Faults(self.cluster.fault_table, FaultHandle)

    def requests(
        self, *, since: "float | RecordedRequest | Requests | None" = None, **meant: "Unpack[Meant]"
    ) -> "Requests":
        """What clients have sent, oldest first: of the last 10,000 requests those that are meant.

            kafka.requests(api="Metadata", client_id="billing-*").at_most(10, within_s=10)

        Those of brokers among themselves and of this test kit are left out. `since`: none from before a moment
        (`odradek.testing.now_s`), nor up to the last of other requests. Raises FaultRefused for an API that there is
        not, and as `faults`.
        """
        from odradek.testing.faults.fault import match_of
        from odradek.testing.faults.recorded_requests import begin_of

        return self.cluster.requests(match_of(**meant), begin_of(since))

    def log_lines(self, since: int = 0) -> "list[LogLine]":
        """What brokers in other processes have logged behind line `since`, as far as it is kept, oldest first. Raises
        NotInThisMode where they are threads of this process: what they log is in its own `logging`."""
        try:
            lines: list[LogLine] = self.cluster.call("log_lines", number=since)
        except UnknownCall as error:
            raise NotInThisMode(
                "the brokers are threads of this process, which has what they log: look at the logger 'odradek'"
            ) from error
        return lines

    # -- the whole --------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Back to how it began: no faults, all brokers run; the topics are those that it was made with, and empty; no
        groups, and no requests that were recorded."""
        for broker in self.brokers.values():
            if broker.state is BrokerState.PAUSED:
                broker.resume()
            elif broker.state is BrokerState.DOWN:
                broker.start()
        self.run(lambda contents: contents.close_clients())  # a producer that asks for a topic makes it anew
        self.cluster.empty(self._options.topics)

    def make_topics(self) -> None:
        """Those of the options. For `odradek.testing.cluster`."""
        if self._options.topics:
            self.cluster.create_topics(self._options.topics)

    @property
    def cluster(self) -> RunningCluster:
        """The brokers, whatever runs them. Raises UsedInFork."""
        self._check_process()
        return self.running

    @property
    def contents(self) -> "Contents":
        """What `run` passes on. Raises UsedInFork."""
        self._check_process()
        return self._running_contents.contents

    def run(self, ask: "Callable[[Contents], Coroutine[Any, Any, T]]") -> T:
        """Asks by the clients of this cluster, where they run. Raises UsedInFork, and what the coroutine raises."""
        self._check_process()
        return self._running_contents.run(ask)

    def kill_process(self) -> None:
        """SIGKILL of the process that has all brokers (`subprocess=True`): they are gone, and every other call says so.
        Raises NotInThisMode where they are threads of this one."""
        self.cluster.kill_process()

    def stop(self) -> None:
        """Ends it, where there is no `with` to do so. No error when it has ended, and nothing happens in a forked
        child, whose `with` ends, too: the cluster is its parent's."""
        if self._is_stopped or self._is_forked:
            return
        self._is_stopped = True
        self._running_contents.close()
        self.cluster.stop()

    def was_forked(self) -> None:
        """For odradek/runtime/environment.py."""
        self._is_forked = True

    def _check_process(self) -> None:
        """Raises UsedInFork."""
        if self._is_forked:
            raise UsedInFork(f"the cluster at {self.bootstrap_servers}")
