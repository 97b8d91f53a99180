"""A test's cluster as a program in asyncio has it: its brokers and its clients run in the test's own event loop.

Code that blocks this loop, as clients without asyncio do, waits for brokers that cannot answer: for those, kafka.py.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar, Unpack

from odradek.client.topic_partition import TopicPartition
from odradek.testing.broker_state import BrokerState
from odradek.testing.cluster_options import ClusterOptions
from odradek.testing.contents import Contents
from odradek.testing.faults.fault import match_of
from odradek.testing.faults.fault_handle import AsyncFaultHandle
from odradek.testing.faults.faults import Faults, Meant
from odradek.testing.faults.recorded_requests import RecordedRequest, Requests, begin_of
from odradek.testing.hosting.cluster_in_loop import ClusterInLoop
from odradek.testing.record_shapes import RecordShape
from odradek.testing.waiting import TIMEOUT_S, wait_until

if TYPE_CHECKING:
    from odradek.client.admin.groups import MemberDescription
    from odradek.client.consumer.records import ConsumerRecord
    from odradek.client.producer.results.produce_results import Ack

__all__ = ["AsyncGroup", "AsyncKafka", "AsyncKafkaBroker"]

T = TypeVar("T")


class AsyncKafkaBroker:
    """One broker of a test's cluster: `kafka.brokers[1]`."""

    def __init__(self, contents: Contents, cluster: ClusterInLoop, node_id: int) -> None:
        self._contents = contents
        self._cluster = cluster
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

    async def stop(self) -> None:
        """SIGTERM: others lead what it led, before it is gone. Raises WrongBrokerState unless it runs."""
        await self._cluster.brokers[self.node_id].stop()
        self._contents.renew()

    async def start(self) -> None:
        """Starts it again, on what it had written. Raises WrongBrokerState unless it is down."""
        await self._cluster.start_again(self.node_id)
        self._contents.renew()


class AsyncGroup:
    """A consumer group, whether it is there or not: `kafka.group("billing")`."""

    def __init__(self, contents: Contents, group_id: str) -> None:
        self._contents = contents
        self.group_id: Final = group_id

    async def committed(self) -> dict[TopicPartition, int]:
        """The committed offsets, by partition."""
        return await self._contents.committed(self.group_id)

    async def lag(self) -> int:
        """As `Group.lag` (kafka.py)."""
        return sum((await self.lag_by_partition()).values())

    async def lag_by_partition(self) -> dict[TopicPartition, int]:
        return await self._contents.lag(self.group_id)

    async def members(self) -> "Sequence[MemberDescription]":
        """None where there is no such group."""
        return await self._contents.members(self.group_id)


class AsyncKafka:
    """See the module. Made by `async with odradek.testing.cluster()`; its methods are those of `Kafka` (kafka.py)."""

    def __init__(self, options: ClusterOptions, cluster: ClusterInLoop) -> None:
        self._options = options
        self._cluster = cluster
        self._contents = Contents(lambda: cluster.running_servers)
        self.brokers: Final[Mapping[int, AsyncKafkaBroker]] = MappingProxyType(
            {node_id: AsyncKafkaBroker(self._contents, cluster, node_id) for node_id in cluster.brokers}
        )
        """By id, from 1."""
        self.faults: Final = Faults(cluster.faults.table, AsyncFaultHandle)
        """What is done to the requests of clients (faults/faults.py)."""

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT of each broker, with commas between them."""
        return self._cluster.bootstrap_servers

    def get_bootstrap_server(self) -> str:
        """As testcontainers' KafkaContainer names it."""
        return self.bootstrap_servers

    async def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        factor = -1 if replication_factor is None else replication_factor
        await self._cluster.create_topics({name: partitions}, factor, config)

    async def produce(self, topic: str, records: Iterable[RecordShape]) -> "list[Ack]":
        return await self._contents.produce(topic, records, self._cluster.clock.now_ms())

    async def records(
        self, topic: str, count: int | None = None, timeout_s: float = TIMEOUT_S
    ) -> "list[ConsumerRecord]":
        return await self._contents.records(topic, count, timeout_s)

    def group(self, group_id: str) -> AsyncGroup:
        return AsyncGroup(self._contents, group_id)

    async def wait_for_lag(self, group_id: str, lag: int = 0, timeout_s: float = TIMEOUT_S) -> None:
        await self._contents.wait_for_lag(group_id, lag, timeout_s)

    async def wait_for(
        self, condition: Callable[[], Awaitable[T]], message: str = "", timeout_s: float = TIMEOUT_S
    ) -> T:
        """As `Kafka.wait_for`, for a coroutine function."""
        return await wait_until(condition, message or getattr(condition, "__name__", repr(condition)), timeout_s)

    @property
    def now(self) -> datetime:
        """The brokers' time of day; see `Kafka.now`."""
        return datetime.fromtimestamp(self._cluster.clock.now_ns() / 1e9, UTC)

    async def set_now(self, now: datetime) -> None:
        """Returns when what goes by the time of day is done."""
        await self._cluster.shift_clock((now - self.now).total_seconds())

    async def move_leader(self, topic: str, partition: int, to: int, timeout_s: float = TIMEOUT_S) -> None:
        await self._contents.move_leader(topic, partition, to, timeout_s)
        await self._cluster.settle()

    async def move_coordinator(self, *, to: int, group: str | None = None, transactional_id: str | None = None) -> None:
        await self._contents.move_coordinator(group, transactional_id, to)
        await self._cluster.settle()

    async def fence(self, transactional_id: str) -> None:
        await self._contents.fence(transactional_id)

    async def expire_group_member(self, group: str, member: str | None = None) -> list[str]:
        return await self._contents.expire_group_member(group, member)

    def requests(self, *, since: float | RecordedRequest | Requests | None = None, **meant: Unpack[Meant]) -> Requests:
        """As `Kafka.requests`."""
        return self._cluster.faults.recorder.requests(match_of(**meant), begin_of(since), self._cluster.name_by_id)

    async def reset(self) -> None:
        for broker in self.brokers.values():
            if broker.state is BrokerState.DOWN:
                await broker.start()
        await self._contents.close_clients()  # a producer that asks for a topic makes it anew
        await self._cluster.empty(self._options.topics)

    async def make_topics(self) -> None:
        """Those of the options. For `odradek.testing.cluster`."""
        if self._options.topics:
            await self._cluster.create_topics(self._options.topics)

    async def stop(self) -> None:
        """Ends its clients and the brokers. For `odradek.testing.cluster`."""
        await self._contents.close_clients()
        await self._cluster.stop()
