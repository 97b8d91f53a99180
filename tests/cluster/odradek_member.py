"""A member of a group under test: our own consumer, of the classic protocol, so that it shares a group with the others.

It processes what it gets at once, commits and waits for it, and commits once more before partitions are taken from it.
"""

import asyncio
from collections.abc import Iterable

from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.group.offsets import CommitOutcome
from odradek.client.errors.client_errors import ClientError
from odradek.client.topic_partition import TopicPartition
from tests.cluster.client_session import POLL_S, RECONNECT_MS, REQUEST_TIMEOUT_MS, Session, now_ms
from tests.cluster.membership import COMMIT_S, HEARTBEAT_MS, MAX_POLL_INTERVAL_MS, SESSION_TIMEOUT_MS, Membership


def take_part_with_our_own(session: Session) -> None:
    """Whatever a consumer raises that has started ends the process: no fault of a broker should."""
    asyncio.run(_take_part(session))


async def _take_part(session: Session) -> None:
    """A start ends when no broker has answered for the time of a request."""
    while not session.stop.is_set():
        member = _Member(Membership(session))
        try:
            await member.start()
        except ClientError as error:
            member.member.failed(now_ms(), error)
        else:
            await member.live()


class _Member:
    def __init__(self, member: Membership) -> None:
        self.member = member
        self._one_at_a_time = asyncio.Lock()
        self._told_generation = -1
        job = member.job
        self._consumer = Consumer(
            job.bootstrap,
            client_id=job.name,
            group_id=job.group,
            topics=[job.topic],
            group_instance_id=job.instance_id or None,
            partition_assignment_strategy="range",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            reconnect_backoff_max_ms=RECONNECT_MS,
            default_api_timeout_ms=int(COMMIT_S * 1000),
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            on_lost=self._lost,
        )

    async def start(self) -> None:
        """Raises ClientError."""
        await self._consumer.start()

    async def live(self) -> None:
        """From its start until the session stops. Raises ClientError."""
        try:
            await self._take_part(self._consumer)
        finally:
            await self._consumer.close()
        self.member.left()

    async def _take_part(self, consumer: Consumer) -> None:
        while not self.member.session.stop.is_set():
            asked_ms = now_ms()
            batch = await consumer.get_batch(timeout_ms=POLL_S * 1000)
            self._note_nothing()
            for part in batch.parts:
                records = list(zip(part.offsets, part.values, strict=True))
                self.member.processed(asked_ms, part.partition.partition, records)
            await self._commit()
        await self._commit(is_now=True)

    async def _commit(self, *, is_now: bool = False) -> None:
        """What is processed; nothing where a commit has just been, unless `is_now`."""
        async with self._one_at_a_time:
            if offsets := self.member.to_commit(is_now=is_now):
                self.member.commit_asked(offsets, self._generation)
                self.member.commit_answered(await self._error_of_commit(offsets), self._generation)

    async def _error_of_commit(self, offsets: dict[int, int]) -> object:
        """None where all of them are committed."""
        topic = self.member.job.topic
        try:
            outcomes = await self._consumer.commit(
                {TopicPartition(topic, index): offset for index, offset in offsets.items()}
            )
        except ClientError as error:
            return error
        return {each.value for each in outcomes.values() if each is not CommitOutcome.COMMITTED} or None

    @property
    def _generation(self) -> int:
        generation: int = self._consumer.group_metadata().generation
        return generation

    def _note_nothing(self) -> None:
        """Whose leader gives it nothing: a consumer tells of what is added alone."""
        if self._generation > self._told_generation and not self._consumer.assignment():
            self._assigned(frozenset())

    def _assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._told_generation = self._generation
        self.member.assigned(_indexes_of(partitions), self._generation)

    async def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        await self._commit(is_now=True)
        self.member.revoked(_indexes_of(partitions))

    def _lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.member.revoked(_indexes_of(partitions), is_lost=True)


def _indexes_of(partitions: Iterable[TopicPartition]) -> list[int]:
    return [each.partition for each in partitions]
