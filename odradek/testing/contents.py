"""What a test puts into its cluster and looks at there, by Odradek's own client: topics, records, groups, transactions.

It belongs to one event loop: the caller's (async_kafka.py), or that of a thread of the test kit's own (kafka.py).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from odradek.client.errors.broker_errors import BrokerError, UnknownTopic
from odradek.client.fetching.list_offsets import EARLIEST, LATEST
from odradek.client.topic_partition import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.testing import operations
from odradek.testing.broker_state import WrongBrokerState
from odradek.testing.own_client import CLIENT_ID
from odradek.testing.record_shapes import RecordShape, send_arguments, shown
from odradek.testing.waiting import WaitedInVain, now_s, wait_until

if TYPE_CHECKING:  # a test that uses another project's client alone can do without
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.groups import MemberDescription
    from odradek.client.consumer.consumer import Consumer
    from odradek.client.consumer.records import ConsumerRecord
    from odradek.client.producer.producer import Producer
    from odradek.client.producer.results.produce_results import Ack

POLL_MS: Final = 50.0
REQUEST_TIMEOUT_MS: Final = 2_000
"""A broker that is paused is asked no longer than that; the default of 30 s is for a network and its load."""


class Contents:
    """See the module. Its clients are made when they are first needed."""

    def __init__(self, servers: Callable[[], str]) -> None:
        """`servers`: HOST:PORT of the brokers that run now, with commas between them."""
        self._running_servers = servers
        self._is_stale = False
        self._clients = AsyncExitStack()
        self._admin: Admin | None = None
        self._producer: Producer | None = None

    def renew(self) -> None:
        """The clients that there are may wait for a broker that does not answer, or know topics that are gone: others
        are made when one is needed next. In any thread."""
        self._is_stale = True

    async def close_clients(self) -> None:
        """Its clients are closed; they are made anew where they are needed again."""
        self._is_stale = False
        self._admin = self._producer = None
        await self._clients.aclose()

    def _servers(self) -> str:
        """Raises WrongBrokerState."""
        if servers := self._running_servers():
            return servers
        raise WrongBrokerState("no broker of this cluster runs: start one")

    async def admin(self) -> "Admin":
        if self._is_stale:
            await self.close_clients()
        if self._admin is None:
            from odradek.client.admin.admin import Admin

            made = Admin(self._servers(), client_id=CLIENT_ID, request_timeout_ms=REQUEST_TIMEOUT_MS)
            self._admin = await self._clients.enter_async_context(made)
        return self._admin

    async def _sender(self) -> "Producer":
        if self._is_stale:
            await self.close_clients()
        if self._producer is None:
            from odradek.client.producer.producer import Producer

            made = Producer(self._servers(), client_id=CLIENT_ID, linger_ms=0, request_timeout_ms=REQUEST_TIMEOUT_MS)
            self._producer = await self._clients.enter_async_context(made)
        return self._producer

    # -- topics -----------------------------------------------------------------------------------------------------

    async def topics(self) -> list[str]:
        """Of the test's: without internal ones."""
        return [each.name for each in await (await self.admin()).list_topics() if not each.is_internal]

    async def partitions(self, topic: str) -> list[TopicPartition]:
        """Raises UnknownTopic."""
        described = await (await self.admin()).describe_topic(topic)
        return [TopicPartition(topic, each.partition) for each in described.partitions]

    # -- records ----------------------------------------------------------------------------------------------------

    async def produce(self, topic: str, records: Iterable[RecordShape], now_ms: int) -> "list[Ack]":
        """Returns when all are acknowledged by all in-sync replicas, in their order. `now_ms`: their timestamp, where
        they have none. Raises TypeError, ClientError."""
        producer = await self._sender()
        deliveries = [await producer.send(topic, **send_arguments(record, now_ms)) for record in records]
        return [await delivery for delivery in deliveries]

    async def records(self, topic: str, count: int | None, timeout_s: float) -> "list[ConsumerRecord]":
        """All committed records that the topic has, once it has `count` of them; None: those that it has now.

        Ordered by partition and offset. Raises WaitedInVain, ClientError.
        """
        from odradek.client.consumer.consumer import Consumer

        deadline_s = now_s() + timeout_s
        async with Consumer(
            bootstrap_servers=self._servers(),
            client_id=CLIENT_ID,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer:
            partitions = await self._partitions_in_time(topic, count, deadline_s)
            consumer.assign(partitions)
            found: list[ConsumerRecord] = []
            while True:
                ends = await consumer.end_offsets(partitions)
                while not await _has_reached(consumer, ends):
                    found += await consumer.get_batch(timeout_ms=POLL_MS)
                    _check_time(topic, count, found, deadline_s, timeout_s)
                if count is None or len(found) >= count:
                    return sorted(found, key=lambda record: (record.partition, record.offset))
                found += await consumer.get_batch(timeout_ms=POLL_MS)
                _check_time(topic, count, found, deadline_s, timeout_s)

    async def last_records(self, partitions: Iterable[TopicPartition], count_max: int) -> "list[ConsumerRecord]":
        """The records at the last so many offsets of each partition, those of open and aborted transactions, too.

        Ordered by partition and offset. Raises ClientError.
        """
        from odradek.client.consumer.consumer import Consumer

        wanted = dict.fromkeys(partitions, LATEST)
        admin = await self.admin()
        begins = await admin.list_offsets(dict.fromkeys(wanted, EARLIEST))
        ends = {partition: each.offset for partition, each in (await admin.list_offsets(wanted)).items()}
        starts = {each: max(begins[each].offset, end - count_max) for each, end in ends.items()}
        there = {each: start for each, start in starts.items() if start < ends[each]}
        found: list[ConsumerRecord] = []
        if not there:
            return found
        async with Consumer(bootstrap_servers=self._servers(), client_id=CLIENT_ID) as consumer:
            consumer.assign(there)
            while not await _has_reached(consumer, {each: ends[each] for each in there}):
                found += await consumer.get_batch(timeout_ms=POLL_MS)
        return sorted(found, key=lambda record: (record.partition, record.offset))

    async def overview(self) -> list[tuple[str, str]]:
        """Titles and texts: the last records of the topics, the groups, as people read them (overview.py)."""
        from odradek.testing.overview import overview

        return await overview(self)

    async def _partitions_in_time(self, topic: str, count: int | None, deadline_s: float) -> list[TopicPartition]:
        while True:
            try:
                return await self.partitions(topic)
            except UnknownTopic:
                if count is None:
                    raise
                if now_s() >= deadline_s:
                    known = ", ".join(sorted(await self.topics())) or "none"
                    raise WaitedInVain(
                        f"{count} record(s) of {topic!r} were waited for; there is no such topic, but: {known}"
                    ) from None

    # -- groups -----------------------------------------------------------------------------------------------------

    async def committed(self, group_id: str) -> dict[TopicPartition, int]:
        offsets = await (await self.admin()).group_offsets(group_id)
        return {partition: each.offset for partition, each in offsets.items()}

    async def members(self, group_id: str) -> "Sequence[MemberDescription]":
        """None where there is no such group."""
        try:
            return (await (await self.admin()).describe_group(group_id)).members
        except BrokerError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            return ()

    async def lag(self, group_id: str) -> dict[TopicPartition, int]:
        """By partition that the group has committed an offset of, or that a member has: how many offsets there are
        behind the committed one, or where there is none, behind the first record."""
        admin = await self.admin()
        committed = await self.committed(group_id)
        partitions = set(committed)
        for member in await self.members(group_id):
            partitions.update(member.partitions or ())
        wanted = sorted(partitions)
        ends = await admin.list_offsets(dict.fromkeys(wanted, LATEST))
        begins = await admin.list_offsets(dict.fromkeys([each for each in wanted if each not in committed], EARLIEST))
        return {
            partition: ends[partition].offset
            - (committed[partition] if partition in committed else begins[partition].offset)
            for partition in wanted
        }

    # -- what happens in real clusters ------------------------------------------------------------------------------

    async def move_leader(self, topic: str, partition: int, to: int, timeout_s: float) -> None:
        """As `operations.move_leader`."""
        await operations.move_leader(await self.admin(), topic, partition, to, timeout_s)

    async def move_coordinator(self, group: str | None, transactional_id: str | None, to: int) -> None:
        """As `operations.move_coordinator`."""
        await operations.move_coordinator(await self.admin(), group, transactional_id, to)

    async def fence(self, transactional_id: str) -> None:
        """As `operations.fence`."""
        await operations.fence(await self.admin(), transactional_id)

    async def expire_group_member(self, group: str, member: str | None) -> list[str]:
        """As `operations.expire_group_member`."""
        return await operations.expire_group_member(await self.admin(), group, member)

    # -- waiting ----------------------------------------------------------------------------------------------------

    async def wait_for_lag(self, group_id: str, lag: int, timeout_s: float) -> None:
        """Returns when the group has committed something and is behind by so much, or less. Raises WaitedInVain."""

        async def is_close() -> bool:
            assert await self.committed(group_id), "nothing is committed"
            seen = await self.lag(group_id)
            assert sum(seen.values()) <= lag, ", ".join(f"{each}: {count}" for each, count in seen.items())
            return True

        await wait_until(is_close, f"group {group_id!r} is behind by {lag} at most", timeout_s)


async def _has_reached(consumer: "Consumer", ends: Mapping[TopicPartition, int]) -> bool:
    return all([await consumer.position(partition) >= end for partition, end in ends.items()])


def _check_time(
    topic: str, count: int | None, found: "Sequence[ConsumerRecord]", deadline_s: float, timeout_s: float
) -> None:
    """Raises WaitedInVain."""
    if now_s() >= deadline_s:
        wanted = "all records" if count is None else f"{count} record(s)"
        raise WaitedInVain(
            f"{wanted} of {topic!r} were waited for, and within {timeout_s:g} s {len(found)} came:\n{shown(found)}"
        )
