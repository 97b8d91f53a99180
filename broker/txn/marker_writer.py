"""Writes the markers of transactions into the partitions that this broker leads (KafkaApis.handleWriteTxnMarkers).

A marker for `__consumer_offsets` goes through its coordinator, which has to know at once which offsets count.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from odradek.broker.coordinator.machine import Now, Waiting
from odradek.broker.coordinator.shards import Shards
from odradek.broker.group.machine import GroupMachine
from odradek.broker.group.offset_requests import EndTransaction
from odradek.broker.internal_topic_names import OFFSETS_TOPIC
from odradek.broker.log.markers import Marker, encode_marker
from odradek.broker.log.validation import Origin
from odradek.broker.log.verifications import Proof
from odradek.broker.replica.acknowledgements import ACKS_ALL
from odradek.broker.replica.append_ticket import AppendTicket, outcomes
from odradek.broker.replica.partition import Partition
from odradek.broker.txn.transaction import ProducerIdentity, TopicPartition
from odradek.protocol.batches.record_encoding import build_batch
from odradek.protocol.batches.records import Record
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.runtime.environment import Environment
from odradek.runtime.tasks import breathe

OF_COORDINATORS: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Who sends a marker asks leaders of partitions, and knows no other answer than that they are none (as in Kafka)."""

Written = dict[TopicPartition, KafkaError | None]
"""Of each partition: None where its marker is committed, or why it is not, or not known to be."""

APPENDED_TOGETHER: Final = 100
"""So many markers are appended before the loop has a turn."""


class MarkerOrder(NamedTuple):
    """A marker, and where it is to stand."""

    producer: ProducerIdentity
    is_commit: bool
    coordinator_epoch: int
    partitions: Sequence[TopicPartition]
    transaction_version: int = 0


class MarkerWriter:
    """Of one broker."""

    __slots__ = ("_environment", "_find", "_groups", "_timeout_ms")

    def __init__(
        self,
        find: Callable[[str, int], Partition],
        groups: Shards[GroupMachine],
        environment: Environment,
        timeout_ms: Callable[[], float],
    ) -> None:
        """`find`: a partition by topic and index, or KafkaError. `timeout_ms`: how long the replicas may take."""
        self._find = find
        self._groups = groups
        self._environment = environment
        self._timeout_ms = timeout_ms

    async def write(self, order: MarkerOrder) -> Written:
        answers: Written = {}
        batch = _marker_batch(order, self._environment.now_ms())
        appended: list[tuple[TopicPartition, AppendTicket]] = []
        of_groups: list[TopicPartition] = []
        for number, place in enumerate(order.partitions, 1):
            if number % APPENDED_TOGETHER == 0:
                await breathe()
            if place[0] == OFFSETS_TOPIC:
                of_groups.append(place)
                continue
            try:
                appended.append((place, self._append(order, batch, place)))
            except KafkaError as error:
                answers[place] = error
        told = asyncio.gather(*(self._tell_group_shard(order, index) for _, index in of_groups))
        errors = await outcomes([ticket for _, ticket in appended], self._timeout_ms(), self._environment)
        answers |= {place: error for (place, _), error in zip(appended, errors, strict=True)}
        answers |= dict(zip(of_groups, await told, strict=True))
        return answers

    def _append(self, order: MarkerOrder, batch: bytes, place: TopicPartition) -> AppendTicket:
        """Raises KafkaError."""
        partition = self._find(*place)
        proof = Proof(transaction_version=order.transaction_version)
        return partition.append(batch, ACKS_ALL, self._environment.now_ms(), origin=Origin.COORDINATOR, proof=proof)

    async def _tell_group_shard(self, order: MarkerOrder, index: int) -> KafkaError | None:
        end = EndTransaction(
            producer_id=order.producer.producer_id,
            producer_epoch=order.producer.epoch,
            coordinator_epoch=order.coordinator_epoch,
            is_commit=order.is_commit,
            transaction_version=order.transaction_version,
        )

        def asking(machine: GroupMachine, waiting: Waiting[None], now: Now) -> None:
            machine.end_transaction(end, waiting, now)

        try:
            self._find(OFFSETS_TOPIC, index)
            await self._groups.at(index).ask(asking)
        except KafkaError as error:
            if error.code in OF_COORDINATORS:
                return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message)
            return error
        return None


def _marker_batch(order: MarkerOrder, now_ms: int) -> bytes:
    """The same for each partition."""
    key, value = encode_marker(Marker(not order.is_commit, order.coordinator_epoch))
    return build_batch(
        [Record(0, now_ms, key, value)],
        producer_id=order.producer.producer_id,
        producer_epoch=order.producer.epoch,
        is_transactional=True,
        is_control=True,
    )
