"""Who reads in a world as a member of a consumer group: our own consumers, of the classic protocol and of KIP-848, on
machines of their own. All that a member is told, and asks for, goes to the history (group_history.py).

A member processes what it gets at once, and notes it; works on it for a while, now and then; and commits up to there,
now and then, and when partitions are taken from it. One commit is under way at a time.
"""

import asyncio
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.group.offsets import CommitOutcome
from odradek.client.consumer.records import PartitionRecords
from odradek.client.errors.client_errors import ClientError
from odradek.client.topic_partition import TopicPartition
from odradek.testing.sim.checking.group_history import NO_GENERATION
from odradek.testing.sim.checking.member_notes import MemberNotes
from odradek.testing.sim.checking.numbered import decoded
from odradek.testing.sim.cluster.workload import CLIENT_SETTINGS, Workload
from odradek.testing.sim.world.machine import Running

GROUP: Final = "readers"
SESSION_TIMEOUT_MS: Final = 3_000
HEARTBEAT_INTERVAL_MS: Final = 500
MAX_POLL_INTERVAL_MS: Final = 6_000
POLL_MS: Final = 300.0

Protocol = Literal["classic", "consumer"]
Strategy = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]


@dataclass(frozen=True, slots=True)
class Seat:
    """What the lives of one member have in common."""

    protocol: Protocol = "classic"
    strategy: Strategy = "range"
    """All members of the classic protocol need the same."""
    is_static: bool = False
    work_ms: float = 0.0
    """Works so long on what it has got, on average."""


class Member:
    """One life of a member. `has_generation`: all members of its group are of the classic protocol, and get the same
    generation; where one is of KIP-848, each has an epoch of its own, and commits with that."""

    def __init__(
        self, workload: Workload, running: Running, seat: Seat, name: str, rng: random.Random, *, has_generation: bool
    ) -> None:
        self.workload = workload
        self.world = workload.world
        self.running = running
        self.seat = seat
        self.name = name
        self.rng = rng
        self.has_generation = has_generation
        topic, instance_id = workload.topic, running.machine.name if seat.is_static else ""
        self.notes = MemberNotes(name, topic, self.world.history.add, lambda: self.world.now_ms, instance_id)
        self._consumer = self._new_consumer()
        self._one_at_a_time = asyncio.Lock()

    def _new_consumer(self) -> Consumer:
        environment = self.running.environment
        return Consumer(
            self.workload.bootstrap,
            client_id=self.name,
            environment=lambda: environment,
            group_id=GROUP,
            topics=[self.workload.topic],
            group_instance_id=self.notes.instance_id or None,
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            on_lost=self._lost,
            **consumer_settings(self.seat.protocol, self.seat.strategy),
        )

    async def live(self) -> None:
        """Until the process is to stop. Raises ClientError."""
        async with self._consumer as consumer:
            while not self.running.is_stopping:
                asked_ms = self.world.now_ms
                try:
                    batch = await consumer.get_batch(self.rng.choice((5, 50, 1_000)), POLL_MS)
                except ClientError as error:
                    self.notes.failed(asked_ms, type(error).__name__)
                    raise
                for part in batch.parts:
                    self._process(part, asked_ms)
                if batch and self.seat.work_ms and self.rng.random() < 0.2:
                    await self.running.environment.sleep(self.rng.expovariate(1.0) * self.seat.work_ms)
                if self.rng.random() < 0.5:
                    await self._commit(self.notes.positions)
            await self._commit(self.notes.positions)

    def _process(self, part: PartitionRecords, asked_ms: float) -> None:
        index = part.partition.partition
        records = [(offset, decoded(value)) for offset, value in zip(part.offsets, part.values, strict=True)]
        self.world.trace.note(self.running.process.name, "processed", index, *records)
        self.notes.processed(asked_ms, index, records)

    # -- commits ---------------------------------------------------------------------------------------------------

    async def _commit(self, partitions: Iterable[int]) -> None:
        """What was processed of these since the last commit."""
        async with self._one_at_a_time:
            offsets = self.notes.to_commit(partitions)
            if not offsets:
                return
            self.notes.commit_asked(offsets, self._generation)
            why = await self._asked(offsets)
            self.world.trace.note(self.running.process.name, "committed", why)
            self.notes.commit_answered(why, self._generation)

    async def _asked(self, offsets: Mapping[int, int]) -> str:
        """Nothing, or why not all of them are committed."""
        topic = self.workload.topic
        wanted = {TopicPartition(topic, index): offset for index, offset in offsets.items()}
        try:
            outcomes = await self._consumer.commit(wanted)
        except ClientError as error:
            return type(error).__name__
        others = {outcome.value for outcome in outcomes.values() if outcome is not CommitOutcome.COMMITTED}
        return ", ".join(sorted(others))

    @property
    def _generation(self) -> int:
        return self._consumer.group_metadata().generation if self.has_generation else NO_GENERATION

    # -- what it owns ----------------------------------------------------------------------------------------------

    def _assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._note("assigned", partitions)
        self.notes.assigned(indexes_of(partitions), self._generation)

    async def _revoked(self, partitions: frozenset[TopicPartition]) -> None:
        await self._commit(indexes_of(partitions))
        self._note("revoked", partitions)
        self.notes.revoked(indexes_of(partitions))

    def _lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._note("lost", partitions)
        self.notes.revoked(indexes_of(partitions), is_lost=True)

    def _note(self, what: str, partitions: frozenset[TopicPartition]) -> None:
        self.world.trace.note(self.running.process.name, what, *indexes_of(partitions))


def consumer_settings(protocol: Protocol, strategy: Strategy) -> dict[str, Any]:
    """What consumers that take part by a protocol have in common: they do not commit by themselves."""
    common: dict[str, Any] = {
        "max_poll_interval_ms": MAX_POLL_INTERVAL_MS,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "fetch_max_wait_ms": 300,
        "default_api_timeout_ms": 3_000,
        "close_timeout_ms": 3_000,
        **CLIENT_SETTINGS,
    }
    if protocol == "consumer":
        return {**common, "group_protocol": "consumer"}
    return {
        **common,
        "session_timeout_ms": SESSION_TIMEOUT_MS,
        "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        "partition_assignment_strategy": strategy,
    }


def indexes_of(partitions: Iterable[TopicPartition]) -> list[int]:
    """Sorted."""
    return sorted(partition.partition for partition in partitions)
