"""A member of a group under test: aiokafka's consumer.

It writes down what it processes, commits what is written down, and commits once more before it gives partitions up.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka import TopicPartition as AiokafkaPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from aiokafka.errors import KafkaError as AiokafkaError

from tests.cluster.client_session import POLL_S, REQUEST_TIMEOUT_MS, RETRY_S, Session, now_ms
from tests.cluster.membership import COMMIT_S, HEARTBEAT_MS, MAX_POLL_INTERVAL_MS, SESSION_TIMEOUT_MS, Membership


def take_part_with_aiokafka(session: Session) -> None:
    """Commits while it goes on, and waits for it when it gives partitions up."""
    asyncio.run(_take_part_with_aiokafka(session))


class _AiokafkaMember(ConsumerRebalanceListener):
    def __init__(self, member: Membership) -> None:
        self.member = member
        self.commits: set[asyncio.Task[None]] = set()
        job = member.job
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=job.bootstrap,
            group_id=job.group,
            group_instance_id=job.instance_id or None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
            request_timeout_ms=MAX_POLL_INTERVAL_MS + REQUEST_TIMEOUT_MS,  # a join is held
            metadata_max_age_ms=REQUEST_TIMEOUT_MS,
            partition_assignment_strategy=(AiokafkaRange,),
        )
        self.consumer.subscribe([job.topic], listener=self)

    @property
    def generation(self) -> int:
        """aiokafka has it, and does not tell it."""
        consumer: Any = self.consumer
        generation: int = consumer._coordinator.generation
        return generation

    async def on_partitions_assigned(self, assigned: Iterable[AiokafkaPartition]) -> None:
        self.member.assigned((each.partition for each in assigned), self.generation)

    async def on_partitions_revoked(self, revoked: Iterable[AiokafkaPartition]) -> None:
        await self.commit_everything()
        self.member.revoked(each.partition for each in revoked)

    def commit_in_background(self) -> None:
        """What there is to commit, unless a commit is under way."""
        if offsets := self.member.to_commit():
            self.member.commit_asked(offsets, self.generation)
            task = asyncio.create_task(self._commit(offsets))
            self.commits.add(task)
            task.add_done_callback(self.commits.discard)

    async def commit_everything(self) -> None:
        """Returns when nothing is under way; what cannot be committed is left to the next owner."""
        if self.commits:
            await asyncio.wait(self.commits)
        if offsets := self.member.to_commit(is_now=True):
            self.member.commit_asked(offsets, self.generation)
            await self._commit(offsets)

    async def _commit(self, offsets: dict[int, int]) -> None:
        topic = self.member.job.topic
        failure: BaseException | None = None
        try:
            positions = {AiokafkaPartition(topic, partition): offset for partition, offset in offsets.items()}
            await asyncio.wait_for(self.consumer.commit(positions), COMMIT_S)
        except (AiokafkaError, TimeoutError, asyncio.CancelledError) as error:
            failure = error
        self.member.commit_answered(failure, self.generation)


async def _started(session: Session) -> _AiokafkaMember:
    """aiokafka gives a start up as soon as no broker listens."""
    while True:
        ours = _AiokafkaMember(Membership(session))
        try:
            await ours.consumer.start()
        except AiokafkaError:
            await ours.consumer.stop()
            if session.stop.is_set():
                raise
            await asyncio.sleep(RETRY_S)
        else:
            return ours


async def _take_part_with_aiokafka(session: Session) -> None:
    ours = await _started(session)
    member, consumer = ours.member, ours.consumer
    while not session.stop.is_set():
        asked_ms = now_ms()
        try:
            polled = await consumer.getmany(timeout_ms=int(POLL_S * 1000))
        except AiokafkaError as error:
            member.failed(asked_ms, error)
            await asyncio.sleep(RETRY_S)
            continue
        for each, records in polled.items():
            member.processed(asked_ms, each.partition, [(record.offset, record.value) for record in records])
        ours.commit_in_background()
    await ours.commit_everything()
    with suppress(AiokafkaError):
        await consumer.stop()
    member.left()
